"""Proposals: changes that wait for approval, in a collection of their own. Each is decided once."""

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue
from pymongo.errors import DuplicateKeyError

from ..guards import MAX_OPERATIONS
from ..proposal_values import Proposal, ProposalStatus
from ..types import UserMemory
from . import queries
from .captures import Captures
from .core import Core, Session, as_memories, pages
from .documents import Row
from .proposal_rows import Terms, digest, guard_of, ids_of, name_of, to_proposal

PENDING_ALREADY = "it is proposed already"


class Proposals:
    """Reads and writes one database's proposals."""

    def __init__(self, core: Core, captures: Captures) -> None:
        self._core = core
        self._captures = captures
        self._rows = core.collections.proposals

    @property
    def terms(self) -> Terms:
        """How long a proposal that is made now lives."""
        settings = self._core.settings
        return Terms(self._core.now(), settings.proposal_memory, settings.retention)

    async def listed(self, user_id: str, status: ProposalStatus | None, limit: int) -> list[Proposal]:
        """A user's proposals of a status, or all, oldest first; 0 is no limit."""
        # one whose time is over is stored as pending
        stored = {None: None, "expired": {"$in": ["pending", "expired"]}}.get(status, status)
        query: Row = {"user_id": user_id} | ({} if stored is None else {"status": stored})
        if status == "pending":
            query["expires_at"] = {"$gt": self._core.now()}
        async with self._core.calling():
            cursor = self._rows.find(query).sort([("at", 1), ("_id", 1)]).limit(limit if status != "expired" else 0)
            found = [to_proposal(row, self._core.now()) async for page in pages(cursor) for row in page]
        fit = [proposal for proposal in found if status in (None, proposal.status)]
        return fit[:limit] if limit else fit

    async def row(self, user_id: str, proposal_id: str) -> Row | None:
        """One proposal of a user as it is stored."""
        async with self._core.calling():
            return await self._rows.find_one({"_id": proposal_id, "user_id": user_id})

    async def several(self, user_id: str, ids: Sequence[str]) -> list[Proposal]:
        """The proposals of some ids, in their order; those that are gone are left out."""
        if not ids:
            return []
        async with self._core.calling():
            rows = await self._rows.find({"user_id": user_id, "_id": {"$in": list(ids)}}).to_list()
        known = {row["_id"]: to_proposal(row, self._core.now()) for row in rows}
        return [known[name] for name in ids if name in known]

    async def made_by(self, user_id: str, guard: bytes) -> list[Proposal]:
        """The proposals that a scheduled capture made."""
        capture = self._captures.record(user_id, guard.hex(), ())["_id"]
        return await self.several(user_id, [name_of(user_id, capture, i) for i in range(MAX_OPERATIONS)])

    def value(self, row: Row) -> Proposal:
        """A stored proposal as it is now."""
        return to_proposal(row, self._core.now())

    async def targets(self, row: Row) -> Mapping[str, UserMemory]:
        """The memories that a proposal is about, as they are."""
        query = {"user_id": row["user_id"], "_id": {"$in": ids_of(row)}, **queries.alive(self._core.now())}
        async with self._core.calling():
            found = await as_memories(self._core.collections.memories.find(query, queries.HIDDEN))
        return {str(memory.memory_id): memory for memory in found}

    def of_field(
        self,
        user_id: str,
        profile: str,
        field: str,
        capture: str,
        *,
        before: JsonValue,
        after: JsonValue,
        is_unset: bool,
        evidence: str,
    ) -> Row:
        """A proposal about a field of a profile, to be stored by ``propose``."""
        kind, told = ("unset" if is_unset else "set"), {"before": json.dumps(before), "after": json.dumps(after)}
        name, key = name_of(user_id, f"{profile}:{capture}", field), digest(kind, profile, field, told["after"])
        about = {"about": "profile", "kind": kind, "profile": profile, "field": field}
        return self.terms.of(user_id, name, key, **about, **told, evidence=evidence)

    async def put(self, row: Row, session: Session = None) -> bool:
        """Store a proposal, unless it was stored before or one that would do the same waits; whether it was."""
        ours, named, same = {"user_id": row["user_id"]}, {"_id": row["_id"]}, {"key": row["key"]}
        async with self._core.turn(session):
            earlier = await self._rows.find({"$or": [named, same], **ours}, session=session).to_list()
            if not all(self._is_over(old) for old in earlier):
                return False
            for old in earlier:  # of the same name it makes room, else it only waits no longer
                if old["_id"] == row["_id"]:
                    await self._rows.delete_one({**named, **ours}, session=session)
                else:
                    over: Row = {"_id": old["_id"], **ours, "status": "pending"}
                    change = {"$set": {"status": "expired"}, "$unset": {"key": ""}}
                    await self._rows.update_one(over, change, session=session)
            try:
                await self._rows.insert_one(row, session=session)
            except DuplicateKeyError:  # somebody else's, at this very moment
                if session is not None:
                    raise
                return False
        return True

    def _is_over(self, row: Row) -> bool:
        return self.value(row).status == "expired"

    async def propose(self, rows: Sequence[Row], erasures: int) -> list[Proposal]:
        """Store proposals that no batch stores, unless the user was erased since; those that are new."""
        new = [row for row in rows if await self.put(row)]
        if new and await self._captures.begun(new[0]["user_id"]) > erasures:
            await self.withdraw(new[0]["user_id"], [row["_id"] for row in new])
            return []
        return [self.value(row) for row in new]

    async def withdraw(self, user_id: str, ids: Sequence[str]) -> None:
        """Remove proposals: their user was erased while they were made."""
        async with self._core.calling():
            await self._rows.delete_many({"user_id": user_id, "_id": {"$in": list(ids)}})

    async def settle(self, user_id: str, proposal_id: str, status: ProposalStatus, session: Session = None) -> bool:
        """Give a pending proposal another status, which is its last one; whether it was pending."""
        query = {"_id": proposal_id, "user_id": user_id, "status": "pending"}
        decided = {} if status == "expired" else {"decided_at": self._core.now()}
        change = {"$set": {"status": status, **decided}, "$unset": {"key": ""}}
        async with self._core.turn(session):
            return (await self._rows.update_one(query, change, session=session)).matched_count > 0

    async def outdate(self, user_id: str, proposal_id: str) -> None:
        """What a proposal is about is another by now, also where it was approved at that very moment."""
        query = {"_id": proposal_id, "user_id": user_id}
        change = {"$set": {"status": "expired"}, "$unset": {"key": "", "decided_at": ""}}
        async with self._core.calling():
            await self._rows.update_one(query, change)

    async def begin(self, proposal: Proposal) -> bool:
        """Decide that a proposal is to be approved; whether nobody has rejected it."""
        user_id, guard = proposal.user_id, guard_of(proposal.proposal_id, proposal.at)
        async with self._core.calling():
            if await self._captures.insert(self._captures.record(user_id, guard.hex(), (), [guard])):
                return True
        return not await self._captures.is_closed(user_id, guard)

    async def close(self, proposal: Proposal) -> bool:
        """Decide that a proposal is rejected; whether nobody has approved it."""
        return await self._captures.close(proposal.user_id, guard_of(proposal.proposal_id, proposal.at), 0)

    async def is_closed(self, proposal: Proposal) -> bool:
        """Whether somebody decided that it is rejected."""
        return await self._captures.is_closed(proposal.user_id, guard_of(proposal.proposal_id, proposal.at))
