"""Fusion: one score from two, and what neighbours in time lend."""

import numpy as np
import pytest

from asyncmem.search.fusion import NEAR, NEIGHBOUR, fuse, neighbours, reciprocal_ranks

INF = float("inf")


def arrays(*rows: tuple[float, float, float]) -> tuple[np.ndarray, ...]:
    keyword, semantic, updated = (np.array(column) for column in zip(*rows, strict=True))
    return (
        keyword.astype(np.float32),
        semantic.astype(np.float32),
        updated,
        np.arange(len(rows)),
        np.ones(len(rows), np.bool_),
    )


def test_the_union_is_scored() -> None:
    """What either method found has a score, what both found the highest, what neither found none."""
    far = 10 * NEAR
    scores = fuse(*arrays((3, 0.9, 0), (3, -INF, far), (0, 0.9, 2 * far), (0, -INF, 3 * far), (1, 0.1, 4 * far)))
    assert scores.argmax() == 0
    assert np.isfinite(scores).tolist() == [True, True, True, False, True]


def test_only_allowed_slots_are_scored() -> None:
    """A slot that is not allowed has no score and lends none."""
    keyword, semantic, updated, inserted, allowed = arrays((3, 0.9, 0), (1, 0.1, 1), (1, 0.1, 10 * NEAR))
    allowed[0] = False
    scores = fuse(keyword, semantic, updated, inserted, allowed)
    assert scores[0] == -INF
    assert scores[1] == scores[2]


def test_neighbours_in_time_lend_their_score() -> None:
    """A memory gets a part of its better neighbour's score if that one is near in time, whatever the slots."""
    found = np.ones(4, np.bool_)
    scores = np.array([0.1, 0.8, 0.3, 0.5], np.float32)
    updated = np.array([100, 50, 50 + NEAR * 3, -INF])
    lent = neighbours(scores, updated, np.arange(4), found)
    assert lent.tolist() == pytest.approx([0.8, 0.1, 0.0, 0.0])
    assert 0 < NEIGHBOUR < 1


def test_one_score_or_none_is_no_division_by_zero() -> None:
    """Equal scores, one row and no row give finite numbers."""
    assert np.isfinite(fuse(*arrays((2, 0.5, 0), (2, 0.5, 1)))).all()
    assert np.isfinite(fuse(*arrays((2, -INF, -INF)))).all()
    empty = np.empty(0, np.float32)
    assert len(fuse(empty, empty, np.empty(0), np.empty(0, np.int64), np.empty(0, np.bool_))) == 0


def test_reciprocal_ranks() -> None:
    """The first has 1/61, the second 1/62; what was not found has 0."""
    given = reciprocal_ranks(np.array([1, 9, 5], np.float32), np.array([True, True, False]))
    assert given.tolist() == pytest.approx([1 / 62, 1 / 61, 0])
