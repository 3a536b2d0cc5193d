"""Which memory a model means by a short id: those that it was shown here, and those that another process showed."""

import re

from .cleaning import clean_id
from .errors import InvalidInputError
from .manager import MemoryManager
from .tool_answers import ALIAS, alias_of
from .types import UserMemory

PAGE = 500
_REMEMBERED = 10_000
"""Short ids that are remembered before all are dropped, to be looked up again."""
_LABEL = re.compile(r"\A(?:memory_?)?id\s*[:=#]\s*", re.IGNORECASE)


class ShortIds:
    """The short ids of one user's memories.

    Args:
        manager: keeps the memories.
        user_id: whose.
    """

    def __init__(self, manager: MemoryManager, user_id: str) -> None:
        self._manager = manager
        self._user_id = user_id
        self._seen: dict[str, tuple[str, int]] = {}
        """Ids that were shown: of which memory, and at which revision."""

    def name(self, memory: UserMemory) -> str:
        """The id that a model is shown: the short one, unless another memory has it here."""
        memory_id = str(memory.memory_id)
        alias = alias_of(memory_id)
        if self._seen.get(alias, (memory_id,))[0] != memory_id:
            alias = memory_id
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        self._seen[alias] = (memory_id, memory.revision)
        return alias

    async def find(self, given: str) -> tuple[UserMemory, int] | None:
        """The user's memory that a model means, and the revision at which it saw it; ``None`` if there is none."""
        named = _LABEL.sub("", given.strip()).strip("\"' ")
        memory_id, revision = self._seen.get(named.casefold()) or self._seen.get(named) or (named, None)
        memory = await self._get(memory_id)
        if memory is None and revision is None and len(named) == ALIAS:
            memory = await self._look_up(named.casefold())
        return None if memory is None else (memory, revision or memory.revision)

    async def _get(self, memory_id: str) -> UserMemory | None:
        try:
            clean_id(memory_id, "memory_id")
        except InvalidInputError:
            return None
        return await self._manager.get_user_memory(memory_id, user_id=self._user_id)

    async def _look_up(self, alias: str) -> UserMemory | None:
        """The one memory of that short id, which another process showed; ``None`` also if there are two."""
        found: list[UserMemory] = []
        last: UserMemory | None = None
        while True:
            page = await self._manager.get_user_memories(user_id=self._user_id, limit=PAGE, after=last)
            found += [memory for memory in page if alias_of(str(memory.memory_id)) == alias]
            if len(page) < PAGE:
                return found[0] if len(found) == 1 else None
            last = page[-1]
