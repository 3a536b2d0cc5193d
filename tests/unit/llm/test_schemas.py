"""Pydantic models as plain JSON schema."""

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, Literal, Optional, TypeVar

import pytest
from pydantic import BaseModel, Field, RootModel, create_model

from asyncmem.errors import InvalidInputError
from asyncmem.llm import Tool
from asyncmem.llm.schemas import full_schema, plain_schema, safe_name, safely_named, texts, with_schema

from .play import play
from .schemas import Free, Node


class Colour(Enum):
    """Two colours."""

    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    """A part."""

    one: Literal["a"]
    title: str


class Everything(BaseModel):
    """What plain JSON schema can say."""

    text: str = Field(min_length=1, description="a text", examples=["x"])
    number: int = Field(ge=0)
    maybe: Optional[float] = None  # noqa: UP045  both spellings
    flag: bool | None
    colour: Colour | None = None
    kind: Literal["a", "b"] = "a"
    inner: Inner
    inners: list[Inner] | None = None
    same: str | str = ""
    nothing: None = None


def test_plain_schema_has_plain_keywords_only() -> None:
    """Bounds, defaults, titles and references go; null is one of a list of types."""
    inner = {
        "type": "object",
        "properties": {"one": {"type": "string", "enum": ["a"]}, "title": {"type": "string"}},
        "required": ["one", "title"],
    }
    assert plain_schema(Everything) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "number": {"type": "integer"},
            "maybe": {"type": ["number", "null"]},
            "flag": {"type": ["boolean", "null"]},
            "colour": {"type": ["string", "null"], "enum": ["red", "blue", None]},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "inner": inner,
            "inners": {"type": ["array", "null"], "items": inner},
            "same": {"type": "string"},
            "nothing": {"type": "null"},
        },
        "required": ["text", "number", "flag", "inner"],
    }


def test_enum_of_several_types_has_no_type() -> None:
    """Values of several types are listed without a type."""

    class Mixed(BaseModel):
        value: Literal[1, "a"]
        maybe: Literal[1, "a"] | None = None

    schema = plain_schema(Mixed)
    assert schema is not None
    assert schema["properties"]["value"] == {"enum": [1, "a"]}
    assert schema["properties"]["maybe"] == {"enum": [1, "a", None]}


class EitherOr(BaseModel):
    """A union of objects."""

    either: Inner | Node


class Pair(BaseModel):
    """A tuple has no items."""

    pair: tuple[int, str]


class Anything(BaseModel):
    """A value of any type."""

    value: Any


@pytest.mark.parametrize("schema", [Node, Free, EitherOr, Pair, Anything])
def test_what_plain_schema_cannot_say(schema: type[BaseModel]) -> None:
    """Recursion, unions of objects, free keys, tuples and anything at all are None."""
    assert plain_schema(schema) is None


def test_full_schema_keeps_words_and_drops_titles() -> None:
    """In the prompt descriptions and bounds stay, titles, defaults and examples go, fields of those names stay."""
    text = full_schema(Everything)
    assert '"description":"a text"' in text
    assert '"minLength":1' in text
    assert '"title":{"type":"string"}' in text
    assert '"examples"' not in text
    assert '"default"' not in text
    assert '"title":"Text"' not in text


def test_with_schema_copies() -> None:
    """The messages that were given stay as they are."""
    messages = [{"role": "system", "content": "a"}]
    assert with_schema(messages, Inner)[0]["content"].startswith("a\n\n")
    assert messages == [{"role": "system", "content": "a"}]


def test_texts_of_messages() -> None:
    """Texts and parts are found; what is none is left out."""
    parts = [{"type": "text", "text": "b"}, {"type": "image_url"}, "c"]
    assert texts([{"content": "a"}, {"content": parts}, {"content": None}]) == ["a", "b", ""]


class Opaque(BaseModel):
    """Holds what JSON schema has no word for."""

    call: Callable[[], None]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (RootModel[list[str]], r"RootModel\[list\[str\]\] is a RootModel"),
        (Opaque, "Opaque has no JSON schema: Cannot generate"),
        ({"type": "object"}, "expected a pydantic model class, not a dict"),
        (str, "expected a pydantic model class, not str"),
        (BaseModel, "expected a pydantic model class with fields"),
    ],
)
def test_what_no_model_can_be_asked_for_is_refused_by_name(schema: Any, words: str) -> None:
    """What is no pydantic model of fields, or has no JSON schema, is refused before anything is sent."""
    played = play([], schema=schema)
    assert isinstance(played.error, InvalidInputError)
    assert re.match(words, str(played.error))
    assert played.requests == []
    with pytest.raises(InvalidInputError, match=words):
        Tool("x", "", schema, _nothing)


async def _nothing(arguments: Any) -> str:
    return ""


def test_texts_of_every_kind_of_call() -> None:
    """Arguments of functions, inputs of custom tools, and calls that have neither."""
    calls: list[dict[str, Any]] = [
        {"function": {"name": "add", "arguments": "{}"}},
        {"type": "custom", "custom": {"name": "note", "input": "Plays go"}},
        {"type": "custom"},
    ]
    assert texts([{"role": "assistant", "tool_calls": calls}]) == ["{}", "Plays go", ""]


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    """Holds one thing."""

    memory_ids: T


class Öffnung(BaseModel):
    """A name with a letter that providers take none of."""

    memory_ids: list[str]


class Strange(BaseModel):
    """A base that wants to know a colour of every class below it."""

    memory_ids: list[str]

    def __init_subclass__(cls, *, colour: str) -> None:
        """Of no use."""


class Ä(Strange, colour="red"):
    """One of these."""


class ÖÄ(BaseModel):
    """A name without any letter that is taken."""


Long = create_model("A" * 99, memory_ids=(str, ...))


NAMES: dict[str, type[BaseModel]] = {"Box_list_str": Box[list[str]], "ffnung": Öffnung, "Inner": Inner}


@pytest.mark.parametrize("name", NAMES)
def test_name_of_a_format_is_one_that_providers_take(name: str) -> None:
    """A generic class and one with other letters go out under a safe name, on both tiers that send one."""
    schema = NAMES[name]
    assert safe_name(schema) == name
    named = safely_named(schema)
    assert (named.__name__, named.__doc__) == (name, schema.__doc__)
    assert issubclass(named, schema)
    assert full_schema(named) == full_schema(schema)
    assert plain_schema(named) == plain_schema(schema)


def test_formats_carry_safe_names_and_the_value_is_of_the_class_asked_for() -> None:
    """The name is the wire's alone."""
    from asyncmem.settings import LLMSettings

    from .play import context, reply

    wanted: Any = Box[list[str]]
    native = play([reply()], schema=wanted)
    assert getattr(native.requests[0].response_format, "__name__", "") == "Box_list_str"
    assert native.value is not None
    assert type(native.value.value) is wanted
    plain = play([reply()], context(settings=LLMSettings(tier="json_schema")), Box[list[str]])
    given: Any = plain.requests[0].response_format
    assert given["json_schema"]["name"] == "Box_list_str"


def test_long_and_empty_names() -> None:
    """A name is cut at 64 characters; of one without a usable letter nothing remains but a word."""
    assert safe_name(Long) == "A" * 64
    assert safe_name(ÖÄ) == "Schema"
    assert safely_named(Ä) is Ä
