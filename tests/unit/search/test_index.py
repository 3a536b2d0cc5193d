"""The index of one user in memory."""

import random

import numpy as np
import pytest

from asyncmem.search import index as index_module
from asyncmem.search.index import UserIndex
from asyncmem.store.scanner import Entry, Fingerprint

INF = float("inf")


def entry(name: str, stamp: int = 1, tokens: tuple[str, ...] = ("a",), vector: list[float] | None = None) -> Entry:
    data = None if vector is None else np.array(vector, "<f4").tobytes()
    return Entry(name, stamp, tokens, float(stamp), stamp, INF, data)


def found(index: UserIndex, scores: np.ndarray, limit: int = 0) -> list[str]:
    return index.best(scores, index.allowed(0.0), limit).ids


def hybrid(index: UserIndex) -> list[str]:
    every = index.allowed(0.0)
    return found(index, index.fused("a b", index.keyword("a b"), np.array([0.6, 0.8], np.float32), every).round(3))


def test_it_holds_what_it_was_given_last() -> None:
    """After any mix of additions, changes and removals, it equals one that is made of the rows that are left."""
    chance = random.Random(3)
    index, rows = UserIndex("m"), {}
    for step in range(1, 900):
        name = f"r{chance.randint(0, 60)}"
        if chance.random() < 0.3:
            index.drop([name])
            rows.pop(name, None)
        else:
            tokens = tuple(chance.choices("abcdef", k=4))
            vector = [chance.random(), chance.random()] if chance.random() < 0.7 else None
            rows[name] = entry(name, step, tokens, vector)
            index.take([rows[name]])
        hybrid(index)
    fresh = UserIndex("m")
    fresh.take(sorted(rows.values(), key=lambda e: e.stamp))
    assert index.fingerprint == fresh.fingerprint == Fingerprint(len(rows), sum(e.stamp for e in rows.values()))
    query = np.array([0.6, 0.8], np.float32)
    assert found(index, index.keyword("a b")) == found(fresh, fresh.keyword("a b"))
    assert found(index, index.semantic(query)) == found(fresh, fresh.semantic(query))
    assert hybrid(index) == hybrid(fresh)
    assert index.lacking(index.allowed(0.0)) == fresh.lacking(fresh.allowed(0.0))
    assert fresh.size > 0


def test_vectors_that_cannot_be_compared_are_left_out() -> None:
    """Zeros, numbers that are none, and another length than the first count as no vector; no score is NaN."""
    index = UserIndex("m")
    vectors = {"good": [3.0, 4.0], "zero": [0.0, 0.0], "nan": [float("nan"), 1.0], "inf": [INF, 1], "long": [1.0] * 3}
    index.take(entry(name, n, vector=v) for n, (name, v) in enumerate(vectors.items(), 1))
    scores = index.semantic(np.array([0.6, 0.8], np.float32))
    assert found(index, scores) == ["good"]
    assert not np.isnan(scores).any()
    assert abs(scores[0] - 1) < 1e-6
    assert index.lacking(index.allowed(0.0)) == ["long", "inf", "nan", "zero"]


def test_without_vectors_nothing_is_near() -> None:
    """An index that keeps no vectors finds nothing by meaning."""
    index = UserIndex()
    index.take([entry("a"), entry("b", 2)])
    assert found(index, index.semantic(np.array([1.0], np.float32))) == []


def test_expired_and_foreign_ids_are_not_allowed() -> None:
    """What has expired, and what is not among the ids asked for, is not allowed; unknown ids don't matter."""
    index = UserIndex()
    index.take([entry("a"), Entry("b", 2, ("a",), 2.0, 2, 100.0, None)])
    assert index.allowed(99.0).tolist() == [True, True]
    assert index.allowed(100.0).tolist() == [True, False]
    assert index.allowed(0.0, {"b", "never"}).tolist() == [False, True]


def test_the_best_are_the_same_with_and_without_a_limit() -> None:
    """A limit cuts the list and changes nothing before the cut, ties included."""
    index = UserIndex()
    index.take(entry(f"r{n}", n + 1) for n in range(2_000))
    scores = np.array([n % 7 for n in range(2_000)], np.float32)
    allowed = index.allowed(0.0)
    assert index.best(scores, allowed, 50).ids[:50] == index.best(scores, allowed).ids[:50]
    newest = index.best(scores, allowed, 50, newest_first=True)
    assert newest.ids[:2] == ["r1994", "r1987"]
    assert newest.scores[0] == 6.0


def test_waste_is_noticed() -> None:
    """An index whose rows changed often is made anew."""
    index = UserIndex()
    for stamp in range(1, 1_010):
        index.take([entry("a", stamp)])
    assert index.wasted


@pytest.mark.anyio
async def test_long_queries_and_large_matrices_score_the_same_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a score is computed changes nothing of it."""
    index = UserIndex("m")
    index.take(entry(f"r{n}", n + 1, ("tea", f"w{n}"), [1.0, float(n)]) for n in range(50))
    query = "tea " * 200 + "w7"
    assert (await index.by_words(query)).tolist() == index.keyword(query).tolist()
    vector, words, every = np.array([0.6, 0.8], np.float32), index.keyword(query), index.allowed(0.0)
    here = await index.by_meaning(vector)
    both = await index.by_both(query, words, vector, every)
    monkeypatch.setattr(index_module, "_LARGE", 10)
    assert (await index.by_meaning(vector)).tolist() == here.tolist()
    assert (await index.by_both(query, words, vector, every)).tolist() == both.tolist()


def test_the_hybrid_score_is_of_words_meaning_neighbours_and_dates() -> None:
    """Each kind of evidence alone puts a memory before one that has none of it, and only allowed slots are scored."""
    may = 1_683_504_000.0  # 2023-05-08
    near, far = np.array([0.8, 0.6], "<f4").tobytes(), np.array([-0.6, 0.8], "<f4").tobytes()
    index = UserIndex("m")
    index.take(
        [
            Entry("word", 1, ("tea",), may - 9e8, 1, INF, far),
            Entry("meant", 2, ("x",), may - 8e8, 2, INF, near),
            Entry("none", 3, ("x",), may - 7e8, 3, INF, far),
            Entry("dated", 4, ("x",), may, 4, INF, far),
            Entry("bare", 5, ("x",), may - 6e8, 5, INF, None),
        ]
    )
    query, vector = "tea in May 2023", np.array([1, 0], np.float32)
    scores = index.fused(query, index.keyword(query), vector, index.allowed(0.0))
    assert scores[0] > scores[2] < scores[1]
    assert scores[3] > scores[2]
    assert scores[4] == -INF
    only = index.fused(query, index.keyword(query), vector, index.allowed(0.0, {"none"}))
    assert np.isfinite(only).tolist() == [False, False, True, False, False]
