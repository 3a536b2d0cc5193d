"""Proposals as values: a change that was decided and waits for somebody's approval."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

ProposalStatus = Literal["pending", "approved", "rejected", "expired"]
ProposalKind = Literal["add", "update", "delete", "clear", "set", "unset"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """One change that waits for approval, or waited.

    Attributes:
        proposal_id: names it.
        user_id: whose memories or profile it is about.
        about: ``"memory"`` or ``"profile"``.
        kind: what would be done: ``"add"``, ``"update"``, ``"delete"`` or ``"clear"`` memories; ``"set"`` or
            ``"unset"`` a field of the profile.
        status: ``"pending"``; ``"approved"`` or ``"rejected"`` by somebody; ``"expired"`` when its time is over, or
            what it is about is another by now.
        at: when it was made.
        expires_at: until when it can be approved.
        memory_id: which memory would be updated or deleted.
        profile: under which name the profile is stored.
        field: which field of the profile.
        before: the memory's text, or the field's value as JSON, as the model saw it.
        after: the text or value that it would have.
        topics: those of a memory that would be added or updated; ``None`` keeps what there is.
        evidence: the user's words that it rests on.
        sources: indexes of the messages with these words.
        count: how many memories it is about.
        decided_at: when it was approved or rejected.
    """

    proposal_id: str
    user_id: str
    about: Literal["memory", "profile"]
    kind: ProposalKind
    status: ProposalStatus
    at: datetime
    expires_at: datetime
    memory_id: str | None = None
    profile: str | None = None
    field: str | None = None
    before: JsonValue = None
    after: JsonValue = None
    topics: tuple[str, ...] | None = None
    evidence: str | None = None
    sources: tuple[int, ...] = ()
    count: int = 1
    decided_at: datetime | None = None
