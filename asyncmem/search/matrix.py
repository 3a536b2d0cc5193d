"""A user's vectors, a row a slot, in blocks: it grows without a large copy, which would hold up the event loop."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
BLOCK = 1024
"""Rows of a block: 1.5 MB of 384 values each, made in a millisecond."""
_FIRST = 64
"""Rows of the first block to begin with, since most users have few memories; it doubles until it is whole."""


class Matrix:
    """Rows of one length, numbered by slots; those that were never set are zero."""

    def __init__(self) -> None:
        self._blocks: list[NDArray[np.float32]] = []

    @classmethod
    def of(cls, rows: NDArray[np.float32]) -> Self:
        """The matrix with these rows."""
        made = cls()
        for slot, row in enumerate(rows):
            made.put(slot, row)
        return made

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    @property
    def dims(self) -> int:
        """How long a row is; 0 while there is none."""
        return self._blocks[0].shape[1] if self._blocks else 0

    @property
    def size(self) -> int:
        """Numbers in it."""
        return len(self) * self.dims

    def put(self, slot: int, vector: Vector) -> None:
        """Set a row."""
        while len(self) <= slot:
            if self._blocks and len(self._blocks[-1]) < BLOCK:
                last = self._blocks.pop()
                self._blocks.append(np.concatenate([last, np.zeros_like(last)]))
            else:
                self._blocks.append(np.zeros((BLOCK if self._blocks else _FIRST, len(vector)), np.float32))
        self._blocks[slot // BLOCK][slot % BLOCK] = vector

    def dot(self, vector: Vector) -> Vector:
        """Each row's product with a vector."""
        return np.concatenate([block @ vector for block in self._blocks]) if self._blocks else np.empty(0, np.float32)

    def total(self, has: NDArray[np.bool_]) -> Vector:
        """The sum of the rows that a mask of slots marks."""
        parts = np.array_split(has.astype(np.float32), range(BLOCK, len(has), BLOCK))
        sums = [part @ block[: len(part)] for part, block in zip(parts, self._blocks, strict=False)]
        found = np.zeros(self.dims, np.float32)
        for each in sums:
            found += each
        return found

    def pick(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Some of its rows, by slots."""
        found = np.zeros((len(slots), self.dims), np.float32)
        for number in np.flatnonzero(np.bincount(slots // BLOCK)):  # numpy's unique imports for 100 ms when first used
            here = slots // BLOCK == number
            found[here] = self._blocks[number][slots[here] % BLOCK]
        return found
