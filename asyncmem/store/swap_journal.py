"""What is kept of optimizations: that they were applied, and all that finishing or undoing one needs.

A ``run`` tells of one; it is ``prepared`` until it is applied, or ``void`` if it never will be, and not listed before.
Its ``part`` rows hold what changes hands: ``retire`` which rows go, at which state, ``revise`` rows as they were and as
they become, ``add`` new rows. The rows that go lie in the archive. Runs, parts and archive copies expire together.
They have a collection of their own: runs are listed by time and live as long as the archive, and captures are looked up
by fingerprints, which none of these rows has.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pymongo.errors import DuplicateKeyError

from ..errors import OptimizationConflictError
from ..fingerprints import user_print
from ..runs import OptimizationRun
from .archive import RETURNING, Archive
from .core import PAGE, Core, Session
from .documents import Row
from .rows import aware
from .swap_plan import SwapPlan
from .swap_rows import Leaving


class SwapJournal:
    """Reads and writes one database's rows about optimizations, leases apart."""

    def __init__(self, core: Core, archive: Archive) -> None:
        self._core = core
        self._rows = core.collections.optimizations
        self._archive = archive

    async def begin(self, plan: SwapPlan, now: datetime) -> Row:
        """Tell that an optimization is being prepared."""
        row: Row = {
            **_name(plan.user_id, plan.run_id),
            "kind": "run",
            "run": plan.run_id,
            "strategy": plan.strategy,
            "cause": plan.cause,
            "status": "prepared",
            "at": now,
            "erasures": plan.erasures,
            "undo_until": now + self._core.settings.retention,
            "expire_at": now + max(self._core.settings.retention, RETURNING),
        }
        async with self._core.calling():
            try:
                await self._rows.insert_one(row)
            except DuplicateKeyError:
                raise OptimizationConflictError("this run_id was used before: give each optimization another") from None
        return row

    async def put(self, run: Row, number: int, part: str, items: Sequence[Row]) -> None:
        """Keep one part of what changes hands."""
        row = {
            "_id": f"{run['_id']}:{number:06}",
            "user_id": run["user_id"],
            "kind": "part",
            "run": run["run"],
            "part": part,
            "items": list(items),
            "expire_at": run["expire_at"],
        }
        async with self._core.calling():
            await self._rows.insert_one(row)

    async def parts(self, run: Row, part: str) -> AsyncIterator[list[Row]]:
        """What was kept, part by part."""
        query = {"user_id": run["user_id"], "run": run["run"], "part": part}
        async with self._core.calling():
            cursor = self._rows.find(query, {"_id": 1}).sort("_id", 1)
            names = [row["_id"] for row in await cursor.to_list()]
        for name in names:
            async with self._core.calling():
                row = await self._rows.find_one({"_id": name, "user_id": run["user_id"]})
            if row is not None:
                yield row["items"]

    async def leaving(self, run: Row) -> AsyncIterator[list[Leaving]]:
        """The rows that go, page by page."""
        async for items in self.parts(run, "retire"):
            yield [Leaving.from_item(item) for item in items]

    async def find(self, user_id: str, run_id: str, session: Session = None) -> Row | None:
        """One of the user's optimizations."""
        async with self._core.turn(session):
            return await self._rows.find_one(_name(user_id, run_id), session=session)

    async def mark(self, run: Row, values: Row, before: str, session: Session = None) -> bool:
        """Give a run another status; whether it was at the one before."""
        query = {"_id": run["_id"], "user_id": run["user_id"], "status": before}
        async with self._core.turn(session):
            return (await self._rows.update_one(query, {"$set": values}, session=session)).matched_count == 1

    async def listed(self, user_id: str) -> list[Row]:
        """The user's optimizations that were applied and are remembered, newest first."""
        query = {
            "user_id": user_id,
            "kind": "run",
            "status": {"$in": ["applied", "undone"]},
            "undo_until": {"$gt": self._core.now()},
        }
        async with self._core.calling():
            return await self._rows.find(query).sort([("at", -1), ("_id", -1)]).to_list()

    async def clean(self, user_id: str) -> None:
        """Take back what optimizations of the user prepared and nobody will apply."""
        query = {"user_id": user_id, "kind": "run", "status": {"$in": ["prepared", "void"]}}
        async with self._core.calling():
            runs = await self._rows.find(query).to_list()
        for run in runs:
            await self.abandon(run)

    async def abandon(self, run: Row) -> None:
        """Take back what was prepared, if that was never applied. It must not be announced as work to be done."""
        await self.mark(run, {"status": "void"}, "prepared")
        now = await self.find(run["user_id"], run["run"])
        if now is None:  # the user was erased: what was written since is not told of by any part
            await self._archive.discard_run(run["user_id"], run["run"])
        if now is None or now["status"] == "void":
            await self.discard(run)

    async def discard(self, run: Row) -> None:
        """Take back what an optimization kept, and that it was."""
        await self.withdraw(run)
        async with self._core.calling():
            await self._rows.delete_many({"user_id": run["user_id"], "run": run["run"], "kind": "part"})
            await self._rows.delete_one({"_id": run["_id"], "user_id": run["user_id"]})

    async def drop_parts(self, run: Row) -> None:
        """Forget what nobody needs once a run is undone."""
        async with self._core.calling():
            await self._rows.delete_many({"user_id": run["user_id"], "run": run["run"], "kind": "part"})

    async def withdraw(self, run: Row) -> None:
        """Forget the archive's copies of rows that a run was to retire."""
        async for leaving in self.leaving(run):
            await self._archive.discard(run["user_id"], [each.archived_as(run["run"]) for each in leaving])


def to_run(row: Row) -> OptimizationRun:
    """The optimization that a row tells of."""
    never = datetime.fromtimestamp(0, UTC)
    return OptimizationRun(
        run_id=row["run"],
        user_id=row["user_id"],
        strategy=row["strategy"],
        at=aware(row["at"]) or never,
        status="undone" if row["status"] == "undone" else "applied",
        retired=row.get("retired", 0),
        revised=row.get("revised", 0),
        added=row.get("added", 0),
        undo_until=aware(row["undo_until"]) or never,
    )


def _name(user_id: str, run_id: str) -> dict[str, Any]:
    return {"_id": f"{user_print(user_id)}:run:{run_id}", "user_id": user_id}


PART = PAGE
"""Rows that one part tells of at most."""
