"""What one manager does in the background: it puts captures into the queue, and may carry them out itself."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakValueDictionary

import anyio.to_thread

from .errors import BacklogFullError, CaptureAbandonedError, DrainTimeoutError
from .fingerprints import key_print, user_print
from .messages import Turn, read_messages
from .modes import LearningMode
from .packing import pack, prints_of
from .settings import Settings
from .tasks import Tasks
from .tickets import CaptureTicket, Outcome, Outcomes, done_already, unknown
from .types import CaptureResult, Message, QueueStatus, Scope, WorkerReport
from .workers import Carrier, Workers

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from .store.jobs import Found, Jobs
    from .store.lanes import NewJob
    from .store.store import MemoryStore

_COUNTED = (1.0, 10.0)
"""Seconds that a count of the whole queue is good for: when it is half full, and before."""
_INLINE = 8_192
"""Characters of a conversation that is read in the event loop; a longer one is read in a worker thread."""
_PAUSES = (0.02, 0.5)
"""Seconds between two looks at the queue while it is drained: at first, and at most."""


class Background:
    """The queue as one manager uses it."""

    def __init__(
        self,
        store: "MemoryStore",
        carrier: Carrier,
        settings: Settings,
        tasks: Tasks,
        jobs: "Jobs | None" = None,
    ) -> None:
        self._jobs = jobs or store.jobs
        self._captures = store.captures
        self._settings = settings
        self._outcomes = Outcomes()
        self.workers: Workers = Workers(store, self._jobs, carrier, settings, tasks, self._outcomes)
        self._writing: set[asyncio.Task[str]] = set()
        self._users: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._counted = (0, float("-inf"))
        self._added = 0
        self._closing = False

    async def schedule(
        self,
        turns: Sequence[Turn],
        scope: Scope,
        key: str | None,
        *,
        flush: bool,
        mode: LearningMode = LearningMode.ALWAYS,
        erasures: int | None = None,
    ) -> str:
        """Put a conversation into the queue; its id. Cancelled midway, it is put there all the same.

        Args:
            turns: what was said; not empty.
            scope: whose memories or profile.
            key: names it.
            flush: don't wait for the user's next turn.
            mode: what of it is applied at once, and what waits as proposals.
            erasures: what ``Captures.begun`` said before it was said: if the user is erased since, nothing comes of
                it. Without, it is as if it were said when a worker takes it.

        Raises:
            BacklogFullError: too many wait already.
        """
        make = partial(self._job, turns, scope, key, mode, erasures)
        job = await anyio.to_thread.run_sync(make) if is_long(turns) else make()
        await self._check_backlog()
        writing = asyncio.get_running_loop().create_task(self._enqueue(scope.user_id, job, flush=flush))
        self._writing.add(writing)
        writing.add_done_callback(self._written)
        return await asyncio.shield(writing)

    async def _enqueue(self, user_id: str, job: "NewJob", *, flush: bool) -> str:
        async with self._users.setdefault(user_id, asyncio.Lock()):  # in the order of the calls
            name = await self._jobs.enqueue(user_id, job, flush=flush)
        if job.erasures is not None and name == job.id and await self._captures.begun(user_id) > job.erasures:
            await self._jobs.drop(user_id, [name])  # a worker that has it already drops it itself
        return name

    def _job(
        self, turns: Sequence[Turn], scope: Scope, key: str | None, mode: LearningMode, erasures: int | None
    ) -> "NewJob":
        from .store.lanes import NewJob  # it knows BSON, which nothing needs before the store is opened

        named = None if key is None else key_print(scope, key)
        mark = named or prints_of(scope, turns)[-1]
        said = self._settings.clock()
        return NewJob(uuid4().hex, mark, pack(turns), said, scope.agent_id, scope.team_id, named, mode, erasures)

    def _written(self, task: "asyncio.Task[str]") -> None:
        self._writing.discard(task)
        if not task.cancelled() and task.exception() is None:
            self._added += 1
            if self._settings.workers and not self._closing:
                self.workers.start()
            self.workers.wake()

    async def _check_backlog(self) -> None:
        """Refuse what would be too much, by a count that is renewed now and then."""
        most, (count, at) = self._settings.backlog, self._counted
        estimate = count + self._added
        patience = _COUNTED[0] if estimate * 2 > most else _COUNTED[1]
        if estimate >= most or time.monotonic() - at > patience:
            self._counted, self._added = (count, time.monotonic()), 0  # others need not count as well
            status, _ = await self._jobs.status()
            self._counted, self._added = (status.depth + status.in_flight, time.monotonic()), 0
            if self._counted[0] >= most:
                raise BacklogFullError(f"{most:,} captures wait already: schedule it again later, or add workers")

    def ticket(self, ticket_id: str, user_id: str) -> CaptureTicket:
        """The ticket of a capture, whoever scheduled it."""
        return CaptureTicket(ticket_id, user_id, self.outcome(ticket_id, user_id), self.look)

    def outcome(self, ticket_id: str, user_id: str) -> Outcome:
        """What is known in this process of what came of a job."""
        return self._outcomes.of(ticket_id, user_print(user_id))

    async def look(self, user_id: str, ticket_id: str) -> "Found":
        """What the queue says of it."""
        return await self._jobs.find(user_id, ticket_id)

    async def drain(self, timeout: float | None) -> QueueStatus:
        """Wait until what is in the queue by now is done or dead; what the queue looks like then.

        Raises:
            DrainTimeoutError: something was left.
        """
        if self._settings.workers:
            self.workers.start()
        jobs, pause = self._jobs, _PAUSES[0]
        ends = None if timeout is None else time.monotonic() + timeout
        status, until = await jobs.status()
        await jobs.flush()
        while status.depth + status.in_flight:
            if ends is not None and time.monotonic() >= ends:
                left = status.depth + status.in_flight
                raise DrainTimeoutError(f"{left:,} scheduled captures are left; they stay in the queue", left=left)
            self.workers.wake()
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _PAUSES[1])
            status, _ = await jobs.status(until)
        return (await jobs.status())[0]

    async def status(self) -> QueueStatus:
        """What the queue looks like, over all users and processes."""
        return (await self._jobs.status())[0]

    async def retry_dead(self, user_id: str | None) -> int:
        """Let dead letters wait again, one user's or everybody's; how many there were."""
        count = await self._jobs.retry_dead(user_id)
        self.workers.wake()
        return count

    async def work(self, stop: asyncio.Event | None, concurrency: int | None) -> WorkerReport:
        """Work until ``stop`` is set, then as ``aclose``; what was done."""
        self.workers.start(concurrency)
        told = asyncio.ensure_future((stop or asyncio.Event()).wait())
        try:
            await asyncio.wait((told, *self.workers.loops), return_when=asyncio.FIRST_COMPLETED)
            if not told.done() and not self._closing:
                raise CaptureAbandonedError("the workers ended by themselves: the log says of what")
        finally:
            told.cancel()
            await self.workers.stop(self._settings.close_timeout)
        return self.workers.report

    async def aclose(self) -> None:
        """Finish what is being written, let work in flight end within its time, give the rest back."""
        self._closing = True
        if self._writing:
            await asyncio.wait(self._writing)
        await self.workers.stop(self._settings.close_timeout)


def is_long(messages: object) -> bool:
    """Whether reading a conversation would keep the event loop from others."""
    if isinstance(messages, str):
        return len(messages) > _INLINE
    if not isinstance(messages, Sequence):
        return True
    if len(messages) > 50:  # pyright: ignore[reportUnknownArgumentType]
        return True
    texts: list[object] = [m.content if isinstance(m, Message) else m for m in messages]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return sum(len(t) if isinstance(t, str) else _INLINE for t in texts) > _INLINE


def read_turns(messages: object) -> list[Turn]:
    """The turns of one message, or of a list of them.

    Raises:
        InvalidMessageError: one is no message.
    """
    if isinstance(messages, Sequence) and not isinstance(messages, str | bytes):
        return read_messages(None, messages)  # pyright: ignore[reportUnknownArgumentType]
    return read_messages(messages, None)


async def turns_of(messages: object) -> list[Turn]:
    """The same, in a worker thread where it takes long.

    Raises:
        InvalidMessageError: one is no message.
    """
    return await anyio.to_thread.run_sync(read_turns, messages) if is_long(messages) else read_turns(messages)


def nothing_to_do(user_id: str) -> CaptureTicket:
    """The ticket of a conversation in which the user said nothing: it is done already."""
    return CaptureTicket(uuid4().hex, user_id, done_already(CaptureResult()), unknown)
