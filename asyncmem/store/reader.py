"""Reading memories: every query carries the user, and order, filters and limits run in the server."""

from collections.abc import Sequence

from ..errors import InvalidQueryError, MemoryNotFoundError
from ..filters import Filters
from ..types import Change, Scope, UserMemory
from . import queries
from .archive import Archive, last_deleted, timeline
from .core import Core, as_memories
from .documents import NEWEST_FIRST, OLDEST_FIRST, Row
from .rows import changes_of, to_memory


class Reader:
    """Reads one database's memories."""

    def __init__(self, core: Core, archive: Archive) -> None:
        self._core = core
        self._memories = core.collections.memories
        self._archive = archive

    async def row(self, user_id: str, memory_id: str) -> Row | None:
        """A living memory's whole row."""
        async with self._core.calling():
            return await self._memories.find_one(queries.one(user_id, memory_id, self._core.now()))

    async def get(self, user_id: str, memory_id: str) -> UserMemory | None:
        """One memory."""
        async with self._core.calling():
            query = queries.one(user_id, memory_id, self._core.now())
            row = await self._memories.find_one(query, queries.HIDDEN)
        return None if row is None else to_memory(row)

    async def page(
        self, scope: Scope, filters: Filters, limit: int, after: UserMemory | str | None
    ) -> list[UserMemory]:
        """Memories, oldest update first, from behind ``after``."""
        query = queries.scoped(scope, self._core.now(), filters)
        if after is not None:
            query = queries.after_row(query, await self._cursor_row(scope.user_id, after))
        async with self._core.calling():
            cursor = self._memories.find(query, queries.HIDDEN).sort(OLDEST_FIRST).limit(limit)
            return await as_memories(cursor)

    async def _cursor_row(self, user_id: str, after: UserMemory | str) -> Row:
        """Where a page begins. A memory that was read keeps its place even if it has moved or gone since."""
        memory_id = after if isinstance(after, str) else after.memory_id
        if memory_id is None:
            raise InvalidQueryError("after= needs a memory that was read from the store, or its id")
        fields = {"updated_at": 1, "seq": 1}
        async with self._core.calling():
            row = await self._memories.find_one({"_id": memory_id, "user_id": user_id}, fields)
        if row is None:
            departed = last_deleted(await self._archive.of_memory(user_id, memory_id))
            if departed is None:
                raise InvalidQueryError("after= names no memory of this user: start again from the first page")
            row = departed["row"]
        return row if isinstance(after, str) else {**row, "updated_at": after.updated_at}

    async def last_n(self, scope: Scope, filters: Filters, limit: int) -> list[UserMemory]:
        """The newest, oldest of them first. Rows without a time count as oldest."""
        async with self._core.calling():
            query = queries.scoped(scope, self._core.now(), filters)
            cursor = self._memories.find(query, queries.HIDDEN).sort(NEWEST_FIRST).limit(limit)
            memories = await as_memories(cursor)
        memories.reverse()
        return memories

    async def first_n(self, scope: Scope, filters: Filters, limit: int) -> list[UserMemory]:
        """The oldest, oldest first. Rows without a time come last."""
        query = queries.scoped(scope, self._core.now(), filters)
        async with self._core.calling():
            timed = {**query, "updated_at": query.get("updated_at", {"$ne": None})}
            memories = await as_memories(self._memories.find(timed, queries.HIDDEN).sort(OLDEST_FIRST).limit(limit))
            if "updated_at" not in query and (not limit or len(memories) < limit):
                room = limit - len(memories) if limit else 0
                untimed = {**query, "updated_at": None}
                memories += await as_memories(
                    self._memories.find(untimed, queries.HIDDEN).sort(OLDEST_FIRST).limit(room)
                )
        return memories

    async def by_ids(self, scope: Scope, filters: Filters, ids: Sequence[str]) -> dict[str, UserMemory]:
        """Those of these memories that the user has now and that pass the filters, by id."""
        query = queries.scoped(scope, self._core.now(), filters) | {"_id": {"$in": list(ids)}}
        async with self._core.calling():
            return {str(m.memory_id): m for m in await as_memories(self._memories.find(query, queries.HIDDEN))}

    async def count(self, user_id: str) -> int:
        """How many living memories a user has."""
        async with self._core.calling():
            return await self._memories.count_documents(queries.scoped(Scope(user_id), self._core.now()))

    async def topics(self, user_id: str, limit: int, after: str | None) -> list[str]:
        """A user's topics in order of code points, from behind ``after``."""
        pipeline: list[Row] = [
            {"$match": queries.scoped(Scope(user_id), self._core.now())},
            {"$unwind": "$topics"},
            {"$group": {"_id": "$topics"}},
        ]
        return await self._names(pipeline, limit, after)

    async def users(self, limit: int, after: str | None) -> list[str]:
        """The users that have memories, in order of code points, from behind ``after``: a scan of the index."""
        begin: list[Row] = [] if after is None else [{"$match": {"user_id": {"$gt": after}}}]
        return await self._names([*begin, {"$group": {"_id": "$user_id"}}], limit, after)

    async def _names(self, pipeline: list[Row], limit: int, after: str | None) -> list[str]:
        if after is not None:
            pipeline.append({"$match": {"_id": {"$gt": after}}})
        pipeline.append({"$sort": {"_id": 1}})
        if limit:
            pipeline.append({"$limit": limit})
        async with self._core.calling():
            cursor = await self._memories.aggregate(pipeline)
            return [row["_id"] for row in await cursor.to_list()]

    async def history(self, user_id: str, memory_id: str) -> list[Change]:
        """Every change of a memory, its deletion included, oldest first."""
        living = await self.row(user_id, memory_id)
        archived = await self._archive.of_memory(user_id, memory_id)
        row = living or (last_deleted(archived) or {}).get("row")
        if row is None:
            raise unknown(memory_id)
        return list(changes_of(row, timeline(living, archived)))


def unknown(memory_id: str) -> MemoryNotFoundError:
    """The error for an id that this user has no memory of; other users' ids look the same."""
    return MemoryNotFoundError(f"this user has no memory {memory_id!r}: it never was, is gone, or is another user's")
