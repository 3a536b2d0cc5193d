"""Memories for Pydantic AI (``pip install "asyncmem[pydantic-ai]"``): a toolset, and instructions."""

from collections.abc import Awaitable, Callable
from typing import Any, Unpack

from asyncmem import ConfigurationError, MemoryManager

from .owned import OwnedTools, Spec, ToolOptions, Whose, told

try:
    from pydantic_ai import RunContext, Tool
    from pydantic_ai.toolsets import FunctionToolset
except ImportError as _error:
    raise ConfigurationError(
        'asyncmem.interfaces.pydantic_ai needs Pydantic AI: pip install "asyncmem[pydantic-ai]"'
    ) from _error


def memory_toolset(manager: MemoryManager, *, user_id: Whose, **options: Unpack[ToolOptions]) -> FunctionToolset[Any]:
    """The memory tools for ``Agent(toolsets=[...])``.

    Args:
        manager: keeps the memories; stays the caller's to close.
        user_id: whose; or a function that is given the dependencies of the run (``agent.run(deps=...)``) and tells it.
        options: further arguments of ``memory_tools``.

    Raises:
        ConfigurationError: an option can't be used.
        InvalidIdError: the user can't be used; in a run too, when its dependencies tell of none.
    """
    owned = OwnedTools(manager, user_id, options)
    return FunctionToolset([_tool(owned, spec) for spec in owned.specs])


def _tool(owned: OwnedTools, spec: Spec) -> Tool[Any]:
    async def invoke(context: RunContext[Any], /, **arguments: Any) -> str:
        return await owned.of(context.deps).call(spec.name, arguments)

    return Tool[Any].from_schema(invoke, spec.name, spec.description, spec.parameters, takes_ctx=True)


def memory_instructions(
    manager: MemoryManager, instructions: str = "", *, user_id: Whose, max_tokens: int = 1000
) -> Callable[[RunContext[Any]], Awaitable[str]]:
    """Instructions for ``Agent(instructions=...)`` that end with what is known of the user.

    Args:
        manager: keeps the memories.
        instructions: what the agent is told besides.
        user_id: as for the toolset.
        max_tokens: estimated tokens of the memories shown.
    """

    async def instruct(context: RunContext[Any]) -> str:
        return await told(manager, user_id, context.deps, instructions, max_tokens)

    return instruct
