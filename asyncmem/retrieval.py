"""The manager's verbs that find memories. Wiring only."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Never

import anyio.to_thread

from .cleaning import clean_limit
from .context import render_context, render_relevant
from .errors import InvalidQueryError
from .filters import NAMES, NO_FILTERS, Range, Scalar, clean_filters
from .llm import LLM
from .messages import Turn
from .packing import INLINE, newest_turns
from .search import Retriever, SearchEngine, SearchRequest, to_plan
from .search.methods import clean_query
from .search.reembed import Progress
from .search.retriever import Candidates
from .store.opening import Opening
from .types import MemorySearchResult, Scope, clean_scope

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from .store.store import MemoryStore

CONSIDERED = 20
"""Newest scheduled captures that a context looks at."""
SHOWN = 500
"""Newest memories that a capture or a context considers before its token budget cuts them."""


class RetrievalVerbs(ABC):
    """What ``MemoryManager`` does to find memories."""

    _opening: Opening
    _search: SearchEngine

    @abstractmethod
    def _user(self, user_id: str | None) -> str: ...

    @property
    def relevance_method(self) -> str:
        """What finds what is relevant to a query without a model: ``"hybrid"`` with an embedder, else ``"keyword"``."""
        return self._search.relevance_method

    async def search_user_memories(
        self,
        query: str | None = None,
        *,
        limit: int | None = None,
        retrieval_method: str | Retriever = "last_n",
        user_id: str | None = None,
        agent_id: str | None = None,
        team_id: str | None = None,
        topics: Sequence[str] | None = None,
        topics_all: Sequence[str] | None = None,
        created_after: datetime | str | float | None = None,
        created_before: datetime | str | float | None = None,
        updated_after: datetime | str | float | None = None,
        updated_before: datetime | str | float | None = None,
        metadata: Mapping[str, Scalar | Range] | None = None,
        candidates: Candidates = "prerank",
        rerank: LLM | str | None = None,
        on_failure: str = "raise",
        **unknown: Never,
    ) -> MemorySearchResult:
        """Find memories; an ordered sequence that also says how they were found.

        Args:
            query: what is looked for; ``last_n`` and ``first_n`` need none.
            limit: how many at most; ``None``, 0 or negative is all.
            retrieval_method: ``"last_n"`` (the newest, oldest of them first), ``"first_n"`` (the oldest first),
                ``"keyword"`` (by words), ``"semantic"`` (by meaning), ``"hybrid"`` (by both), ``"agentic"`` (a
                model picks), these four the most relevant first; or a ``Retriever`` of your own.
            user_id: whose memories.
            agent_id: only those that this agent wrote.
            team_id: only those that this team wrote.
            topics: only those with any of these topics.
            topics_all: only those with all of these topics.
            created_after: only those created at this time or later.
            created_before: only those created before it.
            updated_after: only those updated at this time or later.
            updated_before: only those updated before it.
            metadata: only those with this value, or one in this ``Range``, under each key.
            candidates: what ``agentic`` reads of more memories than a prompt takes: ``"prerank"``, the best by
                ``hybrid`` or ``keyword`` and the newest, in one call; ``"chunks"``, all, in several.
            rerank: a reranker that litellm knows (or an ``LLM`` of one), which puts the best fifty into its order.
            on_failure: ``"last_n"`` answers with the newest, marked ``degraded``, when the model's reply can't be
                read; ``"raise"`` raises.

        Raises:
            UnknownRetrievalMethodError: there is no such method.
            InvalidQueryError: the query, the limit or a filter can't be used.
            ConfigurationError: ``semantic`` and ``hybrid`` need ``embedding_model``.
            ModelError: the model could not be asked; ``StructuredOutputError``: its reply could not be read.
        """
        if unknown:
            raise InvalidQueryError(f"unknown filter {', '.join(map(repr, unknown))}: there are {', '.join(NAMES)}")
        scope = clean_scope(self._user(user_id), agent_id, team_id)
        filters = clean_filters(
            topics=topics,
            topics_all=topics_all,
            created_after=created_after,
            created_before=created_before,
            updated_after=updated_after,
            updated_before=updated_before,
            metadata=metadata,
        )
        request = SearchRequest(scope, query, clean_limit(limit), filters, candidates, rerank)
        plan = to_plan(retrieval_method, request, on_failure)
        return await plan.run(self._search.sources(await self._opening.store()))

    async def build_context(
        self,
        *,
        user_id: str | None = None,
        query: str | None = None,
        max_tokens: int = 1000,
        include_pending: bool = False,
    ) -> str:
        """What is known of the user as a ``<user_memory>`` block for a prompt, in the order of its making.

        Without a query the newest memories. With one, what is relevant to it (by ``hybrid`` where there is an
        embedder, else by ``keyword``) and then the newest, or "" if nothing is relevant.

        Args:
            user_id: whose memories.
            query: what the prompt is about.
            max_tokens: estimated tokens that the block may have.
            include_pending: show also what was scheduled and is not captured yet, quoted, in at most half of the block.

        Raises:
            InvalidQueryError: ``max_tokens`` is not a positive int, or the query can't be used.
            ModelError: the query could not be embedded.
        """
        if clean_limit(max_tokens) < 1:
            raise InvalidQueryError("max_tokens must be at least 1")
        owner, asked = self._user(user_id), clean_query(query, needed=False)
        store = await self._opening.store()
        recent = store.read.last_n(Scope(owner), NO_FILTERS, min(SHOWN, max_tokens))
        # before the memories are read: what is captured meanwhile is shown twice rather than not at all
        pending = await _pending(store, owner, max_tokens) if include_pending else []
        if asked is None:
            return render_context(await recent, max_tokens, pending)
        found, newest = await asyncio.gather(self._search.relevant(store, owner, asked), recent)
        return render_relevant(found, newest, max_tokens, pending)

    async def reembed(
        self, *, user_id: str | None = None, batch: int = 256, on_progress: Progress | None = None
    ) -> int:
        """Embed a user's memories that have no vector of this manager's ``embedding_model``; how many got one.

        Other calls go on meanwhile. After an interruption the next call does what is missing.

        Args:
            user_id: whose.
            batch: memories in one step.
            on_progress: called after each step with how many were looked at, and how many there are.

        Raises:
            ConfigurationError: there is no embedding model.
            ModelError: it could not be asked. What was done stays.
        """
        owner = self._user(user_id)
        return await self._search.reembed(await self._opening.store(), owner, _clean_batch(batch), on_progress)

    async def reembed_all(self, *, batch: int = 256) -> int:
        """Like ``reembed``, for EVERY user, one after the other."""
        store = await self._opening.store()
        users = await store.read.users(0, None)
        return sum([await self._search.reembed(store, user, _clean_batch(batch), None) for user in users])


async def _pending(store: "MemoryStore", user_id: str, max_tokens: int) -> list[Turn]:
    """What a user's scheduled captures hold, as much as a block may show of it."""
    bodies = [job.body for job in await store.jobs.waiting(user_id, CONSIDERED)]
    if sum(map(len, bodies)) <= INLINE:
        return newest_turns(Scope(user_id), bodies, max_tokens * 8)
    return await anyio.to_thread.run_sync(newest_turns, Scope(user_id), bodies, max_tokens * 8)


def _clean_batch(batch: object) -> int:
    if not clean_limit(batch):
        raise InvalidQueryError("batch must be at least 1")
    return clean_limit(batch)
