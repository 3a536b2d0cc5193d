"""``agentic``: a model reads the candidates and names those that matter."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.config import JsonDict

from ..guards import resolve_alias
from ..llm import LLM
from ..prompts import newest_within, selection_prompt
from ..types import MemorySearchResult, Tier, Usage, UserMemory
from .retriever import SearchRequest, Sources

CANDIDATE_TOKENS = 4_000
"""Estimated tokens that the candidates shown to the model may have: the newest that fit."""
_CANDIDATES = 1_000
"""Newest memories that are read before the token budget cuts them."""
_REPLY_TOKENS = 1_200


def _aliases(value: object) -> object:
    """Null is an empty list, one alias a list of one; numbers and ``{"id": 3}`` are aliases as well."""
    match value:
        case None:
            return []
        case list():
            return [text for item in value if (text := _alias(item))]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case str() | int() | dict():
            return _aliases([value])  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return value


def _alias(item: object) -> str:
    match item:
        case dict():
            values = [v for v in item.values() if isinstance(v, str | int)]  # pyright: ignore[reportUnknownVariableType]
            return _alias(values[0]) if values else ""
        case bool() | None:
            return ""
        case str() | int() | float():
            return f"{item:g}" if isinstance(item, float) else str(item)
        case _:
            return ""


def _plain(schema: JsonDict) -> None:
    schema.pop("description", None)


class MemorySearchResponse(BaseModel):
    """What a model answers: the aliases of the memories that matter, most relevant first; none is a right answer."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, json_schema_extra=_plain)

    memory_ids: Annotated[list[str], BeforeValidator(_aliases), Field(json_schema_extra={"maxItems": 20})]


class Agentic:
    """The memories that a model finds relevant, most relevant first."""

    needs_query = True

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        """Find what matters. With nothing to search, no model is asked."""
        newest = await sources.read.last_n(request.scope, request.topics, _CANDIDATES)
        memories, tier, usage = await select(sources.llm, request.query or "", newest, request.limit)
        return MemorySearchResult(memories, tier=tier, usage=usage)


async def select(
    llm: LLM, query: str, memories: Sequence[UserMemory], limit: int
) -> tuple[list[UserMemory], Tier | None, Usage]:
    """The memories that a model finds relevant to the query, most relevant first.

    Args:
        llm: the model.
        query: a question or a task; not blank.
        memories: the candidates, oldest first. The newest that fit the budget are shown.
        limit: how many at most; 0 or less is all.

    Raises:
        ModelError: the model could not be asked. Its answer that nothing is relevant is an empty list instead.
        StructuredOutputError: its reply could not be read.
    """
    shown = newest_within([m for m in memories if not m.metadata.get("suspect")], CANDIDATE_TOKENS)
    if not shown:
        return [], None, Usage()
    reply = await llm.structured(selection_prompt(query, shown), MemorySearchResponse, max_tokens=_REPLY_TOKENS)
    found = [memory for alias in reply.value.memory_ids if (memory := resolve_alias(alias, shown)) is not None]
    unique = list({str(memory.memory_id): memory for memory in found}.values())
    return unique[:limit] if limit > 0 else unique, reply.tier, reply.usage
