"""Vectors seen from their mean."""

import numpy as np
import pytest

from asyncmem.search.centring import DOUBT, KIN, Centred
from asyncmem.search.matrix import Matrix


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def crowd(rows: int, seed: int = 1, common: float = 2.0) -> np.ndarray:
    """Vectors of chance that share a direction."""
    vectors = np.random.default_rng(seed).normal(size=(rows, 16)) / 4
    vectors[:, 0] += common
    return unit(vectors)


def test_cosines_are_those_from_the_mean() -> None:
    """Each score is the cosine of the differences to the mean, computed one by one; without a vector there is none."""
    matrix, query = crowd(50), crowd(1, 9)[0]
    has = np.arange(50) % 5 != 0
    mean = matrix[has].sum(0) / (has.sum() + DOUBT)
    scores = Centred(Matrix.of(matrix), has).cosines(query)
    for slot in range(50):
        if has[slot]:
            assert scores[slot] == pytest.approx(unit(matrix[slot] - mean) @ unit(query - mean), abs=1e-5)
        else:
            assert scores[slot] == -np.inf


def test_what_all_have_in_common_is_taken_away() -> None:
    """Where all vectors point one way, plain cosines are all high, and centred ones around 0."""
    matrix = crowd(400)
    assert (matrix @ matrix[0]).mean() > 0.6
    assert abs(Centred(Matrix.of(matrix), np.ones(400, np.bool_)).cosines(matrix[0])[1:].mean()) < 0.1


def test_slots_without_rows_of_the_matrix() -> None:
    """A matrix may be shorter than the slots, longer, or have no rows at all."""
    matrix, query = crowd(3), crowd(1, 9)[0]
    short = Centred(Matrix.of(matrix), np.array([True, True, True, False, False])).cosines(query)
    long = Centred(Matrix.of(np.vstack([matrix, crowd(9, 3)])), np.ones(3, np.bool_)).cosines(query)
    assert short[:3].tolist() == pytest.approx(long.tolist())
    assert short[3:].tolist() == [-np.inf] * 2
    nothing = Centred(Matrix.of(np.empty((0, 0), np.float32)), np.zeros(2, np.bool_))
    assert nothing.cosines(query).tolist() == [-np.inf] * 2
    assert nothing.kinship(np.array([0]), np.array([1])) == 0


def test_one_memory_keeps_its_direction() -> None:
    """A single memory is not its own mean: what is like it is still near."""
    one = Centred(Matrix.of(np.array([[1, 0]], np.float32)), np.ones(1, np.bool_))
    assert one.cosines(np.array([1, 0], np.float32))[0] > 0.99
    assert one.cosines(np.array([0, 1], np.float32))[0] < 0.1


def test_kinship_of_conversations_and_of_chance() -> None:
    """Neighbours of one subject are kin, neighbours by chance are not, and a few pairs prove little."""
    subjects = np.repeat(crowd(300, 2), 6, axis=0)
    matrix = unit(subjects + 0.2 * crowd(1_800, 5))
    has, slots = np.ones(1_800, np.bool_), np.arange(1_800)
    centred = Centred(Matrix.of(matrix), has)
    assert centred.kinship(slots[:-1], slots[1:]) == 1
    shuffled = np.random.default_rng(4).permutation(1_800)
    assert centred.kinship(shuffled[:-1], shuffled[1:]) < 0.2
    few = centred.kinship(slots[:1], slots[1:2])
    assert 0 < few == pytest.approx(1 / (1 + DOUBT) / KIN, rel=0.1)


def test_kinship_asks_only_pairs_with_vectors() -> None:
    """A pair of which one has no vector counts as no pair; opposites are no kin rather than less than none."""
    matrix = np.array([[1, 0], [-1, 0], [1, 0], [9, 9]], np.float32)
    centred = Centred(Matrix.of(matrix), np.array([True, True, True, False]))
    assert centred.kinship(np.array([0, 1, 2]), np.array([1, 2, 3])) == 0
    assert centred.kinship(np.array([0, 2]), np.array([2, 3])) == centred.kinship(np.array([0]), np.array([2])) > 0
