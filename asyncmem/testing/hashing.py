"""An embedder without a model: words hashed into a vector, the same on every machine."""

import re
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from asyncmem.llm.embeddings import Embeddings
from asyncmem.usage import Usage

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """An ``Embedder`` that needs no model: texts that share words are near each other, others are not.

    Every word, and every run of three letters in it, adds to a few places of the vector; the vector has length one.

    Args:
        dimensions: length of the vectors.

    Attributes:
        texts: every text embedded so far, in order.
    """

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.texts: list[str] = []

    @property
    def name(self) -> str:
        """What errors and logs call it."""
        return f"hash-{self.dimensions}"

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """One vector a text, in order."""
        self.texts += texts
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for piece, weight in _pieces(text):
                digest = blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                place = int.from_bytes(digest[:4], "big") % self.dimensions
                row[place] += weight if digest[4] & 1 else -weight
            length = float(np.linalg.norm(row))
            row[:] = row / length if length else 1 / self.dimensions**0.5
        return Embeddings(vectors, (False,) * len(texts), Usage(calls=1))


def _pieces(text: str) -> list[tuple[str, float]]:
    """The words of a text, and, weighing less, the runs of three letters in each."""
    words = _WORD.findall(text.casefold())
    runs = [(f"{word[i : i + 3]}", 0.3) for word in words for i in range(len(word) - 2)]
    return [(f"={word}", 1.0) for word in words] + runs
