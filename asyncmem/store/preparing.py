"""Preparing a swap: what goes is archived and what comes is kept before anything changes hands."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bson import ObjectId

from ..errors import OptimizationConflictError
from ..tokens import warm_up
from ..types import UserMemory
from . import queries
from .archive import Archive
from .core import PAGE, STRIDE, Core, breathe
from .documents import Row
from .rows import revision_of, to_row
from .swap_journal import SwapJournal
from .swap_plan import SwapPlan
from .swap_rows import Leaving, by_size, turned

_PASSING = timedelta(minutes=1)
"""How long after its announcement a deletion may be under way: of one that is older, the process is gone."""
CHANGED = "a memory that says what others say was changed meanwhile, nothing was touched: optimize anew"
DELETED = "a memory that was to be optimized was deleted meanwhile, nothing was changed: optimize anew"


@dataclass(slots=True)
class Prepared:
    """A swap that can be carried out.

    Attributes:
        run: the row that tells of it.
        stayed: ids of memories that were changed since they were read.
        size: how many rows change hands.
        parts: how many parts tell of them.
    """

    run: Row
    stayed: list[str] = field(default_factory=list[str])
    size: int = 0
    parts: int = 0


class Preparer:
    """Prepares swaps in one database."""

    def __init__(self, core: Core, archive: Archive, journal: SwapJournal) -> None:
        self._core = core
        self._archive = archive
        self._journal = journal

    async def prepare(self, plan: SwapPlan) -> Prepared:
        """Archive what is to go, and keep what is to come. Nothing changes hands yet.

        Raises:
            OptimizationConflictError: a memory is gone, one that others rest on was changed, or the run id was
                used before.
        """
        now = self._core.now()
        prepared = Prepared(await self._journal.begin(plan, now))
        try:
            await self._refuse_changed(plan)
            await self._retire(plan, prepared, now)
            await self._revise(plan, prepared, now)
            await self._add(plan, prepared, now)
        except OptimizationConflictError:
            await self._journal.abandon(prepared.run)
            raise
        return prepared

    async def _refuse_changed(self, plan: SwapPlan) -> None:
        revisions = {str(memory.memory_id): memory.revision for memory in plan.rest}
        ids = list(revisions)
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            query = queries.alive(self._core.now()) | {"_id": {"$in": page}, "user_id": plan.user_id}
            async with self._core.calling():
                rows = await self._core.collections.memories.find(query, {"revision": 1}).to_list()
            if len(rows) < len(page) or any(revision_of(row) != revisions[row["_id"]] for row in rows):
                raise OptimizationConflictError(CHANGED)

    async def _retire(self, plan: SwapPlan, prepared: Prepared, now: datetime) -> None:
        async for rows in self._unchanged(plan.user_id, plan.retire, prepared):
            leaving = [Leaving.of(row) for row in rows]
            await self._put(prepared, "retire", [each.to_item() for each in leaving])
            keys = [each.archived_as(plan.run_id) for each in leaving]
            await self._archive.retire(keys, rows, plan.run_id, plan.cause, now)

    async def _revise(self, plan: SwapPlan, prepared: Prepared, now: datetime) -> None:
        afters = {str(before.memory_id): after for before, after in plan.revise}
        limit = self._core.settings.history_limit
        async for rows in self._unchanged(plan.user_id, [before for before, _ in plan.revise], prepared):
            items: list[Row] = []
            for index, row in enumerate(rows):
                after = afters[row["_id"]]
                await warm_up(after.memory)
                new = turned(row, after, now, plan.cause, plan.vectors, limit)
                if new is None:
                    continue
                items.append({"old": row, "new": new})
                full = len(row.get("history", ())) - limit + 1
                if full > 0:
                    await self._archive.spill(row, row["history"][:full])
                if index % STRIDE == STRIDE - 1:
                    await breathe()
            await self._put(prepared, "revise", items)

    async def _add(self, plan: SwapPlan, prepared: Prepared, now: datetime) -> None:
        rows: dict[bytes, Row] = {}
        for index, memory in enumerate(plan.add):
            await warm_up(memory.memory)
            row = to_row(memory, plan.user_id, now, plan.cause, plan.vectors)
            rows.setdefault(row["key"], {**row, "_id": str(ObjectId())})
            if index % STRIDE == STRIDE - 1:
                await breathe()
        await self._put(prepared, "add", list(rows.values()))

    async def _put(self, prepared: Prepared, part: str, items: Sequence[Row]) -> None:
        for start in range(0, len(items), PAGE):
            for some in by_size(items[start : start + PAGE], PAGE):
                await self._journal.put(prepared.run, prepared.parts, part, some)
                prepared.parts += 1
        prepared.size += len(items)

    async def _unchanged(
        self, user_id: str, memories: Sequence[UserMemory], prepared: Prepared
    ) -> AsyncIterator[list[Row]]:
        """The whole rows of memories that are as they were read, page by page; those that are not, stay."""
        revisions = {str(memory.memory_id): memory.revision for memory in memories}
        ids = list(revisions)
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            query = queries.alive(self._core.now()) | {"_id": {"$in": page}, "user_id": user_id}
            async with self._core.calling():
                rows = await self._core.collections.memories.find(query).to_list()
            if len(rows) < len(page):
                raise OptimizationConflictError(DELETED)
            prepared.stayed += [row["_id"] for row in rows if revision_of(row) != revisions[row["_id"]]]
            rows = [row for row in rows if revision_of(row) == revisions[row["_id"]]]
            if rows:
                await self._refuse_leaving(rows, prepared.run["run"])
                yield rows

    async def _refuse_leaving(self, rows: Sequence[Row], run_id: str) -> None:
        """Check that nobody is about to delete these rows, and forget deletions that never happened.

        Raises:
            OptimizationConflictError: somebody is.
        """
        announced = await self._archive.departures(rows, run_id)
        since = self._core.now() - _PASSING
        if any(entry["at"].replace(tzinfo=since.tzinfo) > since for entry in announced if "run" not in entry):
            raise OptimizationConflictError(DELETED)
        if announced:
            await self._archive.discard(rows[0]["user_id"], [entry["_id"] for entry in announced])
