"""What a capture decided, applied together: in a transaction where the server has them, else under a journal."""

import asyncio
import random
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from pymongo.errors import DuplicateKeyError, PyMongoError

from ..operations import Clear, Delete, Grounded, Update
from ..types import Change, Skipped
from .archive import Archive
from .batch import Applied, Batch
from .captures import Captures
from .core import ATTEMPTS, Core, Session, pages
from .documents import Row
from .steps import Insert, Remove, Step, pack, to_step, unpack
from .taking import BaseChangedError, Taker
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


class Applier:
    """Applies what captures decided, one user's at a time."""

    def __init__(self, core: Core, archive: Archive, captures: Captures, *, transactions: bool) -> None:
        self._core = core
        self._archive = archive
        self._captures = captures
        self._transactions = transactions

    async def apply(self, batch: Batch) -> Applied:
        """Apply a batch: on a server with transactions all of it or nothing, else what a journal will finish."""
        batch, forgotten = await self._without_forgotten(batch)
        if not batch.operations and not batch.prints:
            return Applied(skipped=forgotten)
        now = self._core.now()
        steps = await self._steps(batch, now)
        taker = replace(self._taker(batch.scope.user_id, now, batch.cause, strict=batch.strict), vectors=batch.vectors)
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
        return replace(applied, skipped=[*forgotten, *applied.skipped])

    async def _without_forgotten(self, batch: Batch) -> tuple[Batch, list[Skipped]]:
        """The batch without what the user wished to be forgotten after saying it."""
        prints = {p for g in batch.operations for p in g.prints}
        stones = await self._captures.tombstones(batch.scope.user_id, prints)
        kept: list[Grounded] = []
        skipped: list[Skipped] = []
        for grounded in batch.operations:
            wishes = [stones[p] for p in grounded.prints if p in stones]
            text = getattr(grounded.operation, "memory", None)
            if text and any(grounded.said_at is None or grounded.said_at <= wish for wish in wishes):
                skipped.append(Skipped(type(grounded.operation).__name__.casefold(), FORGOTTEN, text))
            else:
                kept.append(grounded)
        return replace(batch, operations=kept), skipped

    async def _steps(self, batch: Batch, now: datetime) -> list[tuple[Step, Grounded]]:
        steps: list[tuple[Step, Grounded]] = []
        for grounded in batch.operations:
            if isinstance(grounded.operation, Clear):
                async with self._core.calling():
                    cursor = self._core.collections.memories.find({"user_id": batch.scope.user_id}, {"_id": 1})
                    ids = [row["_id"] async for page in pages(cursor) for row in page]
                steps += [(Remove(memory_id, None, "clear"), grounded) for memory_id in ids]
            elif step := to_step(grounded, batch, now):
                steps.append((step, grounded))
        return steps

    def _taker(self, user_id: str, at: datetime, cause: str, *, strict: bool = False, again: bool = False) -> Taker:
        return Taker(self._core, self._archive, self._captures, user_id, at, cause, strict=strict, again=again)

    def _record(self, batch: Batch) -> Row:
        """A row by which this capture is known later. Its name is its last fingerprint, so there is one of each."""
        name = batch.prints[-1].hex() if batch.prints else uuid4().hex
        return self._captures.record(batch.scope.user_id, name, batch.prints)

    # --------------------------------------------------------------------------------------- with transactions

    async def _in_transaction(self, batch: Batch, steps: list[tuple[Step, Grounded]], taker: Taker) -> Applied:
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(random.uniform(0, min(_PAUSES[0] * 2**attempt, _PAUSES[1])))
            async with self._core.calling():
                try:
                    return await self._transact(batch, steps, taker)
                except DuplicateKeyError:
                    continue  # another one's row was committed meanwhile: seen now, it is skipped or folded
                except PyMongoError as error:
                    if not any(map(error.has_error_label, _AGAIN)):
                        raise
        raise contended()

    async def _transact(self, batch: Batch, steps: list[tuple[Step, Grounded]], taker: Taker) -> Applied:
        memories = self._core.collections.memories
        async with (
            memories.database.client.start_session() as session,
            await session.start_transaction(write_concern=memories.write_concern),
        ):
            await self._enter(batch, session)
            applied = await _take_all(replace(taker, session=session), steps)
            if batch.prints and not await self._captures.insert(self._record(batch), session):
                raise _RepeatedError
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
        applied = await _take_all(replace(taker, strict=False), steps)
        if steps:
            await self._captures.finish(journal)
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
        return any(row["memory"] != batch.seen[row["_id"]].memory for row in rows if row["_id"] in batch.seen)

    async def _undo(self, user_id: str, steps: list[tuple[Step, Grounded]]) -> None:
        """An erasure came by while the steps were taken: what they wrote goes too."""
        ids = [step.row["_id"] for step, _ in steps if isinstance(step, Insert)]
        gone = [step.memory_id for step, _ in steps if not isinstance(step, Insert)]
        async with self._core.calling():
            await self._core.collections.memories.delete_many({"user_id": user_id, "_id": {"$in": ids}})
            await self._core.collections.archive.delete_many({"user_id": user_id, "memory_id": {"$in": gone}})
        await self._captures.erase(user_id)

    async def recover(self, before: datetime) -> int:
        """Finish what crashed processes began before a moment; how many captures that were."""
        journals = await self._captures.pending(before)
        for journal in journals:
            steps, at, cause = unpack(journal["work"])
            taker = self._taker(journal["user_id"], at, cause, again=True)
            for step in steps:
                await taker.take(step)
            await self._captures.finish(journal)
        return len(journals)


async def _take_all(taker: Taker, steps: list[tuple[Step, Grounded]]) -> Applied:
    applied = Applied()
    for step, grounded in steps:
        match await taker.take(step):
            case Change() as change:
                told = replace(change, evidence=grounded.evidence, sources=grounded.sources)
                applied.changes.append(told)
            case Skipped() as skipped:
                applied.skipped.append(skipped)
            case _:  # pragma: no cover  only steps of a journal may have been taken before
                pass
    return applied
