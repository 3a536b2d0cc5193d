"""LearningMachine: what an application learns about its users, and how much of it by itself. Wiring only."""

from collections.abc import Sequence
from typing import Any, Generic, cast
from uuid import uuid4

from ..background import Background, turns_of
from ..cleaning import clean_id, clean_timeout
from ..errors import ConfigurationError
from ..fingerprints import key_print
from ..llm import Tool
from ..manager import MemoryManager
from ..messages import Turn
from ..modes import LearningMode, clean_mode
from ..profile_values import ProfileResult
from ..proposal_values import Proposal, ProposalStatus
from ..task_tools import task_tool
from ..tickets import CaptureTicket, ProfileTicket, done_already, unknown
from ..types import CaptureResult, QueueStatus, Scope, clean_scope
from .carrying import ProfileCapturer
from .config import S_co, UserMemoryConfig, UserProfileConfig, captured, to_config
from .memories import UserMemoryStore
from .profile import UserProfileStore
from .proposed import ProposalDesk
from .results import LearningResult, LearningTickets, ProposalDecision
from .tools import LearningTools, profile_tool


class LearningMachine(Generic[S_co]):
    """What an application learns about its users: memories, a profile, or both, each in a mode of its own.

    Args:
        manager: keeps it all in its one database, and reads conversations with its model; stays the caller's to close.
        user_memory: learn memories; ``True`` for the defaults.
        user_profile: learn a profile; ``True`` for the defaults.

    Raises:
        ConfigurationError: neither is on, or an option can't be used.
    """

    def __init__(
        self,
        manager: MemoryManager,
        *,
        user_memory: bool | UserMemoryConfig = False,
        user_profile: bool | UserProfileConfig[S_co] = False,
    ) -> None:
        if not isinstance(cast("object", manager), MemoryManager):
            raise ConfigurationError(f"expected a MemoryManager, not a {type(manager).__name__}")
        self._manager = manager
        self._memory = to_config(user_memory, UserMemoryConfig, "user_memory")
        self._profile: UserProfileConfig[S_co] | None = to_config(user_profile, UserProfileConfig, "user_profile")
        if self._memory is None and self._profile is None:
            raise ConfigurationError("a LearningMachine needs user_memory=, user_profile= or both")
        self._memories = None if self._memory is None else UserMemoryStore(manager, self._memory)
        self._profiles = None if self._profile is None else UserProfileStore(manager, self._profile)
        self._desk = ProposalDesk(manager, self._profiles, self._profile)
        self._capturer: ProfileCapturer | None = None
        if self._profiles is not None and self._profile is not None:
            self._capturer = ProfileCapturer(manager, self._profiles, self._profile)
        self._background: Background | None = None

    @property
    def manager(self) -> MemoryManager:
        """Keeps it all."""
        return self._manager

    @property
    def captures(self) -> tuple[str, ...]:
        """What is learnt of conversations, each with its mode; nothing where tools learn it all."""
        return captured(self._memory, self._profile)

    @property
    def user_memory_store(self) -> UserMemoryStore:
        """The users' memories, the same that the manager has.

        Raises:
            ConfigurationError: the machine learns no memories.
        """
        if self._memories is None:
            raise ConfigurationError("this machine learns no memories: pass user_memory=True")
        return self._memories

    @property
    def user_profile_store(self) -> UserProfileStore[S_co]:
        """The users' profiles.

        Raises:
            ConfigurationError: the machine learns no profiles.
        """
        if self._profiles is None:
            raise ConfigurationError("this machine learns no profiles: pass user_profile=True")
        return self._profiles

    async def build_context(self, *, user_id: str | None = None, query: str | None = None) -> str:
        """What is known of the user for a prompt: ``<user_memory>`` and ``<user_profile>``; "" if there is nothing.

        Args:
            user_id: whose.
            query: what the prompt is about: memories that matter to it come first.

        Raises:
            ModelError: the query could not be embedded.
        """
        owner = self._manager.owner(user_id)
        blocks = [
            "" if self._memories is None else await self._memories.context(owner, query),
            "" if self._profiles is None else await self._profiles.context(owner),
        ]
        return "\n".join(block for block in blocks if block)

    def get_tools(
        self, *, user_id: str | None = None, agent_id: str | None = None, team_id: str | None = None
    ) -> LearningTools:
        """The tools for an agent: of what is learnt in the mode ``AGENTIC``, and none else.

        Args:
            user_id: whose memories and profile. No tool takes a user, and none reaches another one.
            agent_id: recorded on what is added.
            team_id: recorded on what is added.
        """
        owner = self._manager.owner(user_id)
        tools: list[Tool[Any]] = []
        if self._memory is not None and self._memory.mode == LearningMode.AGENTIC:
            tools.append(task_tool(self._manager, user_id=owner, agent_id=agent_id, team_id=team_id))
        if self._profile is not None and self._profiles is not None and self._profile.mode == LearningMode.AGENTIC:
            tools.append(profile_tool(self._profiles, self._profile.schema, owner))
        return LearningTools(tuple(tools))

    # ------------------------------------------------------------------------------------------------ learning

    async def process(
        self,
        messages: object,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        team_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> LearningTickets:
        """Store what was said, to be learnt from in the background as the modes say; tickets. No model call.

        Both is durable: workers that are killed lose nothing, and do nothing twice. ``asyncmem worker`` captures
        memories; conversations are read for a profile by processes with a machine that has it.

        Args:
            messages: one message or a list of them, as ``create_user_memories`` takes them.
            user_id: whose memories and profile.
            agent_id: recorded on what is added.
            team_id: recorded on what is added.
            idempotency_key: names this conversation: the same key again does nothing.

        Raises:
            InvalidMessageError: a message can't be read, or they take more than 4 MiB.
            BacklogFullError: too many conversations wait already.
            StoreError: it could not be stored. Call again: nothing is done twice.
        """
        turns, scope, key = await self._read(messages, user_id, agent_id, team_id, idempotency_key)
        return await self.schedule_turns(turns, scope, key)

    async def schedule_turns(
        self, turns: list[Turn], scope: Scope, key: str | None = None, *, erasures: int | None = None
    ) -> LearningTickets:
        """Schedule what was read already, as ``Background.schedule`` does: for asyncmem's own layers."""
        memory: CaptureTicket | None = None
        profile: ProfileTicket | None = None
        if self._memory is not None and self._memory.mode != LearningMode.AGENTIC:
            mode = clean_mode(self._memory.mode)
            memory = await self._manager.schedule_turns(turns, scope, key, mode=mode, erasures=erasures)
        if self._profile is not None and self._profile.mode != LearningMode.AGENTIC:
            profile = await self._schedule_profile(turns, scope, key, clean_mode(self._profile.mode), erasures)
        return LearningTickets(memory, profile)

    async def capture(
        self,
        messages: object,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        team_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> LearningResult:
        """Learn from what was said now, as the modes say; what came of it. The same again does nothing.

        Args:
            messages: one message or a list of them, as ``create_user_memories`` takes them.
            user_id: whose memories and profile.
            agent_id: recorded on what is added.
            team_id: recorded on what is added.
            idempotency_key: names this conversation: the same key again does nothing.

        Raises:
            InvalidMessageError: a message can't be read.
            ModelError: the model could not be asked.
            StoreError: the changes could not be written. Call again: nothing is done twice.
        """
        turns, scope, key = await self._read(messages, user_id, agent_id, team_id, idempotency_key)
        memory: CaptureResult | None = None
        profile: ProfileResult | None = None
        if self._memory is not None and self._memory.mode != LearningMode.AGENTIC:
            memory = await self._manager.capture_turns(turns, scope, key=key, mode=clean_mode(self._memory.mode))
        if self._capturer is not None and self._profile is not None and self._profile.mode != LearningMode.AGENTIC:
            named = None if key is None else key_print(scope, key)
            profile = await self._capturer.capture(turns, scope, named) if turns else ProfileResult()
        return LearningResult(memory, profile)

    async def drain(self, timeout: float | None = None) -> None:
        """Wait until all that is in the queues by now is done or a dead letter.

        Args:
            timeout: seconds to wait at most, for memories and for profiles each.

        Raises:
            DrainTimeoutError: some are left.
        """
        queue = await self._queue()
        await self._manager.drain(timeout)
        if queue is not None:
            await queue.drain(clean_timeout(timeout))

    async def queue_status(self) -> QueueStatus:
        """What the queue of conversations for the profile looks like; that of memories is the manager's."""
        queue = await self._queue()
        return QueueStatus() if queue is None else await queue.status()

    async def retry_dead(self, user_id: str | None = None) -> int:
        """Let conversations that could not be read for the profile wait again; how many there were.

        Args:
            user_id: whose; ``None`` is EVERY user's.
        """
        owner, queue = None if user_id is None else self._manager.owner(user_id), await self._queue()
        return 0 if queue is None else await queue.retry_dead(owner)

    async def _read(
        self, messages: object, user_id: str | None, agent_id: str | None, team_id: str | None, key: str | None
    ) -> tuple[list[Turn], Scope, str | None]:
        scope = clean_scope(self._manager.owner(user_id), agent_id, team_id)
        named = None if key is None else clean_id(key, "idempotency_key")
        return await turns_of(messages), scope, named

    async def _schedule_profile(
        self, turns: Sequence[Turn], scope: Scope, key: str | None, mode: LearningMode, erasures: int | None
    ) -> ProfileTicket:
        queue = await self._queue()
        if queue is None or not turns:
            return ProfileTicket(uuid4().hex, scope.user_id, done_already(ProfileResult()), unknown)
        name = await queue.schedule(turns, scope, key, flush=False, mode=mode, erasures=erasures)
        return ProfileTicket(name, scope.user_id, queue.outcome(name, scope.user_id), queue.look)

    async def _queue(self) -> Background | None:
        """The queue of conversations for the profile, whose workers are in this process."""
        store = await self._manager.opened()
        if self._background is None and self._capturer is not None and self._profile is not None:
            self._background = self._manager.profile_queue(store, self._capturer, self._profile.stored_as)
        return self._background

    # ----------------------------------------------------------------------------------------------- proposals

    async def list_proposals(
        self, *, user_id: str | None = None, status: ProposalStatus | None = "pending", limit: int | None = None
    ) -> list[Proposal]:
        """A user's proposals, oldest first.

        Args:
            user_id: whose.
            status: ``"pending"``, ``"approved"``, ``"rejected"`` or ``"expired"``; ``None`` is all.
            limit: how many; ``None``, 0 or negative is all.
        """
        return await self._desk.listed(self._manager.owner(user_id), status, limit)

    async def approve(self, proposal_id: str, *, user_id: str | None = None) -> ProposalDecision:
        """Carry a pending proposal out, once, whoever else decides at the same moment; what that did.

        Raises:
            ProposalNotFoundError: this user has no such proposal.
            ProposalDecidedError: it was approved or rejected before.
            ProposalExpiredError: its time is over.
            ProposalOutdatedError: the memory or field was changed or removed since the model saw it.
            ConfigurationError: it is about a profile that this machine has not.
        """
        return await self._desk.approve(proposal_id, self._manager.owner(user_id))

    async def reject(self, proposal_id: str, *, user_id: str | None = None) -> Proposal:
        """See to it that a pending proposal is never carried out; the proposal then.

        Raises:
            ProposalNotFoundError: this user has no such proposal.
            ProposalDecidedError: it was approved or rejected before.
            ProposalExpiredError: its time is over.
        """
        return await self._desk.reject(proposal_id, self._manager.owner(user_id))
