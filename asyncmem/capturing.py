"""A capture from its messages to its applied changes: what is known already, one model, one batch."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import anyio.to_thread

from .capture import CaptureOptions, Decision, decide
from .errors import StoreTimeoutError
from .filters import NO_FILTERS
from .fingerprints import conversation_prints, key_print
from .llm import LLM
from .messages import Turn
from .modes import LearningMode, split
from .operations import Add, Grounded, Update
from .packing import Talk, fold
from .preview import preview
from .search import SearchEngine
from .search.methods import MAX_QUERY
from .settings import Settings
from .store.batch import Applied, Batch
from .types import CaptureResult, Scope, Skipped, Usage, UserMemory

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from .store.store import MemoryStore

CONSIDERED = 500
"""Newest memories that a capture considers before its token budget cuts them."""
REPEATED = "it was captured before"


@dataclass(frozen=True, slots=True)
class _Job:
    store: "MemoryStore"
    turns: Sequence[Turn]
    scope: Scope
    task: bool
    known: int
    prints: Sequence[bytes]
    erasures: int
    guards: Sequence[bytes] = ()
    said: datetime | None = None
    mode: LearningMode = LearningMode.ALWAYS


@dataclass(frozen=True, slots=True)
class Carried:
    """What came of scheduled captures.

    Attributes:
        count: how many of them were carried out, from the first on.
        result: what came of these.
    """

    count: int
    result: Any


class Capturer:
    """Carries out one manager's captures: those of one user one after the other, in the order of their coming."""

    def __init__(self, llm: LLM, options: CaptureOptions, settings: Settings, search: SearchEngine) -> None:
        self._search = search
        self._llm = llm
        self._options = options
        self._settings = settings
        self._users: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def operations(self) -> tuple[str, ...]:
        """Names of the operations that are switched on."""
        return self._options.enabled

    async def capture(
        self,
        store: "MemoryStore",
        turns: Sequence[Turn],
        scope: Scope,
        *,
        key: str | None = None,
        task: bool = False,
        mode: LearningMode = LearningMode.ALWAYS,
    ) -> CaptureResult:
        """Capture a conversation, or carry out a task; what came of it.

        Args:
            store: where the memories are.
            turns: what ``read_messages`` gave; not empty.
            scope: whose memories; agent and team are recorded on what is added.
            key: the same key again does nothing. Without one, the same messages again do nothing.
            task: the messages ask for a change. The same task again is done again.
            mode: what of it is applied at once, and what waits as proposals.
        """
        began = time.monotonic()
        async with self._users.setdefault(scope.user_id, asyncio.Lock()):
            await store.applier.recover(scope.user_id)
            erasures = await store.captures.begun(scope.user_id)
            prints = [] if task else conversation_prints(scope, turns)
            named = [] if key is None else [key_print(scope, key)]
            known = await store.captures.known(scope.user_id, [*prints, *named]) if prints or named else set[bytes]()
            if known.intersection(named or prints[-1:]):
                return _repeated(began)
            first = max((i for i, p in enumerate(prints[:-1], 1) if p in known), default=0)
            job = _Job(store, turns, scope, task, first, [*prints[first:], *named], erasures, mode=mode)
            decision, applied = await self._decided(job)
        return _result(decision, applied, began)

    async def carry_out(self, store: "MemoryStore", talks: Sequence[Talk], erasures: int, turn: int) -> Carried:
        """Capture scheduled conversations of one user, as many of them as fold into one; each of them once, for ever.

        Args:
            store: where the memories are.
            talks: in order; not empty.
            erasures: what ``Captures.begun`` said before the conversations were taken from the queue.
            turn: that of the claim by which they were taken.

        Raises:
            StoreTimeoutError: a worker that was thought to be gone was in the way; retryable.
        """
        began, first = time.monotonic(), talks[0]
        async with self._users.setdefault(first.scope.user_id, asyncio.Lock()):
            await store.applier.recover(first.scope.user_id)
            if (earlier := await self.carried_out(store, first, turn)) is not None:
                return Carried(1, earlier)
            prints = {p for talk in talks for p in (*talk.prints, talk.mark)}
            known = await store.captures.known(first.scope.user_id, sorted(prints))
            if first.mark in known:
                return Carried(1, _repeated(began))
            folded = await anyio.to_thread.run_sync(fold, talks, known)
            guards = [talk.guard for talk in talks[: folded.count]]
            job = _Job(
                *(store, folded.turns, first.scope, False, folded.known, folded.prints, erasures),
                guards=guards,
                said=first.said,
                mode=first.mode,
            )
            decision, applied = await self._decided(job)
            if applied.repeated:  # by somebody who had taken them before, and was thought to be gone
                earlier = await self.carried_out(store, first, turn)
                if earlier is None:  # they were only closed, and are open again
                    raise StoreTimeoutError("another worker was in the way: try again", retryable=True)
                return Carried(1, earlier)
        return Carried(folded.count, _result(decision, applied, began))

    async def carried_out(self, store: "MemoryStore", talk: Talk, turn: int) -> CaptureResult | None:
        """What came of a scheduled conversation that was captured already; ``None`` if it was not."""
        began = time.monotonic()
        notes = await store.captures.applied(talk.scope.user_id, talk.guard, turn)
        if notes is None:
            return None
        user_id = talk.scope.user_id
        changes = await store.results.retold(user_id, notes)
        return replace(_repeated(began), changes=changes, proposals=await store.proposals.made_by(user_id, talk.guard))

    async def _decided(self, job: "_Job") -> tuple[Decision, Applied]:
        """Decide and apply; once more on what is there when a memory came to say something else meanwhile."""
        spent = Usage()
        for strict in (True, False):  # pragma: no branch  the second is never stale
            existing = await self._existing(job.store, job.scope.user_id, job.turns[job.known :])
            now = job.said or self._settings.clock()
            decision = await decide(
                self._llm, job.turns, existing, self._options, now=now, task=job.task, known=job.known
            )
            decision.usage = spent = spent + decision.usage
            if not decision.windows:
                return decision, Applied()
            at_once, later = split(decision.operations, job.mode)
            vectors, embedding = await self._search.embedded(_texts(at_once))
            decision.usage = spent = spent + embedding
            batch = Batch(
                job.scope,
                at_once,
                proposed=later,
                seen={str(m.memory_id): m for m in existing},
                words=decision.words,
                prints=job.prints,
                guards=job.guards,
                erasures=job.erasures,
                strict=strict,
                vectors=vectors,
            )
            applied = await job.store.applier.apply(batch)
            if not applied.stale:
                break
        return decision, applied

    async def _existing(self, store: "MemoryStore", user_id: str, turns: Sequence[Turn]) -> list[UserMemory]:
        """The newest memories, and of a long history also those that share words with the conversation."""
        newest = await store.read.last_n(Scope(user_id), NO_FILTERS, CONSIDERED)
        if len(newest) < CONSIDERED:
            return newest
        words = " ".join(turn.content for turn in turns)[-MAX_QUERY // 2 :]
        found = await self._search.by_words(store, user_id, words)
        known = {memory.memory_id for memory in newest}
        return [*(memory for memory in found if memory.memory_id not in known), *newest]

    async def preview(self, store: "MemoryStore", turns: Sequence[Turn], scope: Scope) -> CaptureResult:
        """What ``capture`` would do, were the messages new."""
        began = time.monotonic()
        existing = await self._existing(store, scope.user_id, turns)
        now = self._settings.clock()
        decision = await decide(self._llm, turns, existing, self._options, now=now)
        changes = preview(decision.operations, existing, scope, now)
        return _result(decision, Applied(changes), began)


def _repeated(began: float) -> CaptureResult:
    return CaptureResult(skipped=[Skipped("capture", REPEATED)], repeated=True, duration=_since(began))


def _texts(operations: Sequence[Grounded]) -> list[str]:
    changing = (g.operation for g in operations if isinstance(g.operation, Add | Update))
    return [operation.memory for operation in changing]


def _since(began: float) -> timedelta:
    return timedelta(seconds=time.monotonic() - began)


def _result(decision: Decision, applied: Applied, began: float) -> CaptureResult:
    if applied.repeated:
        applied = Applied(skipped=[*applied.skipped, Skipped("capture", REPEATED)], repeated=True)
    return CaptureResult(
        changes=applied.changes,
        skipped=[*decision.skipped, *applied.skipped],
        usage=decision.usage,
        tier=decision.tier,
        tools=decision.tools,
        duration=_since(began),
        windows=decision.windows,
        ended=decision.ended,
        repeated=applied.repeated,
        proposals=applied.proposals,
    )
