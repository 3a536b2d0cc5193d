"""The values that go in: memories, messages and scopes, frozen, usable with no database and no event loop."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    ValidationError,
    field_validator,
    model_validator,
)

from .cleaning import (
    INT64,
    MAX_INPUT,
    clean_id,
    clean_local_time,
    clean_metadata,
    clean_text,
    clean_time,
    clean_topics,
    encodable,
)
from .errors import AsyncMemError, InvalidMemoryError, InvalidMessageError


def _optional(clean: Callable[[Any], Any]) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else clean(value))


Time = Annotated[datetime, _optional(clean_time)]
LocalTime = Annotated[datetime, _optional(clean_local_time)]


def reject(error: type[AsyncMemError], cause: ValidationError, what: str) -> AsyncMemError:
    """Our error for pydantic's, which would show the values that were passed in."""
    lines = (f"{'.'.join(map(str, e['loc'])) or what}: {e['msg']}" for e in cause.errors(include_input=False))
    return error(f"{what} can't be used: " + "; ".join(lines))


class UserMemory(BaseModel):
    """One stored third-person statement about a user.

    A frozen value: change a copy (``memory.model_copy(update=...)``) or ask the manager. Text is kept in Unicode
    NFC, stripped, 1 to 8,000 characters; times are aware UTC datetimes to the millisecond.

    Attributes:
        memory: the statement.
        memory_id: its id; given by the store when ``None``.
        topics: at most 32 of 64 characters, in order, without duplicates.
        user_id: whose memory it is.
        agent_id: which agent wrote it.
        team_id: which team of agents wrote it.
        input: the words that it came from.
        feedback: a person's verdict on it.
        created_at: when it was first written.
        updated_at: when its text or topics last changed.
        revision: 1 when new, one more at every change.
        metadata: JSON values of the application's own.
        pinned: never pruned, never summarised.
        expires_at: when it is forgotten by itself.

    Raises:
        InvalidMemoryError: a value can't be stored.
        InvalidIdError: an id is not a usable string.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, ser_json_timedelta="iso8601"
    )

    memory: str
    memory_id: str | None = None
    topics: list[str] = Field(default_factory=list[str])
    user_id: str | None = None
    agent_id: str | None = None
    team_id: str | None = None
    input: str | None = None
    feedback: str | None = None
    created_at: Time | None = None
    updated_at: Time | None = None
    revision: int = Field(default=1, ge=1, lt=INT64)
    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    pinned: bool = False
    expires_at: Time | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _typed_errors(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise reject(InvalidMemoryError, error, "memory") from None

    @field_validator("memory", mode="before")
    @classmethod
    def _clean_memory(cls, value: object) -> str:
        return clean_text(value)

    @field_validator("topics", mode="before")
    @classmethod
    def _clean_topics(cls, value: object) -> list[str]:
        return [] if value is None else clean_topics(value)

    @field_validator("metadata", mode="before")
    @classmethod
    def _clean_metadata(cls, value: object) -> dict[str, JsonValue]:
        return {} if value is None else clean_metadata(value)

    @field_validator("memory_id", "user_id", "agent_id", "team_id", mode="before")
    @classmethod
    def _clean_ids(cls, value: object, info: Any) -> str | None:
        return None if value is None else clean_id(value, str(info.field_name))

    @field_validator("input", "feedback", mode="before")
    @classmethod
    def _clean_words(cls, value: object, info: Any) -> str | None:
        if isinstance(value, str) and not value.strip():
            return None
        return None if value is None else clean_text(value, str(info.field_name), MAX_INPUT)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """A copy with other values, validated like a new one; it shares nothing with the original."""
        return type(self).model_validate({**self.__dict__, **(update or {})})

    @classmethod
    def trusted(cls, values: dict[str, Any]) -> Self:
        """A memory from values that the store wrote, without validating them again.

        ``values`` must hold every field. Some ten times faster than validation; for rows read by the store only.
        """
        memory = cls.__new__(cls)
        put = object.__setattr__
        put(memory, "__dict__", values)
        put(memory, "__pydantic_fields_set__", _ALL_FIELDS)
        put(memory, "__pydantic_extra__", None)
        put(memory, "__pydantic_private__", None)
        return memory


_ALL_FIELDS = set(UserMemory.model_fields)


class Message(BaseModel):
    """One turn of a conversation.

    Attributes:
        role: ``"user"`` or ``"assistant"``; other roles are left out of capture.
        content: its text.
        at: when it was said; dates in memories are made absolute from it. It keeps the time zone that it is given
            in, since "yesterday" is the day before the speaker's own.

    Raises:
        InvalidMessageError: a value can't be used.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    role: str = "user"
    content: str
    at: LocalTime | None = None

    @field_validator("content")
    @classmethod
    def _can_be_sent(cls, value: str) -> str:
        if not encodable(value):
            raise InvalidMessageError("the message holds a lone surrogate, which no encoding can hold: remove it")
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _typed_errors(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise reject(InvalidMessageError, error, "message") from None
        except InvalidMemoryError as error:
            raise InvalidMessageError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memories, and which agent's and team's of them.

    Attributes:
        user_id: whose memories; never optional.
        agent_id: only those that this agent wrote.
        team_id: only those that this team wrote.
    """

    user_id: str
    agent_id: str | None = None
    team_id: str | None = None


def clean_scope(user_id: object, agent_id: object = None, team_id: object = None) -> Scope:
    """The scope, if all its ids are usable strings.

    Raises:
        InvalidIdError: one is not.
    """
    return Scope(
        clean_id(user_id, "user_id"),
        None if agent_id is None else clean_id(agent_id, "agent_id"),
        None if team_id is None else clean_id(team_id, "team_id"),
    )
