"""Functions as tools: what a model is asked for, what is refused, what it is told."""

from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from asyncmem import ConfigurationError
from asyncmem.agent.functions import MAX_ANSWER, to_tool, told

pytestmark = pytest.mark.anyio


class Unit(Enum):
    """How warm it is."""

    C = "celsius"
    F = "fahrenheit"


class Place(BaseModel):
    """Where."""

    city: str


async def weather(
    place: Place, days: Annotated[int, Field(ge=1, le=7, description="How many days.")] = 1, unit: Unit = Unit.C
) -> dict[str, Any]:
    """The weather forecast.

    For any place.
    """
    return {"city": place.city, "days": days, "unit": unit.value}


async def test_a_function_becomes_a_tool() -> None:
    """Name, docstring, type hints, descriptions, bounds and defaults of a function are what a model is offered."""
    tool = to_tool(weather)
    function = tool.spec()["function"]
    assert (function["name"], function["description"]) == ("weather", "The weather forecast.\n\nFor any place.")
    parameters = function["parameters"]
    assert parameters["required"] == ["place"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["days"] == {
        "description": "How many days.",
        "maximum": 7,
        "minimum": 1,
        "type": "integer",
    }
    read = tool.arguments.model_validate({"place": {"city": "Porto"}, "unit": "fahrenheit"})
    assert await tool.run(read) == '{"city":"Porto","days":1,"unit":"fahrenheit"}'


class Shop:
    """An object with an async method, and an async call."""

    async def order(self, article: str) -> None:
        """Order it."""

    def sell(self, article: str) -> None:
        """Sell it."""


async def test_methods_are_tools_as_well() -> None:
    """A bound method is offered without self, and one that returns nothing is told as done."""
    tool = to_tool(Shop().order)
    assert list(tool.arguments.model_fields) == ["article"]
    assert await tool.run(tool.arguments(article="tea")) == "Done."


def test_a_tool_stays_what_it_is() -> None:
    """A ``Tool`` is taken as it is."""
    tool = to_tool(weather)
    assert to_tool(tool) is tool


def plain(city: str) -> str:
    """Not async."""
    return city


async def untyped(city) -> str:  # type: ignore[no-untyped-def]
    """No hint."""
    return str(city)


async def many(*cities: str) -> str:
    """Any number."""
    return ""


async def free(**more: str) -> str:
    """Any name."""
    return ""


async def private(_city: str) -> str:
    """A name that pydantic has no field for."""
    return ""


async def copied(copy: str) -> str:
    """A name that pydantic uses itself."""
    return ""


async def unknown(city: "NoSuchType") -> str:  # type: ignore[name-defined]  # noqa: F821
    """A hint that is nowhere."""
    return ""


async def odd(shop: Shop) -> str:
    """A type that JSON has no schema for."""
    return ""


async def nothing() -> None:
    return None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (plain, "plain must be an async function"),
        (Shop().sell, "sell must be an async function"),
        ("weather", "not a str"),
        (Shop, "not a type"),
        (3, "not a int"),
        (untyped, "city of the tool untyped has no type hint"),
        (many, r"\*args"),
        (free, r"\*args"),
        (private, "argument named _city"),
        (copied, "argument named copy"),
        (unknown, "can't be resolved: NoSuchType"),
        (odd, "odd"),
        (partial(weather, days=2), "name of its own"),
    ],
)
def test_what_is_no_tool_is_refused_by_name(given: object, says: str) -> None:
    """Whatever a model could not be offered is a typed error that names the function and what to do."""
    with pytest.raises(ConfigurationError, match=says):
        to_tool(given)


def test_a_function_without_words_is_described_by_its_name() -> None:
    """Without a docstring the name has to do, and no arguments are an empty object."""
    tool = to_tool(nothing)
    assert tool.description == "nothing"
    assert tool.spec()["function"]["parameters"]["properties"] == {}


class Forecast(BaseModel):
    """What a tool returns."""

    sunny: bool
    unit: Literal["c", "f"] = "c"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("as it is", "as it is"),
        (None, "Done."),
        (Forecast(sunny=True), '{"sunny":true,"unit":"c"}'),
        ([1, {"a": "ü"}], '[1,{"a":"ü"}]'),
        ("x" * (MAX_ANSWER + 1_500), "x" * MAX_ANSWER + "\n[cut: 1,500 characters more]"),
    ],
)
def test_what_a_model_is_told(value: object, says: str) -> None:
    """Text is told as it is, nothing as done, all else as JSON, and what is too long is cut and says so."""
    assert told(value) == says


def test_what_json_has_no_word_for_is_an_error() -> None:
    """A return value that JSON can't hold raises, as any other mistake of a tool does."""
    with pytest.raises(TypeError, match="not a Shop"):
        told(Shop())
