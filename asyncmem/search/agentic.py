"""``agentic``: a model reads the candidates and names those that matter."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.config import JsonDict

from ..aliases import resolve_alias
from ..errors import ModelError
from ..llm import LLM
from ..prompts import estimate_tokens, newest_within, selection_prompt
from ..types import MemorySearchResult, Tier, Usage, UserMemory
from .hybrid import Hybrid
from .keyword import Keyword
from .retriever import SearchRequest, Sources, without_limit

CANDIDATE_TOKENS = 4_000
"""Estimated tokens that the candidates of one prompt may have."""
_PER_MEMORY = 3
"""Tokens of an alias and a line break."""
_ALL = 1_000
"""More memories than this never fit a prompt, and are not read to see whether they do."""
_RANKED = 400
"""Candidates taken from the method that ranks before the model does."""
_SHARE_OF_RANKED = 0.8
"""Part of the prompt that ranked candidates may fill; the newest memories have the rest."""
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
    """The memories that a model finds relevant, most relevant first.

    All are shown to it as long as they fit its prompt. Beyond that it sees the best of ``hybrid`` (``keyword``
    without an embedder) and the newest, or, with ``candidates="chunks"``, all of them in prompts side by side.
    """

    needs_query = True

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        """Find what matters. With nothing to search, no model is asked."""
        read = sources.store.read.last_n
        if request.candidates == "chunks":
            every = trusted(await read(request.scope, request.filters, 0))
            return await _from_chunks(sources.llm, request, every)
        newest = await read(request.scope, request.filters, _ALL)
        shown, usage = trusted(newest), Usage()
        if len(newest) == _ALL or tokens_of(shown) > CANDIDATE_TOKENS:
            shown, usage = await _prerank(request, sources, shown)
        memories, tier, spent = await select(sources.llm, request.query or "", shown, request.limit)
        return MemorySearchResult(memories, tier=tier, usage=usage + spent)


def trusted(memories: Sequence[UserMemory]) -> list[UserMemory]:
    """Without those suspected of instructing a model."""
    return [memory for memory in memories if not memory.metadata.get("suspect")]


def tokens_of(memories: Sequence[UserMemory]) -> int:
    """Estimated tokens of the memories in a prompt."""
    return sum(estimate_tokens(memory.memory) + _PER_MEMORY for memory in memories)


async def _prerank(
    request: SearchRequest, sources: Sources, newest: Sequence[UserMemory]
) -> tuple[list[UserMemory], Usage]:
    """The best of another method, filled up with the newest, in the order of their making."""
    method = Keyword() if sources.embedder is None else Hybrid()
    ranked = await method.retrieve(without_limit(request, _RANKED), sources)
    chosen = _within(trusted(ranked), int(_SHARE_OF_RANKED * CANDIDATE_TOKENS))
    known = {memory.memory_id for memory in chosen}
    rest = [memory for memory in newest if memory.memory_id not in known]
    chosen += newest_within(rest, CANDIDATE_TOKENS - tokens_of(chosen))
    return sorted(chosen or rest[-1:], key=made), ranked.usage


def made(memory: UserMemory) -> tuple[bool, float, str]:
    """Orders memories by their making; those without a time first."""
    at = memory.created_at
    return at is not None, at.timestamp() if at else 0.0, str(memory.memory_id)


def _within(memories: Sequence[UserMemory], tokens: int) -> list[UserMemory]:
    """Those of the memories that fit, in their order; one that is too long makes room for the next."""
    chosen: list[UserMemory] = []
    for memory in memories:
        cost = tokens_of([memory])
        if cost <= tokens:
            tokens -= cost
            chosen.append(memory)
    return chosen


async def _from_chunks(llm: LLM, request: SearchRequest, memories: list[UserMemory]) -> MemorySearchResult:
    """What matters of all memories: each chunk is asked for its own, and then all those for the order."""
    query = request.query or ""
    chunks: list[list[UserMemory]] = []
    while memories:
        chunk = newest_within(memories, CANDIDATE_TOKENS) or memories[-1:]
        del memories[-len(chunk) :]
        chunks.append(chunk)
    usage = Usage()
    if len(chunks) > 1:
        answers = await _side_by_side(llm, query, chunks)
        usage = sum((spent for _, _, spent in answers), usage)
        chunks = [_within([m for found, _, _ in answers for m in found], CANDIDATE_TOKENS)]
    found, tier, spent = await select(llm, query, chunks[0] if chunks else [], request.limit)
    return MemorySearchResult(found, tier=tier, usage=usage + spent)


async def _side_by_side(
    llm: LLM, query: str, chunks: Sequence[Sequence[UserMemory]]
) -> list[tuple[list[UserMemory], Tier | None, Usage]]:
    """What matters of each chunk; the first error ends all."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(select(llm, query, chunk, 0)) for chunk in chunks]
    except* ModelError as errors:
        raise _first(errors) from None
    return [task.result() for task in tasks]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first  # pyright: ignore[reportUnknownArgumentType]


async def select(
    llm: LLM, query: str, memories: Sequence[UserMemory], limit: int
) -> tuple[list[UserMemory], Tier | None, Usage]:
    """The memories that a model finds relevant to the query, most relevant first.

    Args:
        llm: the model.
        query: a question or a task; not blank.
        memories: the candidates, oldest first. The newest that fit the budget are shown; without any, no model
            is asked.
        limit: how many at most; 0 or less is all.

    Raises:
        ModelError: the model could not be asked. Its answer that nothing is relevant is an empty list instead.
        StructuredOutputError: its reply could not be read.
    """
    kept = trusted(memories)
    shown = newest_within(kept, CANDIDATE_TOKENS) or kept[-1:]
    if not shown:
        return [], None, Usage()
    reply = await llm.structured(selection_prompt(query, shown), MemorySearchResponse, max_tokens=_REPLY_TOKENS)
    found = [memory for alias in reply.value.memory_ids if (memory := resolve_alias(alias, shown)) is not None]
    unique = list({str(memory.memory_id): memory for memory in found}.values())
    return unique[:limit] if limit > 0 else unique, reply.tier, reply.usage
