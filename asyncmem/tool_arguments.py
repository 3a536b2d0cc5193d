"""The memory tools as a model sees them: what each takes and when to use it; reading what a model passes (pure)."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .cleaning import MAX_TOPIC

MAX_STATEMENT = 2_000
"""Characters of a memory that a tool writes: one statement, not a document."""
MAX_ARGUMENTS = 50_000
"""Characters of a call's arguments; any call that makes sense is far below, however it is escaped."""
_SHOWN_PROBLEMS = 5
_A_TOPIC = Annotated[str, Field(min_length=1, max_length=MAX_TOPIC)]
_ANEW = "One short statement about the user in the third person, such as 'Lives in Porto'."
_WHICH = "The id of the memory, copied from an earlier result of these tools."


class _Arguments(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_nothing(cls, data: Any) -> Any:
        """Models like to pass null for what they leave out."""
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, Mapping) else data  # pyright: ignore[reportUnknownVariableType]


class AddMemory(_Arguments):
    """Arguments of ``add_memory``."""

    memory: str = Field(min_length=1, max_length=MAX_STATEMENT, description=_ANEW)
    topics: list[_A_TOPIC] = Field(default=[], max_length=8, description="A few words to file it under.")


class UpdateMemory(_Arguments):
    """Arguments of ``update_memory``."""

    memory_id: str = Field(min_length=1, max_length=256, description=_WHICH)
    memory: str = Field(
        min_length=1,
        max_length=MAX_STATEMENT,
        description="The whole new statement. It replaces the old one, so repeat every detail that is still true.",
    )
    topics: list[_A_TOPIC] = Field(default=[], max_length=8, description="New topics; leave out to keep the old ones.")


class DeleteMemory(_Arguments):
    """Arguments of ``delete_memory``."""

    memory_id: str = Field(min_length=1, max_length=256, description=_WHICH)


class ClearMemories(_Arguments):
    """Arguments of ``clear_memories``: none."""


class SearchMemories(_Arguments):
    """Arguments of ``search_memories``."""

    query: str = Field(min_length=1, max_length=500, description="What to look for, in a few words or a question.")
    limit: int = Field(default=5, ge=1, le=50, description="How many memories at most.")


class ListMemories(_Arguments):
    """Arguments of ``list_memories``."""

    limit: int = Field(default=20, ge=1, le=100, description="How many memories at most.")


A = TypeVar("A", bound=BaseModel)
TOOLS: dict[str, tuple[type[_Arguments], str]] = {
    "add_memory": (
        AddMemory,
        "Remember something new about the user for later conversations, one fact a call. To correct one, change it.",
    ),
    "update_memory": (UpdateMemory, "Change one memory of the user, when what it says is wrong or no longer true."),
    "delete_memory": (DeleteMemory, "Forget one memory of the user, when the user asks for that."),
    "clear_memories": (
        ClearMemories,
        "Forget ALL memories of the user at once. Only when the user asks for exactly that.",
    ),
    "search_memories": (SearchMemories, "Look up what is remembered about the user that has to do with a query."),
    "list_memories": (ListMemories, "List what is remembered about the user, the newest first."),
}
"""Each tool's arguments and description, by name."""


class Misread(Exception):  # noqa: N818  told to the model, never raised to the application
    """The arguments of a call make no sense; its text says why, and quotes nothing of them."""


def read_arguments(given: object, schema: type[A]) -> A:
    """The arguments of a call.

    Args:
        given: JSON text, or the object that it stands for; nothing, or blank text, is no arguments.
        schema: what the tool takes.

    Raises:
        Misread: they are none of that, or not what the tool takes.
    """
    try:
        return schema.model_validate(_decoded(given))
    except ValidationError as error:
        raise Misread(_explained(error, schema)) from None


def _decoded(given: object) -> object:
    match given:
        case None:
            return {}
        case str() if len(given) > MAX_ARGUMENTS:
            raise Misread(f"they have {len(given):,} characters, and at most {MAX_ARGUMENTS:,} are read")
        case str():
            try:
                value: object = json.loads(given, strict=False) if given.strip() else {}
            except (ValueError, RecursionError):
                raise Misread("they are not valid JSON: pass one JSON object") from None
        case _:
            value = given
    if not isinstance(value, Mapping):
        raise Misread("they must be one JSON object")
    return value  # pyright: ignore[reportUnknownVariableType]


def _explained(error: ValidationError, schema: type[BaseModel]) -> str:
    problems = [
        _problem(found["type"], ".".join(map(str, found["loc"])), found["msg"])
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    takes = ", ".join(schema.model_fields) or "no arguments"
    return f"{'; '.join(list(dict.fromkeys(problems))[:_SHOWN_PROBLEMS])}. The tool takes: {takes}"


def _problem(kind: str, where: str, message: str) -> str:
    match kind:
        case "missing":
            return f"{where} is missing"
        case "extra_forbidden" | "invalid_key":  # its name is the model's own, and may be anything
            return "there is an argument that the tool does not take"
        case _:
            return f"{where}: {message[:1].lower()}{message[1:]}"
