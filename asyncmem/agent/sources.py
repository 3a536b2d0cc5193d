"""Where an agent's memory comes from: a manager by its switches, or a learning machine by its modes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..background import turns_of
from ..learning import LearningMachine
from ..llm import Tool
from ..manager import MemoryManager
from ..modes import LearningMode
from ..session_values import Terms
from ..task_tools import task_tool
from ..toolbox import memory_tools
from ..types import Message, clean_scope
from .recalling import Recalled, recalled
from .results import Ticket


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
    """What an agent needs of its memory.

    Attributes:
        manager: keeps it.
        captures: what is said in runs is captured.
        terms: how.
    """

    manager: MemoryManager
    captures: bool
    terms: Terms

    @abstractmethod
    async def recall(self, user_id: str, message: str) -> Recalled:
        """What a prompt is given of a user's memories."""

    @abstractmethod
    def tools(self, user_id: str) -> list[Tool[Any]]:
        """The tools that the model has on a user's memories."""

    @abstractmethod
    async def schedule(
        self, messages: Sequence[Message], user_id: str, terms: Terms | None, erasures: int
    ) -> list[Ticket]:
        """Have a conversation captured in the background.

        Args:
            messages: what was said.
            user_id: by whom.
            terms: the agent and the team that are recorded; the source's own if they are not known.
            erasures: nothing is captured if the user was erased more often by now.
        """


class ManagerSource(Source):
    """A manager's memories."""

    def __init__(self, manager: MemoryManager, switches: Switches) -> None:
        self.manager: MemoryManager = manager
        self._switches = switches
        self.captures: bool = switches.capture
        self.terms: Terms = Terms(switches.agent_id, switches.team_id, f"memory {LearningMode.ALWAYS}")

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

    async def schedule(
        self, messages: Sequence[Message], user_id: str, terms: Terms | None, erasures: int
    ) -> list[Ticket]:
        """One durable write."""
        known = terms or self.terms
        scope = clean_scope(user_id, known.agent_id, known.team_id)
        return [await self.manager.schedule_turns(await turns_of(messages), scope, None, erasures=erasures)]


class LearningSource(Source):
    """A learning machine: its modes decide what is captured, and which tools there are."""

    def __init__(self, machine: LearningMachine[Any], agent_id: str | None, team_id: str | None) -> None:
        self.manager: MemoryManager = machine.manager
        self.captures: bool = bool(machine.captures)
        self.terms: Terms = Terms(agent_id, team_id, ", ".join(machine.captures))
        self._machine = machine
        self._agent_id = agent_id
        self._team_id = team_id

    async def recall(self, user_id: str, message: str) -> Recalled:
        """Memories and profile, as the machine is configured."""

        async def build(query: str | None) -> str:
            return await self._machine.build_context(user_id=user_id, query=query)

        async def count() -> int:
            return await self.manager.count_user_memories(user_id=user_id)

        return await recalled(build, count, message)

    def tools(self, user_id: str) -> list[Tool[Any]]:
        """Those of what is learnt by tools."""
        return self._machine.get_tools(user_id=user_id, agent_id=self._agent_id, team_id=self._team_id).tools()

    async def schedule(
        self, messages: Sequence[Message], user_id: str, terms: Terms | None, erasures: int
    ) -> list[Ticket]:
        """What is not learnt by tools."""
        known = terms or self.terms
        scope = clean_scope(user_id, known.agent_id, known.team_id)
        tickets = await self._machine.schedule_turns(await turns_of(messages), scope, erasures=erasures)
        return [] if tickets.memory is None and tickets.profile is None else [tickets]
