"""``hybrid``: words and meaning together."""

from ..types import MemorySearchResult
from .retriever import SearchRequest, Sources
from .semantic import ask, floor, noted


class Hybrid:
    """The memories that keyword or semantic search finds, by one score (``fusion``); ties by recency."""

    needs_query = True

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        """Find memories by words and meaning."""
        asked = await ask(request, sources)
        if asked is None:
            return MemorySearchResult()
        query = request.query or ""
        async with sources.ranking(request, asked.ids, check=False) as (index, allowed):
            keyword = await index.by_words(query)
            if request.min_similarity is not None:
                allowed &= (keyword > 0) | (await index.by_meaning(asked.vector) >= floor(request))
            scores = await index.by_both(query, keyword, asked.vector, allowed)
            ranked = index.best(scores, allowed, request.limit, newest_first=True)
        return noted(await sources.fetch(request, ranked), asked)
