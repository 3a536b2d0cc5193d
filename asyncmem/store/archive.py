"""Rows that left the memories, kept until their retention ends.

A row is written here before it goes, so a crash in between leaves a copy too many, never one too few. Its key is
the memory's id and the revision that the departure made, so writing it again changes nothing.
"""

from collections.abc import Sequence
from datetime import datetime

from pymongo import ReplaceOne

from .core import Core, pages
from .documents import Row
from .rows import state_of


class Archive:
    """Deleted rows, and history entries that their documents had no room for."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def keep(self, rows: Sequence[Row], kind: str, cause: str, at: datetime) -> None:
        """Keep rows that are about to be deleted."""
        await self._write([self._entry(row, row, (row.get("revision") or 1) + 1, kind, cause, at) for row in rows])

    async def spill(self, row: Row, entries: Sequence[Row]) -> None:
        """Keep history entries that are about to leave the memory's own document."""
        await self._write(
            [
                self._entry(row, e, e.get("revision") or 1, "history", e.get("cause", "unknown"), e.get("at"))
                for e in entries
            ]
        )

    def _entry(self, row: Row, kept: Row, revision: int, kind: str, cause: str, at: datetime | None) -> Row:
        now = self._core.now()
        return {
            "_id": f"{row['_id']}:{revision}",
            "user_id": row["user_id"],
            "memory_id": row["_id"],
            "revision": revision,
            "kind": kind,
            "cause": cause,
            "at": at or now,
            "row": kept,
            "expire_at": now + self._core.settings.retention,
        }

    async def _write(self, entries: list[Row]) -> None:
        operations = [ReplaceOne({"_id": e["_id"], "user_id": e["user_id"]}, e, upsert=True) for e in entries]
        async with self._core.calling():
            await self._core.collections.archive.bulk_write(operations, ordered=False)

    async def of_memory(self, user_id: str, memory_id: str) -> list[Row]:
        """What is kept of one memory, oldest revision first."""
        query = {"user_id": user_id, "memory_id": memory_id}
        async with self._core.calling():
            cursor = self._core.collections.archive.find(query).sort("revision", 1)
            return [row async for page in pages(cursor) for row in page]

    async def erase(self, user_id: str) -> int:
        """Forget all that is kept of one user."""
        async with self._core.calling():
            result = await self._core.collections.archive.delete_many({"user_id": user_id})
        return result.deleted_count


def last_deleted(entries: Sequence[Row]) -> Row | None:
    """The newest departure among a memory's archive entries."""
    return next((e for e in reversed(entries) if e["kind"] != "history"), None)


def timeline(living: Row | None, archived: Sequence[Row]) -> list[Row]:
    """One entry a revision, oldest first: its state, or ``{"gone": True}`` for a departure.

    A living row knows best about itself, and a departure behind its revision was announced but never happened.
    """
    entries: dict[int, Row] = {}
    for entry in archived:
        if entry["kind"] == "history":
            entries[entry["revision"]] = entry["row"]
        else:
            entries |= _states(entry["row"])
            entries[entry["revision"]] = {"gone": True, "cause": entry["cause"], "at": entry["at"]}
    if living is not None:
        newest = living.get("revision") or 1
        entries = {r: e for r, e in entries.items() if r <= newest} | _states(living)
    return [{**entry, "revision": revision} for revision, entry in sorted(entries.items())]


def _states(row: Row) -> dict[int, Row]:
    return {state.get("revision") or 1: state for state in [*row.get("history", ()), state_of(row)]}
