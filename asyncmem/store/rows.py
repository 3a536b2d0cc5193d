"""Memories to rows and back, and the steps from one revision to the next (pure)."""

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId

from ..operations import identity
from ..tokens import SCHEME, tokenize
from ..types import Change, ChangeKind, UserMemory
from .documents import Row

_OPTIONAL = ("agent_id", "team_id", "input", "feedback", "metadata", "pinned", "expires_at")
VALUE = ("memory", "topics", *_OPTIONAL)
"""What a caller decides about a memory."""
STATE = (*VALUE, "updated_at", "revision", "kind", "cause", "at")
"""What a history entry keeps of a revision. The rest never changes."""
DERIVED = ("tokens", "stamp", "vector")
"""What search reads; made anew from the rest, so neither history nor archive keeps it."""
Vectors = Mapping[str, Row]
"""Vectors of texts, as they are stored, by the text."""
NO_VECTORS: Vectors = {}
_last_seq = 0


def next_seq() -> int:
    """Nanoseconds since 1970, strictly rising in this process: orders rows with equal times by insertion."""
    global _last_seq
    _last_seq = max(_last_seq + 1, time.time_ns())
    return _last_seq


def next_stamp() -> int:
    """Marks one state of one row, by chance alone: the stamps of 500,000 rows add up within 64 bits.

    Not from ``random``, which applications seed: two processes would then give the same stamps.
    """
    return secrets.randbits(44) + 1


def _searchable(text: str, topics: Iterable[str], vector: Row | None) -> Row:
    """What search reads of a row."""
    words = " ".join(token for part in (text, *topics) for token in tokenize(part))
    row: Row = {"tokens": {"scheme": SCHEME, "words": words}, "stamp": next_stamp()}
    return row | ({"vector": vector} if vector else {})


def lasting(row: Mapping[str, Any]) -> Row:
    """The row without what is made from the rest of it."""
    return {name: value for name, value in row.items() if name not in DERIVED}


def to_row(memory: UserMemory, user_id: str, now: datetime, cause: str, vectors: Vectors = NO_VECTORS) -> Row:
    """A new memory's row, validated anew since ``model_construct`` and mutable fields can hold anything."""
    valid = UserMemory.model_validate(dict(memory.__dict__))
    updated_at = valid.updated_at or now
    row: Row = {
        "_id": valid.memory_id or str(ObjectId()),
        "user_id": user_id,
        "memory": valid.memory,
        "topics": valid.topics,
        "created_at": valid.created_at or min(now, updated_at),
        "updated_at": updated_at,
        "revision": 1,
        "key": identity(valid.memory, valid.agent_id, valid.team_id),
        "seq": next_seq(),
        "kind": "add",
        "cause": cause,
        "at": now,
    }
    return row | _given(valid) | _searchable(valid.memory, valid.topics, vectors.get(valid.memory))


def _given(memory: UserMemory) -> Row:
    values = ((name, getattr(memory, name)) for name in _OPTIONAL)
    return {name: value for name, value in values if value}


def revision_of(row: Mapping[str, Any]) -> int:
    """A row's revision; 1 for a row of other software, which has none that counts."""
    revision = row.get("revision")
    return revision if isinstance(revision, int) and revision > 0 else 1


def aware(value: object) -> datetime | None:
    """The moment that MongoDB gave, which is UTC without saying so; ``None`` for anything else."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else None


def to_memory(row: Mapping[str, Any]) -> UserMemory:
    """The memory in a row that was read. Rows of other software may lack anything but text and user."""
    get = row.get
    created_at, updated_at, expires_at = get("created_at"), get("updated_at"), get("expires_at")
    created = created_at and aware(created_at)
    return UserMemory.trusted(
        {
            "memory": str(get("memory") or ""),
            "memory_id": str(row["_id"]),
            "topics": get("topics") or [],
            "user_id": get("user_id"),
            "agent_id": get("agent_id"),
            "team_id": get("team_id"),
            "input": get("input"),
            "feedback": get("feedback"),
            "created_at": created,
            "updated_at": created if updated_at == created_at else updated_at and aware(updated_at),
            "revision": revision_of(row),
            "metadata": metadata if isinstance(metadata := get("metadata"), dict) else {},
            "pinned": get("pinned") is True,
            "expires_at": expires_at and aware(expires_at),
        }
    )


def revised(
    row: Row,
    values: Mapping[str, Any],
    now: datetime,
    cause: str,
    kind: ChangeKind = "update",
    vectors: Vectors = NO_VECTORS,
) -> Row | None:
    """The row of the next revision, or ``None`` when ``values`` change nothing.

    ``updated_at`` moves with text and topics only, unless ``values`` name it. Identity and vector follow the text.
    """
    before = to_memory(row)
    after = UserMemory.model_validate({**before.__dict__, **values})
    if after == before:
        return None
    new: Row = {name: row[name] for name in ("_id", "user_id", "created_at", "seq", "history") if name in row}
    vector = vectors.get(after.memory) or (row.get("vector") if after.memory == before.memory else None)
    new |= {"memory": after.memory, "topics": after.topics, **_given(after)}
    new |= _searchable(after.memory, after.topics, vector)
    said = (after.memory, after.topics) != (before.memory, before.topics)
    moment = now if said and "updated_at" not in values else after.updated_at
    if moment is not None:
        new["updated_at"] = moment
    key = identity(after.memory, after.agent_id, after.team_id)
    return new | {"revision": before.revision + 1, "key": key, "kind": kind, "cause": cause, "at": now}


def state_of(row: Mapping[str, Any]) -> Row:
    """What a history entry keeps of this revision."""
    return {name: row[name] for name in STATE if name in row}


def update_of(old: Mapping[str, Any], new: Row, limit: int) -> Row:
    """The MongoDB update that takes ``old`` to ``new`` and keeps ``old`` as the newest history entry."""
    fields = {name: value for name, value in new.items() if name not in ("_id", "user_id", "history")}
    gone = {name: "" for name in (*STATE, "vector") if name in old and name not in new}
    update: Row = {"$set": fields, "$push": {"history": {"$each": [state_of(old)], "$slice": -limit}}}
    return update | ({"$unset": gone} if gone else {})


def changes_of(row: Mapping[str, Any], timeline: Iterable[Row]) -> Iterator[Change]:
    """The changes that lead through a memory's timeline, oldest first; ``row`` has what never changes."""
    fixed = {name: row[name] for name in ("_id", "user_id", "created_at") if name in row}
    before: UserMemory | None = None
    for entry in timeline:
        after = None if entry.get("gone") else to_memory({**fixed, **entry})
        kind: ChangeKind = "delete" if after is None else "add" if before is None else "update"
        at = aware(entry.get("at")) or (after and after.updated_at) or datetime.fromtimestamp(0, UTC)
        yield Change(kind, str(row["_id"]), before, after, str(entry.get("cause", "unknown")), at)
        before = after


def to_note(change: Change) -> Row:
    """What is kept of a change elsewhere than in its memory: everything but text."""
    of = change.after or change.before
    note: Row = {"kind": change.kind, "id": change.memory_id, "cause": change.cause, "at": change.at}
    return note | {"revision": of.revision if of else 0, "sources": list(change.sources)}


def from_note(note: Mapping[str, Any], told: Iterable[Change]) -> Change:
    """The change that a note is about, as far as the memory's history still tells of it."""
    for change in told:
        of = change.after or change.before
        if change.kind == note["kind"] and of is not None and of.revision == note["revision"]:
            return replace(change, sources=tuple(note["sources"]))
    at = aware(note["at"]) or datetime.fromtimestamp(0, UTC)
    return Change(note["kind"], note["id"], None, None, note["cause"], at, sources=tuple(note["sources"]))
