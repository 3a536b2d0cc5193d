"""MongoDB's own vector search: whether the server has an index of ours, and what it is asked (pure)."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from .binary import as_binary
from .documents import Row

PATH = "vector.data"
_FILTERS = {"user_id", "vector.model"}
_MOST = 10_000
"""Source: MongoDB's manual, $vectorSearch: at most 10,000 candidates, and 20 times the limit advised."""


def definition(dims: int) -> Row:
    """The definition of an index that this search uses, as ``createSearchIndexes`` takes it."""
    fields: list[Row] = [{"type": "vector", "path": PATH, "numDimensions": dims, "similarity": "cosine"}]
    return {"fields": [*fields, *({"type": "filter", "path": path} for path in sorted(_FILTERS))]}


def usable(indexes: Iterable[Mapping[str, Any]], dims: int) -> str | None:
    """The name of the first index that can be queried and filters by user and model; ``None`` without one."""
    for index in indexes:
        fields = cast("list[Row]", dict(index.get("latestDefinition") or {}).get("fields") or [])
        vector = {"path": PATH, "numDimensions": dims, "similarity": "cosine"}
        filters = {field.get("path") for field in fields if field.get("type") == "filter"}
        has = any(vector.items() <= field.items() for field in fields)
        if index.get("type") == "vectorSearch" and index.get("queryable") and has and filters >= _FILTERS:
            return str(index["name"])
    return None


def pipeline(index: str, user_id: str, model: str, query: bytes, limit: int) -> list[Row]:
    """One user's memories whose vectors are nearest to the query's; the user is part of the index's own filter.

    Args:
        index: the index's name.
        user_id: whose memories.
        model: whose vectors.
        query: float32 values.
        limit: how many.
    """
    search: Row = {
        "index": index,
        "path": PATH,
        "queryVector": as_binary(query),
        "numCandidates": min(_MOST, max(200, 20 * limit)),
        "limit": limit,
        "filter": {"user_id": {"$eq": user_id}, "vector.model": {"$eq": model}},
    }
    return [{"$vectorSearch": search}, {"$project": {"_id": 1, "score": {"$meta": "vectorSearchScore"}}}]


def to_cosine(score: float) -> float:
    """The cosine behind a score. Source: MongoDB's manual: the score is half of one plus the cosine."""
    return 2 * score - 1
