"""What vectors say once it is taken away what all of a user's memories have in common (pure).

Memories of one person are alike: the same name, the same form of sentence. Of two of them, the mean of all tells
nothing, as a word that is everywhere tells nothing. Source: Mu and Viswanath, All-but-the-Top (ICLR 2018).
"""

import numpy as np
from numpy.typing import NDArray

from .fusion import Scores, Slots
from .matrix import Matrix

DOUBT = 10
"""Memories, or pairs, that count as telling nothing, so that a few make no rule."""
KIN = 0.15
"""Mean centred cosine of neighbours from which on they lend all that they may: in conversations it is .2 to .3, in any
other order 0."""
_SAMPLE = 500
_LEAST = np.float32(1e-3)  # so that what lies in the mean itself is no division by zero


class Centred:
    """A matrix whose rows have length one, seen from their mean; made once for many queries.

    Args:
        matrix: a row a slot; the last slots may have none.
        has: of every slot, whether it has a vector; other rows are not looked at.
    """

    def __init__(self, matrix: Matrix, has: NDArray[np.bool_]) -> None:
        self._matrix, self._has, self._rows = matrix, has, min(len(matrix), len(has))
        self._mean: NDArray[np.float32] = matrix.total(has[: self._rows]) / np.float32(has.sum() + DOUBT)
        squares = 1 - 2 * matrix.dot(self._mean)[: self._rows] + self._mean @ self._mean
        self._lengths: NDArray[np.float32] = np.sqrt(np.maximum(squares, _LEAST**2))

    def cosines(self, query: NDArray[np.float32]) -> Scores:
        """The centred cosine of every slot to a query of length one; minus infinity where there is no vector."""
        found = np.full(len(self._has), -np.inf, np.float32)
        if rows := self._rows:
            asked = _unit(query - self._mean)
            cosines = (self._matrix.dot(asked)[:rows] - self._mean @ asked) / self._lengths
            found[:rows] = np.where(self._has[:rows], cosines, found[:rows])
        return found

    def kinship(self, before: Slots, after: Slots) -> float:
        """How much pairs of slots have to do with each other, from 0 to 1; of many, some are asked."""
        both = self._has[before] & self._has[after]
        every = max(1, int(both.sum()) // _SAMPLE)
        first, second = (_unit(self._matrix.pick(slots[both][::every]) - self._mean) for slots in (before, after))
        alike = float(np.einsum("ij,ij->", first, second)) / (len(first) + DOUBT)
        return min(1.0, max(0.0, alike / KIN))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(lengths, _LEAST)
    return unit
