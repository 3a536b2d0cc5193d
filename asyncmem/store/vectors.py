"""Embeddings as MongoDB holds them: float32 in a binary vector, beside their model's name and their length."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from pymongo import UpdateOne
from pymongo.errors import OperationFailure

from .binary import FLOAT32, as_binary
from .core import PAGE, Core, pages
from .documents import Row
from .rows import next_stamp
from .vector_search import pipeline, to_cosine, usable


def to_vector(model: str, text: str, values: bytes) -> Row:
    """A text's vector as a row holds it; ``values`` are little-endian float32."""
    return {"model": model, "dims": len(values) // 4, "text": _digest(text), "data": as_binary(values)}


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


def from_vector(vector: Row | None, model: str | None, text: str | None = None) -> bytes | None:
    """The values of a stored vector, if it is whole, that model made it, and of that text where one is given."""
    match vector:
        case {"model": str() as made_by, "dims": int() as dims, "data": bytes() as data, **rest} if made_by == model:
            whole = data.startswith(FLOAT32) and len(data) == 2 + 4 * dims > 2
            same = text is None or rest.get("text") == _digest(text)
            return data[2:] if whole and same else None
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Embedded:
    """A memory's text, whether its row has a stamp, and the vector made from it once there is one."""

    memory_id: str
    text: str
    marked: bool
    vector: Row = field(default_factory=dict[str, Any], repr=False)


class VectorShelf:
    """Finds memories that have no vector of a model, and gives them one."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._memories = core.collections.memories
        self._indexes: dict[int, str | None] = {}

    async def search_index(self, dims: int) -> str | None:
        """The server's own index for vectors of this length, asked for once; ``None`` where it has none."""
        if dims not in self._indexes:
            try:
                async with self._core.gate.passing():
                    listed = await (await self._memories.aggregate([{"$listSearchIndexes": {}}])).to_list()
            except OperationFailure:  # a server without search: it doesn't know the stage, or has it not set up
                listed = []
            self._indexes[dims] = usable(listed, dims)
        return self._indexes[dims]

    async def nearest(self, index: str, user_id: str, model: str, query: bytes, limit: int) -> list[tuple[str, float]]:
        """A user's memories by the server's own index, nearest first, each with its cosine."""
        async with self._core.calling():
            cursor = await self._memories.aggregate(pipeline(index, user_id, model, query, limit))
            return [(str(row["_id"]), to_cosine(row["score"])) for row in await cursor.to_list()]

    async def without(self, user_id: str, model: str, dims: int) -> list[str]:
        """The ids of a user's memories that have no vector of this model and length, newest first."""
        lacking = {"$or": [{"vector.model": {"$ne": model}}, {"vector.dims": {"$ne": dims}}]}
        async with self._core.calling():
            cursor = self._memories.find({"user_id": user_id, **lacking}, {"_id": 1}).sort("updated_at", -1)
            return [str(row["_id"]) async for page in pages(cursor) for row in page]

    async def texts(self, user_id: str, ids: Sequence[str]) -> list[Embedded]:
        """The texts of these memories of a user, those that are blank left out."""
        query = {"user_id": user_id, "_id": {"$in": list(ids)}}
        async with self._core.calling():
            cursor = self._memories.find(query, {"memory": 1, "stamp": 1})
            rows = [row async for page in pages(cursor) for row in page]
        return [
            Embedded(row["_id"], row["memory"], row.get("stamp") is not None)
            for row in rows
            if isinstance(row.get("memory"), str) and row["memory"].strip()
        ]

    async def put(self, user_id: str, embedded: Sequence[Embedded]) -> int:
        """Give memories their vectors where the text still is the one that was embedded; how many got one.

        Rows of other software stay without a stamp: it would say that nobody else changes them.
        """
        updates = [
            UpdateOne(
                {"_id": each.memory_id, "user_id": user_id, "memory": each.text},
                {"$set": {"vector": each.vector} | ({"stamp": next_stamp()} if each.marked else {})},
            )
            for each in embedded
        ]
        written = 0
        for start in range(0, len(updates), PAGE):
            async with self._core.calling():
                result = await self._memories.bulk_write(updates[start : start + PAGE], ordered=False)
            written += result.matched_count
        return written
