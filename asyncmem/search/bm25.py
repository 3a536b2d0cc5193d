"""Okapi BM25 over one user's memories, exact, and kept up to date row by row."""

from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SATURATION = 0.9
"""k1: how much a word that comes again still adds. Source: Trotman, Puurula and Burgess, Improvements to BM25 and
Language Models Examined (2014), which finds 0.9 with 0.4 for b; Anserini's defaults, too."""
LENGTH = 0.4
"""b: how much a long text is discounted; memories are short, and a longer one says more rather than the same again.
Source: the same."""


class Bm25:
    """Scores rows, numbered by slots, against the tokens of a query."""

    def __init__(self, *, k1: float = SATURATION, b: float = LENGTH) -> None:
        self._k1 = k1
        self._b = b
        # no tuples and lists: the garbage collector, which stalls the event loop, would have to visit each
        self._slots: dict[str, array[int]] = {}
        self._counts: dict[str, array[float]] = {}
        self._rows: dict[int, str] = {}
        self._lengths = array("f")
        self._total = 0
        self.postings: int = 0

    def put(self, slot: int, tokens: Sequence[str]) -> None:
        """Take a row's tokens; its slot must be free."""
        while len(self._lengths) <= slot:
            self._lengths.append(0)
        counts = Counter(tokens)
        for token, count in counts.items():
            if token not in self._slots:
                self._slots[token], self._counts[token] = array("i"), array("f")
            self._slots[token].append(slot)
            self._counts[token].append(count)
        self._rows[slot] = " ".join(counts)
        self._lengths[slot] = len(tokens)
        self._total += len(tokens)
        self.postings += len(counts)

    def drop(self, slot: int) -> None:
        """Forget a row."""
        tokens = self._rows.pop(slot).split()
        for token in tokens:
            slots, counts = self._slots[token], self._counts[token]
            place = slots.index(slot)
            del slots[place], counts[place]
            if not slots:
                del self._slots[token], self._counts[token]
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
            if token in self._slots:
                slots = np.frombuffer(self._slots[token], np.int32)
                counts = np.frombuffer(self._counts[token], np.float32)
                idf = np.log1p((rows - len(slots) + 0.5) / (len(slots) + 0.5))
                found[slots] += times * idf * counts * (self._k1 + 1) / (counts + norms[slots])
        return found
