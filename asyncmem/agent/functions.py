"""The application's own functions as tools: what a model may call them with, and what it is told."""

import inspect
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ClassVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_json

from ..errors import ConfigurationError, InvalidInputError
from ..llm import Tool

AsyncFunction = Callable[..., Awaitable[object]]
MAX_ANSWER = 32_000
"""Characters of what a tool returns that a model is shown."""
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")


class Arguments(BaseModel):
    """What a function is called with."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", hide_input_in_errors=True)


def to_tool(given: object) -> Tool[Any]:
    """The tool that an async function is; a ``Tool`` as it is.

    Its name is the function's, its description the docstring, its arguments the parameters with their type hints.

    Raises:
        ConfigurationError: it is something else, or a model can't be asked for its arguments.
    """
    if isinstance(given, Tool):
        return given  # pyright: ignore[reportUnknownVariableType]
    name = getattr(given, "__name__", "")
    if not callable(given) or isinstance(given, type):
        raise ConfigurationError(f"tools must be async functions or Tool values, not a {type(given).__name__}")
    if not inspect.iscoroutinefunction(given):
        raise ConfigurationError(f"the tool {name} must be an async function: write it with 'async def'")
    if not _NAME.match(name):
        raise ConfigurationError(f"a tool needs a name of its own, 1 to 64 letters, digits, '_' or '-', not {name!r}")
    function = cast("AsyncFunction", given)
    description = inspect.getdoc(given) or name.replace("_", " ")
    try:
        return Tool(name, description, _arguments(name, function), partial(_called, function))
    except InvalidInputError as error:
        raise ConfigurationError(f"the tool {name} can't be offered to a model: {error}") from None


def _arguments(name: str, function: Callable[..., Any]) -> type[Arguments]:
    """A pydantic model of a function's parameters."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ConfigurationError(f"the tool {name} has a type hint that can't be resolved: {error.name}") from None
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigurationError(f"the tool {name} takes *args, **kwargs or arguments by position alone: name each")
        if parameter.name not in hints:
            raise ConfigurationError(f"the argument {parameter.name} of the tool {name} has no type hint: give it one")
        if parameter.name.startswith(("_", "model_")) or hasattr(BaseModel, parameter.name):
            raise ConfigurationError(f"the tool {name} can't have an argument named {parameter.name}: rename it")
        default = Field() if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    try:
        return create_model(f"{name}_arguments", __base__=Arguments, **fields)
    except PydanticUserError as error:
        raise ConfigurationError(
            f"the tool {name} has an argument that pydantic can't check: {error.message}"
        ) from None


async def _called(function: AsyncFunction, arguments: Arguments) -> str:
    given = {name: getattr(arguments, name) for name in type(arguments).model_fields}
    return told(await function(**given))


def told(value: object) -> str:
    """What a model is told of a function's return value: text as it is, anything else as JSON.

    Raises:
        TypeError: JSON can't hold it.
    """
    if value is None:
        return "Done."
    try:
        text = value if isinstance(value, str) else to_json(value).decode()
    except PydanticSerializationError:
        raise TypeError(f"a tool must return text or what JSON can hold, not a {type(value).__name__}") from None
    if len(text) > MAX_ANSWER:
        return f"{text[:MAX_ANSWER]}\n[cut: {len(text) - MAX_ANSWER:,} characters more]"
    return text
