"""Vectors: made before a write, kept in step with the text, made later where they are missing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from pymongo import AsyncMongoClient

from asyncmem import ConfigurationError, Embeddings, MemoryManager, ModelError, Settings, UserMemory
from asyncmem.errors import InvalidQueryError, ModelUnavailableError
from asyncmem.search import semantic
from asyncmem.testing import HashEmbedder, ScriptedModel

from .conftest import Clock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rows(uri: str) -> AsyncIterator[Any]:
    """The memories' collection, for looking past the manager."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(uri)
    yield client.get_default_database()["asyncmem_memories"]
    await client.close()


def manager(uri: str, clock: Clock, embedder: Any = None, model: Any = None) -> MemoryManager:
    settings = Settings(clock=clock)
    return MemoryManager(uri, model=model or ScriptedModel([]), embedding_model=embedder, settings=settings)


async def vector_of(rows: Any, memory_id: str) -> tuple[str, np.ndarray] | None:
    stored = (await rows.find_one({"_id": memory_id})).get("vector")
    if stored is None:
        return None
    assert stored["data"].subtype == 9
    values = np.frombuffer(stored["data"], "<f4", offset=2)
    assert len(values) == stored["dims"]
    return stored["model"], values


async def right(rows: Any, memory_id: str, text: str) -> bool:
    """Whether a row has the vector of that text."""
    found = await vector_of(rows, memory_id)
    expected = (await HashEmbedder().embed([text])).vectors[0]
    return found is not None and found[0] == "hash-64" and bool(np.allclose(found[1], expected))


async def near(manager: MemoryManager, query: str, method: str = "semantic", **options: Any) -> list[str]:
    found = await manager.search_user_memories(query, user_id="lin", retrieval_method=method, **options)
    return [m.memory for m in found]


class Broken(HashEmbedder):
    """An embedder that fails as long as it is told to."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self.error = error

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        if self.error is not None:
            raise self.error
        return await super().embed(texts)


# ------------------------------------------------------------------------------------------------ with a write


async def test_every_write_of_a_text_writes_its_vector(uri: str, clock: Clock, rows: Any) -> None:
    """Add, add many, update, replace and capture store the vector of the very text."""
    plan = {
        "operations": [
            {"op": "add", "memory": "Plays the harp", "evidence": "I play the harp"},
            {
                "op": "update",
                "memory_id": "Plays chess",
                "memory": "Plays chess and backgammon",
                "evidence": "I play backgammon too",
            },
        ]
    }
    async with manager(uri, clock, HashEmbedder(), ScriptedModel([plan])) as memory:
        first = await memory.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        assert await right(rows, first, "Plays chess")
        made = await memory.add_user_memories([UserMemory(memory="Swims"), UserMemory(memory="Runs")], user_id="lin")
        assert await right(rows, made[1], "Runs")
        await memory.update_user_memory(made[0], user_id="lin", memory=" Swims  daily ")
        assert await right(rows, made[0], "Swims  daily")
        await memory.replace_user_memory(made[1], UserMemory(memory="Walks"), user_id="lin")
        assert await right(rows, made[1], "Walks")
        done = await memory.create_user_memories("I play the harp. I play backgammon too.", user_id="lin")
        for change in done.changes:
            assert change.after is not None
            assert await right(rows, change.memory_id, change.after.memory)
        assert {c.kind for c in done.changes} == {"add", "update"}, done.skipped


async def test_a_vector_never_outlives_its_text(uri: str, clock: Clock, rows: Any) -> None:
    """A manager without an embedder that changes a text drops the vector; other changes keep it."""
    async with manager(uri, clock, HashEmbedder()) as memory, manager(uri, clock) as plain:
        memory_id = await memory.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        await plain.update_user_memory(memory_id, user_id="lin", topics=["games"], pinned=True)
        assert await right(rows, memory_id, "Plays chess")
        await plain.update_user_memory(memory_id, user_id="lin", memory="Plays go")
        assert await vector_of(rows, memory_id) is None
        await plain.revert(memory_id, 1, user_id="lin")
        assert await vector_of(rows, memory_id) is None
        assert await near(memory, "chess") == ["Plays chess"]
        assert await right(rows, memory_id, "Plays chess")
        history = (await rows.find_one({"_id": memory_id}))["history"]
        assert not any({"vector", "tokens", "stamp"} & set(entry) for entry in history)


async def test_a_memory_is_stored_though_embedding_fails(
    uri: str, clock: Clock, rows: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """What could not be embedded is stored, logged without its text, and embedded by the next search."""
    embedder = Broken(RuntimeError("Plays chess"))
    async with manager(uri, clock, embedder) as memory:
        with caplog.at_level(logging.WARNING, "asyncmem"):
            memory_id = await memory.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        assert "without a vector (ModelUnavailableError)" in caplog.text
        assert "chess" not in caplog.text
        assert await vector_of(rows, memory_id) is None
        with pytest.raises(ModelUnavailableError, match=r"\[RuntimeError \(raised at test_vectors.py:\d+\)\]"):
            await near(memory, "chess")
        embedder.error = None
        assert await near(memory, "chess") == ["Plays chess"]
        assert await right(rows, memory_id, "Plays chess")


async def test_the_archive_keeps_no_vectors(uri: str, clock: Clock) -> None:
    """A deleted memory leaves neither vector nor tokens behind, and comes back without them being wrong."""
    async with manager(uri, clock, HashEmbedder()) as memory:
        memory_id = await memory.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        await memory.delete_user_memory(memory_id, user_id="lin")
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(uri)
        kept = await client.get_default_database()["asyncmem_archive"].find_one({"memory_id": memory_id})
        await client.close()
        assert kept is not None
        assert not {"vector", "tokens", "stamp"} & set(kept["row"])
        await memory.revert(memory_id, 1, user_id="lin")
        for method in ("keyword", "semantic", "hybrid"):
            assert await near(memory, "chess", method) == ["Plays chess"]


# ------------------------------------------------------------------------------------------------------ later


async def test_memories_without_vectors_are_embedded_by_a_search(
    uri: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search embeds the newest that lack a vector, a batch at a time, and says how many are left."""
    monkeypatch.setattr(semantic, "AT_ONCE", 3)
    async with manager(uri, clock) as plain, manager(uri, clock, HashEmbedder()) as memory:
        await plain.add_user_memories([UserMemory(memory=f"Book {n}", updated_at=n) for n in range(5)], user_id="lin")
        found = await memory.search_user_memories("book", user_id="lin", retrieval_method="semantic")
        assert sorted(m.memory for m in found) == ["Book 2", "Book 3", "Book 4"]
        assert (found.not_embedded, found.usage.calls) == (2, 2)
        found = await memory.search_user_memories("book", user_id="lin", retrieval_method="hybrid")
        assert (len(found), found.not_embedded) == (5, 0)


async def test_memories_that_cannot_be_embedded_now_hinder_no_search(
    uri: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """When the query can be embedded and the memories can't, what has vectors is found, and the rest is counted."""

    class OnlyShort(HashEmbedder):
        async def embed(self, texts: Sequence[str]) -> Embeddings:
            if len(texts) > 1:
                raise ModelUnavailableError("too many", model="m")
            return await super().embed(texts)

    async with manager(uri, clock) as plain, manager(uri, clock, OnlyShort()) as memory:
        await memory.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        await plain.add_user_memories([UserMemory(memory="Plays go"), UserMemory(memory="Swims")], user_id="lin")
        with caplog.at_level(logging.WARNING, "asyncmem"):
            found = await memory.search_user_memories("plays", user_id="lin", retrieval_method="semantic")
        assert ([m.memory for m in found], found.not_embedded) == (["Plays chess"], 2)
        assert "2 memories stay without a vector" in caplog.text


async def test_reembed_does_what_is_missing(uri: str, clock: Clock, rows: Any) -> None:
    """Every memory of the user gets a vector, with progress; again it does nothing; others' stay as they are."""
    async with manager(uri, clock) as plain, manager(uri, clock, HashEmbedder()) as memory:
        ids = await plain.add_user_memories([UserMemory(memory=f"Book {n}") for n in range(7)], user_id="lin")
        (other,) = await plain.add_user_memories([UserMemory(memory="Film")], user_id="omar")
        seen: list[tuple[int, int]] = []
        assert await memory.reembed(user_id="lin", batch=3, on_progress=lambda *at: seen.append(at)) == 7
        assert seen == [(3, 7), (6, 7), (7, 7)]
        for n, memory_id in enumerate(ids):
            assert await right(rows, memory_id, f"Book {n}")
        assert await memory.reembed(user_id="lin") == 0
        assert await vector_of(rows, other) is None
        assert await memory.reembed_all() == 1
        assert await right(rows, other, "Film")
        assert await memory.reembed(user_id="nobody") == 0


async def test_reembed_goes_on_after_an_interruption(uri: str, clock: Clock, rows: Any) -> None:
    """What was done before a cancellation stays, and the next call does the rest only."""
    embedder = HashEmbedder()
    async with manager(uri, clock) as plain, manager(uri, clock, embedder) as memory:
        await plain.add_user_memories([UserMemory(memory=f"Book {n}") for n in range(9)], user_id="lin")

        def stop(done: int, total: int) -> None:
            if done >= 6:
                raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await memory.reembed(user_id="lin", batch=3, on_progress=stop)
        embedder.texts.clear()
        assert await memory.reembed(user_id="lin", batch=3) == 3
        assert len([text for text in embedder.texts if text.startswith("Book")]) == 3
        assert await rows.count_documents({"vector.model": "hash-64"}) == 9


async def test_a_text_that_changes_while_it_is_embedded_gets_no_old_vector(uri: str, clock: Clock, rows: Any) -> None:
    """The vector is written only where the text is still the one that was embedded."""

    @dataclass
    class Meddler(HashEmbedder):
        plain: MemoryManager
        memory_id: str = ""

        def __post_init__(self) -> None:
            HashEmbedder.__init__(self)

        async def embed(self, texts: Sequence[str]) -> Embeddings:
            if "Plays chess" in texts:
                await self.plain.update_user_memory(self.memory_id, user_id="lin", memory="Plays go")
            return await super().embed(texts)

    async with manager(uri, clock) as plain:
        memory_id = await plain.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        async with manager(uri, clock, Meddler(plain, memory_id)) as memory:
            assert await memory.reembed(user_id="lin") == 0
            assert await vector_of(rows, memory_id) is None
            assert await near(memory, "go") == ["Plays go"]
            assert await right(rows, memory_id, "Plays go")


async def test_vectors_of_two_models_are_never_mixed(uri: str, clock: Clock, rows: Any) -> None:
    """Another model, or another length under the same name, makes every vector anew before it is compared."""

    class Renamed(HashEmbedder):
        name = "hash-64"

    async with manager(uri, clock, HashEmbedder(64)) as memory:
        memory_id = await memory.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        assert await near(memory, "chess") == ["Plays chess"]
    async with manager(uri, clock, HashEmbedder(16)) as memory:
        assert await near(memory, "chess") == ["Plays chess"]
        assert (await rows.find_one({"_id": memory_id}))["vector"]["model"] == "hash-16"
    async with manager(uri, clock, HashEmbedder(64)) as memory:
        assert await memory.reembed(user_id="lin") == 1
        assert await near(memory, "chess") == ["Plays chess"]
    changing = Renamed(64)
    async with manager(uri, clock, changing) as memory:
        assert await near(memory, "chess") == ["Plays chess"]
        changing.dimensions = 32
        assert await near(memory, "chess") == ["Plays chess"]
        assert (await rows.find_one({"_id": memory_id}))["vector"]["dims"] == 32


async def test_texts_without_a_usable_vector_are_stored_and_not_found(uri: str, clock: Clock, rows: Any) -> None:
    """Zeros and NaN are never stored nor compared; for a query they are an error."""

    class Strange(HashEmbedder):
        async def embed(self, texts: Sequence[str]) -> Embeddings:
            made = await super().embed(texts)
            for row, text in zip(made.vectors, texts, strict=True):
                row[:] = 0 if "zero" in text else np.nan if "nan" in text else row
            return made

    async with manager(uri, clock, Strange()) as memory:
        ids = await memory.add_user_memories(
            [UserMemory(memory=text) for text in ("A zero", "A nan", "A book")], user_id="lin"
        )
        assert [await vector_of(rows, i) is None for i in ids] == [True, True, False]
        found = await memory.search_user_memories("a", user_id="lin", retrieval_method="semantic")
        assert ([m.memory for m in found], found.not_embedded) == (["A book"], 2)
        assert np.isfinite(found.scores).all()
        for query in ("zero", "nan"):
            with pytest.raises(ModelUnavailableError, match="zeros or of no numbers"):
                await near(memory, query)


# ------------------------------------------------------------------------------------------------- no embedder


async def test_without_an_embedder_the_error_says_how(uri: str, clock: Clock) -> None:
    """semantic, hybrid and reembed ask for embedding_model, also when the user has no rows."""
    async with manager(uri, clock) as plain:
        for method in ("semantic", "hybrid"):
            with pytest.raises(ConfigurationError, match="embedding_model="):
                await near(plain, "chess", method)
        await plain.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        with pytest.raises(ConfigurationError, match="embedding_model="):
            await plain.reembed(user_id="lin")
        with pytest.raises(InvalidQueryError, match="batch"):
            await plain.reembed(user_id="lin", batch=0)


async def test_nothing_to_search_asks_no_model(uri: str, clock: Clock) -> None:
    """Without rows, or with none that pass the filters, no embedder is asked; a blank query is an error even then."""
    embedder = HashEmbedder()
    async with manager(uri, clock, embedder) as memory:
        for method in ("keyword", "semantic", "hybrid", "agentic"):
            assert await near(memory, "chess", method) == []
            with pytest.raises(InvalidQueryError, match="not blank"):
                await near(memory, "  ", method)
        await memory.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        embedder.texts.clear()
        assert await near(memory, "chess", topics=["none"]) == []
        assert embedder.texts == []


@pytest.mark.parametrize("vectors", [np.zeros((2, 3)), np.zeros(3), None])
async def test_an_embedder_that_gives_no_table_is_refused(uri: str, clock: Clock, vectors: Any) -> None:
    """One vector a text, or an error that names the embedder."""

    class Odd(HashEmbedder):
        async def embed(self, texts: Sequence[str]) -> Any:
            return vectors if vectors is None else Embeddings(vectors)

    async with manager(uri, clock, Odd()) as memory:
        await memory.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
        with pytest.raises(ModelError, match=r"hash-64: its embed"):
            await near(memory, "chess")


def test_what_is_no_embedder_is_refused() -> None:
    """embedding_model takes a name or an Embedder."""
    with pytest.raises(ConfigurationError, match="embedding_model must be"):
        MemoryManager("mongodb://localhost/app", embedding_model=5)  # type: ignore[arg-type]
