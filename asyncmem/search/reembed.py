"""Giving stored memories the vectors that they lack."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..llm import Embedder
from ..usage import Usage
from .loading import load

if TYPE_CHECKING:
    from ..store.store import MemoryStore
    from ..store.vectors import VectorShelf

Progress = Callable[[int, int], object]
"""Called with how many memories were looked at, and how many there were to look at."""


async def embed_stored(shelf: "VectorShelf", embedder: Embedder, user_id: str, ids: Sequence[str]) -> tuple[int, Usage]:
    """Embed these memories of a user; how many got a vector.

    A memory whose text changes meanwhile keeps what it has.

    Raises:
        ModelError: the embedder could not be asked.
    """
    await load()
    from .embedding import embed_texts  # it needs numpy

    found = await shelf.texts(user_id, ids)
    vectors, usage = await embed_texts(embedder, [each.text for each in found])
    ready = [replace(each, vector=vectors[each.text]) for each in found if each.text in vectors]
    return await shelf.put(user_id, ready), usage


async def reembed_user(
    store: "MemoryStore", embedder: Embedder, user_id: str, batch: int, on_progress: Progress | None
) -> int:
    """Embed every memory of a user that has no vector of this embedder; how many got one.

    Nothing but the missing vectors says what is to be done: killed at any moment, the next call goes on.
    """
    await load()
    from .embedding import embed_query

    if not await store.read.count(user_id):
        return 0
    dims = len((await embed_query(embedder, "dimensions")).values)  # what other lengths there are is of older settings
    ids = await store.vectors.without(user_id, embedder.name, dims)
    made = 0
    for start in range(0, len(ids), batch):
        part = ids[start : start + batch]
        made += (await embed_stored(store.vectors, embedder, user_id, part))[0]
        if on_progress is not None:
            on_progress(start + len(part), len(ids))
    return made
