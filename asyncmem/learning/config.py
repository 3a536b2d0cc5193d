"""What a learning machine learns, and how: checked once."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from typing_extensions import TypeVar as DefaultingTypeVar

from ..cleaning import clean_id
from ..errors import ConfigurationError, InvalidInputError
from ..llm.schemas import check_schema
from ..modes import LearningMode, ModeName, clean_mode
from ..profile_values import UserProfile
from ..search import Retriever
from ..search.methods import retriever

MAX_FIELDS = 64

S_co = DefaultingTypeVar("S_co", bound=UserProfile, covariant=True, default=UserProfile)
"""The schema of a profile; ``UserProfile`` itself where none is given."""


@dataclass(frozen=True, slots=True)
class UserMemoryConfig:
    """How a learning machine learns memories.

    Attributes:
        mode: what is captured, and what is applied at once; a ``LearningMode`` or its name.
        max_tokens: estimated tokens that the block for a prompt may have.
        retrieval_method: how ``UserMemoryStore.recall`` searches; by default as the manager finds what is relevant.

    Raises:
        ConfigurationError: an option can't be used.
    """

    mode: LearningMode | ModeName = LearningMode.ALWAYS
    max_tokens: int = 1000
    retrieval_method: str | Retriever | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", clean_mode(self.mode))
        _check_tokens(self.max_tokens)
        if self.retrieval_method is not None:
            try:
                retriever(self.retrieval_method)
            except InvalidInputError as error:
                raise ConfigurationError(str(error)) from None


def _check_tokens(tokens: object) -> None:
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        raise ConfigurationError("max_tokens must be an int, at least 1")


@dataclass(frozen=True)  # no slots: with them Python 3.11 can't make a UserProfileConfig[Schema](…)
class UserProfileConfig(Generic[S_co]):
    """How user profiles are kept.

    Attributes:
        schema: ``UserProfile``, or a subclass with fields of your own, each with a default: a profile begins empty.
        name: under which profiles of this schema are stored; by default the schema's own. Keep it when you rename
            the class.
        instructions: what a model that reads conversations is told beside the fields' descriptions.
        max_tokens: estimated tokens that the block for a prompt may have.
        mode: what a ``LearningMachine`` reads conversations for, and what it applies at once; a ``LearningMode`` or its
            name. ``UserProfileStore.extract`` by itself always reads and applies.

    Raises:
        ConfigurationError: the schema, or another option, can't be used.
    """

    schema: type[S_co] = field(default=cast("type[S_co]", UserProfile))
    name: str = ""
    instructions: str | None = None
    max_tokens: int = 500
    mode: LearningMode | ModeName = LearningMode.ALWAYS

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", clean_mode(self.mode))
        schema = cast("object", self.schema)
        if not (isinstance(schema, type) and issubclass(schema, UserProfile)):
            raise ConfigurationError("schema must be UserProfile or a subclass of it")
        try:
            check_schema(schema)
            clean_id(self.stored_as, "name")
        except InvalidInputError as error:
            raise ConfigurationError(str(error)) from None
        if len(schema.model_fields) > MAX_FIELDS:
            raise ConfigurationError(f"{schema.__name__} has more than {MAX_FIELDS} fields")
        for name, info in schema.model_fields.items():
            if info.is_required():
                raise ConfigurationError(f"{schema.__name__}.{name} has no default: a profile begins empty")
            if info.alias or info.validation_alias or info.serialization_alias:
                raise ConfigurationError(f"{schema.__name__}.{name} has an alias: profiles are stored by field names")
        if not isinstance(cast("object", self.instructions), str | None):
            raise ConfigurationError("instructions must be a str or None")
        _check_tokens(self.max_tokens)

    @property
    def stored_as(self) -> str:
        """The name in the database."""
        return self.name or self.schema.__name__


C = TypeVar("C", UserMemoryConfig, UserProfileConfig[Any])


def captured(memory: UserMemoryConfig | None, profile: UserProfileConfig | None) -> tuple[str, ...]:
    """What is learnt of conversations, each with its mode; nothing where tools learn it all."""
    learns: list[str] = []
    if memory is not None and memory.mode != LearningMode.AGENTIC:
        learns.append(f"memory {memory.mode}")
    if profile is not None and profile.mode != LearningMode.AGENTIC:
        learns.append(f"profile {profile.stored_as} {profile.mode}")
    return tuple(learns)


def to_config(given: object, kind: type[C], name: str) -> C | None:
    """What an option asks for; ``None`` if it is off.

    Raises:
        ConfigurationError: it is something else.
    """
    if given is True:
        return kind()
    if given is False or given is None:
        return None
    if not isinstance(given, kind):
        what = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        raise ConfigurationError(f"{name} must be True, False or {kind.__name__}(…), not {what}")
    return given
