"""``semantic``: the cosine of embeddings, exact over all memories of the user that have one."""

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import AsyncMemError, ConfigurationError
from ..llm import Embedder
from ..types import MemorySearchResult
from ..usage import Usage
from .loading import load
from .reembed import embed_stored
from .retriever import Ranked, SearchRequest, Sources

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)
_BY_SERVER = 500
"""The largest limit that the server's own index is asked for: it finds at most 10,000 candidates."""
_SPARE = 50
"""Rows asked of the server beyond the limit: some may have expired."""
AT_ONCE = 64
"""Memories without a vector that one search embeds, the newest first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that is ready to be compared.

    Attributes:
        vector: of the query, of length one.
        usage: what making it took.
        not_embedded: memories that have no vector yet, and so can't be found by it.
        ids: of the memories that the request is about; ``None`` for all.
    """

    vector: "NDArray[np.float32]"
    usage: Usage
    not_embedded: int
    ids: set[str] | None


class Semantic:
    """The memories whose meaning is nearest to the query's, nearest first; ties by insertion."""

    needs_query = True

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        """Find memories by their meaning."""
        few = 0 < request.limit <= _BY_SERVER
        if few and not request.narrowed and (found := await _by_server(request, sources)) is not None:
            return found
        asked = await ask(request, sources)
        if asked is None:
            return MemorySearchResult()
        async with sources.ranking(request, asked.ids, check=False) as (index, allowed):
            scores = await index.by_meaning(asked.vector)
            ranked = index.best(scores, allowed & (scores >= floor(request)), request.limit)
        return noted(await sources.fetch(request, ranked), asked)


async def _by_server(request: SearchRequest, sources: Sources) -> MemorySearchResult | None:
    """What the server's own vector index finds; ``None`` where it has none of the embedder's length."""
    embedder, shelf = embedder_of(sources), sources.store.vectors
    dims, user_id = sources.cache.dims, request.scope.user_id
    index = None if dims is None else await shelf.search_index(dims)
    if index is None or not await sources.store.read.last_n(request.scope, request.filters, 1):
        return None
    await load()
    from .embedding import embed_query  # it needs numpy

    query = await embed_query(embedder, request.query or "")
    values = query.values.astype("<f4").tobytes()
    found = await shelf.nearest(index, user_id, embedder.name, values, request.limit + _SPARE)
    near = [(memory_id, cosine) for memory_id, cosine in found if cosine >= floor(request)]
    ranked = Ranked([memory_id for memory_id, _ in near], [cosine for _, cosine in near])
    return replace(await sources.fetch(request, ranked), usage=query.usage)


def floor(request: SearchRequest) -> float:
    """The lowest cosine that counts."""
    return float("-inf") if request.min_similarity is None else request.min_similarity


def noted(result: MemorySearchResult, asked: Asked) -> MemorySearchResult:
    """The result with what asking took."""
    return replace(result, usage=result.usage + asked.usage, not_embedded=asked.not_embedded)


def embedder_of(sources: Sources) -> Embedder:
    """The manager's embedder.

    Raises:
        ConfigurationError: it has none.
    """
    if sources.embedder is None:
        raise ConfigurationError(
            "this retrieval method needs an embedding model: MemoryManager(embedding_model="
            '"openai/text-embedding-3-small"), or any Embedder; retrieval_method="keyword" needs none'
        )
    return sources.embedder


async def ask(request: SearchRequest, sources: Sources) -> Asked | None:
    """Embed the query, and the newest memories that have no vector yet. ``None``: there is nothing to search.

    Raises:
        ConfigurationError: there is no embedder.
        ModelError: the query could not be embedded. That memories could not be is logged, and tried again later.
    """
    embedder = embedder_of(sources)
    await load()
    from .embedding import embed_query  # it needs numpy

    ids = await sources.matching(request)
    async with sources.ranking(request, ids) as (index, allowed):
        if not allowed.any():
            return None
        lacking = index.lacking(allowed)
    query = await embed_query(embedder, request.query or "")
    usage = query.usage
    if sources.cache.dims != len(query.values):
        sources.cache.dims = len(query.values)  # vectors of another length count as missing from now on
        async with sources.ranking(request, ids, check=False) as (index, allowed):
            lacking = index.lacking(allowed)
    if lacking:
        made, spent = await _embed_some(request.scope.user_id, lacking[:AT_ONCE], embedder, sources)
        usage += spent
        if made:
            async with sources.ranking(request, ids) as (index, allowed):
                lacking = index.lacking(allowed)
    return Asked(query.values, usage, len(lacking), ids)


async def _embed_some(user_id: str, ids: list[str], embedder: Embedder, sources: Sources) -> tuple[int, Usage]:
    try:
        return await embed_stored(sources.store.vectors, embedder, user_id, ids)
    except AsyncMemError as error:
        _log.warning("%s: %d memories stay without a vector (%s)", embedder.name, len(ids), type(error).__name__)
        return 0, Usage()
