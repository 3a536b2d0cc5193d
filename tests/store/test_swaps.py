"""Optimizations on each kind of server: safe beside everybody else, whole or not at all, and undone without a trace."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from asyncmem import (
    OptimizationConflictError,
    OptimizationNotFoundError,
    Settings,
    UserMemory,
)
from asyncmem.store import swaps as swaps_module
from asyncmem.store.documents import Row
from asyncmem.store.store import MemoryStore, open_store
from asyncmem.store.swaps import Swapped, SwapPlan
from asyncmem.store.vectors import to_vector

from .conftest import Clock

pytestmark = pytest.mark.anyio
PARROTS = ["Keeps two parrots", "Works nights", "Parrots are named Pip and Bo"]
SUMMARY = "Works nights and keeps two parrots, Pip and Bo"


@pytest.fixture(params=["as_it_is", "journal"])
async def store(
    request: pytest.FixtureRequest, uri: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MemoryStore]:
    """A store on each kind of server, also with everything too large for a transaction."""
    if request.param == "journal":
        monkeypatch.setattr(swaps_module, "LARGEST", 0)
    store = await open_store(uri, Settings(clock=clock))
    yield store
    await store.aclose()


async def filled(store: MemoryStore, texts: Sequence[str] = PARROTS, user_id: str = "lin") -> list[UserMemory]:
    """The user's memories, just written."""
    vectors = {text: to_vector("test", text, bytes(range(16))) for text in texts}
    memories = [UserMemory(memory=text, topics=["life"], input=f"i said {text}") for text in texts]
    await store.write.add_many([(memory, user_id) for memory in memories], "manual", vectors)
    return await store.swaps.snapshot(user_id)


def plan_of(retire: Sequence[UserMemory], *adds: str, run_id: str = "run-1", **more: Any) -> SwapPlan:
    """A plan for lin."""
    return SwapPlan(run_id, "lin", "summarize", retire=retire, add=[UserMemory(memory=t) for t in adds], **more)


async def raw(store: MemoryStore, user_id: str = "lin") -> dict[str, Row]:
    """The user's rows as MongoDB holds them, but for the stamp."""
    rows = await store._core.collections.memories.find({"user_id": user_id}).to_list()
    return {row["_id"]: {name: value for name, value in row.items() if name != "stamp"} for row in rows}


async def texts(store: MemoryStore, user_id: str = "lin") -> list[str]:
    """What the user's memories say."""
    return sorted(memory.memory for memory in await store.swaps.snapshot(user_id))


async def histories(store: MemoryStore, ids: Sequence[str]) -> list[Any]:
    """Of each memory."""
    return [await store.read.history("lin", memory_id) for memory_id in ids]


# --------------------------------------------------------------------------------------------------------------- swap


async def test_old_memories_change_hands_for_new_ones(store: MemoryStore, clock: Clock) -> None:
    """The old ones are in the archive, the new one is there, and the run is listed with its counts."""
    old = await filled(store)
    done = await store.swaps.swap(plan_of(old, SUMMARY))
    assert isinstance(done, Swapped)
    assert await texts(store) == [SUMMARY]
    assert ([m.memory for m in done.added], done.stayed, done.revised) == ([SUMMARY], [], [])
    assert sorted(m.memory for m in done.retired) == sorted(PARROTS)
    run = done.run
    assert (run.run_id, run.user_id, run.strategy, run.status) == ("run-1", "lin", "summarize", "applied")
    assert (run.retired, run.revised, run.added, run.at) == (3, 0, 1, clock.now)
    assert run.undo_until == clock.now + timedelta(days=30)
    assert await store.swaps.runs("lin") == [run]
    assert await store.swaps.runs("omar") == []
    changes = await store.read.history("lin", str(old[0].memory_id))
    assert [(c.kind, c.cause) for c in changes] == [("add", "manual"), ("delete", "optimize")]


async def test_undo_brings_back_identical_documents(store: MemoryStore, clock: Clock) -> None:
    """Ids, times, revisions, history and vectors are what they were, and no trace of the run is in any history."""
    old = await filled(store)
    await store.write.change("lin", str(old[0].memory_id), {"memory": "Keeps 2 parrots"}, "manual")
    old = await store.swaps.snapshot("lin")
    ids = [str(m.memory_id) for m in old]
    before, told = await raw(store), await histories(store, ids)
    clock.advance(hours=1)
    revise = [(old[0], old[0].model_copy(update={"memory": "Works by night", "topics": ["work"]}))]
    done = await store.swaps.swap(plan_of(old[1:], SUMMARY, revise=revise))
    assert [(m.memory, m.topics, m.revision) for m in done.revised] == [("Works by night", ["work"], 3)]
    assert await texts(store) == sorted([SUMMARY, "Works by night"])
    clock.advance(hours=1)
    back = await store.swaps.undo("lin", "run-1")
    assert await raw(store) == before
    assert await histories(store, ids) == told
    assert (back.run.status, back.removed, back.stayed) == ("undone", 1, [])
    assert {m.memory_id for m in back.restored} == set(ids)
    assert [r.status for r in await store.swaps.runs("lin")] == ["undone"]
    assert await store._core.collections.archive.count_documents({"kind": "optimize"}) == 0
    gone = await store.read.history("lin", str(done.added[0].memory_id))
    assert [(c.kind, c.cause) for c in gone] == [("add", "optimize"), ("delete", "undo")]


async def test_undo_twice_and_of_others(store: MemoryStore, clock: Clock) -> None:
    """A run is undone once, by its own user, before its retention ends."""
    await store.swaps.swap(plan_of(await filled(store), SUMMARY))
    with pytest.raises(OptimizationNotFoundError):
        await store.swaps.undo("omar", "run-1")
    with pytest.raises(OptimizationNotFoundError):
        await store.swaps.undo("lin", "run-2")
    await store.swaps.undo("lin", "run-1")
    with pytest.raises(OptimizationConflictError, match="was undone at 2096-01-05 08:00 UTC"):
        await store.swaps.undo("lin", "run-1")
    await store.swaps.swap(plan_of(await store.swaps.snapshot("lin"), SUMMARY, run_id="run-2"))
    clock.advance(days=31)
    with pytest.raises(OptimizationNotFoundError, match="retention ended at 2096-02-04"):
        await store.swaps.undo("lin", "run-2")
    assert await store.swaps.runs("lin") == []
