"""What a manager keeps for searching: its models, the indexes in memory; and embedding before a write."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import AsyncMemError, ModelError
from ..llm import LLM, Embedder
from ..settings import Settings
from ..types import MemorySearchResult, Scope, UserMemory
from ..usage import Usage
from .cache import IndexCache
from .loading import load
from .methods import to_plan
from .reembed import Progress, reembed_user
from .retriever import SearchRequest, Sources
from .semantic import embedder_of

if TYPE_CHECKING:
    from ..store.rows import Vectors
    from ..store.store import MemoryStore

_log = logging.getLogger(__name__)
_RELEVANT = 100
"""Memories that a context with a query considers for their relevance."""


class SearchEngine:
    """Search as one manager does it.

    Args:
        llm: the manager's model.
        embedder: its embedder, if it has one.
        settings: how much may be kept in memory, and what counts as relevant.
    """

    def __init__(self, llm: LLM, embedder: Embedder | None, settings: Settings) -> None:
        self._llm = llm
        self._embedder = embedder
        self._settings = settings
        self._cache = IndexCache(settings.search_cache, embedder.name if embedder else None)

    @property
    def relevance_method(self) -> str:
        """What finds what is relevant to a query, with what there is."""
        return "keyword" if self._embedder is None else "hybrid"

    def sources(self, store: "MemoryStore") -> Sources:
        """What a retrieval method draws on."""
        return Sources(self._llm, self._embedder, store, self._cache)

    async def vectors(self, texts: Sequence[str]) -> "Vectors":
        """The vectors of texts that are about to be written, as ``embedded`` gives them."""
        return (await self.embedded(texts))[0]

    async def embedded(self, texts: Sequence[str]) -> "tuple[Vectors, Usage]":
        """The vectors of texts that are about to be written, and what making them took.

        None where there is no embedder, and none where it fails: that is logged, the memory is stored all the same,
        and embedded by a later search or ``reembed``.
        """
        if self._embedder is None or not texts:
            return {}, Usage()
        await load()
        from .embedding import embed_texts  # it needs numpy

        try:
            return await embed_texts(self._embedder, texts)
        except AsyncMemError as error:
            name = type(error).__name__
            _log.warning("%s: %d memories are stored without a vector (%s)", self._embedder.name, len(texts), name)
            return {}, error.usage if isinstance(error, ModelError) else Usage()

    async def relevant(self, store: "MemoryStore", user_id: str, query: str) -> MemorySearchResult:
        """What a context shows for a query: what shares a telling word with it, or is near it in meaning."""
        request = SearchRequest(Scope(user_id), query, _RELEVANT, min_similarity=self._settings.context_similarity)
        return await to_plan(self.relevance_method, request, "raise").run(self.sources(store))

    async def by_words(self, store: "MemoryStore", user_id: str, text: str) -> list[UserMemory]:
        """The memories that a text is most about, by its words."""
        request = SearchRequest(Scope(user_id), text, _RELEVANT)
        return (await to_plan("keyword", request, "raise").run(self.sources(store))).memories

    async def reembed(self, store: "MemoryStore", user_id: str, batch: int, on_progress: Progress | None) -> int:
        """Embed what a user has without a vector of this embedder; how many memories got one."""
        return await reembed_user(store, embedder_of(self.sources(store)), user_id, batch, on_progress)
