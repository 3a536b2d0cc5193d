"""What every part of the store shares: the collections, the gate in front of the pool, the clock."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.cursor import AsyncCursor

from ..cleaning import clean_time
from ..errors import ManagerClosedError, StoreTimeoutError
from ..settings import Settings
from ..types import UserMemory
from .documents import Collections, Row
from .rows import to_memory
from .translate import translated

PAGE = 500
"""Rows that are decoded in one go: keeps the event loop's longest stall at a few milliseconds."""
Session = AsyncClientSession | None
"""The transaction that a call is part of, if any."""
STRIDE = 20
"""Rows that are made in one go: their words are stemmed, which may take a millisecond each."""
ATTEMPTS = 20
"""How often a compare-and-set that lost a race is tried again."""


class Gate:
    """Lets so many calls through at once, the rest in the order of their coming, until it is closed."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._places = asyncio.Semaphore(width)
        self._inside: set[asyncio.Timeout] = set()
        self._closed = False

    @asynccontextmanager
    async def passing(self) -> AsyncGenerator[None, None]:
        """Go through; wait before that, if too many are inside.

        Raises:
            ManagerClosedError: it was closed meanwhile.
            StoreTimeoutError: it was closed, and waited for this call as long as it may.
        """
        async with self._places:
            if self._closed:
                raise ManagerClosedError("the manager was closed while this call was under way: make a new one")
            limit = asyncio.timeout(None)
            try:
                async with limit:
                    self._inside.add(limit)
                    yield
            except TimeoutError:
                if not limit.expired():
                    raise
                raise StoreTimeoutError(
                    "the manager was closed, and this call took longer than Settings(close_timeout=...): a write may"
                    " have happened"
                ) from None
            finally:
                self._inside.discard(limit)

    async def close(self, within: timedelta) -> None:
        """Wait for those who came before, but not longer, then let nobody through any more.

        Cancelled, it is as open as before.
        """
        taken = 0
        try:
            async with asyncio.timeout(within.total_seconds()):
                while taken < self._width:
                    await self._places.acquire()
                    taken += 1
            self._closed = True
        except TimeoutError:
            self._closed = True
            for limit in self._inside:
                limit.reschedule(asyncio.get_running_loop().time())
        finally:
            for _ in range(taken):
                self._places.release()


@dataclass(frozen=True, slots=True)
class Core:
    """One manager's hold on one database.

    PyMongo's pool serves waiters unfairly (STORAGE: p99 of 1 s at 256 tasks), so calls queue at a gate before it.
    """

    collections: Collections
    settings: Settings
    gate: Gate = field(repr=False)

    def now(self) -> datetime:
        """The time by the injected clock, as MongoDB keeps it."""
        return clean_time(self.settings.clock())

    @asynccontextmanager
    async def calling(self) -> AsyncGenerator[None, None]:
        """Wait for a turn; MongoDB's errors come out as ours."""
        async with self.gate.passing():
            with translated():
                yield

    def turn(self, session: Session) -> AbstractAsyncContextManager[None]:
        """``calling()``, unless a transaction, which waited for its turn as a whole, is under way."""
        return self.calling() if session is None else nullcontext()


async def pages(cursor: AsyncCursor[Row], size: int = PAGE) -> AsyncIterator[list[Row]]:
    """The rows of a cursor, page by page."""
    cursor.batch_size(size)
    while page := await cursor.to_list(size):
        yield page
        if len(page) < size:
            return


async def as_memories(cursor: AsyncCursor[Row]) -> list[UserMemory]:
    """All rows of a cursor as memories."""
    return [memory async for page in pages(cursor) for memory in map(to_memory, page)]


async def breathe() -> None:
    """Let the event loop run others between two slices of work."""
    await asyncio.sleep(0)
