"""Taking a capture's steps one by one, in a transaction or under a journal; a step taken before stays taken."""

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

from pymongo.errors import DuplicateKeyError

from ..proposal_values import Proposal
from ..types import Change, Skipped
from . import queries
from .archive import Archive, life_of
from .captures import Captures
from .core import ATTEMPTS, Core, Session
from .documents import Row
from .proposals import PENDING_ALREADY, Proposals
from .rows import Vectors, aware, revised, to_memory, to_row, update_of
from .steps import MAX_PRINTS, Approve, Insert, Propose, Remove, Revise, Step
from .writer import contended

GONE = "the memory is gone"
SAME = "an existing memory says the same"
NOTHING = "it changes nothing"
CHANGED = "the memory was changed meanwhile"


class BaseChangedError(Exception):
    """A memory says something else than when the decision was made."""


@dataclass(frozen=True, slots=True)
class Taker:
    """Takes the steps of one batch.

    Attributes:
        core: the database.
        archive: where what leaves the memories is kept.
        captures: where tombstones are left.
        proposals: where what waits for approval is.
        user_id: whose memories.
        at: when, as all changes of the batch record it.
        cause: why.
        session: the transaction, if there is one.
        strict: a memory that says something else than it did raises ``BaseChangedError`` rather than being skipped.
        again: the steps may have been taken before.
        vectors: those of the texts, as far as they are known.
    """

    core: Core
    archive: Archive
    captures: Captures
    proposals: Proposals
    user_id: str
    at: datetime
    cause: str
    session: Session = None
    strict: bool = False
    again: bool = False
    vectors: Vectors = field(default_factory=dict[str, Row], repr=False)

    async def take(self, step: Step) -> Change | Skipped | Proposal | None:
        """Take a step; what came of it, ``None`` if it was taken before.

        Raises:
            BaseChangedError: the memory says something else by now, and the batch is to be decided anew.
        """
        match step:
            case Insert():
                return await self._insert(step.row)
            case Revise():
                return await self._revise(step)
            case Remove():
                return await self._remove(step)
            case Propose():
                return await self._propose(step.row)
            case Approve():  # pragma: no branch  there are no others
                await self._approve(step.proposal_id)
                return None

    async def _propose(self, row: Row) -> Proposal | Skipped:
        if await self.proposals.put(row, self.session):
            return self.proposals.value(row)
        return Skipped(row["kind"], PENDING_ALREADY, row.get("after"), row.get("memory_id"))

    async def _approve(self, proposal_id: str) -> None:
        settled = await self.proposals.settle(self.user_id, proposal_id, "approved", self.session)
        if self.strict and not settled:  # erased, or outdated by another approval, at this very moment
            raise BaseChangedError

    async def _insert(self, row: Row) -> Change | Skipped | None:
        memories = self.core.collections.memories
        if self.again and await self._was_there(row):
            return None
        for _ in range(ATTEMPTS):
            async with self.core.turn(self.session):
                twin = await self._twin(row)
                if twin is not None:
                    taken = twin["_id"] == row["_id"]
                    return None if taken else Skipped("add", SAME, row["memory"], str(twin["_id"]))
                try:
                    await memories.insert_one(row, session=self.session)
                except DuplicateKeyError:
                    if self.session is not None:
                        raise
                else:
                    return Change("add", row["_id"], None, to_memory(row), self.cause, self.at)
        raise contended()

    async def _was_there(self, row: Row) -> bool:
        """Whether a new memory has come and gone since."""
        gone = await self.archive.of_memory(self.user_id, row["_id"])
        return any(entry.get("life") == life_of(row) for entry in gone)

    async def _twin(self, row: Row, but: str | None = None) -> Row | None:
        """The living memory that says the same; one that has expired makes room."""
        memories = self.core.collections.memories
        query = {"user_id": self.user_id, "key": row["key"]}
        twin = await memories.find_one(query, {"revision": 1, "user_id": 1, "expires_at": 1}, session=self.session)
        if twin is None or twin["_id"] == but:
            return None
        expires = aware(twin.get("expires_at"))
        if expires is None or expires > self.core.now():
            return twin
        await memories.delete_one(queries.exact(twin), session=self.session)
        return None

    async def _revise(self, step: Revise) -> Change | Skipped | None:
        def skipped(reason: str) -> Skipped:
            return Skipped("update", reason, step.text, step.memory_id)

        for _ in range(ATTEMPTS):
            old = await self._row(step.memory_id)
            if old is None:
                return await self._revise_retired(step) or skipped(GONE)
            if self.again and step.is_in(old, self.at):
                return None
            if self._has_changed(old, step.base):
                return skipped(CHANGED)
            new = revised(old, step.values(to_memory(old)), self.at, self.cause, vectors=self.vectors)
            if new is None:
                return skipped(NOTHING)
            new["prints"] = list(dict.fromkeys([*old.get("prints", ()), *step.prints]))[-MAX_PRINTS:]
            outcome = await self._swap(old, new)
            if outcome is None:
                return skipped(SAME)
            if outcome:
                return Change("update", step.memory_id, to_memory(old), to_memory(new), self.cause, self.at)
        return skipped(CHANGED)

    async def _revise_retired(self, step: Revise) -> Change | Skipped | None:
        """What the user said of a memory that an optimization retired meanwhile becomes one of its own."""
        old = await self._retired(step.memory_id)
        if old is None or (self.again and step.is_in(old, self.at)):
            return None
        name = blake2b(f"{step.memory_id}:{self.at.timestamp()}".encode(), digest_size=12).hexdigest()
        before = to_memory(old)
        memory = before.model_copy(update={**step.values(before), "memory_id": name, "updated_at": None})
        row = to_row(memory, self.user_id, self.at, self.cause, self.vectors)
        return await self._insert(row | ({"prints": step.prints} if step.prints else {}))

    async def _retired(self, memory_id: str) -> Row | None:
        """The row of a memory that an optimization retired and that is not back.

        Raises:
            BaseChangedError: there is one, and the batch can be decided anew, on what came instead.
        """
        retired = await self.archive.retired_last(self.user_id, memory_id)
        if retired is not None and self.strict:
            raise BaseChangedError
        return retired

    async def _swap(self, old: Row, new: Row) -> bool | None:
        """Replace one revision by the next; whether it was still there. ``None``: another memory says the same."""
        limit = self.core.settings.history_limit
        full = len(old.get("history", ())) - limit + 1
        if full > 0:
            await self.archive.spill(old, old["history"][:full], self.session)
        async with self.core.turn(self.session):
            if await self._twin(new, but=old["_id"]) is not None:
                return None
            update = update_of(old, new, limit)
            try:
                result = await self.core.collections.memories.update_one(
                    queries.exact(old), update, session=self.session
                )
            except DuplicateKeyError:
                if self.session is not None:
                    raise
                return None
        return result.matched_count == 1

    async def _remove(self, step: Remove) -> Change | Skipped | None:
        for _ in range(ATTEMPTS):
            old = await self._row(step.memory_id)
            if old is None:
                await self._retired(step.memory_id)
                # a removal that is taken again may be what removed it
                return None if self.again else Skipped("delete", GONE, None, step.memory_id)
            if self.again and await self._departed(old):
                return None
            if self._has_changed(old, step.base):
                return Skipped("delete", CHANGED, None, step.memory_id)
            if await self._take_away(old):
                return Change("delete", step.memory_id, to_memory(old), None, self.cause, self.at)
        return Skipped("delete", CHANGED, None, step.memory_id)

    async def _departed(self, row: Row) -> bool:
        """Whether this step took the memory away before, and somebody brought it back."""
        entries = await self.archive.of_memory(self.user_id, row["_id"])
        newest = row.get("revision") or 1
        return any(
            e["kind"] != "history" and e["cause"] == self.cause and e["revision"] <= newest and _same(e["at"], self.at)
            for e in entries
        )

    async def _take_away(self, old: Row) -> bool:
        await self.archive.keep([old], "delete", self.cause, self.at, self.session)
        await self.captures.forget([old], self.at, self.session)
        async with self.core.turn(self.session):
            result = await self.core.collections.memories.delete_one(queries.exact(old), session=self.session)
        return result.deleted_count == 1

    async def _row(self, memory_id: str) -> Row | None:
        query = queries.one(self.user_id, memory_id, self.core.now())
        async with self.core.turn(self.session):
            return await self.core.collections.memories.find_one(query, session=self.session)

    def _has_changed(self, row: Row, base: str | None) -> bool:
        changed = base is not None and row["memory"] != base
        if changed and self.strict:
            raise BaseChangedError
        return changed


def _same(one: datetime, other: datetime) -> bool:
    return one.replace(tzinfo=None) == other.replace(tzinfo=None)
