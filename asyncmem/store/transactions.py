"""A swap, and the undo of one, each in one transaction."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pymongo import DeleteOne

from ..errors import OptimizationConflictError
from .archive import Archive
from .captures import Captures
from .core import Core, Session
from .documents import Row
from .leases import LOST, Lease, Leases
from .swap_journal import PART, SwapJournal
from .swap_rows import Leaving, at_state, is_same, restamped
from .swapping import UNDONE, Exchanged
from .transacting import Transacted, transact

ERASED = "the user was erased meanwhile, nothing was changed"


@dataclass(frozen=True, slots=True)
class Load:
    """What a run exchanges.

    Attributes:
        leaving: rows that go.
        pairs: rows that turn, as they were and as they become.
        adds: rows that come.
    """

    leaving: list[Leaving] = field(default_factory=list[Leaving])
    pairs: list[tuple[Row, Row]] = field(default_factory=list[tuple[Row, Row]])
    adds: list[Row] = field(default_factory=list[Row])

    @property
    def ids(self) -> list[str]:
        """Of every row."""
        leaving = (each.memory_id for each in self.leaving)
        return [*(row["_id"] for row in self.adds), *(old["_id"] for old, _ in self.pairs), *leaving]

    @property
    def size(self) -> int:
        """How many rows change hands."""
        return len(self.leaving) + len(self.pairs) + len(self.adds)

    @staticmethod
    async def of(journal: SwapJournal, run: Row) -> "Load":
        """Read what was prepared."""
        load = Load()
        async for leaving in journal.leaving(run):
            load.leaving.extend(leaving)
        async for items in journal.parts(run, "revise"):
            load.pairs.extend((item["old"], item["new"]) for item in items)
        async for rows in journal.parts(run, "add"):
            load.adds.extend(rows)
        return load


@dataclass(frozen=True, slots=True)
class Transactions:
    """Carries out swaps and undoes them in transactions."""

    core: Core
    archive: Archive
    captures: Captures
    leases: Leases
    journal: SwapJournal

    async def redo(self, run: Row, load: Load, lease: Lease) -> Exchanged:
        """Apply what was prepared.

        Raises:
            MovedError: a row is not where it was seen.
            OptimizationConflictError: the lease was lost, or the user erased.
        """

        async def change(session: Session) -> Exchanged:
            rows = Transacted(self.core, run["user_id"], session)
            await rows.take(load.leaving)
            await rows.turn(load.pairs)
            await rows.bring(load.adds)
            counts = {"retired": len(load.leaving), "revised": len(rows.turned), "added": len(rows.brought)}
            await self.journal.mark(run, {"status": "applied", **counts}, "prepared", session)
            brought = {row["_id"]: row for row in rows.brought}
            left = {old["_id"] for old, _ in load.pairs} - {row["_id"] for row in rows.turned}
            return Exchanged(brought, rows.turned, left, rows.refused, len(load.leaving))

        return await self._changed(run, lease, run["erasures"], "applied", change)

    async def undo(self, run: Row, load: Load, lease: Lease) -> Exchanged:
        """Bring back what was there before, as far as nobody changed it since.

        Raises:
            OptimizationConflictError: the lease was lost, or the user erased.
        """

        async def change(session: Session) -> Exchanged:
            rows = Transacted(self.core, run["user_id"], session)
            exchanged = await self._back(run, load, rows)
            undone = {"status": "undone", "undone_at": self.core.now()}
            await self.journal.mark(run, undone, "applied", session)
            return exchanged

        return await self._changed(run, lease, run["erasures"], "undone", change)

    async def _changed(
        self, run: Row, lease: Lease, erasures: int, status: str, change: Callable[[Session], Awaitable[Exchanged]]
    ) -> Exchanged:
        told: list[Exchanged] = []

        async def attempt(session: Session) -> None:
            now = await self.journal.find(run["user_id"], run["run"], session)
            if told and now is not None and now["status"] == status:
                return  # the attempt whose answer got lost was committed
            if not await self.leases.sign(lease, session) or now is None or now["status"] != run["status"]:
                raise OptimizationConflictError(LOST)
            if not await self.captures.enter(run["user_id"], erasures, session):
                raise OptimizationConflictError(ERASED)
            told[:] = [await change(session)]

        await transact(self.core, attempt)
        return told[0]

    async def _back(self, run: Row, load: Load, rows: Transacted) -> Exchanged:
        there = await self._whole(run["user_id"], load, rows.session)
        gone = [there[row["_id"]] for row in load.adds if _is(there, row)]
        left = {row["_id"] for row in load.adds if row["_id"] in there and not _is(there, row)}
        if gone:
            await self.archive.keep(gone, "delete", UNDONE, self.core.now(), rows.session)
            await rows.delete([DeleteOne(at_state(row)) for row in gone])
        pairs = [(there[new["_id"]], restamped(old)) for old, new in load.pairs if _is(there, new)]
        left |= {old["_id"] for old, new in load.pairs if old["_id"] in there and not _is(there, new)}
        await rows.turn(pairs)
        for start in range(0, len(load.leaving), PART):
            leaving = load.leaving[start : start + PART]
            left |= {each.memory_id for each in leaving if each.memory_id in there}
            absent = [each.archived_as(run["run"]) for each in leaving if each.memory_id not in there]
            await self._restore(run, absent, rows)
        brought = {row["_id"]: row for row in rows.brought}
        return Exchanged(brought, rows.turned, left, rows.refused, len(gone))

    async def _restore(self, run: Row, keys: list[str], rows: Transacted) -> None:
        found = await self.archive.retired(run["user_id"], keys, rows.session)
        departures = await self.archive.departures(found, run["run"], rows.session) if found else []
        gone = {entry["memory_id"] for entry in departures}
        await rows.bring([restamped(row) for row in found if row["_id"] not in gone])

    async def _whole(self, user_id: str, load: Load, session: Session) -> dict[str, Row]:
        query = {"user_id": user_id, "_id": {"$in": load.ids}}
        return {row["_id"]: row for row in await self.core.collections.memories.find(query, session=session).to_list()}


def _is(there: dict[str, Row], made: Row) -> bool:
    return made["_id"] in there and is_same(there[made["_id"]], made)
