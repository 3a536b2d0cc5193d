"""``keyword``: BM25 over the words of a user's memories, exact, in any language, with no model."""

from ..types import MemorySearchResult
from .retriever import SearchRequest, Sources


class Keyword:
    """The memories that share words with the query, best first; ties by insertion. Nothing in a query is syntax."""

    needs_query = True

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        """Find memories by their words."""
        async with sources.ranking(request, await sources.matching(request)) as (index, allowed):
            scores = await index.by_words(request.query or "")
            ranked = index.best(scores, allowed & (scores > 0), request.limit)
        return await sources.fetch(request, ranked)
