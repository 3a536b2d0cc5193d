"""Fusion: one score from two, what neighbours in time lend, and what a date in the query adds."""

from datetime import UTC, datetime

import numpy as np
import pytest

from asyncmem.dates import Date
from asyncmem.search.fusion import DATED, FADING, NEAR, NEIGHBOUR, SOON, dated, fuse, neighbours, pairs

INF = float("inf")


def arrays(*rows: tuple[float, float, float]) -> tuple[np.ndarray, ...]:
    keyword, meaning, updated = (np.array(column) for column in zip(*rows, strict=True))
    return (
        keyword.astype(np.float32),
        meaning.astype(np.float32),
        updated,
        np.arange(len(rows)),
        np.ones(len(rows), np.bool_),
    )


def at(*texts: str) -> np.ndarray:
    return np.array([datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() for text in texts])


def test_the_union_is_scored() -> None:
    """What either method found has a score, what both found the highest, what neither found none."""
    far = 10 * NEAR
    scores = fuse(*arrays((3, 0.9, 0), (3, -INF, far), (0, 0.9, 2 * far), (0, -INF, 3 * far), (1, 0.1, 4 * far)))
    assert scores.argmax() == 0
    assert np.isfinite(scores).tolist() == [True, True, True, False, True]


def test_only_allowed_slots_are_scored() -> None:
    """A slot that is not allowed has no score and lends none."""
    keyword, meaning, updated, inserted, allowed = arrays((3, 0.9, 0), (1, 0.1, 1), (1, 0.1, 10 * NEAR))
    allowed[0] = False
    scores = fuse(keyword, meaning, updated, inserted, allowed)
    assert scores[0] == -INF
    assert scores[1] == scores[2]


def test_neighbours_in_time_lend_their_score() -> None:
    """A memory gets its best neighbour's score, less from further away, none across a pause, whatever the slots."""
    found = np.ones(6, np.bool_)
    scores = np.array([0.1, 0.8, 0.3, 0.5, 0.2, 0.4], np.float32)
    updated = np.array([100, 50, 50 + NEAR * 3, -INF, 150, 200])  # in time: 1, 0, 4, 5, a pause, 2
    lent = neighbours(scores, updated, np.arange(6), found)
    assert lent.tolist() == pytest.approx([0.8, 0.2 * FADING, 0.0, 0.0, 0.8 * FADING, 0.2])


def test_neighbours_lend_as_far_as_they_are_kin() -> None:
    """Where neighbours have nothing to do with each other, they lend nothing; by half, half."""
    rows = arrays((3, 0.9, 0), (0, 0.1, 1), (1, 0.5, 10 * NEAR))
    alone, by_half, full = (fuse(*rows, kinship=kinship) for kinship in (0, 0.5, 1))
    assert alone[1] == 0
    assert full[1] == pytest.approx(NEIGHBOUR)
    assert by_half[1] == pytest.approx(NEIGHBOUR / 2)
    assert alone[2] == by_half[2] == full[2]


def test_pairs_lie_in_one_conversation() -> None:
    """Pairs are in order of time, equal times in order of insertion, and no pair reaches over a pause."""
    updated = np.array([5.0, 5.0, 0.0, -INF, 2 * NEAR, 2 * NEAR + 1])
    inserted = np.array([2, 1, 3, 4, 5, 6])
    among = np.ones(6, np.bool_)

    def listed(step: int) -> list[tuple[int, int]]:
        before, after = pairs(updated, inserted, among, step)
        return list(zip(before.tolist(), after.tolist(), strict=True))

    assert listed(1) == [(2, 1), (1, 0), (4, 5)]
    assert listed(2) == [(2, 0)]
    assert listed(9) == []


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (Date(5), [1, 1, 1, 0, 1, 0]),
        (Date(5, 2023), [1, 1, 1, 0, 0, 0]),
        (Date(5, 2023, 8), [1, 1 / 2, SOON, 0, 0, 0]),
        (Date(5, None, 8), [1, 1 / 2, SOON, 0, SOON, 0]),
        (Date(12), [0, 0, 0, 0, 0, 0]),
    ],
)
def test_times_fit_dates(date: Date, expected: list[float]) -> None:
    """The day or month itself fits best, another day of the month less, an unknown time and another month not."""
    updated = np.append(at("2023-05-08T23:59", "2023-05-07", "2023-05-31", "2023-06-08", "1969-05-01"), -INF)
    assert dated(updated, [date]).tolist() == pytest.approx(expected)


def test_a_date_in_the_query_adds_to_what_is_of_that_time() -> None:
    """Of two equal memories the one of the month that is asked for is better, by no more than the weight of dates; the
    better of several dates counts."""
    (may, june), same = at("2023-05-08", "2023-06-08"), np.ones(2, np.float32)
    rows = (same, same, np.array([may, june]), np.arange(2), np.ones(2, np.bool_))
    plain, of_june, of_both = (fuse(*rows, dates=dates) for dates in ([], [Date(6)], [Date(6), Date(5, 2023, 8)]))
    assert plain[0] == plain[1]
    assert (of_june - plain).tolist() == pytest.approx([0, DATED])
    assert (of_both - plain).tolist() == pytest.approx([DATED, DATED])


def test_one_score_or_none_is_no_division_by_zero() -> None:
    """Equal scores, one row and no row give finite numbers."""
    assert np.isfinite(fuse(*arrays((2, 0.5, 0), (2, 0.5, 1)))).all()
    assert np.isfinite(fuse(*arrays((2, -INF, -INF)))).all()
    empty = np.empty(0, np.float32)
    assert len(fuse(empty, empty, np.empty(0), np.empty(0, np.int64), np.empty(0, np.bool_), dates=[Date(1)])) == 0
