"""The Beanie documents, made anew for each database.

Beanie binds a document class to one database at a time, so one class shared by two managers would send all rows
to the last one. Classes are therefore made per database (about 1 ms and 36 KB each) by Beanie's public interface
alone; docs/why.md weighs this against one class with a context variable.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from beanie import Document, init_beanie  # pyright: ignore[reportUnknownVariableType]
from pydantic import BaseModel, Field
from pymongo import IndexModel
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase

from .indexes import (
    ARCHIVE_INDEXES,
    CAPTURE_INDEXES,
    LANE_INDEXES,
    MEMORY_INDEXES,
    OPTIMIZATION_INDEXES,
    PROFILE_INDEXES,
    PROFILE_LANE_INDEXES,
    PROPOSAL_INDEXES,
    SESSION_INDEXES,
)
from .indexes import NEWEST_FIRST as NEWEST_FIRST
from .indexes import OLDEST_FIRST as OLDEST_FIRST

Row = dict[str, Any]
"""A document as MongoDB holds it."""
Collection = AsyncCollection[Row]
Database = AsyncDatabase[Row]


class StoredMemory(BaseModel):
    """Fields of a memory's document. Empty ones are left out; ``_id`` is the memory's id.

    ``key`` identifies what it says (``operations.identity``); ``seq`` orders equal times by insertion; ``kind``,
    ``cause`` and ``at`` tell of the change that made this revision; ``history`` holds earlier revisions; ``prints``
    are fingerprints of the sentences that a capture rested it on. For search: ``tokens`` are those of text and topics
    under a scheme, ``stamp`` is another at every write of the row, and ``vector`` is the text's embedding with its
    model's name and its length.
    """

    user_id: str
    memory: str
    topics: list[str] = Field(default_factory=list[str])
    agent_id: str | None = None
    team_id: str | None = None
    input: str | None = None
    feedback: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    revision: int = 1
    metadata: dict[str, Any] | None = None
    pinned: bool = False
    expires_at: datetime | None = None
    key: bytes | None = None
    seq: int | None = None
    kind: str = "add"
    cause: str = "manual"
    at: datetime | None = None
    prints: list[bytes] = Field(default_factory=list[bytes])
    history: list[Row] = Field(default_factory=list[Row])
    tokens: Row | None = None
    stamp: int | None = None
    vector: Row | None = None


class StoredArchive(BaseModel):
    """Fields of a row that left the memories: deleted, or an old revision that its document has no room for."""

    user_id: str
    memory_id: str
    revision: int
    kind: str
    cause: str
    at: datetime
    row: Row
    expire_at: datetime
    run: str | None = None


class StoredCapture(BaseModel):
    """Fields of a row about captures: see ``captures.py`` for the kinds.

    ``pending`` and ``work`` are there while a journal's work is not done. ``until`` and ``changes`` are those of
    scheduled captures: how long the messages count as captured, and what became of them. ``closed`` says that one must
    not be applied, and in which turn of its lane that was decided.
    """

    user_id: str
    kind: str
    prints: list[bytes] | None = None
    at: datetime | None = None
    expire_at: datetime | None = None
    pending: datetime | None = None
    work: bytes | None = None
    captures: int | None = None
    erasures: int | None = None
    until: datetime | None = None
    changes: list[Row] | None = None
    closed: int | None = None


class StoredLane(BaseModel):
    """Fields of a user's lane in the queue: see ``lanes.py``."""

    user_id: str
    jobs: list[Row] = Field(default_factory=list[Row])
    dead: list[Row] = Field(default_factory=list[Row])
    results: list[Row] = Field(default_factory=list[Row])
    waiting: int = 0
    due: datetime | None = None
    since: datetime | None = None
    dead_count: int | None = None
    expire_at: datetime | None = None
    profile: str | None = None


class StoredOptimization(BaseModel):
    """Fields of a row about optimizations: see ``swap_journal.py`` and ``leases.py`` for the kinds."""

    user_id: str
    kind: str
    run: str | None = None
    strategy: str | None = None
    cause: str | None = None
    status: str | None = None
    at: datetime | None = None
    undone_at: datetime | None = None
    undo_until: datetime | None = None
    expire_at: datetime | None = None
    erasures: int | None = None
    retired: int | None = None
    revised: int | None = None
    added: int | None = None
    part: str | None = None
    items: list[Row] | None = None
    token: str | None = None
    until: datetime | None = None
    signed: int | None = None
    work: Row | None = None
    pending: datetime | None = None


class StoredProfile(BaseModel):
    """Fields of a user's profile: see ``profiles.py``."""

    user_id: str
    profile: str
    values: str
    fields: Row = Field(default_factory=dict[str, Any])
    history: list[Row] = Field(default_factory=list[Row])
    revision: int = 1
    erasures: int = 0
    guards: list[bytes] | None = None


class StoredProposal(BaseModel):
    """Fields of a proposal: see ``proposal_rows.py``. ``key`` is there while it waits: no two do the same."""

    user_id: str
    about: str
    kind: str
    status: str
    at: datetime
    expires_at: datetime
    expire_at: datetime
    key: str | None = None
    decided_at: datetime | None = None
    memory_id: str | None = None
    profile: str | None = None
    field: str | None = None
    before: str | None = None
    after: str | None = None
    topics: list[str] | None = None
    evidence: str | None = None
    sources: list[int] | None = None
    agent_id: str | None = None
    team_id: str | None = None
    targets: list[Row] | None = None
    suspect: bool | None = None
    prints: list[bytes] | None = None
    said_at: datetime | None = None


class StoredExchange(BaseModel):
    """Fields of one exchange of a session: see ``sessions.py``. ``pending`` is there while it waits to be captured."""

    user_id: str
    session_id: str
    seq: int
    message: str
    said_at: datetime
    answer: str
    answered_at: datetime
    tokens: int
    window: int
    weight: int
    folded: bool = False
    summary: str | None = None
    pending: bool | None = None
    erasures: int = 0


@dataclass(frozen=True, slots=True)
class Collections:
    """Our collections in one database, reached through the documents bound to it."""

    memories: Collection
    archive: Collection
    captures: Collection
    optimizations: Collection
    jobs: Collection
    profiles: Collection
    sessions: Collection
    proposals: Collection
    profile_jobs: Collection


async def bind(database: Database, prefix: str, *, create_indexes: bool) -> Collections:
    """Make and bind the documents of one database, and their indexes."""
    models = [
        _document(StoredMemory, f"{prefix}memories", MEMORY_INDEXES),
        _document(StoredArchive, f"{prefix}archive", ARCHIVE_INDEXES),
        _document(StoredCapture, f"{prefix}captures", CAPTURE_INDEXES),
        _document(StoredOptimization, f"{prefix}optimizations", OPTIMIZATION_INDEXES),
        _document(StoredLane, f"{prefix}jobs", LANE_INDEXES),
        _document(StoredProfile, f"{prefix}profiles", PROFILE_INDEXES),
        _document(StoredExchange, f"{prefix}sessions", SESSION_INDEXES),
        _document(StoredProposal, f"{prefix}proposals", PROPOSAL_INDEXES),
        _document(StoredLane, f"{prefix}profile_jobs", PROFILE_LANE_INDEXES),
    ]
    await init_beanie(database=database, document_models=models, skip_indexes=not create_indexes)
    return Collections(*map(_collection, models))


def _document(fields: type[BaseModel], collection: str, made: list[IndexModel]) -> type[Document]:
    """A document class of its own for one collection of one database."""

    class Bound(fields, Document):  # type: ignore[valid-type, misc]
        id: str  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleVariableOverride]

        class Settings:
            name = collection
            indexes = made

    return Bound


def _collection(document: type[Document]) -> Collection:
    collection: Collection = document.get_pymongo_collection()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return collection
