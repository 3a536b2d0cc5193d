"""The model as a strategy sees it: it adds up what it costs, and nothing is paid before it is asked."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from ..errors import ConfigurationError, ModelError
from ..llm import LLM, TokenCount
from ..prompts import estimate_tokens
from ..types import Usage
from .preserving import Lost

T = TypeVar("T", bound=BaseModel)

BUDGET = 2_000
"""Tokens of memories that one request carries: so many that the reply still fits, and small models still copy well."""
REPLY_TOKENS = 2_400
"""Tokens that a reply may have."""


class OptimizationModel:
    """What a strategy may ask.

    Args:
        llm: the model; ``None`` where none is configured, which is an error only when a strategy asks.
        budget: tokens of memories that one request may carry.

    Attributes:
        usage: what all calls took so far, failed ones included.
        asked_again: whether the model was asked once more since a fact was missing or made up.
        missing: what its first replies left out.
    """

    def __init__(self, llm: LLM | None, *, budget: int = BUDGET) -> None:
        self._llm = llm
        self.budget = budget
        self.usage: Usage = Usage()
        self.asked_again: bool = False
        self.missing: list[Lost] = []

    async def structured(self, messages: Sequence[Mapping[str, Any]], schema: type[T]) -> T:
        """A validated instance of the schema.

        Raises:
            ModelError: the model could not be asked, or not be understood.
            ConfigurationError: no model is configured.
        """
        try:
            reply = await self._model().structured(messages, schema, max_tokens=REPLY_TOKENS)
        except ModelError as error:
            self.usage += error.usage
            raise
        self.usage += reply.usage
        return reply.value

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """A reply in the model's own words.

        Raises:
            ModelError: the model could not be asked.
            ConfigurationError: no model is configured.
        """
        try:
            reply = await self._model().complete(messages, max_tokens=REPLY_TOKENS)
        except ModelError as error:
            self.usage += error.usage
            raise
        self.usage += reply.usage
        return reply.content or ""

    async def count_tokens(self, texts: Sequence[str]) -> int:
        """How many tokens the texts have; no request is sent."""
        return (await self.counted(texts)).tokens

    async def counted(self, texts: Sequence[str]) -> TokenCount:
        """The same, and whether the model's own tokenizer counted them."""
        if self._llm is None:
            return TokenCount(sum(estimate_tokens(text) for text in texts), exact=False)
        return await self._llm.count_tokens(texts)

    def _model(self) -> LLM:
        if self._llm is None:
            raise ConfigurationError("this strategy asks a model: pass MemoryManager(model=...)")
        return self._llm
