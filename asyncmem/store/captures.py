"""What is kept of captures: that they were made, what is to be forgotten, and work that a crash may interrupt.

One collection holds four kinds of rows. A ``capture`` tells that messages were captured, by fingerprints, until it
expires; while it is ``pending`` (on servers without transactions only) it is the journal of what is being written. A
``tombstone`` is the fingerprint of a sentence whose memory the user wished to be forgotten. The ``ledger`` is what
every capture of a user writes to, so that no two of them, nor one and an erasure, are committed side by side.
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import DuplicateKeyError

from ..errors import StoreTimeoutError
from ..fingerprints import sentence_prints, user_print
from ..types import Change
from .core import ATTEMPTS, Core, Session, pages
from .documents import Row
from .rows import aware, to_note

_MARKED = timedelta(hours=1)
"""How long a ledger tells of an erasure: longer than any capture under way takes."""
_GUARDED = timedelta(days=30)
"""How long it is known that a scheduled capture was applied: longer than a worker's crash goes unnoticed."""


class Captures:
    """Reads and writes one database's rows about captures."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._rows = core.collections.captures

    async def begun(self, user_id: str) -> int:
        """How often the user was erased so far: to be handed back when the capture is applied."""
        async with self._core.calling():
            row = await self._rows.find_one({"_id": _id(user_id, "ledger"), "user_id": user_print(user_id)})
        return _erasures(row)

    async def known(self, user_id: str, prints: Sequence[bytes]) -> set[bytes]:
        """Which of some fingerprints earlier captures have."""
        # a journal that is pending has no time to expire at yet
        query = {
            "user_id": user_id,
            "prints": {"$in": list(prints)},
            "expire_at": {"$not": {"$lte": self._core.now()}},
            "until": {"$not": {"$lte": self._core.now()}},
        }
        async with self._core.calling():
            cursor = self._rows.find(query, {"prints": 1})
            return {bytes(p) async for page in pages(cursor) for row in page for p in row["prints"]}

    async def applied(self, user_id: str, guard: bytes, turn: int) -> list[Row] | None:
        """The changes of the capture that carried out a scheduled one, as ``note`` keeps them; ``None`` for none.

        What an earlier worker closed and did not set aside is open again. What a later one closed can't be applied.

        Args:
            user_id: whose.
            guard: the scheduled capture's fingerprint.
            turn: that of the asking worker's claim.
        """
        async with self._core.calling():
            row = await self._rows.find_one({"user_id": user_id, "prints": guard}, {"changes": 1, "closed": 1})
        if row is None:
            return None
        if row.get("closed", turn + 1) <= turn:
            await self.reopen(user_id, guard, turn)
            return None
        changes: list[Row] = row.get("changes", [])
        return changes

    async def close(self, user_id: str, guard: bytes, turn: int) -> bool:
        """See to it that nobody applies a scheduled capture any more; whether nobody has."""
        record = {**self.record(user_id, guard.hex(), (), [guard]), "closed": turn}
        async with self._core.calling():
            if await self.insert(record):
                return True
            query = {"_id": record["_id"], "user_id": user_id, "closed": {"$exists": True}}
            return (await self._rows.update_one(query, {"$max": {"closed": turn}})).matched_count > 0

    async def remember(self, user_id: str, capture_id: str, prints: Sequence[bytes], erasures: int) -> None:
        """Note that something was captured, unless the user was erased since."""
        record = self.record(user_id, capture_id, prints)
        async with self._core.calling():
            await self.insert(record)
        if await self.begun(user_id) > erasures:
            async with self._core.calling():
                await self._rows.delete_one({"_id": record["_id"], "user_id": user_id})

    async def is_closed(self, user_id: str, guard: bytes) -> bool:
        """Whether somebody saw to it that nobody applies it."""
        query = {"_id": _id(user_id, "capture", guard.hex()), "user_id": user_id, "closed": {"$exists": True}}
        async with self._core.calling():
            return await self._rows.find_one(query, {"_id": 1}) is not None

    async def reopen(self, user_id: str, guard: bytes, turn: int) -> None:
        """Take back what this worker, or one before it, closed."""
        query = {"_id": _id(user_id, "capture", guard.hex()), "user_id": user_id, "closed": {"$lte": turn}}
        async with self._core.calling():
            await self._rows.delete_one(query)

    def record(self, user_id: str, capture_id: str, prints: Sequence[bytes], guards: Sequence[bytes] = ()) -> Row:
        """A row that tells of a capture. With ``guards`` it is kept longer than it is remembered."""
        now = self._core.now()
        until = now + self._core.settings.capture_memory
        row: Row = {
            "_id": _id(user_id, "capture", capture_id),
            "user_id": user_id,
            "kind": "capture",
            "prints": [*prints, *guards],
            "at": now,
            "expire_at": until,
        }
        return row | {"until": until, "expire_at": max(until, now + _GUARDED)} if guards else row

    async def note(self, record: Row, changes: Sequence[Change], session: Session) -> None:
        """Keep which changes a scheduled capture made, for its ticket."""
        query = {"_id": record["_id"], "user_id": record["user_id"]}
        await self._rows.update_one(query, {"$set": {"changes": [to_note(c) for c in changes]}}, session=session)

    def journal(self, record: Row, work: bytes) -> Row:
        """The record as a journal of work that is not done: it doesn't expire before it is."""
        kept = {name: value for name, value in record.items() if name != "expire_at"}
        return {**kept, "pending": record["at"], "work": work}

    async def insert(self, record: Row, session: Session = None) -> bool:
        """Write a record; whether there is none of its name yet. One that has expired makes room.

        Raises:
            DuplicateKeyError: in a transaction, somebody else writes it at this moment.
        """
        name = {"_id": record["_id"], "user_id": record["user_id"]}
        old = await self._rows.find_one(name, {"expire_at": 1}, session=session)
        if old is not None:
            expired = aware(old.get("expire_at"))
            if expired is None or expired > self._core.now():
                return False
            await self._rows.delete_one({**name, "expire_at": old["expire_at"]}, session=session)
        try:
            await self._rows.insert_one(record, session=session)
        except DuplicateKeyError:
            if session is not None:
                raise
            return False
        return True

    async def finish(self, journal: Row, changes: Sequence[Change] = ()) -> None:
        """The work of a journal is done: it is a record now, or nothing when it has no fingerprints."""
        query = {"_id": journal["_id"], "user_id": journal["user_id"]}
        at, until = aware(journal["at"]) or self._core.now(), aware(journal.get("until"))
        expire_at = max(until, at + _GUARDED) if until else at + self._core.settings.capture_memory
        async with self._core.calling():
            if journal.get("prints"):
                done: Row = {"$unset": {"pending": "", "work": ""}, "$set": {"expire_at": expire_at}}
                if until and changes:
                    done["$set"]["changes"] = [to_note(change) for change in changes]
                await self._rows.update_one(query, done)
            else:
                await self._rows.delete_one(query)

    async def pending(self, user_id: str | None) -> list[Row]:
        """The journals that somebody began and has not finished: one user's, or, as maintenance, everybody's."""
        query: Row = {"pending": {"$gt": datetime.min.replace(tzinfo=UTC)}}
        query |= {} if user_id is None else {"user_id": user_id}
        async with self._core.calling():
            return await self._rows.find(query).sort("pending", 1).to_list(1000)

    async def enter(self, user_id: str, erasures: int, session: Session) -> bool:
        """Sign the user's ledger; whether the user was not erased since the capture began."""
        row = await self._sign(user_id, {"$inc": {"captures": 1}, "$set": {"kind": "ledger"}}, session)
        return _erasures(row) <= erasures

    async def _sign(self, user_id: str, change: Row, session: Session = None) -> Row | None:
        """Change the user's ledger, which is made by whoever comes first; what it is then."""
        ledger = {"_id": _id(user_id, "ledger"), "user_id": user_print(user_id)}
        options: Row = {"upsert": True, "return_document": ReturnDocument.AFTER, "session": session}
        for _ in range(ATTEMPTS):
            with suppress(DuplicateKeyError) if session is None else nullcontext():
                return await self._rows.find_one_and_update(ledger, change, **options)
        raise StoreTimeoutError("others made this user's ledger meanwhile: try again", retryable=True)

    async def forget(self, rows: Sequence[Row], at: datetime, session: Session) -> None:
        """Leave tombstones of the sentences that memories rest on."""
        writes = [
            UpdateOne(
                {"_id": _id(row["user_id"], "tombstone", p.hex()), "user_id": row["user_id"]},
                {"$set": {"kind": "tombstone"}, "$max": {"at": at}},
                upsert=True,
            )
            for row in rows
            for p in sorted(_prints_of(row))
        ]
        if writes:
            async with self._core.turn(session):
                await self._rows.bulk_write(writes, ordered=False, session=session)

    async def tombstones(self, user_id: str, prints: Iterable[bytes]) -> dict[bytes, datetime]:
        """Which of the sentences are to be forgotten, and since when."""
        names = {_id(user_id, "tombstone", p.hex()): p for p in prints}
        if not names:
            return {}
        async with self._core.calling():
            cursor = self._rows.find({"_id": {"$in": list(names)}, "user_id": user_id})
            rows: list[dict[str, Any]] = [row async for page in pages(cursor) for row in page]
        return {names[row["_id"]]: at for row in rows if (at := aware(row.get("at"))) is not None}

    async def announce(self, user_id: str) -> None:
        """Tell captures under way that the user is being erased. The mark names nobody."""
        change = {"$inc": {"erasures": 1}, "$set": {"kind": "ledger", "expire_at": self._core.now() + _MARKED}}
        async with self._core.calling():
            await self._sign(user_id, change)

    async def erase(self, user_id: str) -> int:
        """Forget all that is kept about a user's captures."""
        async with self._core.calling():
            return (await self._rows.delete_many({"user_id": user_id})).deleted_count


def _prints_of(row: Row) -> set[bytes]:
    """The sentences that a memory rests on: as captured, and in the words kept as its input."""
    words, prints = row.get("input"), row.get("prints")
    known = {bytes(p) for p in prints} if isinstance(prints, list) else set[bytes]()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return known | (sentence_prints(words) if isinstance(words, str) else set())


def _erasures(ledger: Row | None) -> int:
    count = (ledger or {}).get("erasures", 0)
    return count if isinstance(count, int) else 0


def _id(user_id: str, *names: str) -> str:
    return ":".join((user_print(user_id), *names))
