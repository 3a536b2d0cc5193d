"""Texts to vectors, checked: a vector without a direction is never compared with others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelUnavailableError
from ..llm import Embedder
from ..store.documents import Row
from ..store.vectors import to_vector
from ..usage import Usage


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query as a vector of length one, and what making it took."""

    values: NDArray[np.float32]
    usage: Usage


async def embed_query(embedder: Embedder, query: str) -> QueryVector:
    """The query's vector.

    Raises:
        ModelError: the embedder could not be asked, or gave no usable vector.
    """
    given = await embedder.embed([query])
    vector = np.asarray(given.vectors, np.float32)[0]
    length = float(np.linalg.norm(vector))
    if not 0 < length < float("inf"):
        raise ModelUnavailableError(f"{embedder.name}: it gave a vector of zeros or of no numbers", model=embedder.name)
    return QueryVector(vector / np.float32(length), given.usage)


async def embed_texts(embedder: Embedder, texts: Sequence[str]) -> tuple[dict[str, Row], Usage]:
    """The vectors of texts as they are stored, by text; a text that gave no usable vector is missing.

    Raises:
        ModelError: the embedder could not be asked.
    """
    once = list(dict.fromkeys(texts))
    if not once:
        return {}, Usage()
    given = await embedder.embed(once)
    vectors = np.ascontiguousarray(given.vectors, "<f4")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    usable = np.isfinite(lengths) & (lengths > 0)
    return {
        text: to_vector(embedder.name, text, vector.tobytes())
        for text, vector, good in zip(once, vectors, usable, strict=True)
        if good
    }, given.usage
