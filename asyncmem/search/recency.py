"""``last_n`` and ``first_n``: order and limit run in the server."""

from ..types import MemorySearchResult
from .retriever import SearchRequest, Sources


class LastN:
    """The newest, returned oldest to newest. Missing times count as oldest; ties by insertion."""

    needs_query = False

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        """Find the newest."""
        return MemorySearchResult(await sources.store.read.last_n(request.scope, request.filters, request.limit))


class FirstN:
    """The oldest, oldest first. Missing times come last; ties by insertion."""

    needs_query = False

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        """Find the oldest."""
        return MemorySearchResult(await sources.store.read.first_n(request.scope, request.filters, request.limit))
