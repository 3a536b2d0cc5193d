"""The users' memories as a learning machine offers them: the manager's own, by the manager's verbs."""

from collections.abc import Sequence
from typing import Any

import anyio.to_thread

from ..manager import MemoryManager
from ..types import MemorySearchResult, UserMemory
from .config import UserMemoryConfig
from .showing import show

_SHOWN = 500
"""Memories that ``print`` shows: the newest."""


class UserMemoryStore:
    """One store of memories for manager and machine alike.

    Args:
        manager: keeps the memories; stays the caller's to close.
        config: how they are found and shown.
    """

    def __init__(self, manager: MemoryManager, config: UserMemoryConfig) -> None:
        self._manager = manager
        self._config = config

    async def get(
        self, user_id: str | None = None, *, limit: int | None = None, after: UserMemory | str | None = None
    ) -> list[UserMemory]:
        """A user's memories, oldest update first, a page of them if ``limit`` says so."""
        return await self._manager.get_user_memories(user_id=user_id, limit=limit, after=after)

    async def add(
        self, memory: str | UserMemory, user_id: str | None = None, *, topics: Sequence[str] | None = None
    ) -> str:
        """Store a memory as it is; its id. ``topics`` go with one that is given as text.

        Raises:
            InvalidMemoryError: it can't be stored.
        """
        made = UserMemory(memory=memory, topics=list(topics or ())) if isinstance(memory, str) else memory
        return await self._manager.add_user_memory(made, user_id=user_id)

    async def update(self, memory_id: str, user_id: str | None = None, **values: Any) -> UserMemory:
        """Change what is passed, as ``MemoryManager.update_user_memory`` takes it; the memory as it is now.

        Raises:
            MemoryNotFoundError: this user has no such memory.
            InvalidMemoryError: a value can't be stored.
        """
        return await self._manager.update_user_memory(memory_id, user_id=user_id, **values)

    async def delete(self, memory_id: str, user_id: str | None = None) -> bool:
        """Delete a memory; whether there was one."""
        return await self._manager.delete_user_memory(memory_id, user_id=user_id)

    async def clear(self, user_id: str | None = None) -> int:
        """Delete all memories of a user; how many there were. Proposals stay."""
        return await self._manager.clear_user_memories(user_id=user_id)

    async def recall(
        self, query: str | None = None, user_id: str | None = None, *, limit: int | None = 10
    ) -> MemorySearchResult:
        """Memories that matter to a query, by the configured method; without a query, the newest."""
        method = self._config.retrieval_method or (self._manager.relevance_method if query else "last_n")
        return await self._manager.search_user_memories(query, limit=limit, retrieval_method=method, user_id=user_id)

    async def context(self, user_id: str | None = None, query: str | None = None) -> str:
        """The ``<user_memory>`` block for a prompt; "" if there is nothing."""
        return await self._manager.build_context(user_id=user_id, query=query, max_tokens=self._config.max_tokens)

    async def print(self, user_id: str | None = None) -> None:
        """Print a user's memories, the newest 500, as a table where rich is installed."""
        owner = self._manager.owner(user_id)
        memories = await self._manager.search_user_memories(limit=_SHOWN, user_id=owner)
        rows = [
            [m.memory, ", ".join(m.topics), str(m.updated_at.date()) if m.updated_at else "", str(m.memory_id)]
            for m in memories
        ]
        await anyio.to_thread.run_sync(show, f"Memories of {owner}", ["memory", "topics", "updated", "id"], rows)
