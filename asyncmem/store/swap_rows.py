"""Rows that an optimization exchanges, at the very state in which they were seen (pure)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import bson

from ..types import UserMemory
from . import queries
from .archive import life_of
from .documents import Row
from .rows import DERIVED, STATE, VALUE, Vectors, next_stamp, revised, revision_of, state_of

_ITEM_BYTES = 4 * 2**20
"""BSON that one part of a journal holds, if it holds more than one row."""
_MARKS = ("revision", "at", "cause", "memory")


@dataclass(frozen=True, slots=True)
class Leaving:
    """A row that is to go.

    Attributes:
        memory_id: of which memory.
        revision: at which revision; ``None`` for a row of other software.
        stamp: at which stamp. A row that was taken out and came back has another one at the same revision.
        life: which life of its id it belongs to.
        key: what it says, as the unique index knows it.
    """

    memory_id: str
    revision: int | None
    stamp: int | None
    life: int
    key: bytes | None

    @staticmethod
    def of(row: Mapping[str, Any]) -> "Leaving":
        """A row as it is now."""
        return Leaving(row["_id"], row.get("revision"), row.get("stamp"), life_of(row), row.get("key"))

    @staticmethod
    def from_item(item: Mapping[str, Any]) -> "Leaving":
        """As a journal kept it."""
        return Leaving(*(item[name] for name in Leaving.__slots__))

    def to_item(self) -> Row:
        """As a journal keeps it."""
        return {name: getattr(self, name) for name in self.__slots__}

    def archived_as(self, run_id: str) -> str:
        """The key of its copy in the archive. A deletion's copy has another one: neither hides the other."""
        return f"{self.memory_id}:{self.life}:{self.next_revision}:{run_id}"

    @property
    def next_revision(self) -> int:
        """The revision that its departure makes."""
        return revision_of({"revision": self.revision}) + 1

    def to_row(self, user_id: str) -> Row:
        """As much of the row as tells which life and revision it is."""
        return {"_id": self.memory_id, "user_id": user_id, "revision": self.revision, "seq": self.life}

    def is_at(self, row: Mapping[str, Any]) -> bool:
        """Whether the row still is at this revision."""
        return row.get("revision") == self.revision

    def query(self, user_id: str, stamp: object) -> Row:
        """The row at this revision and a stamp."""
        return at_state({"_id": self.memory_id, "user_id": user_id, "revision": self.revision, "stamp": stamp})


def at_state(row: Mapping[str, Any]) -> Row:
    """This very state of this row: its revision, and the stamp that every write of it changes."""
    stamp = row.get("stamp")
    return {**queries.exact(row), "stamp": {"$exists": False} if stamp is None else stamp}


def restamped(row: Row) -> Row:
    """The row as it is put back: the same but for the stamp, by which searches notice it."""
    return {**row, "stamp": next_stamp()} if row.get("stamp") is not None else row


def turned(old: Row, after: UserMemory, now: datetime, cause: str, vectors: Vectors, limit: int) -> Row | None:
    """The whole row of a memory's next revision, with its history; ``None`` if nothing changes."""
    values = {name: getattr(after, name) for name in VALUE}
    new = revised(old, values, now, cause, vectors=vectors)
    if new is None:
        return None
    constant = {name: value for name, value in old.items() if name not in (*STATE, *DERIVED)}
    return {**constant, **new, "history": [*old.get("history", ()), state_of(old)][-limit:]}


def is_same(row: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Whether a row still is what was made of it; both as they were read."""
    return all(row.get(name) == made.get(name) for name in _MARKS) and life_of(row) == life_of(made)


def without_key(row: Row) -> Row:
    """The row as it stands beside one that says the same, until that one is gone."""
    return {name: value for name, value in row.items() if name != "key"}


def by_size(items: Iterable[Row], most: int) -> Iterator[list[Row]]:
    """The items in parts that MongoDB can hold."""
    part: list[Row] = []
    size = 0
    for item in items:
        length = len(bson.encode(item))
        if part and (len(part) >= most or size + length > _ITEM_BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += length
    if part:
        yield part
