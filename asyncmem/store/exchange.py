"""Exchanging rows under a journal, write by write: each can be repeated, by several at once, and happens once.

New rows are inserted first and old ones deleted last, each at the very state that was archived. What a new row shares
with an old one, the key of the unique index, it gets when the old one is gone.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pymongo import DeleteOne, ReplaceOne, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError

from .archive import Archive, life_of
from .core import ATTEMPTS, Core
from .documents import Row
from .rows import lasting
from .swap_rows import Leaving, at_state, is_same, without_key
from .writer import contended

State = Literal["going", "done", "void"]
"""Work that somebody is to do, that was done, or that is not to be done any more."""
_DUPLICATE = 11000
_STATE = dict.fromkeys(("user_id", "revision", "stamp", "at", "cause", "memory", "seq", "expires_at"), 1)


class OverError(Exception):
    """Somebody else finished the work, or it is not to be done any more."""


class DeletedError(Exception):
    """A row that was to go was deleted by somebody else."""


@dataclass(slots=True)
class Exchange:
    """Takes rows out, puts rows in, and turns rows into others.

    Attributes:
        core: the database.
        archive: where rows that go are kept.
        user_id: whose rows.
        run_id: of which optimization.
        keys: the keys of rows that are to go.
        state: tells whether this still is to be done.
        brought: rows that are there now.
        turned: rows that were turned into these.
        refused: rows that could not come: their id, or what they say, is taken.
        left: ids of rows that were to go or to turn, and were changed before.
        later: rows that get their key at the end.
    """

    core: Core
    archive: Archive
    user_id: str
    run_id: str
    keys: frozenset[bytes]
    state: Callable[[], Awaitable[State]]
    brought: dict[str, Row] = field(default_factory=dict[str, Row])
    turned: dict[str, Row] = field(default_factory=dict[str, Row])
    refused: list[Row] = field(default_factory=list[Row])
    left: set[str] = field(default_factory=set[str])
    later: list[Row] = field(default_factory=list[Row])

    # ---------------------------------------------------------------------------------------------------- in

    async def bring(self, rows: Sequence[Row]) -> None:
        """Insert rows, but for those that came before and were deleted since."""
        gone = await self._departed(rows)
        fresh = [row for row in rows if row["_id"] not in gone]
        await self._still()
        inserted = await self._insert(fresh)
        await self._check([row for row in fresh if row["_id"] in inserted])
        there = await self._states([row["_id"] for row in fresh if row["_id"] not in inserted])
        for row in fresh:
            now = row if row["_id"] in inserted else there.get(row["_id"])
            if now is not None and is_same(now, row):
                self.brought[row["_id"]] = lasting(row)
                self.later += [row] if self._is_late(row) else []
            else:
                self.refused.append(row)

    async def _insert(self, rows: Sequence[Row]) -> set[str]:
        """Insert what is not there; which rows that was. Rows that have expired make room."""
        inserted: set[str] = set()
        waiting = [self._keyed(row) for row in rows]
        while waiting:
            refused: set[int] = set()
            async with self.core.calling():
                try:
                    await self.core.collections.memories.insert_many(waiting, ordered=False)
                except BulkWriteError as error:
                    refused = _duplicates(error)
            inserted |= {row["_id"] for index, row in enumerate(waiting) if index not in refused}
            waiting = [waiting[index] for index in sorted(refused)]
            if not waiting or not await self._make_room(waiting):
                break
        return inserted

    async def _make_room(self, rows: Sequence[Row]) -> bool:
        keys = [row["key"] for row in rows if "key" in row]
        expired = {"user_id": self.user_id, "key": {"$in": keys}, "expires_at": {"$lte": self.core.now()}}
        async with self.core.calling():
            return (await self.core.collections.memories.delete_many(expired)).deleted_count > 0

    async def _check(self, inserted: Sequence[Row]) -> None:
        """Take back what came too late: after others had finished, or after they had inserted it and it was deleted."""
        if not inserted:
            return
        gone = await self._departed(inserted)
        state = await self.state()
        late = [row for row in inserted if state == "void" or row["_id"] in gone]
        if late:
            async with self.core.calling():
                await self.core.collections.memories.bulk_write([DeleteOne(at_state(r)) for r in late], ordered=False)
        if state != "going":
            raise OverError

    async def _departed(self, rows: Sequence[Row]) -> set[str]:
        departures = await self.archive.departures(rows, self.run_id) if rows else []
        return {entry["memory_id"] for entry in departures}

    # -------------------------------------------------------------------------------------------------- over

    async def turn(self, pairs: Sequence[tuple[Row, Row]]) -> None:
        """Turn rows into others, where they still are what they were."""
        stuck: set[str] = set()
        for _ in range(ATTEMPTS):
            there = await self._states([old["_id"] for old, _ in pairs])
            moving = [(there[o["_id"]], new) for o, new in pairs if o["_id"] not in stuck and _is(there, o)]
            if not moving:
                break
            await self._still()
            stuck |= await self._replace(moving)
        else:
            raise contended()
        for old, new in pairs:
            if _is(there, new):
                self.turned[new["_id"]] = new
                self.later += [new] if self._is_late(new) else []
            elif old["_id"] in there:
                self.left.add(old["_id"])

    async def _replace(self, moving: Sequence[tuple[Row, Row]]) -> set[str]:
        """Replace rows at their state; the ids of those that say what another one says."""
        writes = [ReplaceOne(at_state(now), self._keyed(new)) for now, new in moving]
        async with self.core.calling():
            try:
                await self.core.collections.memories.bulk_write(writes, ordered=False)
            except BulkWriteError as error:
                return {moving[index][1]["_id"] for index in _duplicates(error)}
        return set()

    # --------------------------------------------------------------------------------------------------- out

    async def take(
        self, leaving: Sequence[Leaving], keep: Callable[[list[Row]], Awaitable[list[str]]], *, archived: bool
    ) -> int:
        """Delete rows that are where they were seen, each archived by ``keep`` as it goes; how many of them are gone.

        Args:
            leaving: which rows.
            keep: archives rows.
            archived: they are, as they were seen.
        """
        stamps = {each.memory_id: each.stamp for each in leaving} if archived else {}
        places = {each.memory_id: each for each in leaving}
        before = len(places) if archived else len(await self._states(list(places)))
        for _ in range(ATTEMPTS):
            if stamps:
                await self._still()
                await self._delete([(places[i], stamp) for i, stamp in stamps.items()])
            there = await self._states(list(places))
            staying = [i for i, row in there.items() if places[i].is_at(row) and life_of(row) == places[i].life]
            if not staying:
                self.left |= there.keys()
                return before - len(there)
            rows = await self._whole(staying)
            if rows:
                await self._kept(rows, keep)
            stamps = {row["_id"]: row.get("stamp") for row in rows}
        raise contended()

    async def _kept(self, rows: list[Row], keep: Callable[[list[Row]], Awaitable[list[str]]]) -> None:
        """Archive rows, but leave nothing in the archive of a user who was erased meanwhile."""
        keys = await keep(rows)
        try:
            await self._still()
        except OverError:
            await self.archive.withdraw(self.user_id, keys)
            raise

    async def _delete(self, states: Sequence[tuple[Leaving, object]]) -> None:
        deletions = [DeleteOne(each.query(self.user_id, stamp)) for each, stamp in states]
        async with self.core.calling():
            await self.core.collections.memories.bulk_write(deletions, ordered=False)

    async def refuse_deleted(self, leaving: Sequence[Leaving]) -> None:
        """Check that nobody else deleted the rows that are gone.

        Raises:
            DeletedError: somebody did.
        """
        there = await self._states([each.memory_id for each in leaving])
        gone = {each.memory_id: each for each in leaving if each.memory_id not in there}
        rows = [each.to_row(self.user_id) for each in gone.values()]
        departures = await self.archive.departures(rows, self.run_id) if rows else []
        if any(entry["revision"] == gone[entry["memory_id"]].next_revision for entry in departures):
            raise DeletedError

    async def fence(self, leaving: Sequence[Leaving], stamp: Callable[[], int]) -> None:
        """Give rows that did not go yet another stamp: whoever still means to delete them won't find them."""
        there = await self._states([each.memory_id for each in leaving])
        marked = [row for row in there.values() if row.get("stamp") is not None]
        if marked:
            writes = [UpdateOne(at_state(row), {"$set": {"stamp": stamp()}}) for row in marked]
            async with self.core.calling():
                await self.core.collections.memories.bulk_write(writes, ordered=False)

    # ------------------------------------------------------------------------------------------------- after

    async def give_keys(self) -> None:
        """Give rows their keys, now that those who had them are gone; a row goes if somebody else took its key."""
        memories = self.core.collections.memories
        for row in self.later:
            query = {"_id": row["_id"], "user_id": self.user_id, "revision": row.get("revision")}
            keyless = {**query, "key": {"$exists": False}}
            await self._still()
            async with self.core.calling():
                try:
                    await memories.update_one(keyless, {"$set": {"key": row["key"]}})
                except DuplicateKeyError:
                    if row["_id"] in self.brought:
                        await memories.delete_one(keyless)
                        self.refused.append(self.brought.pop(row["_id"]))

    async def _still(self) -> None:
        if await self.state() != "going":
            raise OverError

    def _is_late(self, row: Row) -> bool:
        return row.get("key") in self.keys

    def _keyed(self, row: Row) -> Row:
        return without_key(row) if self._is_late(row) else row

    async def _states(self, ids: Sequence[str]) -> dict[str, Row]:
        if not ids:
            return {}
        query = {"_id": {"$in": list(ids)}, "user_id": self.user_id}
        async with self.core.calling():
            return {row["_id"]: row for row in await self.core.collections.memories.find(query, _STATE).to_list()}

    async def _whole(self, ids: Sequence[str]) -> list[Row]:
        query = {"_id": {"$in": list(ids)}, "user_id": self.user_id}
        async with self.core.calling():
            return await self.core.collections.memories.find(query).to_list()


def _is(there: dict[str, Row], made: Row) -> bool:
    return made["_id"] in there and is_same(there[made["_id"]], made)


def _duplicates(error: BulkWriteError) -> set[int]:
    """Which writes of a batch met a taken id or key.

    Raises:
        BulkWriteError: there were other errors.
    """
    if not refused_by_key(error):
        raise error
    return {each["index"] for each in (error.details or {}).get("writeErrors", ())}


def refused_by_key(error: BulkWriteError) -> bool:
    """Whether taken ids or keys are all that a batch met."""
    details = error.details or {}
    refused: list[Row] = details.get("writeErrors", [])
    return not details.get("writeConcernErrors") and all(each.get("code") == _DUPLICATE for each in refused)
