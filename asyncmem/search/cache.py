"""The indexes of the users that were searched last, each brought up to date before it is used."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .loading import load

if TYPE_CHECKING:  # numpy and PyMongo are imported by the first search that ranks
    from ..store.scanner import Entry, Scanner
    from .index import UserIndex

_TRIES = 3
_RECENT = 32
"""Rows read first when an index is out of step: most often only the newest have changed."""


@dataclass
class _Held:
    """A user's index, and whose turn it is with it."""

    index: "UserIndex"
    read: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class IndexCache:
    """Indexes in the memory of one manager, least recently used out first.

    Args:
        limit: bytes that they may take together. One that is larger on its own is used and not kept.
        model: whose vectors they hold.
    """

    def __init__(self, limit: int, model: str | None) -> None:
        self._limit = limit
        self._model = model
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self.dims: int | None = None

    @asynccontextmanager
    async def current(self, scan: "Scanner", user_id: str, *, check: bool = True) -> "AsyncGenerator[UserIndex]":
        """A user's index as the database is now, for one task at a time; unchecked, as it was a moment ago."""
        held = await self._of(user_id)
        async with held.turn:
            if held.index.wasted or (self.dims is not None and held.index.dims not in (None, self.dims)):
                held.index, held.read = type(held.index)(self._model, self.dims), False
            if check or not held.read:
                await _bring_up_to_date(held.index, scan, user_id)
                held.read = True
            yield held.index
        self._trim()

    async def _of(self, user_id: str) -> _Held:
        await load()
        from .index import UserIndex  # it needs numpy

        held = self._held.setdefault(user_id, _Held(UserIndex(self._model, self.dims)))
        self._held.move_to_end(user_id)
        return held

    def _trim(self) -> None:
        size = sum(held.index.size for held in self._held.values())
        while size > self._limit and self._held:
            _, oldest = self._held.popitem(last=False)
            size -= oldest.index.size


async def _bring_up_to_date(index: "UserIndex", scan: "Scanner", user_id: str) -> None:
    """Read what has changed. Who reads while others write may have to read again; three times is enough for all but
    a user who is written to without a pause, and then each row is as it was at some moment of this search."""
    if index.unmarked:
        await _reread(index, scan, user_id)
    for _ in range(_TRIES):
        wanted = await scan.fingerprint(user_id)
        if wanted == index.fingerprint:
            return
        if not index.fingerprint.rows:
            await scan.every(user_id, index.model, index.take)
            continue
        await scan.newest(user_id, _RECENT, index.model, index.take)
        if wanted == index.fingerprint:
            return
        changed, gone = index.differing(await scan.stamps(user_id))
        index.drop(gone)
        await scan.some(user_id, changed, index.model, index.take)


async def _reread(index: "UserIndex", scan: "Scanner", user_id: str) -> None:
    """Read rows of other software again: nothing tells whether they have changed."""
    found: set[str] = set()

    def take(entries: "Iterable[Entry]") -> None:
        for entry in entries:
            found.add(entry.memory_id)
            index.take([entry])

    known = set(index.unmarked)
    await scan.unmarked(user_id, index.model, take)
    index.drop(known - found)
