"""What a capture is about to write: each step can be taken twice and happens once (pure)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import bson
from bson.binary import Binary
from bson.codec_options import CodecOptions

from ..cleaning import MAX_INPUT
from ..operations import Add, Clear, Delete, Grounded, Update
from ..types import UserMemory
from .batch import Batch
from .documents import Row
from .rows import aware, to_row

MAX_PRINTS = 64
"""Fingerprints of sentences that a memory keeps: the newest."""


@dataclass(frozen=True, slots=True)
class Insert:
    """A new memory, with the id that it will have."""

    row: Row


@dataclass(frozen=True, slots=True)
class Revise:
    """A memory gets another text.

    Attributes:
        memory_id: which one.
        text: the text.
        topics: its topics; ``None`` keeps them.
        suspect: it is to be marked so.
        base: the text that the decision was made on; ``None`` takes any.
        prints: of the sentences that it rests on.
    """

    memory_id: str
    text: str
    topics: list[str] | None
    suspect: bool
    base: str | None
    prints: list[bytes]

    def values(self, before: UserMemory) -> dict[str, Any]:
        """What becomes of the memory."""
        topics = {} if self.topics is None else {"topics": self.topics}
        metadata = {"metadata": {**before.metadata, "suspect": True}} if self.suspect else {}
        return {"memory": self.text, **topics, **metadata}

    def is_in(self, row: Mapping[str, Any], at: datetime) -> bool:
        """Whether this very step was taken already, now or some revisions ago."""
        states = (row, *row.get("history", ()))
        return any(aware(s.get("at")) == at and s.get("memory") == self.text for s in states)


@dataclass(frozen=True, slots=True)
class Remove:
    """A memory goes.

    Attributes:
        memory_id: which one.
        base: the text that the decision was made on; ``None`` takes any.
    """

    memory_id: str
    base: str | None


@dataclass(frozen=True, slots=True)
class Propose:
    """A change waits for approval."""

    row: Row


@dataclass(frozen=True, slots=True)
class Approve:
    """A proposal has been carried out."""

    proposal_id: str


Step = Insert | Revise | Remove | Propose | Approve


def to_step(grounded: Grounded, batch: Batch, now: datetime) -> Step | None:
    """What one operation writes; ``None`` for a clear, which is done before."""
    operation, prints = grounded.operation, sorted(grounded.prints)[:MAX_PRINTS]
    match operation:
        case Add():
            memory = UserMemory(
                memory=operation.memory,
                topics=list(operation.topics),
                agent_id=batch.scope.agent_id,
                team_id=batch.scope.team_id,
                input=(operation.evidence or batch.words or "")[:MAX_INPUT] or None,
                metadata={"suspect": True} if operation.suspect else {},
            )
            row = to_row(memory, batch.scope.user_id, now, batch.cause, batch.vectors)
            return Insert(row | ({"prints": prints} if prints else {}))
        case Update():
            topics = None if operation.topics is None else list(operation.topics)
            base = _text(batch.seen.get(operation.memory_id))
            return Revise(operation.memory_id, operation.memory, topics, operation.suspect, base, prints)
        case Delete():
            return Remove(operation.memory_id, _text(batch.seen.get(operation.memory_id)))
        case Clear():  # pragma: no branch  there are no others
            return None


def _text(memory: UserMemory | None) -> str | None:
    return None if memory is None else memory.memory


_CODEC: CodecOptions[dict[str, Any]] = CodecOptions(tz_aware=True)


def pack(steps: Iterable[Step], at: datetime, cause: str) -> Binary:
    """The steps as a journal keeps them."""
    kinds = [[type(s).__name__, {name: getattr(s, name) for name in s.__slots__}] for s in steps]
    return Binary(bson.encode({"steps": kinds, "at": at, "cause": cause}))


def unpack(packed: bytes) -> tuple[list[Step], datetime, str]:
    """The steps that a journal kept, when and why they were to be taken."""
    document: dict[str, Any] = bson.decode(packed, codec_options=_CODEC)  # pyright: ignore[reportUnknownMemberType]
    made = {kind.__name__: kind for kind in (Insert, Revise, Remove, Propose, Approve)}
    steps: Sequence[Step] = [made[kind](**fields) for kind, fields in document["steps"]]
    return list(steps), document["at"], document["cause"]
