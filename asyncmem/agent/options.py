"""What an agent may be told, checked when it is made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from ..cleaning import clean_id
from ..errors import ConfigurationError
from ..learning import LearningMachine
from ..llm import Tool
from ..manager import MemoryManager
from ..settings import LLMSettings
from .functions import to_tool
from .sources import LearningSource, ManagerSource, Source, Switches

OnContextFailure = Literal["answer", "raise"]
MAX_TOKENS = 1_000_000
"""The largest budget that makes sense."""


@dataclass(frozen=True, slots=True)
class Options:
    """How an agent answers.

    Attributes:
        instructions: stand at the beginning of the prompt.
        tools: the application's.
        max_rounds: replies that the model may give in one run.
        max_calls: tool calls that are carried out in one run.
        history_tokens: estimated tokens of a session that a prompt shows.
        on_context_failure: what happens to a run whose memories can't be read.
    """

    instructions: str | None
    tools: Sequence[Tool[Any]]
    max_rounds: int
    max_calls: int
    history_tokens: int
    on_context_failure: OnContextFailure

    def __post_init__(self) -> None:
        check_kind("instructions", self.instructions, str, optional=True)
        for name in ("max_rounds", "max_calls", "history_tokens"):
            check_count(name, getattr(self, name))
        if self.on_context_failure not in ("answer", "raise"):
            raise ConfigurationError("on_context_failure must be 'answer' or 'raise'")


def to_tools(given: object) -> list[Tool[Any]]:
    """The application's tools.

    Raises:
        ConfigurationError: one is none, or two have the same name.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise ConfigurationError(f"tools must be a list of async functions, not a {type(given).__name__}")
    tools = [to_tool(one) for one in cast("Sequence[object]", given)]
    check_names(tools)
    return tools


def check_names(tools: Sequence[Tool[Any]]) -> None:
    """Check that each tool has a name of its own.

    Raises:
        ConfigurationError: two share one.
    """
    names = [tool.name for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"two tools are named {name}: rename one, or switch the memory tool off")


def to_source(
    memory_manager: object,
    learning: object,
    *,
    enable_agentic_memory: object,
    memory_tools: object,
    update_memory_on_run: object,
    context_tokens: object,
    agent_id: object,
    team_id: object,
) -> Source | None:
    """Where the agent's memory comes from; ``None`` for an agent without.

    Raises:
        ConfigurationError: an option can't be used, or needs another one.
        InvalidIdError: an id can't be used.
    """
    switches = {
        "enable_agentic_memory": enable_agentic_memory,
        "memory_tools": memory_tools,
        "update_memory_on_run": update_memory_on_run,
    }
    for name, flag in switches.items():
        check_kind(name, flag, bool)
    check_kind("memory_manager", memory_manager, MemoryManager, optional=True)
    check_kind("learning", learning, LearningMachine, optional=True)
    room = check_count("context_tokens", context_tokens)
    agent, team = _clean_optional("agent_id", agent_id), _clean_optional("team_id", team_id)
    on = [name for name, flag in switches.items() if flag]
    if isinstance(learning, LearningMachine):
        if memory_manager is not None or on:
            raise ConfigurationError("learning decides by its modes: leave memory_manager and its switches out")
        return LearningSource(learning, agent, team)  # pyright: ignore[reportUnknownArgumentType]  of any schema
    if isinstance(memory_manager, MemoryManager):
        task, tools, capture = map(bool, switches.values())
        return ManagerSource(memory_manager, Switches(task, tools, capture, room, agent, team))
    if on:
        verb = "needs" if len(on) == 1 else "need"
        raise ConfigurationError(f"{' and '.join(on)} {verb} memory_manager: pass a MemoryManager")
    return None


def _clean_optional(name: str, given: object) -> str | None:
    return None if given is None else clean_id(given, name)


def check_kind(name: str, given: object, kind: type, *, optional: bool = False) -> None:
    """Check an option's type.

    Raises:
        ConfigurationError: it has another one.
    """
    if not isinstance(given, kind) and not (optional and given is None):
        raise ConfigurationError(f"{name} must be a {kind.__name__}, not a {type(given).__name__}")


def check_count(name: str, given: object) -> int:
    """The option, if it is a count.

    Raises:
        ConfigurationError: it is not.
    """
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MAX_TOKENS:
        raise ConfigurationError(f"{name} must be an int from 1 to {MAX_TOKENS:,}")
    return given


def check_llm(given: object) -> LLMSettings:
    """How the model is called.

    Raises:
        ConfigurationError: it is something else.
    """
    check_kind("llm", given, LLMSettings, optional=True)
    return given if isinstance(given, LLMSettings) else LLMSettings()
