"""The durable queue of scheduled captures: one lane a user, each step of a job one write of one document."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from ..errors import AsyncMemError, BacklogFullError, StoreTimeoutError, TicketExpiredError
from ..fingerprints import user_print
from ..outcomes import pack_error, unpack_error
from ..types import QueueStatus
from . import lanes
from .core import ATTEMPTS, Core, pages
from .documents import Row
from .lanes import Keeping, NewJob
from .queued import Queued, queued
from .results import Results
from .translate import translated

_EVER = datetime(1, 1, 1)  # noqa: DTZ001  as BSON has it: before every time


@dataclass(frozen=True, slots=True)
class Due:
    """A lane that may be taken, or may be soon.

    Attributes:
        user_id: whose.
        due: since when, as the lane says it.
        wait: seconds until then, by the server's clock; 0 or less when it may be taken.
    """

    user_id: str
    due: datetime
    wait: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A lane that this worker holds until its lease ends.

    Attributes:
        user_id: whose.
        token: names the lease.
        jobs: what was taken, in order; never empty.
        attempts: how often the lane was taken since it last got on, this time included.
        turn: how often it was taken ever: who took it later has a greater one.
    """

    user_id: str
    token: str
    jobs: Sequence[Queued]
    attempts: int
    turn: int


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a job: its result, its error, or neither as long as it waits."""

    result: Any = None
    error: AsyncMemError | None = None


class Jobs:
    """Reads and writes one database's queue of memories, or of profiles of one name.

    Args:
        core: the database.
        results: writes down what came of jobs.
        profile: the profiles' name.

    Attributes:
        results: writes down what came of jobs.
    """

    def __init__(self, core: Core, results: Results, profile: str | None = None) -> None:
        self._core = core
        self.results = results
        self._about: Row = {} if profile is None else {"profile": profile}
        self._lanes = core.collections.jobs if profile is None else core.collections.profile_jobs
        settings = core.settings
        self._keep = Keeping(settings.result_memory, max(settings.retention, timedelta(hours=1)))

    def _lane(self, user_id: str) -> Row:
        name = ":".join((user_print(user_id), *self._about.values()))
        return {"_id": name, "user_id": user_id, **self._about}

    async def enqueue(self, user_id: str, job: NewJob, *, flush: bool) -> str:
        """Put a job into its user's lane; its id, or that of the same job where it waits already. One write.

        Raises:
            BacklogFullError: too much of this user's waits already.
        """
        settings = self._core.settings
        update = lanes.enqueue(
            job, most=settings.backlog_per_user, debounce=settings.debounce, flush=flush, keep=self._keep
        )
        options: Row = {"projection": {"last": 1}, "upsert": True, "return_document": ReturnDocument.AFTER}
        async with self._core.calling():
            for _ in range(ATTEMPTS):
                with suppress(DuplicateKeyError):  # somebody else made the lane at the same moment
                    row = await self._lanes.find_one_and_update(self._lane(user_id), update, **options)
                    # SecantusDB may answer without it where others write to the lane meanwhile; again changes nothing
                    if row is not None and "last" in row:
                        break
            else:
                raise StoreTimeoutError("others write to this user's lane meanwhile: try again", retryable=True)
        last: Row = row["last"]
        if last["how"] == "full":
            raise BacklogFullError(
                f"{settings.backlog_per_user:,} captures of this user wait already, or dead letters fill the place:"
                " schedule it again later; see queue_status() and retry_dead()"
            )
        return str(last["id"])

    async def due(self, limit: int) -> list[Due]:
        """The lanes that may be taken first, of everybody, in the order of their turn: a scan of the index."""
        begin: list[Row] = [
            {"$match": {**self._about, "due": {"$gt": _EVER}}},
            {"$sort": {"due": 1}},
            {"$limit": limit},
        ]
        begin.append({"$project": {"user_id": 1, "due": 1, "now": lanes.NOW}})
        async with self._core.calling():
            cursor = await self._lanes.aggregate(begin)
            rows = await cursor.to_list()
        return [Due(row["user_id"], row["due"], (row["due"] - row["now"]).total_seconds()) for row in rows]

    async def claim(self, due: Due) -> Claim | None:
        """Take a lane, unless somebody else was faster."""
        token = uuid4().hex
        options: Row = {
            "projection": {"jobs": {"$slice": lanes.FOLD}, "taken": 1, "attempts": 1, "turn": 1},
            "return_document": ReturnDocument.AFTER,
        }
        query = {**self._lane(due.user_id), "due": due.due}
        async with self._core.calling():
            row = await self._lanes.find_one_and_update(query, lanes.claim(token, self._core.settings.lease), **options)
        if row is None:
            return None
        jobs = [queued(due.user_id, job) for job in row["jobs"][: row["taken"]]]
        return Claim(due.user_id, token, jobs, row["attempts"], row["turn"])

    async def beat(self, claim: Claim) -> bool:
        """Lengthen a lease; whether it still is ours."""
        return await self._step(claim, [{"$set": {"due": lanes.later(self._core.settings.lease)}}])

    async def finish(self, claim: Claim, count: int, result: Any) -> bool:
        """Take the first jobs out as done, keep their result for a while, and end the lease; whether it was ours."""
        ids = [job.id for job in claim.jobs[:count]]
        return await self._step(claim, lanes.finish(ids, self.results.pack(result), self._keep))

    async def drop(self, user_id: str, ids: Sequence[str], token: str | None = None) -> bool:
        """Forget jobs whose user was erased since they began, and end the lease; whether it was ours.

        Args:
            user_id: whose.
            ids: which.
            token: names the lease; ``None`` for jobs that nobody has taken.
        """
        lane = self._lane(user_id)
        async with self._core.calling():
            update = lanes.finish(ids, None, self._keep)
            found = await self._lanes.update_one({**lane, "holder": token}, update)
            await self._lanes.delete_one({**lane, "waiting": 0, "dead": [], "results": []})
        return found.matched_count > 0

    async def bury(self, claim: Claim, error: BaseException) -> bool:
        """Set the first job aside as a dead letter, and end the lease; whether it was ours."""
        return await self._step(claim, lanes.bury(claim.jobs[0].id, pack_error(error), self._keep))

    async def give_back(
        self, claim: Claim, pause: timedelta = timedelta(), *, counted: bool = True, solo: bool = False
    ) -> bool:
        """End the lease; what was taken waits again."""
        return await self._step(claim, lanes.give_back(pause, counted=counted, solo=solo))

    async def _step(self, claim: Claim, update: list[Row]) -> bool:
        query = {**self._lane(claim.user_id), "holder": claim.token}
        async with self._core.calling():
            return (await self._lanes.update_one(query, update)).matched_count > 0

    async def find(self, user_id: str, job_id: str) -> Found:
        """What became of a job."""
        picked = {
            name: {"$filter": {"input": f"${name}", "as": "r", "cond": {"$eq": ["$$r.id", job_id]}}}
            for name in ("jobs", "dead", "results")
        }
        known = {"jobs": {"$size": picked["jobs"]}, "results": picked["results"], "dead": picked["dead"]}
        slim: list[Row] = [{"$match": self._lane(user_id)}, {"$project": known}, {"$project": {"dead.body": 0}}]
        async with self._core.calling():
            rows = await (await self._lanes.aggregate(slim)).to_list()
        row = rows[0] if rows else {}
        if row.get("results"):
            stored = row["results"][0]
            return Found(await self.results.unpack(user_id, stored))
        if row.get("jobs"):
            return Found()
        if row.get("dead"):
            return Found(error=unpack_error(row["dead"][0]["error"]))
        return Found(error=TicketExpiredError("nothing is kept of this capture: its result expired, or it was erased"))

    async def waiting(self, user_id: str, limit: int) -> list[Queued]:
        """A user's newest jobs that are not done, oldest first."""
        async with self._core.calling():
            row = await self._lanes.find_one(self._lane(user_id), {"jobs": {"$slice": -limit}})
        return [queued(user_id, job) for job in (row or {}).get("jobs", ())]

    async def flush(self) -> None:
        """Let everybody's jobs go that wait for debounce alone: a scan of the index."""
        async with self._core.calling():
            await self._lanes.update_many({**self._about, "since": {"$gt": _EVER}}, lanes.flush())

    async def status(self, until: datetime | None = None) -> tuple[QueueStatus, datetime | None]:
        """What the whole queue looks like, and the server's time. Read from the index alone.

        Args:
            until: count only lanes whose oldest job was scheduled by then.
        """
        held: Row = {"$cond": [{"$gt": ["$due", lanes.NOW]}, {"$ifNull": ["$taken", 0]}, 0]}
        sums: Row = {"count": {"$sum": "$waiting"}, "held": {"$sum": held}, "since": {"$min": "$since"}}
        bounds: Row = {"$gt": _EVER} if until is None else {"$gt": _EVER, "$lte": until}
        row = await self._total({"since": bounds}, sums)
        dead = await self._total({"dead_count": {"$gt": 0}}, {"count": {"$sum": "$dead_count"}})
        if not row:
            return QueueStatus(dead=dead.get("count", 0)), None
        oldest = row["now"] - row["since"]
        return QueueStatus(row["count"] - row["held"], oldest, row["held"], dead.get("count", 0)), row["now"]

    async def _total(self, query: Row, sums: Row) -> Row:
        pipeline: list[Row] = [
            {"$match": {**self._about, **query}},
            {"$group": {"_id": None, **sums}},
            {"$set": {"now": lanes.NOW}},
        ]
        async with self._core.calling():
            rows = await (await self._lanes.aggregate(pipeline)).to_list()
        return rows[0] if rows else {}

    async def retry_dead(self, user_id: str | None) -> int:
        """Let one user's dead letters, or everybody's, wait again; how many there were."""
        query: Row = {**self._about, "dead_count": {"$gt": 0}} if user_id is None else self._lane(user_id)
        async with self._core.calling():
            cursor = self._lanes.find(query, {"user_id": 1})
            users = [row["user_id"] async for page in pages(cursor) for row in page]
        return sum([await self._revive(user) for user in users])

    async def _revive(self, user_id: str) -> int:
        options: Row = {"projection": {"dead_count": 1}, "return_document": ReturnDocument.BEFORE}
        async with self._core.calling():
            update = lanes.revive(self._keep)
            row = await self._lanes.find_one_and_update(self._lane(user_id), update, **options)
        return int((row or {}).get("dead_count", 0))

    async def erase(self, user_id: str) -> int:
        """Forget a user's jobs, whatever became of them; how many there were."""
        async with self._core.calling():
            row: Row = await self._lanes.find_one_and_delete(self._lane(user_id)) or {}
        return sum(len(row.get(name) or ()) for name in ("jobs", "dead", "results"))

    async def watch(self) -> AsyncGenerator[str, None]:
        """The name of a lane (``lane_id``) each time that somebody schedules or finishes a job: a change stream."""
        changed: list[Row] = [
            {"operationType": "insert"},
            *({f"updateDescription.updatedFields.{name}": {"$exists": True}} for name in ("pushed", "finished")),
        ]
        pipeline: list[Row] = [{"$match": {"$or": changed}}, {"$project": {"documentKey": 1}}]
        with translated():
            async with await self._lanes.watch(pipeline, max_await_time_ms=10_000) as stream:
                yield ""  # it sees what comes from now on
                async for event in stream:
                    yield event["documentKey"]["_id"]
