"""BM25: the formula, and rows that come and go."""

import math
import random

import numpy as np
import pytest

from asyncmem.search.bm25 import Bm25


def by_hand(rows: dict[int, list[str]], query: list[str], slot: int, k1: float = 0.9, b: float = 0.4) -> float:
    """Okapi BM25 as the papers have it."""
    average = sum(map(len, rows.values())) / len(rows)
    score = 0.0
    for token in query:
        df = sum(token in tokens for tokens in rows.values())
        tf = rows[slot].count(token)
        idf = math.log(1 + (len(rows) - df + 0.5) / (df + 0.5))
        score += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(rows[slot]) / average)) if tf else 0
    return score


def test_scores_are_those_of_the_formula() -> None:
    """Random rows, put, dropped and put again, score as computed by hand from the rows that are there."""
    chance = random.Random(5)
    words = [f"w{n}" for n in range(12)]
    index, rows = Bm25(), {}
    for slot in range(60):
        rows[slot] = chance.choices(words, k=chance.randint(1, 9))
        index.put(slot, rows[slot])
        if slot % 3 == 2:
            index.drop(slot - 1)
            del rows[slot - 1]
    query = ["w1", "w2", "w2", "nowhere"]
    scores = index.scores(query)
    assert len(scores) == 60
    for slot in range(60):
        expected = by_hand(rows, query, slot) if slot in rows else 0.0
        assert scores[slot] == pytest.approx(expected, rel=1e-5)
    assert index.postings == sum(len(set(tokens)) for tokens in rows.values())


def test_an_empty_index_scores_nothing() -> None:
    """Without rows, or with rows that are all gone or have no words, every score is 0."""
    index = Bm25()
    assert index.scores(["a"]).tolist() == []
    index.put(0, ["a"])
    index.drop(0)
    index.put(1, [])
    assert index.scores(["a"]).tolist() == [0.0, 0.0]
    assert np.isfinite(index.scores([])).all()
