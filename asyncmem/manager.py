"""MemoryManager: the public verbs. Wiring only."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Never, Self, cast

from pydantic import JsonValue

from .background import Background
from .capture import CaptureOptions
from .capturing import Capturer
from .cleaning import MAX_TOPIC, clean_filter_text, clean_id, clean_limit, clean_revision, clean_text, no_option
from .errors import ConfigurationError, InvalidIdError, InvalidMemoryError
from .filters import clean_filters
from .llm import LLM, Abilities, ChatModel, Embedder, UsageObserver
from .llm.embedder import to_embedder
from .llm.provider import Completion, Router
from .messages import Turn, read_messages
from .modes import LearningMode
from .optimizing import OptimizationVerbs
from .proposal_values import Proposal
from .retrieval import RetrievalVerbs
from .scheduling import SchedulingVerbs
from .search import SearchEngine
from .settings import LLMSettings, Settings
from .store.opening import Opening
from .tasks import Tasks
from .types import (
    CaptureResult,
    Change,
    ErasureReceipt,
    Scope,
    UserMemory,
    clean_scope,
)

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from .store.batch import Applied
    from .store.store import MemoryStore

DEFAULT_MODEL = "openai/gpt-4o"


class MemoryManager(RetrievalVerbs, SchedulingVerbs, OptimizationVerbs):
    """What an application knows about each of its users.

    Opened by ``async with`` or by the first call; closed by ``aclose()``. It belongs to the event loop that opened
    it. Verbs that need no model load none.

    Args:
        db: a MongoDB URI with a database name, ``"embedded"``, ``"embedded:PATH"``, or a PyMongo async (or Motor)
            client or database, which stays the caller's to close. By default what ``ASYNCMEM_DB`` says.
        model: a litellm model name, a ``litellm.Router``, a completion function or a ``ChatModel``. By default
            what ``ASYNCMEM_MODEL`` says, else ``"openai/gpt-4o"``.
        llm: how the model is called.
        embedding_model: what makes vectors for ``semantic`` and ``hybrid`` search: a litellm model name, or an
            ``Embedder``. Without one memories are stored without vectors, and get them later.
        system_message: replaces the whole capture prompt; may use its placeholders.
        memory_capture_instructions: replaces the part of the capture prompt that says what to capture.
        additional_instructions: stands at the end of the capture prompt.
        add_memories: whether a model may add.
        update_memories: whether a model may update.
        delete_memories: whether a model may delete.
        clear_memories: whether a model may clear all memories of the one user at hand.
        evidence: ``"strict"`` writes only what the user's own words carry; ``"off"`` what the model decides.
        default_user_id: whose memories a call without ``user_id`` means. Services set it to ``None``, which makes
            a missing ``user_id`` an error.
        settings: how memories are stored.
        observers: told about every call of both models, for metrics and budgets.
        abilities: where to keep what is learned about both models; by default models named by a string share one store
            in this process.

    Raises:
        ConfigurationError: an option is unknown or can't be used.
    """

    def __init__(
        self,
        db: object = None,
        *,
        model: "str | ChatModel | Router | Completion | None" = None,
        llm: LLMSettings | None = None,
        embedding_model: "str | Embedder | None" = None,
        system_message: str | None = None,
        memory_capture_instructions: str | None = None,
        additional_instructions: str | None = None,
        add_memories: bool = True,
        update_memories: bool = True,
        delete_memories: bool = False,
        clear_memories: bool = False,
        evidence: Literal["strict", "off"] = "strict",
        default_user_id: str | None = "default",
        settings: Settings | None = None,
        observers: Sequence[UsageObserver] = (),
        abilities: Abilities | None = None,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise ConfigurationError(no_option(MemoryManager, unknown))
        _check_options(settings, llm, system_message, memory_capture_instructions, additional_instructions)
        _check_flags(add=add_memories, update=update_memories, delete=delete_memories, clear=clear_memories)
        self._settings = settings or Settings()
        self._default = None if default_user_id is None else clean_id(default_user_id, "default_user_id")
        llm, named = llm or LLMSettings(), model or os.environ.get("ASYNCMEM_MODEL") or DEFAULT_MODEL
        self._llm = LLM(named, llm, abilities=abilities, observers=observers)
        embedder = None if embedding_model is None else to_embedder(embedding_model, llm, abilities, observers)
        self._search = SearchEngine(self._llm, embedder, self._settings)
        options = CaptureOptions(
            add=add_memories,
            update=update_memories,
            delete=delete_memories,
            clear=clear_memories,
            system_message=system_message,
            memory_capture_instructions=memory_capture_instructions,
            additional_instructions=additional_instructions,
            evidence=evidence,
        )
        self._capturer = Capturer(self._llm, options, self._settings, self._search)
        self._opening = Opening(db, self._settings)
        self._tasks = Tasks()
        self._others: list[Background] = []

    async def __aenter__(self) -> Self:
        try:
            await self._opening.store()
        except asyncio.CancelledError:
            await self._opening.abandon()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.aclose()
        except asyncio.CancelledError:
            await self._opening.abandon()
            raise

    async def aclose(self) -> None:
        """Let go of the database. A client that was handed in stays open. Closing twice does nothing.

        Scheduled captures that are under way end within ``Settings(close_timeout=...)``; the rest stays in the queue.
        """
        await self._close_background()
        await self._tasks.aclose(self._settings.close_timeout)
        await self._opening.aclose()

    def _user(self, user_id: str | None) -> str:
        if user_id is not None:
            return clean_id(user_id, "user_id")
        if self._default is None:
            raise InvalidIdError("user_id is missing, and this manager has no default_user_id: pass user_id=")
        return self._default

    def _owner(self, memory: object, user_id: str | None) -> tuple[UserMemory, str]:
        if not isinstance(memory, UserMemory):
            raise InvalidMemoryError(f"expected a UserMemory, not a {type(memory).__name__}")
        if user_id is not None and memory.user_id not in (None, user_id):
            raise InvalidIdError("the memory belongs to another user_id than the call says: leave one of them out")
        return memory, self._user(memory.user_id if user_id is None else user_id)

    # ------------------------------------------------------------------- for asyncmem's own layers above this one

    @property
    def settings(self) -> Settings:
        """How memories are stored."""
        return self._settings

    @property
    def llm(self) -> LLM:
        """The manager's model."""
        return self._llm

    @property
    def operations(self) -> tuple[str, ...]:
        """What a model may do with memories: of ``"add"``, ``"update"``, ``"delete"``, ``"clear"``."""
        return self._capturer.operations

    def owner(self, user_id: str | None) -> str:
        """Whose memories a call with this ``user_id`` is about.

        Raises:
            InvalidIdError: it can't be used, or it is missing and there is no ``default_user_id``.
        """
        return self._user(user_id)

    async def capture_turns(
        self, turns: list[Turn], scope: Scope, *, key: str | None = None, mode: LearningMode
    ) -> CaptureResult:
        """Capture what was read already, in a mode."""
        if not turns:
            return CaptureResult()
        return await self._capturer.capture(await self._opening.store(), turns, scope, key=key, mode=mode)

    async def approve_memory(self, row: dict[str, Any]) -> "tuple[Proposal, Applied]":
        """Carry out what a pending proposal of a memory proposes."""
        texts = [row["after"]] if "after" in row else []
        store = await self._opening.store()
        return await store.approvals.approve(row, await self._search.vectors(texts))

    async def opened(self) -> "MemoryStore":
        """The store, opened: for asyncmem's own layers. What it offers may change with any version."""
        return await self._opening.store()

    # -------------------------------------------------------------------------------------- by hand: no model

    async def add_user_memory(self, memory: UserMemory, *, user_id: str | None = None, cause: str = "manual") -> str:
        """Store a memory verbatim; its id.

        The same statement again (case, white space, punctuation and Unicode form apart) for the same user, agent
        and team gives the id that exists, adds its new topics and moves ``updated_at``: a retry never doubles.
        ``cause`` is what the history says of who or what did it, here and in the verbs below.

        Raises:
            InvalidMemoryError: it can't be stored.
            MemoryConflictError: its ``memory_id`` is taken.
        """
        memory, owner = self._owner(memory, user_id)
        cause = _cause(cause)
        store = await self._opening.store()
        return await store.write.add(memory, owner, cause, await self._search.vectors([memory.memory]))

    async def add_user_memories(self, memories: Sequence[UserMemory], *, user_id: str | None = None) -> list[str]:
        """Store many memories, a thousand a round trip; their ids in order. All are checked before any is written.

        Raises:
            PartialWriteError: some were not written; it says which and why.
        """
        if not isinstance(cast("object", memories), Iterable):
            raise InvalidMemoryError(f"expected memories in a list, not a {type(memories).__name__}")
        owned = [self._owner(memory, user_id) for memory in memories]
        store = await self._opening.store()
        vectors = await self._search.vectors([memory.memory for memory, _ in owned])
        return await store.write.add_many(owned, "manual", vectors)

    async def get_user_memories(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        team_id: str | None = None,
        topics: Sequence[str] | None = None,
        limit: int | None = None,
        after: UserMemory | str | None = None,
    ) -> list[UserMemory]:
        """Memories, oldest update first.

        Args:
            user_id: whose.
            agent_id: only those that this agent wrote.
            team_id: only those that this team wrote.
            topics: only those with any of these topics.
            limit: how many; ``None``, 0 or negative is all.
            after: the last memory of the page before (or its id): continue behind it.

        Raises:
            InvalidQueryError: a filter, the limit or the cursor can't be used.
        """
        scope = clean_scope(self._user(user_id), agent_id, team_id)
        chosen, count = clean_filters(topics=topics), clean_limit(limit)
        if after is not None and not isinstance(after, UserMemory):
            after = clean_id(after, "after")
        return await (await self._opening.store()).read.page(scope, chosen, count, after)

    async def get_user_memory(self, memory_id: str, *, user_id: str | None = None) -> UserMemory | None:
        """One memory, or ``None`` if this user has none of that id."""
        owner, memory_id = self._user(user_id), clean_id(memory_id, "memory_id")
        return await (await self._opening.store()).read.get(owner, memory_id)

    async def replace_user_memory(self, memory_id: str, memory: UserMemory, *, user_id: str | None = None) -> str:
        """Replace a memory's whole value; its id. ``created_at`` stays.

        Raises:
            MemoryNotFoundError: this user has no such memory.
            MemoryConflictError: another memory of the user says the same.
        """
        memory_id = clean_id(memory_id, "memory_id")
        memory, owner = self._owner(memory, user_id)
        store = await self._opening.store()
        vectors = await self._search.vectors([memory.memory])
        await store.write.replace(owner, memory_id, memory, "manual", vectors)
        return memory_id

    async def update_user_memory(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        memory: str | EllipsisType = ...,
        topics: Sequence[str] | EllipsisType | None = ...,
        feedback: str | EllipsisType | None = ...,
        metadata: Mapping[str, JsonValue] | EllipsisType | None = ...,
        pinned: bool | EllipsisType | None = ...,
        expires_at: datetime | str | float | EllipsisType | None = ...,
        expected_revision: int | None = None,
        cause: str = "manual",
    ) -> UserMemory:
        """Change what is passed and keep the rest; the memory as it is now. An explicit ``None`` clears a field.

        Raises:
            MemoryNotFoundError: this user has no such memory.
            RevisionConflictError: it is not at ``expected_revision``.
            MemoryConflictError: another memory of the user says the same.
            InvalidMemoryError: a value can't be stored.
        """
        owner, memory_id = self._user(user_id), clean_id(memory_id, "memory_id")
        given: dict[str, Any] = {
            "memory": memory,
            "topics": topics,
            "feedback": feedback,
            "metadata": metadata,
            "pinned": False if pinned is None else pinned,
            "expires_at": expires_at,
        }
        values = {name: value for name, value in given.items() if value is not ...}
        expected = None if expected_revision is None else clean_revision(expected_revision, "expected_revision")
        cause = _cause(cause)
        store = await self._opening.store()
        vectors = await self._search.vectors([] if memory is ... else [clean_text(memory)])
        _, after = await store.write.change(owner, memory_id, values, cause, expected, vectors)
        return after

    async def delete_user_memory(self, memory_id: str, *, user_id: str | None = None, cause: str = "manual") -> bool:
        """Delete a memory; whether there was one. ``revert`` brings it back while the archive keeps it."""
        owner, memory_id, cause = self._user(user_id), clean_id(memory_id, "memory_id"), _cause(cause)
        return await (await self._opening.store()).remove.delete(owner, memory_id, cause) is not None

    async def clear_user_memories(self, *, user_id: str | None = None, cause: str = "manual") -> int:
        """Delete all memories that a user has at this moment; how many there were."""
        owner, cause = self._user(user_id), _cause(cause)
        store = await self._opening.store()
        await store.applier.recover(owner)  # else a capture that was left half-way would come back
        return len(await store.remove.clear(owner, cause))

    async def clear(self) -> int:
        """Delete the memories of EVERY user; how many there were. The only verb that is not about one user."""
        store = await self._opening.store()
        count = 0
        for user_id in await store.read.users(0, None):
            count += len(await store.remove.clear(user_id, "manual"))
        return count

    async def count_user_memories(self, *, user_id: str | None = None) -> int:
        """How many memories a user has."""
        owner = self._user(user_id)
        return await (await self._opening.store()).read.count(owner)

    async def get_topics(
        self, *, user_id: str | None = None, limit: int | None = None, after: str | None = None
    ) -> list[str]:
        """A user's topics in order of code points, from behind ``after``."""
        owner, count = self._user(user_id), clean_limit(limit)
        after = None if after is None else clean_filter_text(after, "after")
        return await (await self._opening.store()).read.topics(owner, count, after)

    async def get_users(self, *, limit: int | None = None, after: str | None = None) -> list[str]:
        """The users that have memories, in order of code points, from behind ``after``."""
        count = clean_limit(limit)
        after = None if after is None else clean_filter_text(after, "after")
        return await (await self._opening.store()).read.users(count, after)

    async def history(self, memory_id: str, *, user_id: str | None = None) -> list[Change]:
        """Every change of a memory, oldest first, its deletion included while the archive keeps it.

        Raises:
            MemoryNotFoundError: this user has and had no such memory.
        """
        owner, memory_id = self._user(user_id), clean_id(memory_id, "memory_id")
        return await (await self._opening.store()).read.history(owner, memory_id)

    async def revert(self, memory_id: str, revision: int, *, user_id: str | None = None) -> UserMemory:
        """Make an earlier revision the newest again; brings back a deleted memory while the archive keeps it.

        Raises:
            MemoryNotFoundError: this user has no such memory, or it has no such revision.
            MemoryConflictError: another memory of the user says the same by now.
        """
        owner, memory_id = self._user(user_id), clean_id(memory_id, "memory_id")
        wanted = clean_revision(revision, "revision")
        return await (await self._opening.store()).write.revert(owner, memory_id, wanted)

    async def erase_user(self, user_id: str) -> ErasureReceipt:
        """Remove every trace of a user, the archive included; what was removed. Nothing brings it back."""
        owner = clean_id(user_id, "user_id")
        return await (await self._opening.store()).remove.erase(owner)

    # ------------------------------------------------------------------------------------------ with a model

    async def create_user_memories(
        self,
        message: object = None,
        *,
        messages: Sequence[object] | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        team_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> CaptureResult:
        """A model reads what was said and decides what to add, update or delete; what came of it.

        All changes are applied together. One user's captures run one after the other. The same messages again do
        nothing while the first capture is remembered (``Settings.capture_memory``), and of a conversation that goes
        on only what is new is read.

        Args:
            message: what the user said, or one message.
            messages: a conversation: strings, ``Message`` values, or messages of OpenAI, Anthropic, Gemini or
                LangChain.
            user_id: whose memories.
            agent_id: recorded on what is added.
            team_id: recorded on what is added.
            idempotency_key: names this capture: the same key again does nothing, another one captures the same
                words again.

        Raises:
            InvalidMessageError: both or neither were passed, or one can't be read.
            ModelError: the model could not be asked. Nothing was changed.
            StoreError: the changes could not be written. Call again: nothing is done twice.
        """
        turns, scope = read_messages(message, messages), clean_scope(self._user(user_id), agent_id, team_id)
        key = None if idempotency_key is None else clean_id(idempotency_key, "idempotency_key")
        return await self._capture(turns, scope, key=key)

    async def extract_user_memories(
        self,
        message: object = None,
        *,
        messages: Sequence[object] | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        team_id: str | None = None,
    ) -> CaptureResult:
        """What ``create_user_memories`` would do with new messages, as a preview: nothing is written."""
        turns, scope = read_messages(message, messages), clean_scope(self._user(user_id), agent_id, team_id)
        if not turns:
            return CaptureResult()
        return await self._capturer.preview(await self._opening.store(), turns, scope)

    async def update_memory_task(
        self,
        task: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        team_id: str | None = None,
    ) -> CaptureResult:
        """A model carries out a task such as "remember that I live in Shanghai"; what came of it."""
        turns, scope = read_messages(task, None), clean_scope(self._user(user_id), agent_id, team_id)
        return await self._capture(turns, scope, task=True)

    async def _capture(
        self, turns: list[Turn], scope: Scope, *, key: str | None = None, task: bool = False
    ) -> CaptureResult:
        if not turns:
            return CaptureResult()
        return await self._capturer.capture(await self._opening.store(), turns, scope, key=key, task=task)


def _cause(cause: object) -> str:
    return clean_text(cause, "cause", MAX_TOPIC)


def _check_options(settings: object, llm: object, *texts: object) -> None:
    for given, kind in ((settings, Settings), (llm, LLMSettings), *((text, str) for text in texts)):
        if given is not None and not isinstance(given, kind):
            raise ConfigurationError(f"expected a {kind.__name__}, not a {type(given).__name__}")


def _check_flags(**flags: object) -> None:
    for name, given in flags.items():
        if not isinstance(given, bool):
            raise ConfigurationError(f"{name}_memories must be True or False, not a {type(given).__name__}")
