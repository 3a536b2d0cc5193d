"""What every retrieval method is: a request in, memories out."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from ..filters import NO_FILTERS, Filters
from ..llm import LLM, Embedder
from ..types import MemorySearchResult, Scope, UserMemory
from .cache import IndexCache

if TYPE_CHECKING:  # the store is opened, and PyMongo and numpy imported, only when a verb needs it
    import numpy as np
    from numpy.typing import NDArray

    from ..store.store import MemoryStore
    from .index import UserIndex

Candidates = Literal["prerank", "chunks"]
_FETCH = 500


@dataclass(frozen=True, slots=True)
class Ranked:
    """Memories by rank.

    Attributes:
        ids: the best first.
        scores: one each.
    """

    ids: list[str]
    scores: list[float]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search over one user's memories.

    Attributes:
        scope: whose memories, and which agent's and team's of them.
        query: what is looked for; ``None`` where the method needs none.
        limit: how many at most; 0 is all.
        filters: which memories are looked at.
        candidates: what ``agentic`` shows of more memories than fit: the best of another method, or all in chunks.
        rerank: a model that puts what was found into its own order; ``None`` leaves it.
        min_similarity: the cosine from which ``semantic`` finds a memory, and ``hybrid`` one that shares no word.
    """

    scope: Scope
    query: str | None = None
    limit: int = 0
    filters: Filters = NO_FILTERS
    candidates: Candidates = "prerank"
    rerank: LLM | str | None = None
    min_similarity: float | None = None

    @property
    def narrowed(self) -> bool:
        """Whether only some of the user's memories are looked at."""
        return bool(self.filters) or self.scope != Scope(self.scope.user_id)


@dataclass(frozen=True, slots=True)
class Sources:
    """What a method may draw on.

    Attributes:
        llm: the manager's model.
        embedder: the manager's embedder, if it has one.
    """

    llm: LLM
    embedder: Embedder | None
    store: "MemoryStore" = field(repr=False)
    cache: IndexCache = field(repr=False)

    async def search(self, method: str, request: SearchRequest) -> MemorySearchResult:
        """What a method of ours finds: what a retriever of your own may begin with."""
        from .methods import to_plan  # the registry knows the methods, which know this module

        return await to_plan(method, request, "raise").run(self)

    @asynccontextmanager
    async def ranking(
        self, request: SearchRequest, ids: "set[str] | None", *, check: bool = True
    ) -> "AsyncGenerator[tuple[UserIndex, NDArray[np.bool_]]]":
        """The user's index, as the database is now, and which of its slots the request is about.

        Args:
            request: the search.
            ids: what ``matching`` gave.
            check: whether it must be as the database is now; the same search looked at it before otherwise.
        """
        scan = self.store.scan
        async with self.cache.current(scan, request.scope.user_id, check=check) as index:
            yield index, index.allowed(scan.now(), ids)

    async def matching(self, request: SearchRequest) -> "set[str] | None":
        """The ids of the memories that the request is about; ``None`` for all that the user has."""
        return await self.store.scan.matching(request.scope, request.filters) if request.narrowed else None

    async def fetch(self, request: SearchRequest, ranked: Ranked) -> MemorySearchResult:
        """The best of what was ranked, read again: only what the user has now and what passes the filters."""
        memories: list[UserMemory] = []
        scores: list[float] = []
        place = 0
        while place < len(ranked.ids) and (not request.limit or len(memories) < request.limit):
            wanted = min(_FETCH, request.limit - len(memories)) if request.limit else _FETCH
            ids = ranked.ids[place : place + wanted]
            found = await self.store.read.by_ids(request.scope, request.filters, ids)
            there = [(found[i], score) for i, score in zip(ids, ranked.scores[place:], strict=False) if i in found]
            memories += [memory for memory, _ in there]
            scores += [score for _, score in there]
            place += len(ids)
        return MemorySearchResult(memories, scores)


@runtime_checkable
class Retriever(Protocol):
    """A retrieval method; one of your own is passed as ``retrieval_method=``.

    What it returns is read again by id: only memories that the user has, and that pass the filters, are shown.
    """

    @property
    def needs_query(self) -> bool:
        """Whether a blank query is an error."""
        ...

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult | Sequence[UserMemory]:
        """Find memories, in the order in which they are to be shown."""
        ...


def without_limit(request: SearchRequest, limit: int = 0) -> SearchRequest:
    """The same search with another limit and no second model."""
    return replace(request, limit=limit, rerank=None)
