"""Where an agent's memory comes from: a manager by its switches."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..llm import Tool
from ..manager import MemoryManager
from ..task_tools import task_tool
from ..tickets import CaptureTicket
from ..toolbox import memory_tools
from ..types import Message
from .recalling import Recalled, recalled


@dataclass(frozen=True, slots=True)
class Switches:
    """What an agent does with a manager's memories.

    Attributes:
        task: it has ``update_user_memory(task)``.
        tools: it has the memory tools that the manager's flags allow.
        capture: its runs are captured.
        context_tokens: estimated tokens that the memories in a prompt may have.
        agent_id: recorded on what is added.
        team_id: recorded on what is added.
    """

    task: bool = False
    tools: bool = False
    capture: bool = False
    context_tokens: int = 1000
    agent_id: str | None = None
    team_id: str | None = None


class Source(ABC):
    """What an agent needs of its memory."""

    manager: MemoryManager
    captures: bool

    @abstractmethod
    async def recall(self, user_id: str, message: str) -> Recalled:
        """What a prompt is given of a user's memories."""

    @abstractmethod
    def tools(self, user_id: str) -> list[Tool[Any]]:
        """The tools that the model has on a user's memories."""

    @abstractmethod
    async def schedule(self, messages: Sequence[Message], user_id: str) -> list[CaptureTicket]:
        """Have a conversation captured in the background."""


class ManagerSource(Source):
    """A manager's memories."""

    def __init__(self, manager: MemoryManager, switches: Switches) -> None:
        self.manager = manager
        self._switches = switches
        self.captures = switches.capture

    async def recall(self, user_id: str, message: str) -> Recalled:
        """The user's memories."""
        manager, most = self.manager, self._switches.context_tokens

        async def build(query: str | None) -> str:
            return await manager.build_context(user_id=user_id, query=query, max_tokens=most)

        async def count() -> int:
            return await manager.count_user_memories(user_id=user_id)

        return await recalled(build, count, message)

    def tools(self, user_id: str) -> list[Tool[Any]]:
        """By the switches."""
        found: list[Tool[Any]] = []
        wrote = {"agent_id": self._switches.agent_id, "team_id": self._switches.team_id}
        if self._switches.task:
            found.append(task_tool(self.manager, user_id=user_id, **wrote))
        if self._switches.tools:
            allowed = {name: name in self.manager.operations for name in ("add", "update", "delete", "clear")}
            found += memory_tools(self.manager, user_id=user_id, **allowed, **wrote).tools()  # type: ignore[arg-type]
        return found

    async def schedule(self, messages: Sequence[Message], user_id: str) -> list[CaptureTicket]:
        """One durable write."""
        agent_id, team_id = self._switches.agent_id, self._switches.team_id
        return [await self.manager.schedule(list(messages), user_id=user_id, agent_id=agent_id, team_id=team_id)]
