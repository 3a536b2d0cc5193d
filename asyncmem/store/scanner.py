"""What search's in-process index of a user is made from, and how it tells whether it still is right."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..filters import Filters
from ..tokens import SCHEME, tokenize
from ..types import Scope
from . import queries
from .core import PAGE, Core, pages
from .documents import NEWEST_FIRST, OLDEST_FIRST, Row
from .rows import aware
from .vectors import from_vector

_ENTRIES = 64
"""Rows that are decoded in one go: a few milliseconds, and too few objects to call the garbage collector."""
_IDS = 2_000
"""Ids that are decoded in one go."""
_FIELDS = {"_id": 1, "stamp": 1, "tokens": 1, "updated_at": 1, "seq": 1, "expires_at": 1}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a user's rows add up to: another one whenever a row was added, changed or removed.

    Attributes:
        rows: how many there are.
        total: the sum of their stamps; rows of other software have none.
    """

    rows: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index keeps of a row.

    Attributes:
        memory_id: of which memory.
        stamp: of which state of it; 0 for a row of other software.
        tokens: of text and topics.
        updated: seconds since 1970 of its last update; minus infinity without one.
        seq: orders equal times by insertion.
        expires: seconds since 1970 when it is forgotten; infinity if never.
        vector: float32 values, if there are any of the model that was asked for.
    """

    memory_id: str
    stamp: int
    tokens: Sequence[str]
    updated: float
    seq: int
    expires: float
    vector: bytes | None


Take = Callable[[Iterable[Entry]], None]


class Scanner:
    """Reads what search ranks by, of one user at a time."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._memories = core.collections.memories

    def now(self) -> float:
        """The time by the injected clock, in seconds since 1970."""
        return self._core.now().timestamp()

    async def fingerprint(self, user_id: str) -> Fingerprint:
        """What the user's rows add up to now: read from the index alone."""
        group = {"_id": None, "rows": {"$sum": 1}, "total": {"$sum": "$stamp"}}
        async with self._core.calling():
            cursor = await self._memories.aggregate([{"$match": {"user_id": user_id}}, {"$group": group}])
            sums = await cursor.to_list()
        if not sums:
            return Fingerprint()
        total = sums[0]["total"]
        # a stamp that is no number can only be other software's: no index is in step with it
        return Fingerprint(int(sums[0]["rows"]), int(total) if math.isfinite(total) else -1)

    async def stamps(self, user_id: str) -> dict[str, int]:
        """The stamp of every row, by id. Read oldest first: a row that changes meanwhile is met again, not missed."""
        async with self._core.calling():
            cursor = self._memories.find({"user_id": user_id}, {"_id": 1, "stamp": 1}).sort(OLDEST_FIRST)
            return {str(row["_id"]): _stamp(row) async for page in pages(cursor, _IDS) for row in page}

    async def matching(self, scope: Scope, filters: Filters) -> set[str]:
        """The ids of the memories that pass the filters."""
        query = queries.scoped(scope, self._core.now(), filters)
        async with self._core.calling():
            cursor = self._memories.find(query, {"_id": 1})
            return {str(row["_id"]) async for page in pages(cursor, _IDS) for row in page}

    async def every(self, user_id: str, model: str | None, take: Take) -> None:
        """Hand over all rows, page by page."""
        await self._each({"user_id": user_id}, model, take)

    async def unmarked(self, user_id: str, model: str | None, take: Take) -> None:
        """Hand over the rows of other software."""
        await self._each({"user_id": user_id, "stamp": None}, model, take)

    async def some(self, user_id: str, ids: Sequence[str], model: str | None, take: Take) -> None:
        """Hand over these rows, as far as they are there."""
        for start in range(0, len(ids), PAGE):
            wanted = {"$in": list(ids[start : start + PAGE])}
            await self._each({"user_id": user_id, "_id": wanted}, model, take)

    async def newest(self, user_id: str, count: int, model: str | None, take: Take) -> None:
        """Hand over the rows that were updated last."""
        await self._each({"user_id": user_id}, model, take, count)

    async def _each(self, query: Row, model: str | None, take: Take, newest: int = 0) -> None:
        fields = _FIELDS if model is None else {**_FIELDS, "vector": 1}
        foreign: list[Row] = []

        def page_of(rows: list[Row]) -> None:
            foreign.extend(row for row in rows if _words(row) is None)
            take(_entry(row, words.split(), model) for row in rows if (words := _words(row)) is not None)

        async with self._core.calling():
            cursor = self._memories.find(query, fields)
            cursor = cursor.sort(NEWEST_FIRST).limit(newest) if newest else cursor.sort(OLDEST_FIRST)
            cursor.batch_size(_ENTRIES)
            while page := await cursor.to_list(_ENTRIES):
                page_of(page)
        for start in range(0, len(foreign), _ENTRIES):
            await self._tokenized(query["user_id"], foreign[start : start + _ENTRIES], model, take)

    async def _tokenized(self, user_id: str, rows: list[Row], model: str | None, take: Take) -> None:
        """Hand over rows whose tokens are missing, or of another scheme: made from their text now."""
        query = {"user_id": user_id, "_id": {"$in": [row["_id"] for row in rows]}}
        fields = {"memory": 1, "topics": 1, **_FIELDS, **({"vector": 1} if model else {})}
        async with self._core.calling():
            found = await self._memories.find(query, fields).to_list()
        take(_entry(row, [t for part in _said(row) for t in tokenize(part)], model, _said(row)[0]) for row in found)


def _said(row: Row) -> list[str]:
    topics: object = row.get("topics")
    named: list[object] = topics if isinstance(topics, list) else []  # pyright: ignore[reportUnknownVariableType]
    return [str(part) for part in (row.get("memory") or "", *named)]


def _words(row: Row) -> str | None:
    """The stored tokens, if today's rules made them."""
    match row:
        case {"stamp": int() as stamp, "tokens": {"scheme": scheme, "words": str() as words}} if stamp > 0:
            return words if scheme == SCHEME else None
        case _:
            return None


def _stamp(row: Mapping[str, Any]) -> int:
    stamp = row.get("stamp")
    return stamp if isinstance(stamp, int) and stamp > 0 else 0


def _entry(row: Row, tokens: Sequence[str], model: str | None, text: str | None = None) -> Entry:
    updated, expires, seq = aware(row.get("updated_at")), aware(row.get("expires_at")), row.get("seq")
    return Entry(
        str(row["_id"]),
        _stamp(row),
        tokens,
        updated.timestamp() if updated else float("-inf"),
        seq if isinstance(seq, int) else 0,
        expires.timestamp() if expires else float("inf"),
        from_vector(row.get("vector"), model, text),
    )
