"""Optimizations: what they read, the safe swap, and its undo.

A swap is prepared first: rows that go are archived, rows that come are kept beside them. Then everything changes
hands in one transaction, where the server has them and for up to ``LARGEST`` rows, else under a journal that any later
opening, optimization or capture of the user finishes. A crash at any moment leaves the old memories or the new ones.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

from ..errors import OptimizationConflictError, OptimizationNotFoundError
from ..runs import OptimizationRun, OptimizationUndo
from ..types import Scope, UserMemory
from . import queries
from .archive import Archive
from .captures import Captures
from .core import ATTEMPTS, PAGE, Core, breathe, pages
from .documents import OLDEST_FIRST, Row
from .exchange import OverError
from .leases import LASTING, LOST, Lease, Leases, to_the_end
from .preparing import Prepared, Preparer
from .rows import aware, to_memory
from .swap_journal import SwapJournal, to_run
from .swap_plan import Swapped as Swapped
from .swap_plan import SwapPlan as SwapPlan  # these names are public here too
from .swap_rows import is_same
from .swapping import Exchanged, Journalled, Mode
from .transacting import MovedError, TooLargeError
from .transactions import ERASED, Load, Transactions
from .writer import contended

LARGEST = 5_000
"""Rows that change hands in one transaction at most. MongoDB holds all that one writes in its cache: 20,000 rows with
vectors were too many for 256 MB (TransactionTooLargeForCache), and the journal takes about as long, 1.5 s for 5,000."""
VOID = "a memory of it was deleted, or the user erased, meanwhile: nothing was changed"


class Swaps:
    """Exchanges one database's memories for better ones, and back."""

    def __init__(
        self, core: Core, archive: Archive, captures: Captures, *, transactions: bool, lasting: timedelta = LASTING
    ) -> None:
        self._core = core
        self._archive = archive
        self._captures = captures
        self._transactions = transactions
        self._journal = SwapJournal(core, archive)
        self._leases = Leases(core, lasting)
        self._journalled = Journalled(core, archive, captures, self._leases, self._journal)
        self._transacted = Transactions(core, archive, captures, self._leases, self._journal)
        self._preparer = Preparer(core, archive, self._journal)

    @asynccontextmanager
    async def reserving(self, user_id: str) -> AsyncGenerator[None, None]:
        """Be the only one to optimize this user's memories, over all processes.

        A task that reserved the user already, or one that it started, goes on under the same reservation.

        Raises:
            OptimizationConflictError: somebody else is optimizing them.
        """
        async with self._holding(user_id):
            yield

    @asynccontextmanager
    async def _holding(self, user_id: str) -> AsyncGenerator[Lease, None]:
        async with self._leases.holding(user_id) as lease:
            await self.recover(user_id)
            await self._journal.clean(user_id)
            yield lease

    async def snapshot(self, user_id: str) -> list[UserMemory]:
        """All living memories of a user, oldest update first."""
        query = queries.scoped(Scope(user_id), self._core.now())
        found: dict[str, UserMemory] = {}
        async with self._core.calling():
            cursor = self._core.collections.memories.find(query, queries.HIDDEN).sort(OLDEST_FIRST)
            async for page in pages(cursor):
                for row in page:  # one that was touched meanwhile is met again, further on
                    found.pop(row["_id"], None)
                    found[row["_id"]] = to_memory(row)
                await breathe()
        return list(found.values())

    async def runs(self, user_id: str) -> list[OptimizationRun]:
        """The user's optimizations that can be undone or were, newest first."""
        return [to_run(row) for row in await self._journal.listed(user_id)]

    async def recover(self, user_id: str | None = None) -> int:
        """Finish what others began and left, one user's or everybody's; how many exchanges that were."""
        return await to_the_end(self._journalled.recover(user_id))

    # ------------------------------------------------------------------------------------------------- swap

    async def swap(self, plan: SwapPlan) -> Swapped:
        """Exchange memories, all of them or none.

        What was changed since it was read stays as it is, and so does what was added. A new text that a living memory
        says already is left out.

        Raises:
            OptimizationConflictError: a memory of the plan was deleted meanwhile, or the user erased, or somebody
                else optimizes. Nothing was changed.
        """
        async with self._holding(plan.user_id) as lease:
            for _ in range(ATTEMPTS):
                prepared = await self._preparer.prepare(plan)
                try:
                    exchanged = await self._exchange(prepared, lease)
                except (MovedError, OptimizationConflictError) as error:
                    if not await self._leases.works(plan.user_id):  # else there is more to it than was prepared
                        await self._journal.abandon(prepared.run)
                    if isinstance(error, OptimizationConflictError):
                        raise
                else:
                    return await self._swapped(plan, prepared, exchanged)
        raise contended()

    async def _exchange(self, prepared: Prepared, lease: Lease) -> Exchanged:
        run = prepared.run
        if self._transactions and prepared.size <= LARGEST:
            with suppress(TooLargeError):
                return await self._transacted.redo(run, await Load.of(self._journal, run), lease)
        async with self._core.calling():
            if not await self._captures.enter(run["user_id"], run["erasures"], None):
                raise OptimizationConflictError(ERASED)
        try:
            return await self._under_journal(run, "apply", lease)
        except OverError:
            await self.recover(run["user_id"])
            now = await self._journal.find(run["user_id"], run["run"])
            if now is None:
                raise OptimizationConflictError(VOID) from None
            return await self._found(run["user_id"], await Load.of(self._journal, run))

    async def _under_journal(self, run: Row, mode: Mode, lease: Lease) -> Exchanged:
        """Announce the work, then do it to its end, whether or not the caller is cancelled."""
        if not await self._leases.sign(lease, work={"run": run["run"], "mode": mode}):
            raise OptimizationConflictError(LOST)
        return await to_the_end(self._journalled.carry_out_or_give_up(run, mode))

    async def _found(self, user_id: str, load: Load) -> Exchanged:
        """What came of a swap that somebody else finished."""
        rows = await self._rows(user_id, {"_id": {"$in": load.ids}})
        there = {row["_id"]: row for row in rows}
        brought = {row["_id"]: row for row in load.adds if row["_id"] in there}
        turned = [new for _, new in load.pairs if new["_id"] in there and is_same(there[new["_id"]], new)]
        return Exchanged(brought, turned, there.keys() - brought.keys() - {row["_id"] for row in turned})

    async def _swapped(self, plan: SwapPlan, prepared: Prepared, exchanged: Exchanged) -> Swapped:
        run = await self._journal.find(plan.user_id, plan.run_id) or prepared.run
        left = {*prepared.stayed, *exchanged.left}
        stayed = await self._rows(plan.user_id, {"_id": {"$in": list(left)}})
        return Swapped(
            run=to_run(run),
            added=[to_memory(row) for row in exchanged.brought.values()],
            revised=[to_memory(row) for row in exchanged.turned],
            retired=[memory for memory in plan.retire if memory.memory_id not in left],
            stayed=[to_memory(row) for row in stayed],
        )

    # ------------------------------------------------------------------------------------------------- undo

    async def undo(self, user_id: str, run_id: str) -> OptimizationUndo:
        """Bring back the memories of before an optimization, as far as nobody changed them since.

        Raises:
            OptimizationNotFoundError: the user has no such optimization, or its retention has ended.
            OptimizationConflictError: it was undone before, a later one folded what it made, or somebody optimizes
                this user's memories.
        """
        async with self._holding(user_id) as lease:
            run = await self._undoable(user_id, run_id)
            load = await Load.of(self._journal, run)
            await self._refuse_overtaken(run, {row["_id"] for row in load.adds})
            return await self._undone(run, await self._taken_back(run, load, lease))

    async def _taken_back(self, run: Row, load: Load, lease: Lease) -> Exchanged:
        if self._transactions and load.size <= LARGEST:
            with suppress(TooLargeError):
                exchanged = await self._transacted.undo(run, load, lease)
                await self._journalled.finish_undo(run, exchanged.brought)
                return exchanged
        try:
            return await self._under_journal(run, "undo", lease)
        except OverError:
            await self.recover(run["user_id"])
            if await self._journal.find(run["user_id"], run["run"]) is None:
                raise OptimizationConflictError(ERASED) from None
            rows = await self._rows(run["user_id"], {"_id": {"$in": load.ids}})
            there = {row["_id"]: row for row in rows}
            left = [row["_id"] for row in load.adds if row["_id"] in there]
            brought = {i: row for i, row in there.items() if i not in left}
            return Exchanged(brought, [], set(left), [], len(load.adds) - len(left))

    async def _refuse_overtaken(self, run: Row, made: set[str]) -> None:
        """What a later run folded would come back with that run, beside what it was made of."""
        for later in await self._journal.listed(run["user_id"]):
            if later["run"] == run["run"]:
                return
            if later["status"] == "applied":
                async for page in self._journal.leaving(later):
                    if any(leaving.memory_id in made for leaving in page):
                        raise OptimizationConflictError(
                            f"a later optimization folded what this one made: undo {later['run']!r} first"
                        )

    async def _undoable(self, user_id: str, run_id: str) -> Row:
        run = await self._journal.find(user_id, run_id)
        if run is None or run["status"] not in ("applied", "undone"):
            raise OptimizationNotFoundError(
                f"this user has no optimization {run_id!r}: it never was, is another user's, or its retention has ended"
            )
        if run["status"] == "undone":
            raise OptimizationConflictError(f"this optimization was undone at {_time(run['undone_at'])}")
        if (aware(run["undo_until"]) or self._core.now()) <= self._core.now():
            raise OptimizationNotFoundError(
                f"this optimization can't be undone any more: the retention ended at {_time(run['expire_at'])}"
            )
        return run

    async def _undone(self, run: Row, exchanged: Exchanged) -> OptimizationUndo:
        user_id = run["user_id"]
        now = await self._journal.find(user_id, run["run"]) or {**run, "status": "undone"}
        ids = [*exchanged.left, *(row["_id"] for row in exchanged.refused)]
        keys = [row["key"] for row in exchanged.refused if "key" in row]
        stayed = await self._rows(user_id, {"$or": [{"_id": {"$in": ids}}, {"key": {"$in": keys}}]})
        restored: list[UserMemory] = []
        for index, row in enumerate((*exchanged.brought.values(), *exchanged.turned)):
            restored.append(to_memory(row))
            if index % PAGE == PAGE - 1:
                await breathe()
        return OptimizationUndo(to_run(now), restored, exchanged.taken, [to_memory(row) for row in stayed])

    async def _rows(self, user_id: str, which: Row) -> list[Row]:
        """Rows of living memories, oldest update first."""
        query = {**queries.scoped(Scope(user_id), self._core.now()), **which}
        async with self._core.calling():
            cursor = self._core.collections.memories.find(query).sort(OLDEST_FIRST)
            return [row async for page in pages(cursor) for row in page]


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
