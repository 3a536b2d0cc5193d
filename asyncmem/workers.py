"""Workers: they take users' lanes from the queue by lease, and carry out the captures that wait there."""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

import anyio.to_thread

from .capturing import Carried
from .errors import CaptureAbandonedError, StoreError, TicketExpiredError
from .outcomes import is_passing
from .packing import INLINE, Talk, prints_of, unpack
from .settings import Settings
from .tasks import Tasks
from .tickets import Outcomes
from .types import Scope, WorkerReport

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from .store.jobs import Claim, Due, Jobs
    from .store.store import MemoryStore

_log = logging.getLogger(__name__)
_SPARE = 8
"""Lanes that are looked at beyond those that can be taken: other workers take some of them."""
_POLLS = (0.2, 5.0)
"""Seconds between two looks at an idle queue where nothing tells of changes: at first, and at most."""
_WATCHED = 30.0
"""The same where a change stream tells of them."""
_LONGEST_PAUSE = timedelta(minutes=15)
_PARTING = timedelta(seconds=5)
"""How long giving back leases may take when closing."""


class Carrier(Protocol):
    """Carries out what was scheduled."""

    async def carry_out(self, store: "MemoryStore", talks: Sequence[Talk], erasures: int, turn: int) -> Carried:
        """Do what conversations of one user ask for, as many of them, from the first on, as go together."""
        ...

    async def carried_out(self, store: "MemoryStore", talk: Talk, turn: int) -> Any:
        """What came of a conversation that was done already; ``None`` if it was not."""
        ...


@dataclass(slots=True)
class Workers:
    """One manager's workers: a loop that takes lanes, and a task for each lane that was taken."""

    store: "MemoryStore"
    jobs: "Jobs"
    carrier: Carrier
    settings: Settings
    tasks: Tasks
    outcomes: Outcomes
    report: WorkerReport = field(default_factory=WorkerReport)
    _concurrency: int = 0
    _loops: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    _running: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: bool = False
    _watching: bool = False
    _rivals: bool = False

    @property
    def started(self) -> bool:
        """Whether they are at work."""
        return self._concurrency > 0

    def start(self, concurrency: int | None = None) -> None:
        """Begin to take work; once started, this does nothing."""
        if not self.started:
            self._concurrency = concurrency or self.settings.worker_concurrency
            self._stopping = False
            self._loops = [self.tasks.start("the capture workers", self._run)]
            if self.store.capabilities.transactions:
                self._loops.append(self.tasks.start("the queue's watcher", self._watch))

    @property
    def loops(self) -> list[asyncio.Task[None]]:
        """What takes work; ends only when it is stopped, or fails."""
        return self._loops[:1]

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    async def stop(self, within: timedelta) -> None:
        """Take nothing new, let work in flight end, and give back at once what had not ended in time."""
        self._stopping = True
        self.wake()
        if self._loops:
            await asyncio.wait(self._loops[:1], timeout=_PARTING.total_seconds())
            await _ended(*self._loops)
        running = list(self._running)
        left = (await asyncio.wait(running, timeout=within.total_seconds()))[1] if running else set[Any]()
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_PARTING.total_seconds())
            _log.warning("closing: %d captures are handed back to the queue; others may take them", len(left))
        self._concurrency = 0

    # ------------------------------------------------------------------------------------------- taking lanes

    async def _run(self) -> None:
        idle = _POLLS[0]
        while not self._stopping:
            self._wake.clear()
            try:
                taken, wait = await self._take()
            except StoreError as error:
                _log.warning("the queue can't be read (%s): trying again", type(error).__name__)
                taken, wait = 0, _POLLS[1]
            idle = _POLLS[0] if taken else min(idle * 2, _POLLS[1])
            if not taken:
                await self._pause(min(wait, _WATCHED if self._watching else idle))

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _take(self) -> tuple[int, float]:
        """Take lanes as long as there is room; how many, and the seconds until there is something to take."""
        room = self._concurrency - len(self._running)
        if room < 1:
            return 0, _WATCHED  # whoever ends wakes us
        found = await self.jobs.due(room + _SPARE)
        ready = [due for due in found if due.wait <= 0]
        if not ready:
            return 0, found[0].wait if found else _WATCHED
        # in the order of their turn, unless other workers take them before us
        chosen = random.sample(ready, min(room, len(ready))) if self._rivals else ready[:room]
        taken = sum(await asyncio.gather(*map(self._try, chosen)))
        self._rivals = taken < len(chosen)
        return taken, 0.01

    async def _try(self, due: "Due") -> bool:
        # asked before the lane is taken: an erasure removes the lane first, and is counted afterwards
        erasures = await self.store.captures.begun(due.user_id)
        if self._stopping:
            return False
        claim = await self.jobs.claim(due)
        if claim is None:
            return False
        task = self.tasks.start("a scheduled capture", lambda: self._work(claim, erasures))
        self._running.add(task)
        task.add_done_callback(self._ended)
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self.wake()

    async def _watch(self) -> None:
        """Wake up when somebody schedules something, in whatever process; without, polling does."""
        while not self._stopping:
            try:
                async for lane in self.jobs.watch():
                    self._watching = True
                    self.wake()
                    self.outcomes.nudge(lane)
            except StoreError as error:
                _log.info("the queue can't be watched (%s): it is polled meanwhile", type(error).__name__)
            self._watching = False
            await asyncio.sleep(_POLLS[1])

    # ------------------------------------------------------------------------------------------- doing the work

    async def _work(self, claim: "Claim", erasures: int) -> None:
        """Carry out what was taken, as long as the lease is ours."""
        work = asyncio.ensure_future(self._carry_out(claim, erasures))
        beat = asyncio.ensure_future(self._beat(claim))
        self.outcomes.begin((job.id for job in claim.jobs), here=True)
        try:
            await asyncio.wait((work, beat), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work  # what it failed of is logged by whoever runs us
            else:
                _log.warning("a scheduled capture was taken over: its lease had ended")
        except asyncio.CancelledError:
            await _ended(work)
            self._count(handed_back=1)
            await self.jobs.give_back(claim, counted=False)
            raise
        finally:
            self.outcomes.begin((job.id for job in claim.jobs), here=False)
            await _ended(work, beat)

    async def _beat(self, claim: "Claim") -> None:
        """Keep the lease; returns when it is somebody else's."""
        pause = self.settings.lease.total_seconds() / 3
        while True:
            await asyncio.sleep(pause)
            try:
                if not await self.jobs.beat(claim):
                    return
            except (
                StoreError
            ) as error:  # if it lasts, the lease ends; what is written then is written once all the same
                _log.warning("a lease could not be lengthened (%s): trying again", type(error).__name__)

    async def _carry_out(self, claim: "Claim", erasures: int) -> None:
        if over := [job.id for job in claim.jobs if job.is_over(erasures)]:
            await self._drop(claim, over)  # what is left is taken anew
            return
        try:
            self._check_attempts(claim)
            size = sum(len(job.body) for job in claim.jobs)
            talks = await anyio.to_thread.run_sync(_talks, claim) if size > INLINE else _talks(claim)
            carried = await self.carrier.carry_out(self.store, talks, erasures, claim.turn)
        except Exception as error:  # noqa: BLE001  whatever a capture fails of, its job must not be lost or block others
            await self._failed(claim, error)
            return
        await self._finish(claim, carried)

    async def _finish(self, claim: "Claim", carried: Carried) -> None:
        ours = await self.jobs.finish(claim, carried.count, carried.result)
        self._count(done=carried.count if ours else 0)
        if ours or not carried.result.repeated:  # else whoever has the lane now knows better
            self.outcomes.tell([job.id for job in claim.jobs[: carried.count]], result=carried.result)

    async def _drop(self, claim: "Claim", ids: Sequence[str]) -> None:
        """Forget jobs that began before their user was erased, and were put into the queue afterwards."""
        if await self.jobs.drop(claim.user_id, ids, claim.token):
            self.outcomes.tell(ids, error=TicketExpiredError("the user was erased before it was captured"))

    def _check_attempts(self, claim: "Claim") -> None:
        if claim.attempts > self.settings.job_attempts:
            raise CaptureAbandonedError(f"{claim.attempts - 1} workers ended before they had done it")

    async def _failed(self, claim: "Claim", error: Exception) -> None:
        """Try again later, or job by job, or set the first job aside."""
        name, most = type(error).__name__, self.settings.job_attempts
        if is_passing(error) and claim.attempts < most:
            pause = self._pause_after(claim.attempts, getattr(error, "retry_after", None))
            _log.warning("a scheduled capture failed (%s), attempt %d of %d", name, claim.attempts, most)
            self._count(failed=1)
            await self.jobs.give_back(claim, pause)
        elif len(claim.jobs) > 1:
            _log.warning("captures that were folded failed (%s): they are tried one by one", name)
            self._count(failed=1)
            await self.jobs.give_back(claim, counted=False, solo=True)
        else:
            await self._bury(claim, error)

    async def _bury(self, claim: "Claim", error: Exception) -> None:
        """Set a job aside, unless a worker that was thought to be gone has carried it out meanwhile."""
        if not await self.jobs.beat(claim):
            return  # it is somebody else's by now
        captures, guard = self.store.captures, claim.jobs[0].guard
        if not await captures.close(claim.user_id, guard, claim.turn):
            talk = await anyio.to_thread.run_sync(lambda: _talks(claim)[0])
            result = await self.carrier.carried_out(self.store, talk, claim.turn)
            if result is not None:  # pragma: no branch  what was not closed was applied
                await self._finish(claim, Carried(1, result))
        elif await self.jobs.bury(claim, error):
            _log.error("a scheduled capture is set aside as a dead letter (%s)", type(error).__name__)
            self._count(dead=1)
            self.outcomes.tell([claim.jobs[0].id], error=error)
        else:
            await captures.reopen(claim.user_id, guard, claim.turn)

    def _pause_after(self, attempts: int, asked: float | None) -> timedelta:
        """The pause doubles with each attempt, and is never shorter than the provider asks for."""
        pause: timedelta = min(self.settings.job_backoff * 2.0 ** (attempts - 1), _LONGEST_PAUSE)
        return max(pause, min(timedelta(seconds=asked or 0), timedelta(days=1)))

    def _count(self, **more: int) -> None:
        self.report = replace(self.report, **{name: getattr(self.report, name) + n for name, n in more.items()})


async def _ended(*tasks: "asyncio.Future[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _talks(claim: "Claim") -> list[Talk]:
    """What was taken, as conversations."""
    talks: list[Talk] = []
    for job in claim.jobs:
        scope, turns = Scope(claim.user_id, job.agent_id, job.team_id), unpack(job.body)
        talks.append(Talk(turns, scope, prints_of(scope, turns), job.guard, job.said, job.key, job.mode))
    return talks
