"""What a model is asked to write down: a plan of operations, read tolerantly."""

from collections.abc import Collection
from functools import cache
from typing import Annotated, Any, ClassVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

OPERATION_NAMES = ("add", "update", "delete", "clear")
MAX_PLANNED = 8
"""Operations that the schema lets a model plan in one reply. Without a bound, small models repeat themselves."""


def _text(value: object) -> object:
    match value:
        case None:
            return ""
        case bool() | int() | float():
            return str(value)
        case list():
            return " … ".join(str(item) for item in value if item is not None)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return value


def _texts(value: object) -> object:
    match value:
        case None:
            return []
        case str():
            return value.split(",")
        case list():
            return [_text(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return value


def _items(value: object) -> object:
    """Null is an empty list, one object a list of one; what is no object is left out."""
    match value:
        case None:
            return []
        case dict():
            return [value]  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [item for item in value if isinstance(item, dict | BaseModel)]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _plain(schema: dict[str, Any]) -> None:
    """The schema as strict providers take it: everything required, no defaults, no descriptions."""
    schema.pop("description", None)
    properties = cast("dict[str, dict[str, Any]]", schema["properties"])
    for field in properties.values():
        field.pop("default", None)
    schema["required"] = list(properties)


Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[list[Annotated[Text, Field(json_schema_extra={"maxLength": 40})]], BeforeValidator(_texts)]


class PlannedOperation(BaseModel):
    """One operation as a model writes it. What an operation doesn't need may be missing, empty or null.

    The order of the fields is the order in which a model thinks: which words, about which memory, so what. The
    schema bounds every text where the provider enforces it, since small models else repeat themselves; what
    comes longer all the same is for the guards.

    Attributes:
        evidence: the user's words that it rests on.
        memory_id: the alias of a memory, with or without its text.
        op: what to do.
        memory: the new text.
        topics: what it is about.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra=_plain, frozen=True)

    evidence: Text = Field(default="", json_schema_extra={"maxLength": 240})
    memory_id: Text = Field(default="", json_schema_extra={"maxLength": 120})
    op: Text = ""
    memory: Text = Field(default="", json_schema_extra={"maxLength": 320})
    topics: Texts = Field(default=[], json_schema_extra={"maxItems": 3})


class Plan(BaseModel):
    """What a model decided.

    Attributes:
        operations: in the order in which they are to be applied; empty when nothing is to change.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra=_plain, frozen=True)

    operations: Annotated[list[PlannedOperation], BeforeValidator(_items)]


def plan_model(enabled: Collection[str]) -> type[Plan]:
    """``Plan`` with a schema that names only the operations that are switched on."""
    return _plan_model(tuple(name for name in OPERATION_NAMES if name in enabled))


@cache
def _plan_model(enabled: tuple[str, ...]) -> type[Plan]:
    one = create_model(
        "PlannedOperation",
        __base__=PlannedOperation,
        op=(Text, Field(default="", json_schema_extra={"enum": list(enabled)})),
    )
    several: Any = Annotated[list[one], BeforeValidator(_items)]  # type: ignore[valid-type]
    bound: Any = Field(json_schema_extra={"maxItems": MAX_PLANNED})
    return create_model("Plan", __base__=Plan, operations=(several, bound))
