"""One optimization of one user at a time, over processes: a lease that lapses by itself when its holder dies.

The lease's row is also where work that a crash may interrupt is announced. So one atomic write both checks that the
lease still is held and promises that the work will be finished, by whoever comes next if need be. Time is the
server's: clients' clocks differ.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pymongo.errors import DuplicateKeyError

from ..errors import ManagerClosedError, OptimizationConflictError, StoreError
from ..fingerprints import user_print
from .core import Core, Session
from .documents import Row

R = TypeVar("R")
LASTING = timedelta(seconds=30)
"""How long a lease lasts that nobody renews."""
_KEPT = timedelta(days=7)
"""How long the row of a lease that nobody gave back stays."""
TAKEN = "this user's memories are being optimized already: try again when it has ended"
LOST = "another optimization of this user began meanwhile, nothing was changed: try again when it has ended"


@dataclass(frozen=True, slots=True, eq=False)
class Lease:
    """The right to optimize one user's memories.

    Attributes:
        user_id: whose.
        token: names the holder.
        owner: the leases that it is one of.
    """

    user_id: str
    token: str
    owner: "Leases"


_held: ContextVar[tuple[Lease, ...]] = ContextVar("asyncmem_leases", default=())
"""The leases of the task at hand."""


class Leases:
    """Reads and writes one database's leases."""

    def __init__(self, core: Core, lasting: timedelta = LASTING) -> None:
        self._core = core
        self._rows = core.collections.optimizations
        self._lasting = lasting

    def held(self, user_id: str) -> Lease | None:
        """The lease of this user that the task at hand, or one that it came from, holds."""
        return next((lease for lease in _held.get() if lease.owner is self and lease.user_id == user_id), None)

    @asynccontextmanager
    async def holding(self, user_id: str) -> AsyncGenerator[Lease, None]:
        """Hold the user's lease; the one that this task holds already, if it does.

        Raises:
            OptimizationConflictError: somebody else holds it.
        """
        mine = self.held(user_id)
        if mine is not None:
            yield mine
            return
        lease = Lease(user_id, secrets.token_hex(12), self)
        before = _held.get()
        try:
            await to_the_end(self._take(lease))
        except asyncio.CancelledError:
            await to_the_end(self._give_back(lease))
            raise
        renewing = asyncio.create_task(self._renew(lease))
        _held.set((*before, lease))
        try:
            yield lease
        finally:
            _held.set(before)
            renewing.cancel()
            await to_the_end(self._give_back(lease))

    async def _take(self, lease: Lease) -> None:
        now = await self._server_time()
        free = {**self._name(lease.user_id), "until": {"$lte": now}}
        terms = {"kind": "lease", "token": lease.token, "until": now + self._lasting, "expire_at": now + _KEPT}
        async with self._core.calling():
            try:
                await self._rows.update_one(free, {"$set": terms}, upsert=True)
            except DuplicateKeyError:
                raise OptimizationConflictError(TAKEN) from None

    async def _renew(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(self._lasting.total_seconds() / 3)
            with suppress(StoreError):  # the next time may do, and the swap looks for itself
                await self._extend(lease)

    async def _extend(self, lease: Lease) -> None:
        until = await self._server_time() + self._lasting
        async with self._core.calling():
            await self._rows.update_one(self._mine(lease), {"$set": {"until": until}})

    async def _give_back(self, lease: Lease) -> None:
        """A lease with work to be finished stays, for whoever comes next; if nothing can be written, it lapses."""
        with suppress(StoreError, ManagerClosedError):
            async with self._core.calling():
                gone = await self._rows.delete_one({**self._mine(lease), "work": None})
                if not gone.deleted_count:
                    free = {"$set": {"until": datetime(1970, 1, 1, tzinfo=UTC)}}
                    await self._rows.update_one(self._mine(lease), free)

    async def sign(self, lease: Lease, session: Session = None, work: Row | None = None) -> bool:
        """Write to the lease, in a transaction or with work that is announced; whether it still is held.

        Somebody who takes it at the same moment comes before or after that. That it has lapsed does not matter as
        long as nobody took it.
        """
        change: Row = {"$inc": {"signed": 1}}
        if work is not None:
            change |= {"$set": {"work": work, "pending": self._core.now()}, "$unset": {"expire_at": ""}}
        async with self._core.turn(session):
            found = await self._rows.update_one({**self._mine(lease), "work": None}, change, session=session)
        return found.matched_count == 1

    async def is_at(self, user_id: str, work: Row) -> bool:
        """Whether this work still is announced, so that nobody has finished it."""
        named = {"work.run": work["run"], "work.mode": work["mode"]}
        async with self._core.calling():
            return await self._rows.find_one({**self._name(user_id), **named}, {"_id": 1}) is not None

    async def turn_back(self, user_id: str, work: Row) -> bool:
        """Announce that work which was begun is to be undone instead; whether it still was under way."""
        named = {"work.run": work["run"], "work.mode": work["mode"]}
        async with self._core.calling():
            change = {"$set": {"work.mode": "rollback"}}
            return (await self._rows.update_one({**self._name(user_id), **named}, change)).matched_count == 1

    async def done(self, user_id: str, work: Row) -> None:
        """The work is finished. A lease that nobody holds goes."""
        expire_at = await self._server_time() + _KEPT
        named = {"work.run": work["run"], "work.mode": work["mode"]}
        change = {"$unset": {"work": "", "pending": ""}, "$set": {"expire_at": expire_at}}
        async with self._core.calling():
            await self._rows.update_one({**self._name(user_id), **named}, change)

    async def works(self, user_id: str | None) -> list[Row]:
        """Leases with work that is not finished: one user's, or, as maintenance, everybody's."""
        query: Row = {"pending": {"$gt": datetime.min.replace(tzinfo=UTC)}}
        query |= {} if user_id is None else self._name(user_id)
        async with self._core.calling():
            return await self._rows.find(query).sort("pending", 1).to_list(1000)

    async def _server_time(self) -> datetime:
        # not $$NOW: SecantusDB compares it with stored dates by type, not by value
        async with self._core.calling():
            hello = await self._rows.database.command("hello")
        moment: datetime = hello["localTime"]
        return moment.replace(tzinfo=UTC)

    def _name(self, user_id: str) -> Row:
        return {"_id": f"{user_print(user_id)}:lease", "user_id": user_id}

    def _mine(self, lease: Lease) -> Row:
        return {**self._name(lease.user_id), "token": lease.token}


async def to_the_end(work: Coroutine[Any, Any, R]) -> R:
    """Do the work to its end, whether or not the waiting is cancelled: a cancellation comes out only then."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):  # it is raised below, once
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody is left to be told of it
        raise
