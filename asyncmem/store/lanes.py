"""The updates that a user's lane in the queue goes through, as MongoDB carries them out (pure).

A lane is one document a user: what waits (``jobs``), what was set aside (``dead``), what came of the rest
(``results``). Every step of a job is therefore one write of one document, whole on any server. Times are the
server's own (``$$NOW``): a client's clock decides nothing.

``due`` is when the lane may be taken next; whoever takes it moves ``due`` to the end of the lease, and a lane whose
worker died is simply due again. ``turn`` counts how often it was taken. ``ready`` is when debounce lets the waiting
jobs go. ``attempts`` counts takes since the lane last got on, and ``solo`` says that its first job is to be taken
alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..modes import LearningMode
from .documents import Row

NOW: Row = {"$toDate": {"$toLong": "$$NOW"}}
"""The server's time. Through a number, because SecantusDB compares no stored time with its own ``$$NOW``."""
GONE = "$$REMOVE"
FOLD = 20
"""Jobs that one capture may be folded from."""
KEPT = 200
"""Results of one user that are kept, the newest."""
MAX_LANE = 12 * 2**20
"""Bytes of conversation that may wait in one lane: a document has 16 MB."""
PATIENCE = 10
"""So many times the debounce is the longest that a job waits for the next one."""
SOLO_FROM = 2
"""A lane that was taken so often without getting on is taken job by job: one of them may be what kills workers."""
_UNCOUNTED = 2**31 - 1
"""In the place of the erasures of a job that has no count."""
_LEASE: Row = {"holder": GONE, "taken": GONE}


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long what came of jobs is kept: results, and dead letters."""

    results: timedelta
    dead: timedelta


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as it is put into its lane.

    Attributes:
        id: what its ticket names.
        mark: tells the same job again while it waits.
        body: the conversation, packed.
        said: the time of the turns that have none.
        agent_id: recorded on what is added.
        team_id: recorded on what is added.
        key: the fingerprint of its idempotency key.
        mode: what of it is applied at once, and what waits as proposals.
        erasures: what ``Captures.begun`` said when what is scheduled began; ``None`` counts when a worker takes it.
    """

    id: str
    mark: bytes
    body: bytes
    said: datetime
    agent_id: str | None = None
    team_id: str | None = None
    key: bytes | None = None
    mode: LearningMode = LearningMode.ALWAYS
    erasures: int | None = None

    def to_row(self) -> Row:
        """What the lane holds of it; the server adds the time."""
        row: Row = {"id": self.id, "mark": self.mark, "body": self.body, "said": self.said}
        row |= {"size": len(self.body), "tries": 0}
        given: Row = {"agent_id": self.agent_id, "team_id": self.team_id, "key": self.key}
        given |= {} if self.mode == LearningMode.ALWAYS else {"mode": self.mode.value}
        given |= {"erasures": self.erasures}
        return row | {name: value for name, value in given.items() if value is not None}


def milliseconds(duration: timedelta) -> int:
    """A duration as MongoDB adds it to a time."""
    return round(duration.total_seconds() * 1000)


def later(duration: timedelta) -> Row:
    """So much later than the server's time now."""
    return {"$add": [NOW, milliseconds(duration)]}


def enqueue(job: NewJob, *, most: int, debounce: timedelta, flush: bool, keep: Keeping) -> list[Row]:
    """Put a job behind the others, unless it waits there already or there are too many; ``last`` says which."""
    twin: Row = {"$eq": ["$$j.mark", {"$literal": job.mark}]}
    # one that began before an erasure is dropped: it must not stand for one that began after it
    as_new = {"$gte": [_or("$$j.erasures", _UNCOUNTED), _UNCOUNTED if job.erasures is None else job.erasures]}
    same = _first({"$filter": {"input": "$jobs", "as": "j", "cond": {"$and": [twin, as_new]}}})
    full = {
        "$or": [
            {"$gte": [{"$add": [{"$size": "$jobs"}, {"$size": "$dead"}]}, most]},
            {"$gt": [{"$add": ["$bytes", len(job.body)]}, MAX_LANE]},
        ]
    }
    accepted = {"$eq": ["$last.how", "accepted"]}
    outcome = _if(full, {"how": "full"}, {"how": "accepted", "id": job.id})
    answer = {"$let": {"vars": {"same": same}, "in": _if(_is_there("$$same"), _repeated("$$same"), outcome)}}
    row = {"$mergeObjects": [{"$literal": job.to_row()}, {"at": NOW}]}
    return [
        {"$set": {"jobs": _or("$jobs", []), "dead": _or("$dead", []), "bytes": _or("$bytes", 0)}},
        {"$set": {"attempts": _or("$attempts", 0), "last": answer}},
        {
            "$set": {
                "jobs": _if(accepted, {"$concatArrays": ["$jobs", [row]]}, "$jobs"),
                "bytes": _if(accepted, {"$add": ["$bytes", len(job.body)]}, "$bytes"),
                "pushed": _if(accepted, job.id, _or("$pushed", "")),
            }
        },
        {"$set": {"ready": _ready(accepted, debounce, flush=flush)}},
        {"$set": {"due": _if(_is_there("$holder"), "$due", _if({"$gt": ["$attempts", 0]}, "$due", "$ready"))}},
        *_settled(keep),
    ]


def _ready(accepted: Row, debounce: timedelta, *, flush: bool) -> Any:
    """When debounce lets the jobs go: what is ready stays so, and nobody is put off for ever."""
    if flush:
        return NOW
    since = {"$let": {"vars": {"first": _first("$jobs")}, "in": "$$first.at"}}
    limit = {"$add": [since, milliseconds(debounce) * PATIENCE]}
    waiting = {"$and": [{"$gt": [{"$size": "$jobs"}, 1]}, {"$lte": [_or("$ready", NOW), NOW]}]}
    return _if(accepted, _if(waiting, "$ready", {"$min": [later(debounce), limit]}), "$ready")


def claim(token: str, lease: timedelta) -> list[Row]:
    """Take a lane until the lease ends. The attempt counts from now on, whatever becomes of the worker."""
    attempts, solo = _or("$attempts", 0), _or("$solo", False)
    alone = {"$or": [solo, {"$gte": [attempts, SOLO_FROM]}]}
    taken = _if("$solo", 1, {"$min": [{"$size": "$jobs"}, FOLD]})
    return [
        {"$set": {"solo": alone}},
        {"$set": {"holder": token, "due": later(lease), "attempts": {"$add": [attempts, 1]}, "taken": taken}},
        {"$set": {"turn": {"$add": [_or("$turn", 0), 1]}}},
    ]


def finish(ids: Sequence[str], result: Row | None, keep: Keeping) -> list[Row]:
    """The jobs leave, their results, if any, stay for a while, the lane goes behind the others that are due."""
    told = [] if result is None else [{**result, "id": name} for name in ids]
    done = [{"$mergeObjects": [{"$literal": row}, {"at": NOW}]} for row in told]
    results = {"$slice": [{"$concatArrays": [_fresh("$results", "at", keep.results), done]}, -KEPT]}
    return [
        {"$set": {"bytes": {"$subtract": ["$bytes", _size_of(ids)]}, "results": results}},
        {"$set": {"jobs": _without(ids), "attempts": 0, "solo": GONE, "finished": ids[0], **_LEASE}},
        {"$set": {"due": {"$max": [NOW, "$ready"]}}},
        *_settled(keep),
    ]


def bury(job_id: str, error: Row, keep: Keeping) -> list[Row]:
    """Set a job aside as a dead letter, with what went wrong; the lane goes on with the next one."""
    picked = {"$filter": {"input": "$jobs", "as": "j", "cond": {"$eq": ["$$j.id", job_id]}}}
    merged: Row = {"$mergeObjects": ["$$j", {"error": {"$literal": error}, "died": NOW}]}
    dead = {"$concatArrays": ["$dead", {"$map": {"input": picked, "as": "j", "in": merged}}]}
    return [
        {"$set": {"dead": dead}},
        {"$set": {"jobs": _without([job_id]), "attempts": 0, "solo": GONE, "finished": job_id, **_LEASE}},
        {"$set": {"due": {"$max": [NOW, "$ready"]}}},
        *_settled(keep),
    ]


def give_back(pause: timedelta, *, counted: bool, solo: bool) -> list[Row]:
    """End a lease before its time.

    Args:
        pause: how long nobody takes the lane.
        counted: the attempt counts.
        solo: the first job is to be taken alone.
    """
    attempts: Any = "$attempts" if counted else {"$max": [0, {"$subtract": ["$attempts", 1]}]}
    changes: Row = {"attempts": attempts, "due": later(pause), "pushed": "", **_LEASE}
    return [{"$set": changes | ({"solo": True} if solo else {})}]


def flush() -> list[Row]:
    """What waits for debounce waits no longer; a lease and a pause after a failure stay as they are."""
    busy = {"$or": [_is_there("$holder"), {"$gt": ["$attempts", 0]}]}
    return [{"$set": {"ready": {"$min": ["$ready", NOW]}, "due": _if(busy, "$due", {"$min": ["$due", NOW]})}}]


def revive(keep: Keeping) -> list[Row]:
    """Let dead letters wait again, behind the others."""
    again: Row = {"tries": {"$add": ["$$j.tries", 1]}, "at": NOW}
    names = ("id", "mark", "body", "said", "size", "agent_id", "team_id", "key", "mode", "erasures")
    kept: Row = {name: f"$$j.{name}" for name in names}
    jobs = {"$concatArrays": ["$jobs", {"$map": {"input": "$dead", "as": "j", "in": {**kept, **again}}}]}
    return [
        {"$set": {"jobs": jobs, "dead": []}},
        {"$set": {"ready": _or("$ready", NOW), "pushed": {"$toString": {"$toLong": NOW}}}},
        {"$set": {"due": _if(_is_there("$holder"), "$due", {"$max": [NOW, "$ready"]})}},
        *_settled(keep),
    ]


def _settled(keep: Keeping) -> list[Row]:
    """What follows from the jobs: counts, the oldest one's time, and when an empty lane may go."""
    first = {"$let": {"vars": {"first": _first("$jobs")}, "in": _or("$$first.at", GONE)}}
    empty, dead = {"$eq": ["$waiting", 0]}, {"$gt": [{"$size": "$dead"}, 0]}
    return [
        {"$set": {"dead": _fresh("$dead", "died", keep.dead), "waiting": {"$size": "$jobs"}, "since": first}},
        {
            "$set": {
                "dead_count": _if(dead, {"$size": "$dead"}, GONE),
                "due": _if(empty, GONE, "$due"),
                "ready": _if(empty, GONE, "$ready"),
                "expire_at": _if(empty, _if(dead, later(keep.dead), later(keep.results)), GONE),
            }
        },
    ]


def _without(ids: Sequence[str]) -> Row:
    return {"$filter": {"input": "$jobs", "as": "j", "cond": {"$not": [{"$in": ["$$j.id", list(ids)]}]}}}


def _size_of(ids: Sequence[str]) -> Row:
    picked = {"$filter": {"input": "$jobs", "as": "j", "cond": {"$in": ["$$j.id", list(ids)]}}}
    return {"$sum": {"$map": {"input": picked, "as": "j", "in": "$$j.size"}}}


def _fresh(path: str, field: str, keep: timedelta) -> Row:
    """The rows of an array that are not older than they may become."""
    since = {"$subtract": [NOW, milliseconds(keep)]}
    return {"$filter": {"input": _or(path, []), "as": "r", "cond": {"$gt": [f"$$r.{field}", since]}}}


def _repeated(job: str) -> Row:
    return {"how": "repeated", "id": f"{job}.id"}


def _first(array: Any) -> Row:
    return {"$arrayElemAt": [array, 0]}


def _or(value: Any, default: Any) -> Row:
    return {"$ifNull": [value, default]}


def _is_there(value: str) -> Row:
    return {"$gt": [value, None]}


def _if(test: Any, then: Any, otherwise: Any) -> Row:
    return {"$cond": [test, then, otherwise]}
