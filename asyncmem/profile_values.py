"""User profiles as values: what a profile is, what is kept of it, what came of reading a conversation for it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from .proposal_values import Proposal
from .types import Skipped
from .usage import Usage

Values = dict[str, JsonValue]
"""The fields that are set, as JSON."""


class UserProfile(BaseModel):
    """What is known of a user in fields. Subclass it for fields of your own, each with a default.

    Attributes:
        name: the user's full name.
        preferred_name: what the user wants to be called.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str | None = Field(default=None, max_length=200, description="The user's full name.")
    preferred_name: str | None = Field(default=None, max_length=200, description="What the user wants to be called.")


@dataclass(frozen=True, slots=True)
class ProfileField:
    """Where the value of one field comes from.

    Attributes:
        at: when it was set or unset.
        cause: ``"manual"``, or ``"extract"``.
        evidence: the user's own words for it, where a model read them.
    """

    at: datetime
    cause: str
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """One field's change.

    Attributes:
        field: which.
        before: its value, as JSON.
        after: its value since, as JSON.
        at: when.
        cause: ``"manual"``, or ``"extract"``.
        evidence: the user's own words for it, where a model read them.
        revision: of the profile, since.
    """

    field: str
    before: JsonValue
    after: JsonValue
    at: datetime
    cause: str
    evidence: str | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True)
class ProfileRecord:
    """A user's profile as it is stored.

    Attributes:
        values: the fields that are set.
        fields: where each comes from.
        history: the newest changes, oldest first.
        revision: counts the writes.
        guards: fingerprints of the newest writes that must not be made twice.
    """

    values: Values = field(default_factory=dict[str, JsonValue])
    fields: dict[str, ProfileField] = field(default_factory=dict[str, ProfileField])
    history: tuple[ProfileChange, ...] = ()
    revision: int = 0
    guards: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileResult:
    """What came of reading a conversation.

    Attributes:
        changes: the fields that were changed.
        skipped: what the model wanted and was not written, each with its reason.
        usage: model calls, tokens and cost.
        proposals: what waits for approval, where a ``LearningMachine`` reads in such a mode.
        repeated: the conversation was read before: nothing was done.
    """

    changes: list[ProfileChange] = field(default_factory=list[ProfileChange])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    usage: Usage = field(default_factory=Usage)
    proposals: list[Proposal] = field(default_factory=list[Proposal])
    repeated: bool = False
