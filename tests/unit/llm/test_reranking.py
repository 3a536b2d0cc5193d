"""Reranking: the flow, and what a provider may answer."""

from types import SimpleNamespace
from typing import Any

import pytest

from asyncmem.errors import ConfigurationError, ModelAuthenticationError, ModelUnavailableError
from asyncmem.llm import LLM
from asyncmem.settings import LLMSettings
from asyncmem.testing import Behaviour, ProviderSimulator, ScriptedModel

pytestmark = pytest.mark.anyio
TEXTS = ["likes coffee", "likes green tea", "tea"]


class Reranking:
    """A router whose reranker answers what it is told to."""

    def __init__(self, *order: tuple[int, float]) -> None:
        self.order = order
        self.asked: list[dict[str, Any]] = []

    def get_model_names(self) -> list[str]:
        return ["ranker"]

    async def acompletion(self, model: str, messages: list[Any], **arguments: Any) -> Any:
        raise AssertionError

    async def arerank(self, **arguments: Any) -> Any:
        self.asked.append(arguments)
        return SimpleNamespace(results=[{"index": i, "relevance_score": score} for i, score in self.order])


async def test_the_order_is_that_of_the_scores() -> None:
    """Places come by score, each once, and the texts go out as they are."""
    router = Reranking((0, 0.1), (2, 0.9), (2, 0.3))
    reply = await LLM(router).rerank("tea", TEXTS)
    assert (reply.order, reply.usage.calls) == ([(2, 0.9), (0, 0.1)], 1)
    assert (router.asked[0]["query"], router.asked[0]["documents"]) == ("tea", TEXTS)


async def test_a_place_that_no_text_has_is_an_error() -> None:
    """A reranker that names a fourth text of three is broken."""
    with pytest.raises(ModelUnavailableError, match="not given"):
        await LLM(Reranking((3, 0.5))).rerank("tea", TEXTS)


async def test_a_model_of_ones_own_cannot_rerank() -> None:
    """The error says what to pass."""
    with pytest.raises(ConfigurationError, match="name a reranker"):
        await LLM(ScriptedModel([])).rerank("tea", TEXTS)


async def test_a_provider_is_asked_again_and_its_errors_are_ours() -> None:
    """A passing failure is tried again; a wrong key is raised as that, without the key and the texts."""
    async with ProviderSimulator() as provider:
        settings = LLMSettings(api_base=provider.root, api_key="sk-simulated-key", retries=1)
        provider.behaviour = Behaviour(fails=["rate_limit"], retry_after="0.01")
        reply = await LLM("cohere/rerank-v3.5", settings).rerank("green tea", TEXTS)
        assert reply.order[0][0] == 1
        assert len(provider.received) == 2
        provider.behaviour = Behaviour(fails=["wrong_key"])
        with pytest.raises(ModelAuthenticationError) as caught:
            await LLM("cohere/rerank-v3.5", settings).rerank("green tea", TEXTS)
        assert not any(text in str(caught.value) for text in ("sk-simulated", "green tea", *TEXTS))
