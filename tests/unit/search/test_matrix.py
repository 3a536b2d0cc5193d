"""The matrix of blocks says what one array would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.search.matrix import BLOCK, Matrix


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5])
def test_it_says_what_one_array_would(count: int) -> None:
    """Products, masked sums and picked rows are those of the rows in one array, whatever the number of blocks."""
    chance = np.random.default_rng(count)
    rows = chance.standard_normal((count, 7)).astype(np.float32)
    query, has = chance.standard_normal(7).astype(np.float32), chance.random(count) < 0.5
    matrix = Matrix.of(rows)
    assert np.allclose(matrix.dot(query)[:count], rows @ query, atol=1e-5)
    assert np.allclose(matrix.total(has), has.astype(np.float32) @ rows if count else 0, atol=1e-3)
    slots = chance.integers(0, count, 20) if count else np.empty(0, np.int64)
    assert np.array_equal(matrix.pick(slots), rows[slots] if count else np.empty((0, 0), np.float32))


@given(st.lists(st.integers(0, 3 * BLOCK), max_size=8, unique=True))
def test_rows_that_were_not_set_are_zero(slots: list[int]) -> None:
    """Rows may be set in any order and with gaps; what is between them is zero."""
    matrix = Matrix()
    for slot in slots:
        matrix.put(slot, np.ones(3, np.float32))
    found = matrix.dot(np.ones(3, np.float32))
    assert np.flatnonzero(found).tolist() == sorted(slots)
    assert matrix.size == 3 * len(matrix) == 3 * len(found)
