"""Removing memories: each revision is archived before it goes, and goes only if it still is the newest."""

from collections.abc import Sequence

from pymongo import DeleteOne

from ..types import ErasureReceipt, UserMemory
from . import queries
from .archive import Archive
from .captures import Captures
from .core import ATTEMPTS, PAGE, Core, pages
from .documents import Row
from .jobs import Jobs
from .reader import Reader
from .rows import revision_of, to_memory
from .writer import contended, stale


class Remover:
    """Removes one database's memories."""

    def __init__(self, core: Core, reader: Reader, archive: Archive, captures: Captures, jobs: Jobs) -> None:
        self._jobs = jobs
        self._captures = captures
        self._core = core
        self._memories = core.collections.memories
        self._reader = reader
        self._archive = archive

    async def delete(self, user_id: str, memory_id: str, cause: str, expected: int | None = None) -> UserMemory | None:
        """Delete a memory; what it was, or ``None`` if there is none.

        Raises:
            RevisionConflictError: it is not at the expected revision.
        """
        for _ in range(ATTEMPTS):
            row = await self._reader.row(user_id, memory_id)
            if row is None:
                return None
            memory = to_memory(row)
            if expected is not None and memory.revision != expected:
                raise stale(memory, expected)
            if await self._remove([row], "delete", cause):
                return memory
        raise contended()

    async def clear(self, user_id: str, cause: str, *, forget: bool = False) -> list[UserMemory]:
        """Delete every memory that the user has at this moment; what they were. Later adds stay.

        With ``forget``, no later capture of an old conversation brings them back.
        """
        async with self._core.calling():
            cursor = self._memories.find({"user_id": user_id}, {"_id": 1})
            ids = [row["_id"] async for page in pages(cursor) for row in page]
        removed: list[UserMemory] = []
        for start in range(0, len(ids), PAGE):
            removed += await self._clear_page(user_id, ids[start : start + PAGE], cause, forget=forget)
        return removed

    async def _clear_page(self, user_id: str, ids: list[str], cause: str, *, forget: bool) -> list[UserMemory]:
        query = {"user_id": user_id, "_id": {"$in": ids}}
        removed: dict[str, UserMemory] = {}
        for _ in range(ATTEMPTS):
            async with self._core.calling():
                rows = await self._memories.find(query).to_list()
            if not rows:
                return list(removed.values())
            if forget:
                await self._captures.forget(rows, self._core.now(), None)
            gone = await self._remove(rows, "clear", cause)
            left: set[str] = set() if gone == len(rows) else await self._ids(query)
            removed |= {row["_id"]: to_memory(row) for row in rows if row["_id"] not in left}
        raise contended()

    async def several(self, user_id: str, memories: Sequence[UserMemory], cause: str) -> list[UserMemory]:
        """Delete memories that still are as they were read; which of them were."""
        removed: list[UserMemory] = []
        for start in range(0, len(memories), PAGE):
            wanted = {m.memory_id: m.revision for m in memories[start : start + PAGE]}
            query: Row = {"user_id": user_id, "_id": {"$in": list(wanted)}}
            order = {memory_id: place for place, memory_id in enumerate(wanted)}
            async with self._core.calling():
                found = await self._memories.find(query).to_list()
            rows = sorted((r for r in found if revision_of(r) == wanted[r["_id"]]), key=lambda r: order[r["_id"]])
            if not rows:
                continue
            gone = await self._remove(rows, "delete", cause)
            left: set[str] = set() if gone == len(rows) else await self._ids(query)
            removed += [to_memory(row) for row in rows if row["_id"] not in left]
        return removed

    async def _ids(self, query: Row) -> set[str]:
        async with self._core.calling():
            return {row["_id"] for row in await self._memories.find(query, {"_id": 1}).to_list()}

    async def _remove(self, rows: list[Row], kind: str, cause: str) -> int:
        """Archive these revisions, then delete them where they still are; how many were."""
        keys = await self._archive.keep(rows, kind, cause, self._core.now())
        async with self._core.calling():
            result = await self._memories.bulk_write([DeleteOne(queries.exact(r)) for r in rows], ordered=False)
        if result.deleted_count < len(rows):
            await self._archive.withdraw(rows[0]["user_id"], keys)
        return result.deleted_count

    async def erase(self, user_id: str) -> ErasureReceipt:
        """Delete every trace of a user; what there was. Calls under way leave none either."""
        # before the announcement: a worker asks how often it was announced, and then takes a job
        jobs = await self._jobs.erase(user_id) + await self._profile_jobs(user_id)
        await self._archive.announce(user_id)
        await self._captures.announce(user_id)
        # what came in between; what comes later and began before says so itself
        jobs += await self._jobs.erase(user_id) + await self._profile_jobs(user_id)
        captures = await self._captures.erase(user_id)  # first, so that nobody finishes a journal of theirs
        optimizations = await self._optimizations(user_id)
        async with self._core.calling():
            memories = await self._memories.delete_many({"user_id": user_id})
        archived = await self._archive.erase(user_id)
        captures += await self._captures.erase(user_id)
        optimizations += await self._optimizations(user_id)
        counts = {
            "memories": memories.deleted_count,
            "archive": archived,
            "captures": captures,
            "optimizations": optimizations,
            "jobs": jobs,
            "profiles": await self._profiles(user_id),
            "sessions": await self._sessions(user_id),
            "proposals": await self._proposals(user_id),
        }
        return ErasureReceipt(user_id, counts, self._core.now())

    async def _profiles(self, user_id: str) -> int:
        async with self._core.calling():
            return (await self._core.collections.profiles.delete_many({"user_id": user_id})).deleted_count

    async def _sessions(self, user_id: str) -> int:
        async with self._core.calling():
            return (await self._core.collections.sessions.delete_many({"user_id": user_id})).deleted_count

    async def _profile_jobs(self, user_id: str) -> int:
        lanes = self._core.collections.profile_jobs
        async with self._core.calling():
            rows = await lanes.find({"user_id": user_id}).to_list()
            await lanes.delete_many({"user_id": user_id})
        return sum(len(row.get(name) or ()) for row in rows for name in ("jobs", "dead", "results"))

    async def _proposals(self, user_id: str) -> int:
        async with self._core.calling():
            return (await self._core.collections.proposals.delete_many({"user_id": user_id})).deleted_count

    async def _optimizations(self, user_id: str) -> int:
        async with self._core.calling():
            return (await self._core.collections.optimizations.delete_many({"user_id": user_id})).deleted_count
