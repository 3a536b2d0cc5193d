"""Exchanging rows in one transaction: all of it or nothing."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pymongo import DeleteOne, ReplaceOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, PyMongoError

from . import queries
from .core import ATTEMPTS, Core, Session
from .documents import Row
from .exchange import refused_by_key
from .rows import aware
from .swap_rows import Leaving, at_state
from .writer import BATCH, contended

AGAIN = ("TransientTransactionError", "UnknownTransactionCommitResult")
_TOO_LARGE = {257, 290, 388}
"""TransactionTooLarge, TransactionExceededLifetimeLimitSeconds, TransactionTooLargeForCache."""
_PAUSES = (0.02, 0.5)
"""Seconds that the first retry and any retry wait at most."""


class TooLargeError(Exception):
    """The server can't take so much in one transaction."""


class MovedError(Exception):
    """A row is not where it was seen."""


async def transact(core: Core, attempt: Callable[[Session], Awaitable[None]]) -> None:
    """Run ``attempt`` in a transaction, again and again while others are faster.

    It must see for itself whether an attempt before it was committed, as the answer to a commit may get lost.

    Raises:
        TooLargeError: the server can't take so much at once.
    """
    memories = core.collections.memories
    for number in range(ATTEMPTS):
        if number:
            await asyncio.sleep(random.uniform(0, min(_PAUSES[0] * 2**number, _PAUSES[1])))
        async with core.calling():
            try:
                async with (
                    memories.database.client.start_session() as session,
                    await session.start_transaction(write_concern=memories.write_concern),
                ):
                    await attempt(session)
            except DuplicateKeyError:
                continue  # another one's row was committed meanwhile: the next attempt sees it
            except PyMongoError as error:
                if isinstance(error, OperationFailure) and error.code in _TOO_LARGE:
                    raise TooLargeError from None
                repeatable = any(map(error.has_error_label, AGAIN))
                if not (repeatable or (isinstance(error, BulkWriteError) and refused_by_key(error))):
                    raise
            else:
                return
    raise contended()


@dataclass(slots=True)
class Transacted:
    """Takes rows out, turns rows into others, and puts rows in, in this order, in a transaction.

    Attributes:
        core: the database.
        user_id: whose rows.
        session: the transaction.
        brought: rows that are new.
        turned: rows that were turned into these.
        refused: rows that could not come, or not turn: what they say is taken.
    """

    core: Core
    user_id: str
    session: Session
    brought: list[Row] = field(default_factory=list[Row])
    turned: list[Row] = field(default_factory=list[Row])
    refused: list[Row] = field(default_factory=list[Row])

    async def take(self, leaving: Sequence[Leaving]) -> None:
        """Delete rows where they were seen.

        Raises:
            MovedError: not all of them are there.
        """
        await self.delete([DeleteOne(each.query(self.user_id, each.stamp)) for each in leaving])

    async def delete(self, deletions: Sequence[DeleteOne]) -> None:
        """Delete rows that must be there.

        Raises:
            MovedError: not all of them are.
        """
        memories = self.core.collections.memories
        for start in range(0, len(deletions), BATCH):
            page = deletions[start : start + BATCH]
            result = await memories.bulk_write(page, ordered=False, session=self.session)
            if result.deleted_count < len(page):
                raise MovedError

    async def turn(self, pairs: Sequence[tuple[Row, Row]]) -> None:
        """Turn rows into others.

        Raises:
            MovedError: not all of them are there.
        """
        free = await self._free([new for _, new in pairs])
        moving = [(old, new) for old, new in pairs if new["_id"] in free]
        writes = [ReplaceOne(at_state(old), new) for old, new in moving]
        if writes:
            memories = self.core.collections.memories
            result = await memories.bulk_write(writes, ordered=True, session=self.session)
            if result.matched_count < len(writes):
                raise MovedError
        self.turned += [new for _, new in moving]

    async def bring(self, rows: Sequence[Row]) -> None:
        """Insert rows, but for those whose id, or what they say, is taken."""
        free = await self._free(rows)
        new = [row for row in rows if row["_id"] in free]
        if new:
            await self.core.collections.memories.insert_many(new, ordered=False, session=self.session)
        self.brought += new

    async def _free(self, rows: Sequence[Row]) -> set[str]:
        """The ids of those rows that say what no other one says. Rows that have expired make room."""
        memories = self.core.collections.memories
        keys = list({row["key"] for row in rows if "key" in row})
        fields = {"key": 1, "user_id": 1, "revision": 1, "expires_at": 1}
        query = {"user_id": self.user_id, "key": {"$in": keys}}
        twins = await memories.find(query, fields, session=self.session).to_list() if keys else []
        taken: dict[bytes, str] = {}
        for twin in twins:
            expires = aware(twin.get("expires_at"))
            if expires is not None and expires <= self.core.now():
                await memories.delete_one(queries.exact(twin), session=self.session)
            else:
                taken[twin["key"]] = twin["_id"]
        free: set[str] = set()
        for row in rows:
            if "key" not in row or taken.setdefault(row["key"], row["_id"]) == row["_id"]:
                free.add(row["_id"])
            else:
                self.refused.append(row)
        return free
