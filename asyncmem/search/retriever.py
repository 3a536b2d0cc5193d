"""What every retrieval method is: a request in, memories out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..llm import LLM
from ..types import MemorySearchResult, Scope

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from ..store.reader import Reader


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search over one user's memories.

    Attributes:
        scope: whose memories, and which agent's and team's of them.
        query: what is looked for; ``None`` where the method needs none.
        limit: how many at most; 0 is all.
        topics: only memories with any of these.
    """

    scope: Scope
    query: str | None = None
    limit: int = 0
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sources:
    """What a method may draw on."""

    read: "Reader"
    llm: LLM


class Retriever(Protocol):
    """A retrieval method."""

    @property
    def needs_query(self) -> bool:
        """Whether a blank query is an error."""
        ...

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        """Find memories."""
        ...
