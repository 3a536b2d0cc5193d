"""Proposals as MongoDB holds them, and the batch that carries one out (pure)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, cast

from ..fingerprints import user_print
from ..operations import Add, Clear, Delete, Grounded, Operation, Update, fold, identity
from ..proposal_values import Proposal, ProposalStatus
from ..types import Scope, UserMemory
from .batch import Batch
from .documents import Row
from .rows import aware


@dataclass(frozen=True, slots=True)
class Terms:
    """How long proposals live.

    Attributes:
        now: when they are made.
        lasting: how long they can be approved.
        kept: how long after that they are kept.
    """

    now: datetime
    lasting: timedelta
    kept: timedelta

    def of(self, user_id: str, name: str, key: str, **values: Any) -> Row:
        """A pending proposal. ``name`` is the same when it is made again, ``key`` when it would do the same."""
        until = self.now + self.lasting
        row: Row = {"_id": name, "user_id": user_id, "status": "pending", "key": key}
        row |= {"at": self.now, "expires_at": until, "expire_at": until + self.kept}
        return row | {field: value for field, value in values.items() if value is not None}


def digest(*parts: str) -> str:
    """A name that parts always have, and no others."""
    return blake2b("\x1f".join(parts).encode(), digest_size=12).hexdigest()


def name_of(user_id: str, capture: str, part: object) -> str:
    """The id of a proposal that a capture made: they sort in the order of their making."""
    return f"{user_print(user_id)}:{digest(capture)}:{part:>02}"


def guard_of(proposal_id: str, at: datetime) -> bytes:
    """The fingerprint by which it is known that a proposal, which was made then, was decided."""
    return blake2b(f"proposal:{proposal_id}:{at.timestamp()}".encode(), digest_size=16).digest()


def to_rows(batch: Batch, capture: str, terms: Terms) -> list[tuple[Row, Grounded]]:
    """What waits of a batch as proposals, named after the capture that made them."""
    made = ((i, g, _values(g.operation, batch)) for i, g in enumerate(batch.proposed))
    return [
        (_row(g, batch, name_of(batch.scope.user_id, capture, i), values, terms), g) for i, g, values in made if values
    ]


def _row(grounded: Grounded, batch: Batch, name: str, values: Row, terms: Terms) -> Row:
    scope = batch.scope
    told: Row = {
        "about": "memory",
        "agent_id": scope.agent_id,
        "team_id": scope.team_id,
        "evidence": grounded.evidence or (batch.words or "")[:2_000] or None,
        "sources": list(grounded.sources),
        "prints": sorted(grounded.prints),
        "said_at": grounded.said_at,
    }
    key = values.pop("key")
    return terms.of(scope.user_id, name, key, **told, **values)


def _values(operation: Operation, batch: Batch) -> Row:
    """What an operation is, as a row has it; nothing for one that has nothing to do."""
    scope = batch.scope
    match operation:
        case Add():
            key = identity(operation.memory, scope.agent_id, scope.team_id).hex()
            told: Row = {"after": operation.memory, "topics": list(operation.topics)}
            return {"kind": "add", "key": digest("add", key), **told, **_mark(suspect=operation.suspect)}
        case Update(memory_id=memory_id):
            key = digest("update", memory_id, fold(operation.memory))
            topics = None if operation.topics is None else list(operation.topics)
            told = {"after": operation.memory, "topics": topics, "before": batch.seen[memory_id].memory}
            return {"kind": "update", "key": key, "memory_id": memory_id, **told, **_mark(suspect=operation.suspect)}
        case Delete(memory_id=memory_id):
            key, before = digest("delete", memory_id), batch.seen[memory_id].memory
            return {"kind": "delete", "key": key, "memory_id": memory_id, "before": before}
        case Clear():  # pragma: no branch  there are no others
            targets = [[name, memory.revision] for name, memory in batch.seen.items()]
            return {"kind": "clear", "key": digest("clear"), "targets": targets} if targets else {}


def _mark(*, suspect: bool) -> Row:
    return {"suspect": True} if suspect else {}


def to_proposal(row: Mapping[str, Any], now: datetime) -> Proposal:
    """A stored proposal as a value. One whose time is over is expired, whatever the row says."""
    at, expires_at = _time(row["at"]), _time(row["expires_at"])
    status = cast("ProposalStatus", row["status"])
    topics = row.get("topics")
    before, after = row.get("before"), row.get("after")
    if row["about"] == "profile":
        before, after = json.loads(row["before"]), json.loads(row["after"])
    return Proposal(
        row["_id"],
        row["user_id"],
        row["about"],
        row["kind"],
        "expired" if status == "pending" and expires_at <= now else status,
        at,
        expires_at,
        memory_id=row.get("memory_id"),
        profile=row.get("profile"),
        field=row.get("field"),
        before=before,
        after=after,
        topics=None if topics is None else tuple(topics),
        evidence=row.get("evidence"),
        sources=tuple(row.get("sources", ())),
        count=len(row.get("targets", (None,))),
        decided_at=aware(row.get("decided_at")),
    )


def ids_of(row: Mapping[str, Any]) -> list[str]:
    """The memories that a proposal is about."""
    return [row["memory_id"]] if "memory_id" in row else [name for name, _ in row.get("targets", ())]


def is_outdated(row: Mapping[str, Any], memories: Mapping[str, UserMemory]) -> bool:
    """Whether a memory says something else than the model saw, or is gone. What a clear would remove may be gone."""
    if row["kind"] in ("update", "delete"):
        memory = memories.get(row["memory_id"])
        return memory is None or memory.memory != row["before"]
    revisions: dict[str, int] = dict(row.get("targets", ()))
    return any(memories[name].revision != revisions[name] for name in memories)


def to_batch(row: Mapping[str, Any], memories: Mapping[str, UserMemory], erasures: int) -> Batch:
    """The batch that carries a proposal out, once.

    Args:
        row: the proposal.
        memories: those that it is about, as they are.
        erasures: what ``Captures.begun`` said before it was read.
    """
    prints, said_at = frozenset(bytes(p) for p in row.get("prints", ())), aware(row.get("said_at"))
    operations = [replace(Grounded(o), prints=prints, said_at=said_at) for o in _operations(row, memories)]
    return Batch(
        Scope(row["user_id"], row.get("agent_id"), row.get("team_id")),
        operations,
        seen=memories,
        cause="proposal",
        guards=[guard_of(row["_id"], _time(row["at"]))],
        erasures=erasures,
        strict=True,
        decides=row["_id"],
    )


def _operations(row: Mapping[str, Any], memories: Mapping[str, UserMemory]) -> Sequence[Operation]:
    suspect, topics = bool(row.get("suspect")), row.get("topics")
    told: dict[str, Any] = {
        "evidence": row.get("evidence"),
        "suspect": suspect,
        "sources": tuple(row.get("sources", ())),
    }
    match row["kind"]:
        case "add":
            return [Add(row["after"], tuple(topics or ()), **told)]
        case "update":
            kept = None if topics is None else tuple(topics)
            return [Update(row["memory_id"], row["after"], kept, **told)]
        case "delete":
            return [Delete(row["memory_id"])]
        case _:
            return [Delete(name) for name in memories]


def _time(value: Any) -> datetime:
    moment = aware(value)
    assert moment is not None
    return moment
