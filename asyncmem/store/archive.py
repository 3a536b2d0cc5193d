"""Rows that left the memories, kept until their retention ends.

A row is written here before it goes, so a crash in between leaves a copy too many, never one too few. Its key is
the memory's id, its life and the revision that the departure made, so writing it again changes nothing. A life
lasts from an insertion to the last deletion; an id that is used again begins another one.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from pymongo import ReplaceOne
from pymongo.errors import BulkWriteError, DuplicateKeyError

from .core import Core, Session, pages
from .documents import Row
from .rows import lasting, revision_of, state_of

_DUPLICATE = 11000
RETURNING = timedelta(hours=1)
"""How long what a swap needs is kept at least: a crash may interrupt it."""


class Archive:
    """Deleted rows, and history entries that their documents had no room for."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def keep(
        self, rows: Sequence[Row], kind: str, cause: str, at: datetime, session: Session = None
    ) -> list[str]:
        """Keep rows that are about to be deleted; the keys of the copies."""
        entries = [self._entry(row, row, revision_of(row) + 1, kind, cause, at) for row in rows]
        return await self._write(entries, session)

    async def retire(self, keys: Sequence[str], rows: Sequence[Row], run_id: str, cause: str, at: datetime) -> None:
        """Keep rows that an optimization is about to take away, whole, so that they can come back as they were."""
        entries = [
            {
                **self._entry(row, row, revision_of(row) + 1, "optimize", cause, at),
                "_id": key,
                "run": run_id,
                "row": row,
            }
            for key, row in zip(keys, rows, strict=True)
        ]
        await self._write(entries, None)

    async def retired(self, user_id: str, keys: Sequence[str], session: Session = None) -> list[Row]:
        """Rows that an optimization took away, as they were."""
        query = {"_id": {"$in": list(keys)}, "user_id": user_id}
        async with self._core.turn(session):
            cursor = self._core.collections.archive.find(query, {"row": 1}, session=session)
            return [entry["row"] async for page in pages(cursor) for entry in page]

    async def retired_last(self, user_id: str, memory_id: str) -> Row | None:
        """The row of a memory whose last departure was an optimization's doing; ``None`` for any other."""
        departed = last_deleted(await self.of_memory(user_id, memory_id))
        row: Row | None = departed["row"] if departed is not None and departed["kind"] == "optimize" else None
        return row

    async def departures(self, rows: Sequence[Row], run_id: str, session: Session = None) -> list[Row]:
        """Deletions of these rows, at their revision or later, announced or done, by others than an optimization."""
        lives = {row["_id"]: (life_of(row), revision_of(row)) for row in rows}
        query = {"user_id": rows[0]["user_id"], "memory_id": {"$in": list(lives)}, "kind": {"$ne": "history"}}
        fields = {"memory_id": 1, "life": 1, "revision": 1, "run": 1, "at": 1}
        async with self._core.turn(session):
            cursor = self._core.collections.archive.find(query, fields, session=session)
            entries = [entry async for page in pages(cursor) for entry in page]
        return [
            entry
            for entry in entries
            if entry.get("run") != run_id
            and (entry.get("life") or 0) == lives[entry["memory_id"]][0]
            and entry["revision"] > lives[entry["memory_id"]][1]
        ]

    async def discard(self, user_id: str, keys: Sequence[str]) -> None:
        """Forget copies of rows that did not go, or that came back."""
        async with self._core.calling():
            await self._core.collections.archive.delete_many({"_id": {"$in": list(keys)}, "user_id": user_id})

    async def discard_run(self, user_id: str, run_id: str) -> None:
        """Forget all copies that an optimization made; reads all that is kept of the user."""
        async with self._core.calling():
            await self._core.collections.archive.delete_many({"user_id": user_id, "run": run_id})

    async def spill(self, row: Row, entries: Sequence[Row], session: Session = None) -> list[str]:
        """Keep history entries that are about to leave the memory's own document; the keys of the copies."""
        return await self._write(
            [
                self._entry(row, e, e.get("revision") or 1, "history", e.get("cause", "unknown"), e.get("at"))
                for e in entries
            ],
            session,
        )

    def _entry(self, row: Row, kept: Row, revision: int, kind: str, cause: str, at: datetime | None) -> Row:
        now = self._core.now()
        return {
            "_id": f"{row['_id']}:{life_of(row)}:{revision}",
            "user_id": row["user_id"],
            "memory_id": row["_id"],
            "life": life_of(row),
            "revision": revision,
            "kind": kind,
            "cause": cause,
            "at": at or now,
            "row": lasting(kept),
            "expire_at": now + self._core.settings.retention,
        }

    async def _write(self, entries: list[Row], session: Session) -> list[str]:
        operations = [ReplaceOne({"_id": e["_id"], "user_id": e["user_id"]}, e, upsert=True) for e in entries]
        async with self._core.turn(session):
            try:
                await self._core.collections.archive.bulk_write(operations, ordered=False, session=session)
            except BulkWriteError as error:
                if session is not None:
                    raise
                refused = (error.details or {}).get("writeErrors", [])
                if not refused or any(e.get("code") != _DUPLICATE for e in refused):
                    raise  # else somebody else wrote the same copy at the same moment
        return [e["_id"] for e in entries]

    async def withdraw(self, user_id: str, keys: Sequence[str]) -> None:
        """Forget copies again if the user was erased meanwhile; otherwise they are somebody's who was faster."""
        async with self._core.calling():
            archive = self._core.collections.archive
            if await archive.find_one(_marked(user_id), {"_id": 1}) is not None:
                await archive.delete_many({"user_id": user_id, "_id": {"$in": list(keys)}})

    async def of_memory(self, user_id: str, memory_id: str) -> list[Row]:
        """What is kept of one memory, oldest life and revision first."""
        query = {"user_id": user_id, "memory_id": memory_id}
        async with self._core.calling():
            cursor = self._core.collections.archive.find(query).sort([("life", 1), ("revision", 1)])
            return [row async for page in pages(cursor) for row in page]

    async def announce(self, user_id: str) -> None:
        """Tell calls under way, for an hour, that the user is being erased. The mark names nobody."""
        mark = {**_marked(user_id), "kind": "erased", "expire_at": self._core.now() + timedelta(hours=1)}
        async with self._core.calling():
            with suppress(DuplicateKeyError):  # another erasure of this user wrote it at the same moment
                await self._core.collections.archive.replace_one(_marked(user_id), mark, upsert=True)

    async def erase(self, user_id: str) -> int:
        """Forget all that is kept of one user."""
        async with self._core.calling():
            result = await self._core.collections.archive.delete_many({"user_id": user_id})
        return result.deleted_count


def _marked(user_id: str) -> Row:
    mark = f"erased:{blake2b(user_id.encode(), digest_size=16).hexdigest()}"
    return {"_id": mark, "user_id": mark}


def life_of(row: Mapping[str, Any]) -> int:
    """Which life of its id a row belongs to: when it began. Rows of other software have one only."""
    return row.get("seq") or 0


def last_deleted(entries: Sequence[Row]) -> Row | None:
    """The newest departure among a memory's archive entries."""
    return next((e for e in reversed(entries) if e["kind"] != "history"), None)


def timeline(living: Row | None, archived: Sequence[Row]) -> list[Row]:
    """One entry a revision, oldest first: its state, or ``{"gone": True}`` for a departure.

    A living row knows best about itself, and a departure behind its revision was announced but never happened.
    """
    entries: dict[tuple[int, int], Row] = {}
    for entry in archived:
        life = entry.get("life") or 0
        if entry["kind"] == "history":
            entries[life, entry["revision"]] = entry["row"]
        else:
            entries |= _states(entry["row"], life)
            entries[life, entry["revision"]] = {"gone": True, "cause": entry["cause"], "at": entry["at"]}
    if living is not None:
        newest = (life_of(living), living.get("revision") or 1)
        entries = {place: e for place, e in entries.items() if place <= newest} | _states(living, newest[0])
    return [{**entry, "revision": place[1]} for place, entry in sorted(entries.items(), key=lambda item: item[0])]


def _states(row: Row, life: int) -> dict[tuple[int, int], Row]:
    return {(life, state.get("revision") or 1): state for state in [*row.get("history", ()), state_of(row)]}
