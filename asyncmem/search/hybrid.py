"""``hybrid``: words and meaning together."""

from ..types import MemorySearchResult
from .retriever import SearchRequest, Sources
from .semantic import ask, floor, noted


class Hybrid:
    """The memories that keyword or semantic search finds, by one score; ties by recency."""

    needs_query = True

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        """Find memories by words and meaning."""
        asked = await ask(request, sources)
        if asked is None:
            return MemorySearchResult()
        from .fusion import fuse  # it needs numpy

        async with sources.ranking(request, asked.ids, check=False) as (index, allowed):
            keyword, semantic = await index.by_words(request.query or ""), await index.by_meaning(asked.vector)
            allowed &= (keyword > 0) | (semantic >= floor(request))
            scores = fuse(keyword, semantic, index.updated, index.inserted, allowed)
            ranked = index.best(scores, allowed, request.limit, newest_first=True)
        return noted(await sources.fetch(request, ranked), asked)
