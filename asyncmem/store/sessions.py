"""Sessions of users with agents: one document an exchange.

A session as one document would outgrow it, and be written as a whole at every turn; pages of turns would need two
writes at every border. An exchange is written once, under the next place of its session, which a unique index gives to
one writer only: so the places have no gaps, and whoever reads a place has everything before it. What is known of the
session beside its text (that an exchange waits to be captured, the summary of all before it) stands on its exchanges,
so it goes when they go.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from ..cleaning import clean_time
from ..session_values import Exchange, Said, Terms, placed
from .captures import Captures
from .core import ATTEMPTS, Core, pages
from .documents import Row
from .writer import contended

PAGE = 50
"""Exchanges that are read in one go."""
_PAUSE = 0.02
"""Seconds that a writer who lost a race waits at most, per lost race."""


class Sessions:
    """Reads and writes one database's sessions."""

    def __init__(self, core: Core, captures: Captures) -> None:
        self._core = core
        self._captures = captures
        self._rows = core.collections.sessions

    async def begun(self, user_id: str) -> int:
        """How often the user was erased so far: to be handed back when something is written."""
        return await self._captures.begun(user_id)

    async def newest(self, user_id: str, session_id: str, erasures: int, before: int = 0) -> list[Exchange]:
        """The newest exchanges of a session, the newest first; what an erasure overtook is none and goes.

        Args:
            user_id: whose.
            session_id: which of the user's sessions.
            erasures: what ``begun`` said.
            before: only those before this place; 0 is all.
        """
        query: Row = {"user_id": user_id, "session_id": session_id}
        query |= {"seq": {"$lt": before}} if before else {}
        async with self._core.calling():
            rows = await self._rows.find(query).sort("seq", -1).limit(PAGE).to_list()
        left = [row["_id"] for row in rows if row["erasures"] < erasures]
        if left:
            await self._remove(user_id, left)
        return [_exchange(row) for row in rows if row["erasures"] >= erasures]

    async def append(
        self, user_id: str, session_id: str, said: Said, before: Exchange | None, erasures: int
    ) -> tuple[Exchange, Exchange | None] | None:
        """Store what a run said behind everything that is there; its place, and what stands before it.

        ``None`` if the user was erased since ``begun``: then nothing is left of it.

        Args:
            user_id: whose.
            session_id: which of the user's sessions.
            said: what is stored.
            before: the exchange that is thought to be the last.
            erasures: what ``begun`` said.

        Raises:
            StoreTimeoutError: every race was lost.
        """
        name = str(ObjectId())
        for attempt in range(ATTEMPTS):
            made = placed(name, said, before, self._core.settings.capture_memory)
            if await self._insert({**_row(made), "user_id": user_id, "session_id": session_id, "erasures": erasures}):
                if await self.begun(user_id) > erasures:
                    await self._remove(user_id, [name])
                    return None
                return made, before
            await asyncio.sleep(random.uniform(0, _PAUSE * attempt))
            last = await self.newest(user_id, session_id, erasures)
            before = last[0] if last else None
        raise contended("session")

    async def fold(self, user_id: str, exchange: Exchange) -> bool:
        """Set out to summarise everything up to and with an exchange; whether nobody has."""
        query = {"_id": exchange.name, "user_id": user_id, "folded": False}
        async with self._core.calling():
            return (await self._rows.update_one(query, {"$set": {"folded": True}})).matched_count > 0

    async def summarize(self, user_id: str, exchange: Exchange, summary: str) -> None:
        """Keep the summary of everything up to and with an exchange, if that is still there."""
        query = {"_id": exchange.name, "user_id": user_id}
        async with self._core.calling():
            await self._rows.update_one(query, {"$set": {"summary": summary}})

    async def pending(self, user_id: str, session_id: str, learns: str | None = None) -> list[Exchange]:
        """The first exchanges of a session that wait to be captured.

        Args:
            user_id: whose.
            session_id: which of the user's sessions.
            learns: only those of which this is learnt, or of which it is not known; ``None`` is all.
        """
        query: Row = {"user_id": user_id, "session_id": session_id, "pending": True}
        query |= {} if learns is None else {"learns": {"$in": [learns, None]}}
        async with self._core.calling():
            rows = await self._rows.find(query).sort("seq", 1).limit(PAGE).to_list()
        return [_exchange(row) for row in rows]

    async def between(self, user_id: str, session_id: str, first: int, last: int) -> list[Exchange]:
        """The exchanges from one place to another, both included."""
        query = {"user_id": user_id, "session_id": session_id, "seq": {"$gte": first, "$lte": last}}
        async with self._core.calling():
            cursor = self._rows.find(query).sort("seq", 1)
            return [_exchange(row) async for page in pages(cursor) for row in page]

    async def scheduled(self, user_id: str, exchanges: Sequence[Exchange]) -> None:
        """These exchanges' captures are in the queue."""
        query = {"_id": {"$in": [exchange.name for exchange in exchanges]}, "user_id": user_id}
        async with self._core.calling():
            await self._rows.update_many(query, {"$unset": {"pending": ""}})

    async def names(self, user_id: str) -> list[str]:
        """The user's sessions, in order of code points."""
        async with self._core.calling():
            return sorted(await self._rows.distinct("session_id", {"user_id": user_id}))

    async def delete(self, user_id: str, session_id: str) -> int:
        """Delete a session; how many exchanges it had."""
        async with self._core.calling():
            return (await self._rows.delete_many({"user_id": user_id, "session_id": session_id})).deleted_count

    async def _insert(self, row: Row) -> bool:
        """Write an exchange at its place, if nobody has taken that; whether it is there."""
        async with self._core.calling():
            try:
                await self._rows.insert_one(row)
            except DuplicateKeyError:
                return False
            return True

    async def _remove(self, user_id: str, names: Sequence[str]) -> None:
        async with self._core.calling():
            await self._rows.delete_many({"_id": {"$in": list(names)}, "user_id": user_id})


def _row(made: Exchange) -> Row:
    said = made.said
    row: Row = {
        "_id": made.name,
        "seq": made.seq,
        "message": said.message,
        "said_at": said.said_at,
        "answer": said.answer,
        "answered_at": said.answered_at,
        "tokens": said.tokens,
        "window": made.window,
        "weight": made.weight,
        "folded": False,
    }
    row |= {} if said.terms is None else asdict(said.terms)
    return row | ({"pending": True} if made.pending else {})


def _exchange(row: Row) -> Exchange:
    said = Said(
        row["message"],
        clean_time(row["said_at"]),
        row["answer"],
        clean_time(row["answered_at"]),
        row["tokens"],
        row["window"] > 0,
        Terms(row["agent_id"], row["team_id"], row["learns"]) if "learns" in row else None,
    )
    marks: dict[str, Any] = {"pending": row.get("pending", False), "folded": row["folded"]}
    return Exchange(row["_id"], row["seq"], said, row["window"], row["weight"], **marks, summary=row.get("summary"))
