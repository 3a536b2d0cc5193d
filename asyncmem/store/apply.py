"""What a capture decided, applied together: in a transaction where the server has them, else under a journal."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from pymongo.errors import DuplicateKeyError, PyMongoError

from ..operations import Clear, Delete, Grounded, Update
from ..proposal_values import Proposal
from ..types import Change, Skipped
from .archive import Archive
from .batch import Applied, Batch
from .captures import Captures
from .core import ATTEMPTS, Core, Session
from .documents import Row
from .proposal_rows import to_rows
from .proposals import Proposals
from .remover import Remover
from .steps import Approve, Insert, Propose, Remove, Revise, Step, pack, to_step, unpack
from .swaps import Swaps
from .taking import CHANGED, GONE, BaseChangedError, Taker
from .writer import contended

_AGAIN = ("TransientTransactionError", "UnknownTransactionCommitResult")
_PAUSES = (0.02, 0.5)
"""Seconds that the first retry and any retry wait at most."""
ERASED = "the user was erased meanwhile"
FORGOTTEN = "the user wished it to be forgotten"


class _ErasedError(Exception):
    """The user was erased since the capture began."""


class _RepeatedError(Exception):
    """The same capture was applied before."""


def found_changed(applied: Applied) -> bool:
    """Whether a memory that was to be changed is another by now, or gone."""
    return any(skipped.reason in (GONE, CHANGED) for skipped in applied.skipped)


class Applier:
    """Applies what captures decided, one user's at a time."""

    def __init__(
        self,
        core: Core,
        archive: Archive,
        captures: Captures,
        remover: Remover,
        swaps: Swaps,
        proposals: Proposals,
        *,
        transactions: bool,
    ) -> None:
        self._core = core
        self._remover = remover
        self._swaps = swaps
        self._proposals = proposals
        self._archive = archive
        self._captures = captures
        self._transactions = transactions

    async def apply(self, batch: Batch) -> Applied:
        """Apply a batch: on a server with transactions all of it or nothing, else what a journal will finish.

        A clear goes first, page by page: it may be of more memories than a transaction holds.
        """
        batch, forgotten = await self._without_forgotten(batch)
        if not batch.operations and not batch.prints:
            return Applied(skipped=forgotten)
        now = self._core.now()
        cleared = await self._cleared(batch, now)
        steps = self._steps(batch, now)
        taker = Taker(
            *(self._core, self._archive, self._captures, self._proposals, batch.scope.user_id, now, batch.cause),
            strict=batch.strict,
            vectors=batch.vectors,
        )
        try:
            run = self._in_transaction if self._transactions else self._under_journal
            applied = await run(batch, steps, taker)
        except BaseChangedError:
            return Applied(stale=True)
        except _RepeatedError:
            return Applied(repeated=True)
        except _ErasedError:
            skipped = [Skipped(type(g.operation).__name__.casefold(), ERASED) for g in batch.operations]
            return Applied(skipped=[*forgotten, *skipped])
        return replace(applied, changes=[*cleared, *applied.changes], skipped=[*forgotten, *applied.skipped])

    def _steps(self, batch: Batch, now: datetime) -> list[tuple[Step, Grounded]]:
        steps: list[tuple[Step, Grounded]] = [
            (step, g) for g in batch.operations if (step := to_step(g, batch, now)) is not None
        ]
        proposed = to_rows(batch, self._record(batch)["_id"], self._proposals.terms) if batch.proposed else []
        steps += [(Propose(row), grounded) for row, grounded in proposed]
        if batch.decides is not None:
            steps.append((Approve(batch.decides), batch.operations[0]))
        return steps

    async def _cleared(self, batch: Batch, now: datetime) -> list[Change]:
        if not any(isinstance(g.operation, Clear) for g in batch.operations):
            return []
        gone = await self._remover.clear(batch.scope.user_id, batch.cause, forget=True)
        return [Change("delete", str(memory.memory_id), memory, None, batch.cause, now) for memory in gone]

    async def _without_forgotten(self, batch: Batch) -> tuple[Batch, list[Skipped]]:
        """The batch without what the user wished to be forgotten after saying it."""
        prints = {p for g in (*batch.operations, *batch.proposed) for p in g.prints}
        stones = await self._captures.tombstones(batch.scope.user_id, prints)
        skipped: list[Skipped] = []
        operations = _remembered(batch.operations, stones, skipped)
        return replace(batch, operations=operations, proposed=_remembered(batch.proposed, stones, skipped)), skipped

    def _record(self, batch: Batch) -> Row:
        """A row by which this capture is known later. Its name is its last fingerprint, so there is one of each."""
        # of scheduled ones its first: whoever takes the same lane, in whatever company, begins with the same one
        names = [*batch.guards[:1], *batch.prints[-1:]]
        name = names[0].hex() if names else uuid4().hex
        return self._captures.record(batch.scope.user_id, name, batch.prints, batch.guards)

    # --------------------------------------------------------------------------------------- with transactions

    async def _in_transaction(self, batch: Batch, steps: list[tuple[Step, Grounded]], taker: Taker) -> Applied:
        record, maybe = self._record(batch), list[Applied]()
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(random.uniform(0, min(_PAUSES[0] * 2**attempt, _PAUSES[1])))
            async with self._core.calling():
                try:
                    return await self._transact(batch, steps, taker, record, maybe)
                except DuplicateKeyError:
                    maybe.clear()  # another one's row was committed meanwhile: seen now, it is skipped or folded
                except PyMongoError as error:
                    if not any(map(error.has_error_label, _AGAIN)):
                        raise
                    if not error.has_error_label("UnknownTransactionCommitResult"):
                        maybe.clear()
                except _RepeatedError:
                    if maybe:  # the record is that of an attempt whose answer got lost
                        return maybe[0]
                    raise
        raise contended()

    async def _transact(
        self, batch: Batch, steps: list[tuple[Step, Grounded]], taker: Taker, record: Row, maybe: list[Applied]
    ) -> Applied:
        """One attempt. What it does stands in ``maybe`` as soon as it may be committed."""
        memories = self._core.collections.memories
        async with (
            memories.database.client.start_session() as session,
            await session.start_transaction(write_concern=memories.write_concern),
        ):
            await self._enter(batch, session)
            if not await self._captures.insert(record, session):
                raise _RepeatedError
            applied = await _take_all(replace(taker, session=session), steps)
            if batch.decides is not None and found_changed(applied):
                raise BaseChangedError
            if batch.guards and applied.changes:
                await self._captures.note(record, applied.changes, session)
            maybe[:] = [applied]
        return applied

    async def _enter(self, batch: Batch, session: Session) -> None:
        if not await self._captures.enter(batch.scope.user_id, batch.erasures, session):
            raise _ErasedError

    # ------------------------------------------------------------------------------------------ under a journal

    async def _under_journal(self, batch: Batch, steps: list[tuple[Step, Grounded]], taker: Taker) -> Applied:
        if batch.strict and await self._has_changed(batch):
            raise BaseChangedError
        record = self._record(batch)
        journal = self._captures.journal(record, pack((s for s, _ in steps), taker.at, batch.cause))
        async with self._core.calling():
            await self._enter(batch, None)
            if not await self._captures.insert(journal if steps else record):
                raise _RepeatedError
        writing = asyncio.ensure_future(self._carry_out(batch, steps, replace(taker, strict=False), journal))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing])  # what was promised by the journal is done first
            raise

    async def _carry_out(self, batch: Batch, steps: list[tuple[Step, Grounded]], taker: Taker, journal: Row) -> Applied:
        applied = await _take_all(taker, steps)
        if steps:
            await self._captures.finish(journal, applied.changes)
        if await self._captures.begun(batch.scope.user_id) > batch.erasures:
            await self._undo(batch.scope.user_id, steps)
            raise _ErasedError
        return applied

    async def _has_changed(self, batch: Batch) -> bool:
        """Whether a memory says something else than when the decision was made."""
        ids = [g.operation.memory_id for g in batch.operations if isinstance(g.operation, Update | Delete)]
        query = {"user_id": batch.scope.user_id, "_id": {"$in": ids}}
        async with self._core.calling():
            rows = await self._core.collections.memories.find(query, {"memory": 1}).to_list()
        if any(row["memory"] != batch.seen[row["_id"]].memory for row in rows if row["_id"] in batch.seen):
            return True
        gone = set(ids).intersection(batch.seen) - {row["_id"] for row in rows}
        return any([await self._archive.retired_last(batch.scope.user_id, each) for each in gone])

    async def _undo(self, user_id: str, steps: list[tuple[Step, Grounded]]) -> None:
        """An erasure came by while the steps were taken: what they wrote goes too."""
        ids = [step.row["_id"] for step, _ in steps if isinstance(step, Insert)]
        gone = [step.memory_id for step, _ in steps if isinstance(step, Revise | Remove)]
        await self._proposals.withdraw(user_id, [step.row["_id"] for step, _ in steps if isinstance(step, Propose)])
        async with self._core.calling():
            await self._core.collections.memories.delete_many({"user_id": user_id, "_id": {"$in": ids}})
            await self._core.collections.archive.delete_many({"user_id": user_id, "memory_id": {"$in": gone}})
        await self._captures.erase(user_id)

    async def recover(self, user_id: str | None = None) -> int:
        """Finish what others began and left, one user's or everybody's; how many captures and swaps that were.

        What somebody is writing at this very moment may be written by both: each step happens once.
        """
        swaps = await self._swaps.recover(user_id)
        if self._transactions and user_id is not None:
            return swaps
        journals = await self._captures.pending(user_id)
        for journal in journals:
            steps, at, cause = unpack(journal["work"])
            shelves = (self._core, self._archive, self._captures, self._proposals)
            taker = Taker(*shelves, journal["user_id"], at, cause, again=True)
            taken = [await taker.take(step) for step in steps]
            await self._captures.finish(journal, [change for change in taken if isinstance(change, Change)])
        return swaps + len(journals)


def _remembered(
    operations: Sequence[Grounded], stones: Mapping[bytes, datetime], skipped: list[Skipped]
) -> list[Grounded]:
    """The operations without those whose words the user wished to be forgotten after saying them."""
    kept: list[Grounded] = []
    for grounded in operations:
        wishes = [stones[p] for p in grounded.prints if p in stones]
        text = getattr(grounded.operation, "memory", None)
        if text and any(grounded.said_at is None or grounded.said_at <= wish for wish in wishes):
            skipped.append(Skipped(type(grounded.operation).__name__.casefold(), FORGOTTEN, text))
        else:
            kept.append(grounded)
    return kept


async def _take_all(taker: Taker, steps: list[tuple[Step, Grounded]]) -> Applied:
    applied = Applied()
    for step, grounded in steps:
        match await taker.take(step):
            case Change() as change:
                told = replace(change, evidence=grounded.evidence, sources=grounded.sources)
                applied.changes.append(told)
            case Skipped() as skipped:
                applied.skipped.append(skipped)
            case Proposal() as proposal:
                applied.proposals.append(proposal)
            case _:
                pass
    return applied
