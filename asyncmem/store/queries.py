"""Filters, sort orders and cursors as MongoDB understands them (pure)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..filters import NO_FILTERS, Filters, Range
from ..types import Scope
from .documents import Row

_INNER = ("history", "key", "seq", "kind", "cause", "at", "prints", "tokens", "stamp", "vector")
HIDDEN = dict.fromkeys(_INNER, 0)
"""Left out when memories are read: what a ``UserMemory`` has no field for."""


def alive(now: datetime) -> Row:
    """Not expired, whether or not the server has swept yet. Rows without the field pass."""
    return {"expires_at": {"$not": {"$lte": now}}}


def scoped(scope: Scope, now: datetime, filters: Filters = NO_FILTERS) -> Row:
    """One user's living memories, by agent, team and filters where given."""
    query: Row = {"user_id": scope.user_id, **alive(now)}
    if scope.agent_id is not None:
        query["agent_id"] = scope.agent_id
    if scope.team_id is not None:
        query["team_id"] = scope.team_id
    return query | _narrowed(filters)


def _narrowed(filters: Filters) -> Row:
    query: Row = {}
    if filters.topics:
        query["topics"] = {"$in": list(filters.topics)}
    if filters.topics_all:
        query.setdefault("topics", {})["$all"] = list(filters.topics_all)
    for field in ("created", "updated"):
        after, before = getattr(filters, f"{field}_after"), getattr(filters, f"{field}_before")
        bounds = {name: value for name, value in (("$gte", after), ("$lt", before)) if value is not None}
        if bounds:
            query[f"{field}_at"] = bounds
    for key, wanted in filters.metadata:
        bounds = {f"${name}": v for name, v in wanted.bounds.items()} if isinstance(wanted, Range) else {"$eq": wanted}
        query[f"metadata.{key}"] = bounds
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
