"""A manager on each kind of server, and a clock that the test moves."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from asyncmem import MemoryManager, Settings
from asyncmem.testing import ScriptedModel

from ..servers import with_database


@dataclass
class Clock:
    """A clock that stands until it is moved. It is ahead of the servers', whose sweeps go by their own."""

    now: datetime = datetime(2096, 1, 5, 8, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    """A clock that stands until it is moved."""
    return Clock()


@pytest.fixture
def uri(server_uri: str, database_name: str) -> str:
    """A fresh database on each kind of server."""
    return with_database(server_uri, database_name)


@pytest.fixture
async def manager(uri: str, clock: Clock) -> AsyncIterator[MemoryManager]:
    """A manager on a fresh database, whose model must not be asked."""
    async with MemoryManager(uri, model=ScriptedModel([]), settings=Settings(clock=clock)) as memory:
        yield memory
