"""Writing memories: one document is one atomic write, and every change checks the revision it was made from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pymongo.errors import BulkWriteError, DuplicateKeyError

from ..cleaning import MAX_TOPICS, fold_topics
from ..errors import (
    AsyncMemError,
    MemoryConflictError,
    MemoryNotFoundError,
    PartialWriteError,
    RevisionConflictError,
    StoreError,
    StoreTimeoutError,
)
from ..tokens import warm_up
from ..types import UserMemory
from . import queries
from .archive import Archive, last_deleted, timeline
from .core import ATTEMPTS, STRIDE, Core, breathe
from .documents import Row
from .reader import Reader, unknown
from .rows import NO_VECTORS, VALUE, Vectors, aware, next_seq, next_stamp, revised, to_memory, to_row, update_of

BATCH = 1000
"""Rows that one round trip of a batch carries."""


class Writer:
    """Changes one database's memories."""

    def __init__(self, core: Core, reader: Reader, archive: Archive) -> None:
        self._core = core
        self._memories = core.collections.memories
        self._reader = reader
        self._archive = archive

    # ------------------------------------------------------------------------------------------------ adding

    async def add(self, memory: UserMemory, user_id: str, cause: str, vectors: Vectors = NO_VECTORS) -> str:
        """Insert, or fold into the memory that says the same; the id either way."""
        await warm_up(memory.memory)
        return await self.insert(to_row(memory, user_id, self._core.now(), cause, vectors))

    async def insert(self, row: Row) -> str:
        """Insert a row, or fold it into the one that says the same; the id either way."""
        for _ in range(ATTEMPTS):
            async with self._core.calling():
                try:
                    await self._memories.insert_one(row)
                except DuplicateKeyError:
                    pass
                else:
                    return str(row["_id"])
            if (existing := await self._fold(row)) is not None:
                return existing
        raise contended()

    async def _fold(self, row: Row) -> str | None:
        """Fold a row into the one that says the same. ``None``: that one is gone by now, insert again."""
        async with self._core.calling():
            old = await self._memories.find_one({"user_id": row["user_id"], "key": row["key"]})
            if old is None:
                if await self._memories.find_one({"_id": row["_id"]}, {"_id": 1}) is None:
                    return None
                raise MemoryConflictError(f"the memory id {row['_id']!r} is taken: leave memory_id out, or replace it")
            expires = aware(old.get("expires_at"))
            if expires is not None and expires <= self._core.now():
                await self._memories.delete_one(queries.exact(old))
                return None
        topics = fold_topics([*old.get("topics", ()), *row["topics"]])[:MAX_TOPICS]
        return await self._touch(old, topics, row)

    async def _touch(self, old: Row, topics: list[str], row: Row) -> str | None:
        moment = max(row["updated_at"], aware(old.get("updated_at")) or row["updated_at"])
        if topics != old.get("topics", []):
            new = revised(old, {"topics": topics, "updated_at": moment}, self._core.now(), row["cause"])
            assert new is not None, "topics differ"
            return old["_id"] if await self._swap(old, new) else None
        async with self._core.calling():
            result = await self._memories.update_one(
                {"_id": old["_id"], "user_id": old["user_id"], "key": old["key"]},
                {"$max": {"updated_at": moment}, "$set": {"stamp": next_stamp()}},
            )
        return old["_id"] if result.matched_count else None

    async def add_many(
        self, owned: Sequence[tuple[UserMemory, str]], cause: str, vectors: Vectors = NO_VECTORS
    ) -> list[str]:
        """Insert many in few round trips; the ids in order.

        Raises:
            PartialWriteError: some were not written; it says which, and why.
        """
        now = self._core.now()
        rows: list[Row] = []
        for index, (memory, user_id) in enumerate(owned):  # everything is checked before anything is written
            await warm_up(memory.memory)
            rows.append(to_row(memory, user_id, now, cause, vectors))
            if index % STRIDE == STRIDE - 1:
                await breathe()
        ids: list[str | None] = [None] * len(rows)
        failures: dict[int, AsyncMemError] = {}
        for start in range(0, len(rows), BATCH):
            try:
                await self._add_batch(rows, start, ids, failures)
            except StoreError as error:
                if not start and not any(ids):
                    raise
                failures |= dict.fromkeys(range(start, len(rows)), error)
                break
        if failures:
            raise PartialWriteError(
                f"{len(failures)} of {len(rows)} memories were not acknowledged: see .failures and .ids; "
                "adding all of them again doubles nothing",
                ids=ids,
                failures=failures,
            )
        return [memory_id for memory_id in ids if memory_id is not None]

    async def _add_batch(
        self, rows: list[Row], start: int, ids: list[str | None], failures: dict[int, AsyncMemError]
    ) -> None:
        batch = rows[start : start + BATCH]
        refused: set[int] = set()
        async with self._core.calling():
            try:
                await self._memories.insert_many(batch, ordered=False)
            except BulkWriteError as error:
                details: Mapping[str, Any] = error.details or {}
                if details.get("writeConcernErrors"):
                    raise StoreTimeoutError("the batch was not acknowledged by a majority", retryable=True) from None
                refused = {e["index"] for e in details.get("writeErrors", ())}
        for index, row in enumerate(batch):
            if index not in refused:
                ids[start + index] = row["_id"]
        for index in sorted(refused):  # duplicates are folded; what the server refused otherwise fails again
            try:
                ids[start + index] = await self.insert(batch[index])
            except AsyncMemError as error:
                failures[start + index] = error

    # ---------------------------------------------------------------------------------------------- changing

    async def change(
        self,
        user_id: str,
        memory_id: str,
        values: Mapping[str, Any] | Callable[[UserMemory], Mapping[str, Any]],
        cause: str,
        expected: int | None = None,
        vectors: Vectors = NO_VECTORS,
    ) -> tuple[UserMemory, UserMemory]:
        """Give a memory new values, or what a function makes of it; the memory before and after, equal if unchanged.

        Raises:
            MemoryNotFoundError: the user has no such memory.
            RevisionConflictError: it is not at the expected revision.
            MemoryConflictError: another memory of the user says the same.
        """
        await warm_up("" if callable(values) else str(values.get("memory", "")))
        for _ in range(ATTEMPTS):
            old = await self._reader.row(user_id, memory_id)
            if old is None:
                raise unknown(memory_id)
            before = to_memory(old)
            if expected is not None and before.revision != expected:
                raise stale(before, expected)
            given = values(before) if callable(values) else values
            new = revised(old, given, self._core.now(), cause, vectors=vectors)
            if new is None:
                return before, before
            if await self._swap(old, new):
                return before, to_memory(new)
        raise contended()

    async def replace(
        self, user_id: str, memory_id: str, memory: UserMemory, cause: str, vectors: Vectors = NO_VECTORS
    ) -> None:
        """Give a memory another whole value; its times and revision are the store's.

        Raises:
            MemoryNotFoundError: the user has no such memory.
            MemoryConflictError: another memory of the user says the same.
        """
        values = {name: getattr(memory, name) for name in VALUE}
        await self.change(user_id, memory_id, values, cause, vectors=vectors)

    async def _swap(self, old: Row, new: Row) -> bool:
        """Replace one revision by the next, if it still is there."""
        limit = self._core.settings.history_limit
        full = len(old.get("history", ())) - limit + 1
        spilled = await self._archive.spill(old, old["history"][:full]) if full > 0 else []
        async with self._core.calling():
            try:
                result = await self._memories.update_one(queries.exact(old), update_of(old, new, limit))
            except DuplicateKeyError:
                raise MemoryConflictError(
                    "another memory of this user says the same: change or delete that one instead"
                ) from None
        if spilled and not result.matched_count:
            await self._archive.withdraw(old["user_id"], spilled)
        return result.matched_count == 1

    async def revert(self, user_id: str, memory_id: str, revision: int) -> UserMemory:
        """Make an earlier revision the newest one again; brings a deleted memory back while the archive has it."""
        for _ in range(ATTEMPTS):
            living = await self._reader.row(user_id, memory_id)
            archived = await self._archive.of_memory(user_id, memory_id)
            entries = {e["revision"]: e for e in timeline(living, archived) if not e.get("gone")}
            departed = last_deleted(archived)
            if not entries or (living is None and departed is None):
                raise unknown(memory_id)
            if revision not in entries:
                known = ", ".join(map(str, entries))
                raise MemoryNotFoundError(f"memory {memory_id!r} has no revision {revision}: there are {known}")
            target = to_memory({"_id": memory_id, **entries[revision]})
            values = {name: getattr(target, name) for name in VALUE}
            if living is not None:
                return (await self.change(user_id, memory_id, values, "revert"))[1]
            if departed is not None and (restored := await self._restore(departed, values)) is not None:
                return restored
        raise contended()

    async def _restore(self, departed: Row, values: Mapping[str, Any]) -> UserMemory | None:
        """Bring a memory back behind its deletion. ``None``: others brought it back, or erased it, meanwhile."""
        old: Row = {**departed["row"], "revision": departed["revision"], "updated_at": None}
        now = self._core.now()
        row = revised(old, {**values, "updated_at": now}, now, "revert")
        assert row is not None, "updated_at differs"
        row |= {"history": departed["row"].get("history", []), "seq": departed["row"].get("seq") or next_seq()}
        async with self._core.calling():
            try:
                await self._memories.insert_one(row)
            except DuplicateKeyError:
                if await self._memories.find_one({"_id": row["_id"], "user_id": row["user_id"]}, {"_id": 1}):
                    return None
                raise MemoryConflictError(
                    "it can't come back: another memory of this user says the same, or its id is taken"
                ) from None
        newest = last_deleted(await self._archive.of_memory(row["user_id"], row["_id"]))
        if newest is not None and newest["_id"] == departed["_id"]:
            return to_memory(row)
        async with self._core.calling():
            await self._memories.delete_one(queries.exact(row))
        return None


def stale(memory: UserMemory, expected: int) -> RevisionConflictError:
    """The error for a memory that is at another revision than the caller saw."""
    return RevisionConflictError(
        f"memory {memory.memory_id!r} is at revision {memory.revision}, not {expected}: read it again"
    )


def contended(what: str = "memory") -> StoreError:
    """The error for a change that lost every race."""
    return StoreTimeoutError(f"others changed this {what} {ATTEMPTS} times meanwhile: try again", retryable=True)
