"""Okapi BM25 over one user's memories, exact, and kept up to date row by row."""

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SATURATION = 1.2
"""k1: how much a word that comes again still adds. Source: Robertson and Zaragoza, The Probabilistic Relevance
Framework (2009), which finds 1.2 to 2."""
LENGTH = 0.75
"""b: how much a long text is discounted. Source: the same, 0.5 to 0.8."""


class Bm25:
    """Scores rows, numbered by slots, against the tokens of a query."""

    def __init__(self, *, k1: float = SATURATION, b: float = LENGTH) -> None:
        self._k1 = k1
        self._b = b
        self._postings: dict[str, tuple[array[int], array[float]]] = {}
        self._rows: dict[int, tuple[str, ...]] = {}
        self._lengths = array("f")
        self._total = 0
        self.postings = 0

    def put(self, slot: int, tokens: Sequence[str]) -> None:
        """Take a row's tokens; its slot must be free."""
        while len(self._lengths) <= slot:
            self._lengths.append(0)
        counts = Counter(tokens)
        for token, count in counts.items():
            known = self._postings.get(token)
            if known is None:
                known = self._postings[token] = (array("i"), array("f"))
            known[0].append(slot)
            known[1].append(count)
        self._rows[slot] = tuple(counts)
        self._lengths[slot] = len(tokens)
        self._total += len(tokens)
        self.postings += len(counts)

    def drop(self, slot: int) -> None:
        """Forget a row."""
        tokens = self._rows.pop(slot)
        for token in tokens:
            slots, counts = self._postings[token]
            place = slots.index(slot)
            del slots[place], counts[place]
            if not slots:
                del self._postings[token]
        self._total -= int(self._lengths[slot])
        self._lengths[slot] = 0
        self.postings -= len(tokens)

    def scores(self, query: Sequence[str]) -> NDArray[np.float32]:
        """The score of every slot; 0 where no token matches."""
        found = np.zeros(len(self._lengths), np.float32)
        if not self._total:
            return found
        rows = len(self._rows)
        lengths = np.frombuffer(self._lengths, np.float32)
        norms = self._k1 * (1 - self._b + self._b * lengths * (rows / self._total))
        for token, times in Counter(query).items():
            if token in self._postings:
                slots, counts = (_view(values) for values in self._postings[token])
                idf = np.log1p((rows - len(slots) + 0.5) / (len(slots) + 0.5))
                found[slots] += times * idf * counts * (self._k1 + 1) / (counts + norms[slots])
        return found


def _view(values: "array[Any]") -> NDArray[Any]:
    return np.frombuffer(values, np.int32 if values.typecode == "i" else np.float32)
