"""Carrying out swaps and undoing them under a journal, as whoever made them or as whoever comes later."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from ..errors import OptimizationConflictError, StoreError
from .archive import Archive
from .captures import Captures
from .core import Core
from .documents import Row
from .exchange import DeletedError, Exchange, OverError, State
from .leases import Leases
from .preparing import DELETED
from .rows import next_stamp
from .swap_journal import SwapJournal
from .swap_rows import Leaving, restamped

Mode = Literal["apply", "undo", "rollback"]
UNDONE = "undo"
"""The cause that deletions of an undone optimization's new memories record."""
_BEFORE = {"apply": "prepared", "undo": "applied", "rollback": "prepared"}


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What came of an exchange.

    Attributes:
        brought: rows that came, by id.
        turned: rows that were turned, as they are.
        left: ids of rows that were changed before.
        refused: rows that could not come.
        taken: how many rows went.
    """

    brought: dict[str, Row] = field(default_factory=dict[str, Row])
    turned: list[Row] = field(default_factory=list[Row])
    left: set[str] = field(default_factory=set[str])
    refused: list[Row] = field(default_factory=list[Row])
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Journalled:
    """Carries out what leases announce."""

    core: Core
    archive: Archive
    captures: Captures
    leases: Leases
    journal: SwapJournal

    async def carry_out(self, run: Row, mode: Mode) -> Exchanged:
        """Do the work of a run, or what is left of it.

        Raises:
            OverError: somebody else finished it, or the user was erased.
            OptimizationConflictError: a memory was deleted meanwhile; what was done is undone.
        """
        work = {"run": run["run"], "mode": mode}
        if run["status"] != _BEFORE[mode]:
            await self.leases.done(run["user_id"], work)
            raise OverError
        exchange = await self._exchange(run, mode)
        if mode != "apply":
            exchanged = await self._back(run, mode, exchange)
        else:
            try:
                exchanged = await self._forth(run, exchange)
            except DeletedError:
                await self.leases.turn_back(run["user_id"], work)
                await self._roll_back(run)
                raise OptimizationConflictError(DELETED) from None
        await self.leases.done(run["user_id"], work)
        return exchanged

    async def carry_out_or_give_up(self, run: Row, mode: Mode) -> Exchanged:
        """Do the work just announced; a swap that the store fails in is taken back: it must not happen later.

        Where that fails as well, whoever comes next ends it.
        """
        try:
            return await self.carry_out(run, mode)
        except StoreError:
            if mode == "apply":
                with suppress(StoreError):
                    await self.leases.turn_back(run["user_id"], {"run": run["run"], "mode": mode})
                    await self._roll_back(run)
            raise

    async def _roll_back(self, run: Row) -> None:
        """Undo what was begun, alone or beside others who do.

        Raises:
            OverError: others had applied it before.
        """
        with suppress(OverError):
            await self.carry_out(run, "rollback")
        if await self.journal.find(run["user_id"], run["run"]) is not None:
            raise OverError

    async def recover(self, user_id: str | None) -> int:
        """Finish what others began and left, one user's or everybody's; how many works that were."""
        leases = await self.leases.works(user_id)
        for lease in leases:
            work = lease["work"]
            run = await self.journal.find(lease["user_id"], work["run"])
            if run is None:
                await self.leases.done(lease["user_id"], work)
                continue
            try:
                await self.carry_out(run, work["mode"])
            except (OverError, OptimizationConflictError):
                continue  # others were faster, or it is rolled back: either way it has ended
        return len(leases)

    async def _exchange(self, run: Row, mode: Mode) -> Exchange:
        async def state() -> State:
            return await self._state(run, mode)

        keys: set[bytes | None] = set()
        async for items in self.journal.parts(run, "revise"):
            keys |= {item["old" if mode == "apply" else "new"].get("key") for item in items}
        async for items in self.journal.parts(run, "retire" if mode == "apply" else "add"):
            keys |= {item["key"] for item in items}
        given = frozenset(key for key in keys if key is not None)
        return Exchange(self.core, self.archive, run["user_id"], run["run"], given, state)

    async def _state(self, run: Row, mode: Mode) -> State:
        if await self.leases.is_at(run["user_id"], {"run": run["run"], "mode": mode}):
            return "going"
        if await self.captures.begun(run["user_id"]) > run["erasures"]:
            return "void"
        now = await self.journal.find(run["user_id"], run["run"])
        status = None if now is None else now["status"]
        return "done" if status == {"apply": "applied", "undo": "undone", "rollback": None}[mode] else "void"

    # ------------------------------------------------------------------------------------------------- forth

    async def _forth(self, run: Row, exchange: Exchange) -> Exchanged:
        async def keep(rows: list[Row]) -> list[str]:
            keys = [Leaving.of(row).archived_as(run["run"]) for row in rows]
            await self.archive.retire(keys, rows, run["run"], run["cause"], run["at"])
            return keys

        async for rows in self.journal.parts(run, "add"):
            await exchange.bring(rows)
        async for items in self.journal.parts(run, "revise"):
            await exchange.turn([(item["old"], item["new"]) for item in items])
            await exchange.refuse_deleted([Leaving.of(item["old"]) for item in items])
        taken = 0
        async for leaving in self.journal.leaving(run):
            taken += await exchange.take(leaving, keep, archived=True)
            await exchange.refuse_deleted(leaving)
        await exchange.give_keys()
        counts = {"retired": taken, "revised": len(exchange.turned), "added": len(exchange.brought)}
        await self._discard(run, exchange.left)
        await self.journal.mark(run, {"status": "applied", **counts}, "prepared")
        return _told(exchange, taken)

    async def _discard(self, run: Row, ids: Collection[str]) -> None:
        """Forget the archive's copies of rows that are there."""
        async for leaving in self.journal.leaving(run):
            keys = [each.archived_as(run["run"]) for each in leaving if each.memory_id in ids]
            if keys:
                await self.archive.discard(run["user_id"], keys)

    # -------------------------------------------------------------------------------------------------- back

    async def _back(self, run: Row, mode: Mode, exchange: Exchange) -> Exchanged:
        async def keep(rows: list[Row]) -> list[str]:
            if mode == "rollback":
                return []  # nobody is to have seen them
            return await self.archive.keep(rows, "delete", UNDONE, self.core.now())

        if mode == "rollback":
            await self._fence(run, exchange)
        async for leaving in self.journal.leaving(run):
            keys = [each.archived_as(run["run"]) for each in leaving]
            rows = await self.archive.retired(run["user_id"], keys)
            await exchange.bring([restamped(row) for row in rows])
        async for items in self.journal.parts(run, "revise"):
            await exchange.turn([(item["new"], restamped(item["old"])) for item in items])
        taken = 0
        async for items in self.journal.parts(run, "add"):
            taken += await exchange.take([Leaving.of(row) for row in items], keep, archived=False)
        await exchange.give_keys()
        if mode == "rollback":
            await self.journal.discard(run)
        else:
            await self.finish_undo(run, exchange.brought)
        return _told(exchange, taken)

    async def finish_undo(self, run: Row, brought: Collection[str]) -> None:
        """Tell that a run is undone, and forget what only undoing it needed."""
        await self.journal.mark(run, {"status": "undone", "undone_at": self.core.now()}, "applied")
        await self._discard(run, brought)
        await self.journal.drop_parts(run)

    async def _fence(self, run: Row, exchange: Exchange) -> None:
        async for leaving in self.journal.leaving(run):
            await exchange.fence(leaving, next_stamp)
        async for items in self.journal.parts(run, "revise"):
            await exchange.fence([Leaving.of(item["old"]) for item in items], next_stamp)


def _told(exchange: Exchange, taken: int) -> Exchanged:
    turned = list(exchange.turned.values())
    return Exchanged(exchange.brought, turned, exchange.left, exchange.refused, taken)
