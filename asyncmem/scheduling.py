"""The manager's verbs that capture in the background. Wiring only."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from .background import Background, nothing_to_do, turns_of
from .capturing import Capturer
from .cleaning import clean_id, clean_timeout
from .errors import ConfigurationError, InvalidQueryError
from .messages import Turn
from .modes import LearningMode
from .settings import Settings
from .store.opening import Opening
from .tasks import Tasks
from .tickets import CaptureTicket
from .types import QueueStatus, Scope, WorkerReport, clean_scope
from .workers import Carrier

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from .store.store import MemoryStore


class SchedulingVerbs(ABC):
    """What ``MemoryManager`` does in the background."""

    _opening: Opening
    _capturer: Capturer
    _settings: Settings
    _tasks: Tasks
    _background: Background | None = None
    _others: list[Background]

    @abstractmethod
    def _user(self, user_id: str | None) -> str: ...

    async def schedule(
        self,
        messages: object,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        team_id: str | None = None,
        idempotency_key: str | None = None,
        flush: bool = False,
    ) -> CaptureTicket:
        """Store what was said, to be captured in the background; a ticket. One durable write, and no model call.

        A worker, in this process or another, does what ``create_user_memories`` does. One user's captures run in
        order; conversations that are scheduled in quick succession (``Settings.debounce``) become one capture. The
        same messages, or the same idempotency key, while they wait or are remembered do nothing twice. If the caller
        is cancelled, the capture is not. ``erase_user`` forgets what was scheduled before it was called; what is
        scheduled while it runs may count as said afterwards.

        Args:
            messages: one message or a list of them, as ``create_user_memories`` takes them.
            user_id: whose memories.
            agent_id: recorded on what is added.
            team_id: recorded on what is added.
            idempotency_key: names this capture.
            flush: don't wait for the user's next turn.

        Raises:
            InvalidMessageError: a message can't be read, or they take more than 4 MiB.
            BacklogFullError: too many captures wait already, of this user or in all.
            StoreError: it could not be stored. Call again: nothing is done twice.
        """
        scope = clean_scope(self._user(user_id), agent_id, team_id)
        if not isinstance(flush, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidQueryError("flush must be True or False")
        key = None if idempotency_key is None else clean_id(idempotency_key, "idempotency_key")
        turns = await turns_of(messages)
        return await self.schedule_turns(turns, scope, key, flush=flush)

    async def schedule_turns(
        self,
        turns: Sequence[Turn],
        scope: Scope,
        key: str | None,
        *,
        flush: bool = False,
        mode: LearningMode = LearningMode.ALWAYS,
        erasures: int | None = None,
    ) -> CaptureTicket:
        """Schedule what was read already, as ``Background.schedule`` does: for asyncmem's own layers."""
        if not turns:
            return nothing_to_do(scope.user_id)
        queue = await self._queue()
        name = await queue.schedule(turns, scope, key, flush=flush, mode=mode, erasures=erasures)
        return queue.ticket(name, scope.user_id)

    async def get_ticket(self, ticket_id: str, *, user_id: str | None = None) -> CaptureTicket:
        """The ticket of a capture that was scheduled here or elsewhere, by its ``id``."""
        owner, name = self._user(user_id), clean_id(ticket_id, "ticket_id")
        return (await self._queue()).ticket(name, owner)

    async def drain(self, timeout: float | None = None) -> QueueStatus:
        """Wait until every capture that is in the queue by now, whoever scheduled it, is done or a dead letter.

        Nothing waits for debounce any longer. With ``Settings(workers=False)`` others have to do the work.

        Args:
            timeout: seconds to wait at most.

        Raises:
            DrainTimeoutError: some are left, ``.left`` says how many. They stay in the queue.
        """
        return await (await self._queue()).drain(clean_timeout(timeout))

    async def queue_status(self) -> QueueStatus:
        """What the queue looks like, over all users and processes."""
        return (await (await self._opening.store()).jobs.status())[0]

    async def retry_dead(self, user_id: str | None = None) -> int:
        """Let dead letters wait again, behind the other captures of their users; how many there were.

        Args:
            user_id: whose; ``None`` is EVERY user's.
        """
        owner = None if user_id is None else clean_id(user_id, "user_id")
        return await (await self._queue()).retry_dead(owner)

    async def run_worker(self, stop: asyncio.Event | None = None, *, concurrency: int | None = None) -> WorkerReport:
        """Carry out scheduled captures, of whatever process, until ``stop`` is set; what was done.

        What is in flight then may take ``Settings.close_timeout`` to end; the rest is given back at once.

        Args:
            stop: ends the work; without one, it goes on until it is cancelled.
            concurrency: captures at once; by default ``Settings.worker_concurrency``.
        """
        if not isinstance(cast("object", stop), asyncio.Event | None):
            raise ConfigurationError(f"stop must be an asyncio.Event, not a {type(stop).__name__}")
        if concurrency is not None and (type(cast("object", concurrency)) is not int or not 1 <= concurrency <= 1000):
            raise ConfigurationError("concurrency must be an int from 1 to 1000")
        return await (await self._queue()).work(stop, concurrency)

    async def _queue(self) -> Background:
        store = await self._opening.store()
        if self._background is None:
            self._background = Background(store, self._capturer, self._settings, self._tasks)
        return self._background

    def profile_queue(self, store: "MemoryStore", carrier: Carrier, profile: str) -> Background:
        """A queue of conversations to be read for profiles of a name, closed with the manager: for our own layers."""
        queue = Background(store, carrier, self._settings, self._tasks, store.profile_jobs(profile))
        self._others.append(queue)
        return queue

    async def _close_background(self) -> None:
        queues = [*self._others] if self._background is None else [*self._others, self._background]
        await asyncio.gather(*(queue.aclose() for queue in queues))
