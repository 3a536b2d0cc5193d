"""Memory tools for any agent framework: one user's memories, by specs in OpenAI's shape and a dispatcher."""

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from .cleaning import clean_id, clean_limit
from .errors import (
    ConfigurationError,
    InvalidInputError,
    InvalidQueryError,
    MemoryConflictError,
    MemoryNotFoundError,
    RevisionConflictError,
)
from .guards import looks_like_instructions
from .llm import Tool
from .manager import MemoryManager
from .search import Retriever
from .search.methods import retriever
from .tool_answers import done, listing, not_done, shown
from .tool_arguments import (
    TOOLS,
    AddMemory,
    DeleteMemory,
    ListMemories,
    Misread,
    SearchMemories,
    UpdateMemory,
    read_arguments,
)
from .tool_ids import ShortIds
from .types import UserMemory

CAUSE = "tool"
"""What the history says of changes that a tool made."""
NOTHING_DONE = "Nothing was stored, changed or deleted."
_READING = ("search_memories", "list_memories")
_SUSPECT = " Its text looks like instructions to a model, so it is kept but not shown to models."


@dataclass(frozen=True, slots=True)
class _Options:
    user_id: str
    agent_id: str | None
    team_id: str | None
    method: str | Retriever
    max_tokens: int


class MemoryTools:
    """Tools on the memories of one user. Make them by ``memory_tools``.

    They may be made anew for every request: a memory's short id is the same in all processes. Calls may run side by
    side.
    """

    def __init__(self, manager: MemoryManager, options: _Options, enabled: tuple[str, ...]) -> None:
        self._manager = manager
        self._options = options
        self._enabled = enabled
        self._ids = ShortIds(manager, options.user_id)
        self._runners: dict[str, Callable[[Any], Awaitable[str]]] = {
            "add_memory": self._add,
            "update_memory": self._update,
            "delete_memory": self._delete,
            "clear_memories": self._clear,
            "search_memories": self._search,
            "list_memories": self._list,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that are switched on."""
        return self._enabled

    @property
    def specs(self) -> list[dict[str, Any]]:
        """The tools in OpenAI's shape, as ``tools=`` of a chat request takes them."""
        return [tool.spec() for tool in self.tools()]

    def tools(self) -> list[Tool[Any]]:
        """The tools as ``LLM.run_tools`` takes them."""
        return [
            Tool(name, TOOLS[name][1], TOOLS[name][0], partial(self._run, name), reads=name in _READING)
            for name in self._enabled
        ]

    async def call(self, name: str, arguments: object = None) -> str:
        """Carry out one call of a model; what the model is to be told.

        Whatever the model got wrong is answered with a sentence that says so, and what was not done.

        Args:
            name: the tool's, as the model wrote it.
            arguments: as the model wrote them: JSON text, or the object that it stands for.

        Returns:
            JSON text: ``{"ok": true, "result": ...}``, or ``{"ok": false, "error": ...}`` when nothing was done.

        Raises:
            StoreError: the database could not do it.
            ManagerClosedError: the manager was closed.
            ModelError: the embedder that searches could not be asked.
        """
        if not isinstance(cast("object", name), str) or name not in self._enabled:
            known = ", ".join(self._enabled) or "none"
            return not_done(f"There is no tool of that name here. {NOTHING_DONE} There are: {known}.")
        try:
            read = read_arguments(arguments, TOOLS[name][0])
        except Misread as problem:
            return not_done(f"The arguments of {name} can't be used: {problem}. {NOTHING_DONE} Call it again.")
        return await self._run(name, read)

    async def _run(self, name: str, arguments: Any) -> str:
        try:
            return await self._runners[name](arguments)
        except InvalidInputError as error:
            return not_done(f"{error}. {NOTHING_DONE} Call {name} again with what is allowed.")

    # ------------------------------------------------------------------------------------------------ changing

    async def _add(self, arguments: AddMemory) -> str:
        options = self._options
        suspect = looks_like_instructions(arguments.memory)
        memory = UserMemory(
            memory=arguments.memory,
            memory_id=_new_id(),
            topics=arguments.topics,
            agent_id=options.agent_id,
            team_id=options.team_id,
            metadata={"suspect": True} if suspect else {},
        )
        stored = await self._manager.add_user_memory(memory, user_id=options.user_id, cause=CAUSE)
        if stored == memory.memory_id:
            return done(f"Stored as a new memory.{_SUSPECT if suspect else ''}", memory=self._show(memory))
        known = await self._manager.get_user_memory(stored, user_id=options.user_id)
        text = "This was known already: no second memory was stored."
        return done(text, memory=self._show(known or memory.model_copy(update={"memory_id": stored})))

    async def _update(self, arguments: UpdateMemory) -> str:
        found = await self._ids.find(arguments.memory_id)
        if found is None:
            return self._unknown("changed")
        before, revision = found
        suspect = looks_like_instructions(arguments.memory)
        try:
            after = await self._manager.update_user_memory(
                str(before.memory_id),
                user_id=self._options.user_id,
                memory=arguments.memory,
                topics=arguments.topics or ...,
                metadata={**before.metadata, "suspect": True} if suspect else ...,
                expected_revision=revision,
                cause=CAUSE,
            )
        except MemoryNotFoundError:
            return self._unknown("changed")
        except MemoryConflictError:
            return not_done("Another memory of the user says the same already. Nothing was changed.")
        except RevisionConflictError:
            return await self._overtaken(str(before.memory_id))
        if after.revision == revision:
            return done("The memory says this already: nothing was changed.", memory=self._show(after))
        return done(f"Changed.{_SUSPECT if suspect else ''}", memory=self._show(after), before=self._text(before))

    async def _overtaken(self, memory_id: str) -> str:
        now = await self._manager.get_user_memory(memory_id, user_id=self._options.user_id)
        if now is None:
            return self._unknown("changed")
        return not_done(
            "The memory was changed by somebody else after you saw it. Nothing was changed by this call. It is shown as"
            " it is now: call update_memory again if your change is still right.",
            memory=self._show(now),
        )

    async def _delete(self, arguments: DeleteMemory) -> str:
        found = await self._ids.find(arguments.memory_id)
        if found is None:
            return self._unknown("deleted")
        memory_id = str(found[0].memory_id)
        if not await self._manager.delete_user_memory(memory_id, user_id=self._options.user_id, cause=CAUSE):
            return self._unknown("deleted")
        return done("Deleted.", deleted=self._text(found[0]))

    async def _clear(self, _: object) -> str:
        count = await self._manager.clear_user_memories(user_id=self._options.user_id, cause=CAUSE)
        if not count:
            return done("There was no memory to delete.")
        return done(f"Deleted all memories of the user: {count}.")

    # ------------------------------------------------------------------------------------------------- finding

    async def _search(self, arguments: SearchMemories) -> str:
        found = await self._manager.search_user_memories(
            arguments.query,
            limit=arguments.limit,
            retrieval_method=self._options.method,
            user_id=self._options.user_id,
        )
        return listing(found, self._ids.name, self._options.max_tokens)

    async def _list(self, arguments: ListMemories) -> str:
        user_id = self._options.user_id
        newest = await self._manager.search_user_memories(limit=arguments.limit, user_id=user_id)
        total = await self._manager.count_user_memories(user_id=user_id)
        return listing(newest[::-1], self._ids.name, self._options.max_tokens, max(total, len(newest)))

    def _show(self, memory: UserMemory) -> dict[str, object]:
        return shown(memory, self._ids.name, self._options.max_tokens)

    def _text(self, memory: UserMemory) -> object:
        """What a memory said, which is not as it is any more: its short id goes on meaning what is."""
        entry = shown(memory, lambda _: "", self._options.max_tokens)
        return entry.get("memory", entry.get("withheld"))

    def _unknown(self, done_to: str) -> str:
        finding = " or ".join(name for name in self._enabled if name in _READING)
        how = f" Call {finding} to see the ids." if finding else ""
        return not_done(f"The user has no memory of that id. Nothing was {done_to}.{how}")


def _new_id() -> str:
    """Like an ObjectId: the time first, so that the index grows at one end. Given, it tells new from known."""
    return f"{int(time.time()):08x}{secrets.token_hex(8)}"


def memory_tools(
    manager: MemoryManager,
    *,
    user_id: str,
    add: bool = True,
    update: bool = True,
    delete: bool = True,
    clear: bool = False,
    search: bool = True,
    list: bool = True,  # noqa: A002  the tool's name
    agent_id: str | None = None,
    team_id: str | None = None,
    retrieval_method: str | Retriever | None = None,
    max_tokens: int = 1000,
) -> MemoryTools:
    """Tools on one user's memories, for any framework.

    Args:
        manager: keeps the memories; stays the caller's to close.
        user_id: whose. No tool takes a user, and none reaches another one.
        add: offer ``add_memory``.
        update: offer ``update_memory``.
        delete: offer ``delete_memory``.
        clear: offer ``clear_memories``.
        search: offer ``search_memories``.
        list: offer ``list_memories``.
        agent_id: recorded on what is added.
        team_id: recorded on what is added.
        retrieval_method: how ``search_memories`` searches; by default by ``"hybrid"`` with an embedding model, else by
            ``"keyword"``.
        max_tokens: estimated tokens of the memories that one answer shows.

    Raises:
        ConfigurationError: ``manager`` is none, or a flag is neither True nor False.
        InvalidIdError: an id is not a usable string.
        InvalidQueryError: ``max_tokens`` is not a positive int, or there is no such ``retrieval_method``.
    """
    if not isinstance(cast("object", manager), MemoryManager):
        raise ConfigurationError(f"expected a MemoryManager, not a {type(manager).__name__}")
    flags = (add, update, delete, clear, search, list)
    if not all(isinstance(cast("object", flag), bool) for flag in flags):
        raise ConfigurationError("add, update, delete, clear, search and list must be True or False")
    if clean_limit(max_tokens) < 1:
        raise InvalidQueryError("max_tokens must be at least 1")
    method = manager.relevance_method if retrieval_method is None else retrieval_method
    retriever(method)
    options = _Options(
        clean_id(user_id, "user_id"),
        None if agent_id is None else clean_id(agent_id, "agent_id"),
        None if team_id is None else clean_id(team_id, "team_id"),
        method,
        max_tokens,
    )
    return MemoryTools(manager, options, tuple(name for name, flag in zip(TOOLS, flags, strict=True) if flag))
