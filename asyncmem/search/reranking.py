"""An optional second look: a reranker puts the best of what was found into its own order."""

from dataclasses import replace

from ..llm import LLM
from ..types import MemorySearchResult
from .retriever import SearchRequest, Sources

CANDIDATES = 50
"""Memories that a reranker reads; what was ranked behind them stays behind them."""


def widened(request: SearchRequest) -> SearchRequest:
    """The request with as many results as a reranker may choose from."""
    return replace(request, limit=max(CANDIDATES, request.limit) if request.limit else 0, rerank=None)


async def reranked(result: MemorySearchResult, request: SearchRequest, sources: Sources) -> MemorySearchResult:
    """What was found, the best in the reranker's order and with its scores.

    Raises:
        ModelError: the reranker could not be asked.
    """
    best, rest = result.memories[:CANDIDATES], result.memories[CANDIDATES:]
    if not best or request.rerank is None:
        return result
    model = request.rerank if isinstance(request.rerank, LLM) else LLM(request.rerank, sources.llm.settings)
    reply = await model.rerank(request.query or "", [memory.memory for memory in best])
    scored = [(best[place], score) for place, score in reply.order]
    worst = min((score for _, score in scored), default=0.0)
    named = {memory.memory_id for memory, _ in scored}
    scored += [(memory, worst) for memory in [*best, *rest] if memory.memory_id not in named]
    kept = scored[: request.limit] if request.limit else scored
    usage = result.usage + reply.usage
    return replace(result, memories=[m for m, _ in kept], scores=[s for _, s in kept], usage=usage)
