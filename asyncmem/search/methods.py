"""The retrieval methods by name, and what holds for all of them."""

import reprlib
from dataclasses import dataclass, replace
from typing import Literal

from ..cleaning import encodable
from ..errors import InvalidQueryError, StructuredOutputError, UnknownRetrievalMethodError
from ..types import MemorySearchResult, UserMemory
from .agentic import Agentic
from .hybrid import Hybrid
from .keyword import Keyword
from .recency import FirstN, LastN
from .reranking import reranked, widened
from .retriever import Ranked, Retriever, SearchRequest, Sources
from .semantic import Semantic

OnFailure = Literal["raise", "last_n"]
METHODS: dict[str, Retriever] = {
    "last_n": LastN(),
    "first_n": FirstN(),
    "keyword": Keyword(),
    "semantic": Semantic(),
    "hybrid": Hybrid(),
    "agentic": Agentic(),
}
_UNRANKED = ("last_n", "first_n", "agentic")
MAX_QUERY = 8_000
"""Characters that a query may have."""


def retriever(method: object) -> tuple[str, Retriever]:
    """The method of that name, or a retriever of the user's own.

    Raises:
        UnknownRetrievalMethodError: there is none.
    """
    if isinstance(method, str) and method in METHODS:
        return method, METHODS[method]
    if isinstance(method, Retriever) and not isinstance(method, type):
        return type(method).__name__, method
    raise UnknownRetrievalMethodError(
        f"unknown retrieval method {reprlib.repr(method)}: there are {', '.join(METHODS)}, and any Retriever"
    )


def clean_query(query: object, *, needed: bool) -> str | None:
    """The query, stripped.

    Raises:
        InvalidQueryError: it is blank and the method needs one, too long, or not text.
    """
    if query is not None and not isinstance(query, str):
        raise InvalidQueryError(f"query must be a str, not {type(query).__name__}")
    text = (query or "").strip()
    if not encodable(text):
        raise InvalidQueryError("the query holds a lone surrogate, which no encoding can hold: remove it")
    if needed and not text:
        raise InvalidQueryError("this retrieval method needs a query that is not blank")
    if len(text) > MAX_QUERY:
        raise InvalidQueryError(f"the query has {len(text):,} characters: at most {MAX_QUERY:,} are allowed")
    return text or None


@dataclass(frozen=True, slots=True)
class Plan:
    """A search that was checked and can be run."""

    name: str
    method: Retriever
    request: SearchRequest
    on_failure: OnFailure

    async def run(self, sources: Sources) -> MemorySearchResult:
        """Search. A reply that can't be read gives the newest, marked as degraded, where the caller allowed it."""
        request = self.request if self.request.rerank is None else widened(self.request)
        try:
            found = await self.method.retrieve(request, sources)
        except StructuredOutputError as error:
            if self.on_failure == "raise":
                raise
            newest = await LastN().retrieve(self.request, sources)
            return replace(newest, degraded=True, method="last_n", usage=error.usage)
        if METHODS.get(self.name) is not self.method:
            found = await _own_rows(self.name, found, request, sources)
        assert isinstance(found, MemorySearchResult), "ours give nothing else"
        found = await reranked(found, self.request, sources)
        return replace(found, method=self.name)


async def _own_rows(name: str, found: object, request: SearchRequest, sources: Sources) -> MemorySearchResult:
    """What a foreign retriever found, read again: another user's row, or one that is gone, is not shown."""
    result = found if isinstance(found, MemorySearchResult) else None
    memories = result.memories if result is not None else found
    if not isinstance(memories, list | tuple) or not all(isinstance(m, UserMemory) for m in memories):  # pyright: ignore[reportUnknownVariableType]
        raise InvalidQueryError(f"{name}.retrieve() must give a MemorySearchResult or a list of UserMemory")
    ids = [str(memory.memory_id) for memory in memories if isinstance(memory, UserMemory)]  # pyright: ignore[reportUnknownVariableType]
    scored = result is not None and len(result.scores) == len(ids)
    scores = dict(zip(ids, result.scores, strict=True)) if scored and result is not None else {}
    once = list(dict.fromkeys(ids))
    read = await sources.fetch(request, Ranked(once, [scores.get(i, 0.0) for i in once]))
    told = MemorySearchResult() if result is None else result
    return replace(told, memories=read.memories, scores=read.scores if scored else [])


def to_plan(method: object, request: SearchRequest, on_failure: object) -> Plan:
    """A checked search.

    Raises:
        UnknownRetrievalMethodError: there is no such method.
        InvalidQueryError: the query is blank and the method needs one, or an option is unknown.
    """
    if on_failure not in ("raise", "last_n"):
        raise InvalidQueryError(f"on_failure must be 'raise' or 'last_n', not {reprlib.repr(on_failure)}")
    if request.candidates not in ("prerank", "chunks"):
        raise InvalidQueryError(f"candidates must be 'prerank' or 'chunks', not {reprlib.repr(request.candidates)}")
    if request.rerank is not None and method in _UNRANKED:
        raise InvalidQueryError("rerank= goes with keyword, semantic, hybrid and retrievers of your own")
    name, chosen = retriever(method)
    query = clean_query(request.query, needed=chosen.needs_query or request.rerank is not None)
    return Plan(name, chosen, replace(request, query=query), on_failure)
