"""Tickets of scheduled captures: they wait for what comes of them, in whatever process that is."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, WeakValueDictionary

from .cleaning import clean_timeout
from .errors import StoreTimeoutError
from .profile_values import ProfileResult
from .types import CaptureResult

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from .store.jobs import Found

_PAUSES = (0.1, 2.0)
"""Seconds between two looks at the queue: at first, and at most."""


class Outcome:
    """What is known in this process of what came of one job."""

    def __init__(self, lane: str = "") -> None:
        self.lane = lane
        self.changed: asyncio.Event = asyncio.Event()
        self.here: bool = False  # a worker of this process is at it, and will tell
        self.result: Any = None
        self.error: BaseException | None = None

    @property
    def known(self) -> bool:
        """Whether it is."""
        return self.result is not None or self.error is not None

    def tell(self, result: object, error: BaseException | None) -> None:
        """Let everybody who waits know."""
        self.result, self.error, self.here = result, error, False
        self.changed.set()


class Outcomes:
    """The outcomes that somebody in this process holds a ticket for."""

    def __init__(self) -> None:
        self._by_job: WeakValueDictionary[str, Outcome] = WeakValueDictionary()
        self._by_lane: dict[str, WeakSet[Outcome]] = {}

    def of(self, job_id: str, lane: str) -> Outcome:
        """The outcome of a job, one for all of its tickets."""
        outcome = self._by_job.get(job_id)
        if outcome is None:
            outcome = self._by_job[job_id] = Outcome(lane)
            self._by_lane.setdefault(lane, WeakSet()).add(outcome)
        return outcome

    def tell(self, ids: Iterable[str], *, result: object = None, error: BaseException | None = None) -> None:
        """Jobs have ended."""
        for job_id in ids:
            outcome = self._by_job.get(job_id)
            if outcome is not None:
                outcome.tell(result, error)

    def begin(self, ids: Iterable[str], *, here: bool) -> None:
        """A worker of this process begins with jobs, or has left them to others."""
        for job_id in ids:
            if (outcome := self._by_job.get(job_id)) is not None:
                outcome.here = here

    def nudge(self, lane: str) -> None:
        """Something happened in a lane: its tickets look again."""
        waiting = self._by_lane.get(lane, ())
        for outcome in waiting:
            outcome.changed.set()
        if not waiting:
            self._by_lane.pop(lane, None)


Look = Callable[[str, str], Awaitable["Found"]]
"""Asks the queue of a user about a job."""


class Ticket:
    """Work that was scheduled.

    Attributes:
        id: names it.
        user_id: whose memories or profile it is about.
    """

    def __init__(self, ticket_id: str, user_id: str, outcome: Outcome, look: Look) -> None:
        self.id: str = ticket_id
        self.user_id: str = user_id
        self._outcome = outcome
        self._ask = look

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {'done' if self.done else 'waiting'}>"

    @property
    def done(self) -> bool:
        """Whether this process knows by now what came of it; ``wait()`` asks the others."""
        return self._outcome.known

    async def _wait(self, timeout: float | None) -> Any:
        within = clean_timeout(timeout)
        try:
            async with asyncio.timeout(within):
                return await self._settled()
        except TimeoutError:
            raise StoreTimeoutError(
                "the scheduled capture is not done yet: it stays in the queue; wait again", retryable=True
            ) from None

    async def _settled(self) -> Any:
        outcome, pause = self._outcome, _PAUSES[0]
        if outcome.error is not None and (await self._look()).error is None:
            outcome.error = None  # it was a dead letter, and is tried anew
        while not outcome.known:
            outcome.changed.clear()
            try:
                async with asyncio.timeout(pause):
                    await outcome.changed.wait()
            except TimeoutError:
                pause = min(pause * 1.5, _PAUSES[1])
            if not outcome.known and not outcome.here:
                found = await self._look()
                if found.result is not None:
                    outcome.tell(found.result, None)
                elif found.error is not None:
                    raise found.error  # not kept: the dead can be brought back
        if outcome.error is not None:
            raise outcome.error
        return outcome.result

    async def _look(self) -> "Found":
        return await self._ask(self.user_id, self.id)


class CaptureTicket(Ticket):
    """A capture that was scheduled.

    Attributes:
        id: names it, in other processes too: ``MemoryManager.get_ticket``.
        user_id: whose memories it is about.
    """

    async def wait(self, timeout: float | None = None) -> CaptureResult:
        """What came of it, as soon as it is done. Turns that were folded into one capture share one result.

        Where another process did the work, what was skipped comes without its text, and a change comes without what
        its memory's history no longer tells.

        Args:
            timeout: seconds to wait at most.

        Raises:
            StoreTimeoutError: it is not done yet. The work goes on, and waiting again is fine.
            TicketExpiredError: nothing is kept of it any more.
            AsyncMemError: what made it a dead letter, as its own class: a ``ModelError``, for instance.
        """
        result: CaptureResult = await self._wait(timeout)
        return result


class ProfileTicket(Ticket):
    """A conversation that was scheduled to be read for a profile.

    Attributes:
        id: names it.
        user_id: whose profile it is about.
    """

    async def wait(self, timeout: float | None = None) -> ProfileResult:
        """What came of it, as soon as it is done, as ``CaptureTicket.wait`` tells it.

        Args:
            timeout: seconds to wait at most.

        Raises:
            StoreTimeoutError: it is not done yet. The work goes on, and waiting again is fine.
            TicketExpiredError: nothing is kept of it any more.
            AsyncMemError: what made it a dead letter, as its own class.
        """
        result: ProfileResult = await self._wait(timeout)
        return result


def done_already(result: object) -> Outcome:
    """The outcome of what needed no work."""
    outcome = Outcome()
    outcome.tell(result, None)
    return outcome


async def unknown(user_id: str, ticket_id: str) -> "Found":
    """Nothing is to be asked about what needed no work."""
    raise AssertionError(f"{user_id} {ticket_id}: it is known")  # pragma: no cover
