"""Memories for OpenAI's Agents SDK (``pip install "asyncmem[openai-agents]"``): tools, and instructions."""

from collections.abc import Awaitable, Callable
from typing import Any, Unpack

from asyncmem import ConfigurationError, MemoryManager

from .owned import OwnedTools, Spec, ToolOptions, Whose, told

try:
    from agents import Agent, FunctionTool, RunContextWrapper
except ImportError as _error:
    raise ConfigurationError(
        'asyncmem.interfaces.agents_sdk needs the Agents SDK: pip install "asyncmem[openai-agents]"'
    ) from _error


def memory_function_tools(
    manager: MemoryManager, *, user_id: Whose, **options: Unpack[ToolOptions]
) -> list[FunctionTool]:
    """The memory tools for ``Agent(tools=...)``.

    Args:
        manager: keeps the memories; stays the caller's to close.
        user_id: whose; or a function that is given the context of the run (``Runner.run(context=...)``) and tells it.
        options: further arguments of ``memory_tools``.

    Raises:
        ConfigurationError: an option can't be used.
        InvalidIdError: the user can't be used; in a run too, when its context tells of none.
    """
    owned = OwnedTools(manager, user_id, options)
    return [_tool(owned, spec) for spec in owned.specs]


def _tool(owned: OwnedTools, spec: Spec) -> FunctionTool:
    async def invoke(context: RunContextWrapper[Any], arguments: str) -> str:
        return await owned.of(context.context).call(spec.name, arguments)

    return FunctionTool(spec.name, spec.description, spec.parameters, invoke, strict_json_schema=False)


def memory_instructions(
    manager: MemoryManager, instructions: str = "", *, user_id: Whose, max_tokens: int = 1000
) -> Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]:
    """Instructions for ``Agent(instructions=...)`` that end with what is known of the user.

    Args:
        manager: keeps the memories.
        instructions: what the agent is told besides.
        user_id: as for the tools.
        max_tokens: estimated tokens of the memories shown.
    """

    async def instruct(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        del agent
        return await told(manager, user_id, context.context, instructions, max_tokens)

    return instruct
