"""Filters, sort orders and cursors as MongoDB understands them (pure)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ..types import Scope
from .documents import Row

HIDDEN = {"history": 0, "key": 0, "seq": 0, "kind": 0, "cause": 0, "at": 0}
"""Left out when memories are read: what a ``UserMemory`` has no field for."""


def alive(now: datetime) -> Row:
    """Not expired, whether or not the server has swept yet. Rows without the field pass."""
    return {"expires_at": {"$not": {"$lte": now}}}


def scoped(scope: Scope, now: datetime, topics: Sequence[str] = ()) -> Row:
    """One user's living memories, by agent, team and any of the topics where given."""
    query: Row = {"user_id": scope.user_id, **alive(now)}
    if scope.agent_id is not None:
        query["agent_id"] = scope.agent_id
    if scope.team_id is not None:
        query["team_id"] = scope.team_id
    if topics:
        query["topics"] = {"$in": list(topics)}
    return query


def one(user_id: str, memory_id: str, now: datetime) -> Row:
    """One living memory of one user."""
    return {"_id": memory_id, "user_id": user_id, **alive(now)}


def exact(row: Mapping[str, Any]) -> Row:
    """This very revision of this row. A row of other software has no revision yet."""
    revision = row.get("revision")
    return {
        "_id": row["_id"],
        "user_id": row["user_id"],
        "revision": {"$exists": False} if revision is None else revision,
    }


def after_row(query: Row, row: Mapping[str, Any]) -> Row:
    """``query``, from behind ``row`` in oldest-first order. Rows without a time come first."""
    time, seq, key = row.get("updated_at"), row.get("seq"), row["_id"]
    later: list[Row] = [{"updated_at": time, "seq": seq, "_id": {"$gt": key}}]
    later.append({"updated_at": time, "seq": {"$gt": seq} if seq is not None else {"$ne": None}})
    later.append({"updated_at": {"$gt": time} if time is not None else {"$ne": None}})
    return {**query, "$or": later}
