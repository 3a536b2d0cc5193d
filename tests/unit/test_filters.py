"""Filters: what is taken, what is refused, and the queries they become."""

from datetime import UTC, datetime
from typing import Any

import pytest

from asyncmem.errors import InvalidQueryError
from asyncmem.filters import NO_FILTERS, Filters, Range, clean_filters
from asyncmem.store.queries import scoped
from asyncmem.types import Scope

NOW = datetime(2026, 1, 5, tzinfo=UTC)
ALIVE = {"user_id": "lin", "expires_at": {"$not": {"$lte": NOW}}}


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ({}, {}),
        ({"topics": ["a", "b"]}, {"topics": {"$in": ["a", "b"]}}),
        ({"topics": ["a"], "topics_all": ["b"]}, {"topics": {"$in": ["a"], "$all": ["b"]}}),
        ({"updated_after": "2026-01-01"}, {"updated_at": {"$gte": datetime(2026, 1, 1, tzinfo=UTC)}}),
        (
            {"created_after": 0, "created_before": NOW},
            {"created_at": {"$gte": datetime(1970, 1, 1, tzinfo=UTC), "$lt": NOW}},
        ),
        ({"metadata": {"a": "$b", "c": None}}, {"metadata.a": {"$eq": "$b"}, "metadata.c": {"$eq": None}}),
        ({"metadata": {"a": Range(gt=1, lte=2.5)}}, {"metadata.a": {"$gt": 1, "$lte": 2.5}}),
    ],
)
def test_filters_become_queries(given: dict[str, Any], query: dict[str, Any]) -> None:
    """Each filter is one condition beside the user's."""
    filters = clean_filters(**given)
    assert scoped(Scope("lin"), NOW, filters) == ALIVE | query
    assert bool(filters) is bool(given)


@pytest.mark.parametrize(
    "bounds",
    [{}, {"gte": True}, {"gte": 1, "lt": "b"}, {"lt": float("inf")}, {"gt": 2**63}, {"gte": [1]}, {"lte": "\ud800"}],
)
def test_ranges_need_bounds_of_one_kind(bounds: dict[str, Any]) -> None:
    """A range without bounds, of mixed kinds, or of what can't be compared is an error."""
    with pytest.raises(InvalidQueryError):
        Range(**bounds)


def test_values() -> None:
    """Filters are equal by value, and the empty one is false."""
    assert clean_filters() == NO_FILTERS == Filters()
    assert not NO_FILTERS
    assert Range(gte=1, lt=3).bounds == {"gte": 1, "lt": 3}
