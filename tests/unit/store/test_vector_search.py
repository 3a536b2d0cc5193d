"""MongoDB's own vector search: which index is taken, and what it is asked."""

from typing import Any

import numpy as np
import pytest
from bson.binary import Binary

from asyncmem.store.vector_search import definition, pipeline, to_cosine, usable
from asyncmem.store.vectors import from_vector, to_vector


def listed(**changes: Any) -> dict[str, Any]:
    """An index as the server lists it."""
    ours = {"name": "ours", "type": "vectorSearch", "queryable": True, "latestDefinition": definition(4)}
    return {**ours, **changes}


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (listed(), "ours"),
        (listed(queryable=False), None),
        (listed(type="search"), None),
        (listed(latestDefinition=definition(8)), None),
        (listed(latestDefinition={"fields": definition(4)["fields"][:2]}), None),
        (listed(latestDefinition=None), None),
        ({}, None),
    ],
)
def test_only_an_index_that_filters_by_user_and_model_is_taken(index: dict[str, Any], expected: str | None) -> None:
    """It must be queryable, of the right length, and able to keep users and models apart."""
    assert usable([index], 4) == expected
    assert usable([{}, index], 4) == expected


def test_the_user_is_part_of_the_indexs_own_filter() -> None:
    """The query names user and model inside $vectorSearch, and enough candidates for its limit."""
    query = np.array([1, 0, 0, 0], "<f4").tobytes()
    search, project = pipeline("ours", "lin", "m", query, 30)
    assert search["$vectorSearch"] == {
        "index": "ours",
        "path": "vector.data",
        "queryVector": Binary(b"\x27\x00" + query, 9),
        "numCandidates": 600,
        "limit": 30,
        "filter": {"user_id": {"$eq": "lin"}, "vector.model": {"$eq": "m"}},
    }
    assert project == {"$project": {"_id": 1, "score": {"$meta": "vectorSearchScore"}}}
    assert pipeline("ours", "lin", "m", query, 550)[0]["$vectorSearch"]["numCandidates"] == 10_000
    assert (to_cosine(1.0), to_cosine(0.5), to_cosine(0.0)) == (1.0, 0.0, -1.0)


def test_a_stored_vector_is_read_only_if_it_is_whole_and_right() -> None:
    """Another model, another text, a torn value and what is no vector are none."""
    values = np.array([1, 2], "<f4").tobytes()
    stored = to_vector("m", "tea", values)
    assert from_vector(stored, "m") == from_vector(stored, "m", "tea") == values
    assert from_vector(stored, "m", "coffee") is None
    assert from_vector(stored, "n") is None
    assert from_vector(stored, None) is None
    assert from_vector(None, "m") is None
    for torn in ({"dims": 3}, {"data": b"\x03\x00" + values}, {"data": [1.0, 2.0]}, {"dims": 0, "data": b"\x27\x00"}):
        assert from_vector({**stored, **torn}, "m") is None
