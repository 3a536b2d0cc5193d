"""User profiles: one document a user and schema, changed by compare-and-set."""

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from ..cleaning import clean_time
from ..profile_values import ProfileChange, ProfileField, ProfileRecord
from .captures import Captures
from .core import ATTEMPTS, Core
from .documents import Row
from .writer import contended

_PAUSE = 0.02
"""Seconds that a writer who lost a race waits at most, per lost race."""


class Profiles:
    """Reads and writes one database's user profiles."""

    def __init__(self, core: Core, captures: Captures) -> None:
        self._core = core
        self._captures = captures
        self._rows = core.collections.profiles

    async def read(self, user_id: str, name: str) -> ProfileRecord | None:
        """A user's profile under a schema's name; ``None`` if there is none."""
        row = await self._find(user_id, name)
        return None if row is None else _record(row)

    async def begun(self, user_id: str) -> int:
        """How often the user was erased so far: to be handed back when the profile is changed."""
        return await self._captures.begun(user_id)

    async def change(
        self, user_id: str, name: str, make: Callable[[ProfileRecord], ProfileRecord | None], erasures: int
    ) -> ProfileRecord | None:
        """Store what a function makes of the profile as it is; ``None`` if it makes nothing, or the user was erased.

        The function is called again whenever somebody else changed the profile meanwhile.

        Raises:
            StoreTimeoutError: every race was lost.
        """
        for attempt in range(ATTEMPTS):
            row = await self._find(user_id, name)
            if row is not None and row["erasures"] < await self.begun(user_id):
                row = None if await self._withdraw(row) else row  # a write that an erasure overtook left it
            made = make(ProfileRecord() if row is None else _record(row))
            if made is None:
                return None
            new = {**_row(made), "user_id": user_id, "profile": name, "erasures": erasures}
            new["_id"] = str(ObjectId()) if row is None else row["_id"]
            if await self._put(row, new):
                if await self.begun(user_id) > erasures:
                    await self._withdraw(new)
                    return None
                return made
            await asyncio.sleep(random.uniform(0, _PAUSE * attempt))
        raise contended()

    async def delete(self, user_id: str, name: str) -> bool:
        """Delete a profile, its history too; whether there was one."""
        async with self._core.calling():
            return (await self._rows.delete_one({"user_id": user_id, "profile": name})).deleted_count > 0

    async def _find(self, user_id: str, name: str) -> Row | None:
        async with self._core.calling():
            return await self._rows.find_one({"user_id": user_id, "profile": name})

    async def _put(self, old: Row | None, new: Row) -> bool:
        """Write a revision, if the one before it still is the newest; whether it was."""
        async with self._core.calling():
            if old is not None:
                return (await self._rows.replace_one(_exact(old), new)).matched_count > 0
            try:
                await self._rows.insert_one(new)
            except DuplicateKeyError:
                return False
            return True

    async def _withdraw(self, row: Row) -> bool:
        async with self._core.calling():
            return (await self._rows.delete_one(_exact(row))).deleted_count > 0


def _exact(row: Row) -> Row:
    return {"_id": row["_id"], "user_id": row["user_id"], "revision": row["revision"]}


def _row(record: ProfileRecord) -> Row:
    """Values as JSON text: a caller's schema may hold keys and numbers that BSON can't."""
    history: list[dict[str, Any]] = [
        {**asdict(c), "before": json.dumps(c.before), "after": json.dumps(c.after)} for c in record.history
    ]
    return {
        "values": json.dumps(record.values),
        "fields": {name: asdict(told) for name, told in record.fields.items()},
        "history": history,
        "revision": record.revision,
        **({"guards": list(record.guards)} if record.guards else {}),
    }


def _record(row: Row) -> ProfileRecord:
    fields = {name: _field(told) for name, told in row["fields"].items()}
    history, guards = tuple(map(_change, row["history"])), tuple(bytes(g) for g in row.get("guards", ()))
    return ProfileRecord(json.loads(row["values"]), fields, history, row["revision"], guards)


def _field(told: Row) -> ProfileField:
    return ProfileField(clean_time(told["at"]), told["cause"], told["evidence"])


def _change(told: Row) -> ProfileChange:
    return ProfileChange(
        told["field"],
        json.loads(told["before"]),
        json.loads(told["after"]),
        clean_time(told["at"]),
        told["cause"],
        told["evidence"],
        told["revision"],
    )
