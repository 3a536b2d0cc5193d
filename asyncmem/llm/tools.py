"""Tools: what they are, how a call of one is read and answered, and the plan that stands in where a model has none."""

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import GenericAlias, NoneType
from typing import Any, Generic, Literal, TypeVar, cast, get_args

from pydantic import AliasChoices, BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from asyncmem.errors import InvalidInputError
from asyncmem.types import Tier
from asyncmem.usage import Usage

from .chat import ToolCall, WireMessage
from .checking import listed
from .halves import mended
from .parsing import read_arguments
from .schemas import check_schema, full_schema

A = TypeVar("A", bound=BaseModel)
P = TypeVar("P", bound=BaseModel)

Stopped = Literal["answer", "rounds", "calls"]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """One thing that a model may do.

    Attributes:
        name: what the model calls it.
        description: when and how to use it.
        arguments: a pydantic model of what it takes.
        run: does it, and returns what the model is told. An exception it raises ends the run.
        reads: it changes nothing, so an identical call is carried out again: its answer may be another by then.

    Raises:
        InvalidInputError: a model can't be asked for these arguments, providers refuse the name, or ``run`` is no
            async function.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A], Awaitable[str]] = field(repr=False)
    reads: bool = False

    def __post_init__(self) -> None:
        name = cast("object", self.name)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInputError(f"a tool's name is 1 to 64 of a-z, A-Z, 0-9, '_' and '-', not {name!r}")
        if _is_sync(self.run):
            raise InvalidInputError(f"the run of the tool {name} must be an async function: write it with 'async def'")
        check_schema(self.arguments)

    def spec(self) -> dict[str, Any]:
        """The tool in OpenAI's shape."""
        described = json.loads(full_schema(self.arguments))
        function = {"name": self.name, "description": self.description, "parameters": described}
        return {"type": "function", "function": function}


AnyTool = Tool[Any]


def _is_sync(run: object) -> bool:
    """Whether it can be seen that a call gives no awaitable: of an object that is callable, only the call shows it."""
    function = inspect.unwrap(run) if callable(run) else run
    while isinstance(function, partial):
        function = inspect.unwrap(cast("partial[object]", function).func)
    if not inspect.isroutine(function) or getattr(function, "__name__", "") == "<lambda>":
        return not callable(function)
    return not inspect.iscoroutinefunction(function)


def check_tools(tools: Sequence[AnyTool]) -> None:
    """They are tools, each of a name of its own.

    Raises:
        InvalidInputError: they are not.
    """
    names: list[str] = []
    for tool in listed(tools, "tools must be a list of Tool values"):
        if not isinstance(tool, Tool):
            raise InvalidInputError(f"tools must be a list of Tool values: one is a {type(tool).__name__}")
        names.append(tool.name)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInputError(f"two tools have the same name: {', '.join(twice)}")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One call of a tool and what came of it. Its ``repr`` shows nothing that the model wrote.

    Attributes:
        name: which tool, as the model named it.
        arguments: what it was called with; ``None`` when that could not be read.
        answer: what the model was told.
        repeated: an identical call was made before: this one was not carried out.
    """

    name: str
    arguments: BaseModel | None = field(repr=False)
    answer: str = field(repr=False)
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What a model did with tools. Its ``repr`` shows nothing that the model wrote.

    Attributes:
        answer: its last words; ``None`` when it had none.
        results: every call, in order.
        messages: the conversation, with the turns that this run added.
        usage: all model calls.
        rounds: replies of the model.
        stopped: why it ended: the model answered, or a bound was reached.
        tier: the step of the ladder that gave the plan; ``None`` when the model took tools.
    """

    answer: str | None = field(repr=False)
    results: list[ToolResult]
    messages: list[WireMessage] = field(repr=False)
    usage: Usage = field(default_factory=Usage)
    rounds: int = 1
    stopped: Stopped = "answer"
    tier: Tier | None = None


class Toolbox:
    """Carries out the calls of one run: each identical one that may write once, and at most so many."""

    def __init__(self, tools: Sequence[AnyTool], max_calls: int) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._left = max_calls
        self._done: dict[tuple[str, str], str] = {}
        self.results: list[ToolResult] = []

    @property
    def is_spent(self) -> bool:
        """No further call will be carried out."""
        return self._left <= 0

    async def answer(self, call: ToolCall) -> str:
        """Carry out the call; what the model is told, be it that the call made no sense."""
        result = await self._carry_out(call)
        self.results.append(result)
        return result.answer

    async def _carry_out(self, call: ToolCall) -> ToolResult:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools)
            return ToolResult(call.name, None, f"Error: there is no tool of that name. There are: {known}")
        reading = read_arguments(call.arguments, tool.arguments)
        if reading.value is None:
            return ToolResult(call.name, None, f"Error: the arguments can't be used: {reading.problem}")
        arguments: BaseModel = reading.value
        same = (call.name, arguments.model_dump_json())
        if same in self._done and not tool.reads:
            return ToolResult(call.name, arguments, self._done[same], repeated=True)
        if self.is_spent:
            return ToolResult(call.name, None, "Error: no further calls are allowed")
        self._left -= 1
        given: object = tool.run(arguments)
        if not inspect.isawaitable(given):
            raise InvalidInputError(f"the run of the tool {tool.name} must be async: its call gave no awaitable")
        self._done[same] = mended(await given)
        return ToolResult(call.name, arguments, self._done[same])


def plan_schema(tools: Sequence[AnyTool]) -> type[BaseModel]:
    """A model of a list of calls, flat, so that every step of the ladder can say it: small models do better so.

    An argument that two tools declare differently may be anything there, and is checked by the tool's own model.
    """
    return _plan_schema(tuple((tool.name, tool.arguments) for tool in tools))


@lru_cache(maxsize=64)
def _plan_schema(tools: tuple[tuple[str, type[BaseModel]], ...]) -> type[BaseModel]:
    names = tuple(name for name, _ in tools)
    fields: dict[str, Any] = {"tool": (Literal[names], ...)}
    for _, arguments in tools:
        for name, key in _keys(arguments).items():
            kind: Any = arguments.model_fields[name].annotation
            before = fields.get(f"argument_{key}")
            same = before is None or before[0] == kind | None
            fields[f"argument_{key}"] = (kind | None if same else Any, Field(None, alias=key))
    actions: Any = GenericAlias(list, (create_model("Action", **fields),))
    return create_model("Plan", actions=(actions, ...), answer=(str | None, None))


def _keys(arguments: type[BaseModel]) -> dict[str, str]:
    """What each argument is called in a plan, by its field: its alias, if it has one; ``tool`` is taken."""
    shown = {name: _shown(name, declared) for name, declared in arguments.model_fields.items()}
    return {name: "tool_argument" if key == "tool" else key for name, key in shown.items()}


def _shown(name: str, declared: FieldInfo) -> str:
    """What a field is called in the JSON schema."""
    alias = declared.validation_alias
    first = alias.choices[0] if isinstance(alias, AliasChoices) else alias
    return first if isinstance(first, str) else name


def plan_prompt(tools: Sequence[AnyTool]) -> str:
    """What the tools are, for a model that gets them in words."""
    lines = [f"- {tool.name}: {tool.description} Arguments: {_arguments(tool)}" for tool in tools]
    return (
        'You have no tools here. Instead, write down every call that you would make, in order, as "actions":'
        ' each names its "tool" and has that tool\'s arguments beside the name. No action is a good answer too.'
        ' Put what you would say into "answer".\nTools:\n' + "\n".join(lines)
    )


def _arguments(tool: AnyTool) -> str:
    arguments: type[BaseModel] = tool.arguments
    renamed = ' (write "tool" as "tool_argument")' if "tool_argument" in _keys(arguments).values() else ""
    return full_schema(arguments) + renamed


def plan_calls(plan: BaseModel, tools: Sequence[AnyTool]) -> list[ToolCall]:
    """The calls that a plan consists of. What is null was left out, unless it has to be given."""
    arguments: dict[str, type[BaseModel]] = {tool.name: tool.arguments for tool in tools}
    told: list[dict[str, Any]] = plan.model_dump(mode="json", by_alias=True)["actions"]
    return [
        ToolCall(f"action_{i}", action["tool"], json.dumps(_given(action, arguments[action["tool"]])))
        for i, action in enumerate(told, 1)
    ]


def _given(action: dict[str, Any], arguments: type[BaseModel]) -> dict[str, Any]:
    """The arguments of a planned call, as the tool's own model calls them."""
    fields = arguments.model_fields
    return {
        _shown(name, fields[name]): action[key]
        for name, key in _keys(arguments).items()
        if action[key] is not None or (fields[name].is_required() and NoneType in get_args(fields[name].annotation))
    }
