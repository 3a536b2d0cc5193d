"""Filters, sort orders and cursors as MongoDB understands them (pure)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ..errors import InvalidQueryError
from ..types import Scope, clean_id
from .documents import Row

HIDDEN = {"history": 0, "key": 0}
"""Left out when memories are listed."""


def clean_limit(limit: object) -> int:
    """The limit as MongoDB takes it: 0 is all, and so are ``None`` and negative numbers.

    Raises:
        InvalidQueryError: it is not a whole number.
    """
    if limit is None:
        return 0
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise InvalidQueryError(f"limit must be an int or None, not {type(limit).__name__}")
    return min(max(limit, 0), 2**31 - 1)


def clean_scope(user_id: object, agent_id: object = None, team_id: object = None) -> Scope:
    """The scope, if all its ids are usable strings.

    Raises:
        InvalidIdError: one is not.
    """
    return Scope(
        clean_id(user_id, "user_id"),
        None if agent_id is None else clean_id(agent_id, "agent_id"),
        None if team_id is None else clean_id(team_id, "team_id"),
    )


def clean_filter_topics(topics: object) -> list[str]:
    """The topics to filter by.

    Raises:
        InvalidQueryError: not a sequence of text.
    """
    if topics is None:
        return []
    if isinstance(topics, str) or not isinstance(topics, Sequence):
        raise InvalidQueryError(f"topics must be a list of str, not {type(topics).__name__}")
    for topic in topics:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(topic, str):
            raise InvalidQueryError(f"a topic must be a str, not {type(topic).__name__}")  # pyright: ignore[reportUnknownArgumentType]
    return list(topics)  # pyright: ignore[reportUnknownArgumentType]


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
