"""Optimizations on each kind of server: safe beside everybody else, whole or not at all, and undone without a trace."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from asyncmem import (
    MemoryNotFoundError,
    OptimizationConflictError,
    OptimizationNotFoundError,
    Settings,
    UserMemory,
)
from asyncmem.store import swaps as swaps_module
from asyncmem.store.core import Gate
from asyncmem.store.documents import Row
from asyncmem.store.store import MemoryStore, open_store
from asyncmem.store.swaps import Swapped, SwapPlan
from asyncmem.store.vectors import to_vector

from .conftest import Clock

pytestmark = pytest.mark.anyio
PARROTS = ["Keeps two parrots", "Works nights", "Parrots are named Pip and Bo"]
SUMMARY = "Works nights and keeps two parrots, Pip and Bo"


CASES = {"replica_set": False, "replica_set-journal": True, "standalone": False, "embedded": False}
"""Servers, and whether everything counts as too large for a transaction, which the second one has not anyway."""


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    """Each kind of server, and each way to swap."""
    name: str = request.param
    return name


@pytest.fixture
def server_uri(request: pytest.FixtureRequest, case: str) -> str:
    """The case's server."""
    uri: str = request.getfixturevalue(f"{case.removesuffix('-journal')}_uri")
    return uri


@pytest.fixture
async def store(case: str, uri: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MemoryStore]:
    """The case's store."""
    if CASES[case]:
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


# -------------------------------------------------------------------------------------------------- beside others


class Meddling(Gate):
    """A gate at which somebody else does something before the so-manieth call of its store."""

    def __init__(self, at: int, deed: Callable[[], Awaitable[None]]) -> None:
        super().__init__(32)
        self.left = at
        self.deed = deed

    @asynccontextmanager
    async def passing(self) -> AsyncGenerator[None, None]:
        self.left -= 1
        if self.left == 0:
            await self.deed()
        async with super().passing():
            yield


class Rival:
    """Another manager of the same database, and what came of its deed."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.done: object = None

    async def add(self, text: str) -> None:
        """Add a memory."""
        self.done = await self.store.write.add(UserMemory(memory=text), "lin", "manual")

    async def change(self, memory_id: str, text: str) -> None:
        """Change a memory, if it is there."""
        with suppress(MemoryNotFoundError):
            self.done = (await self.store.write.change("lin", memory_id, {"memory": text}, "manual"))[1]

    async def delete(self, memory_id: str) -> None:
        """Delete a memory, if it is there."""
        self.done = await self.store.remove.delete("lin", memory_id, "manual")

    async def erase(self) -> None:
        """Erase the user."""
        self.done = await self.store.remove.erase("lin")


@pytest.fixture
async def other(uri: str, store: MemoryStore, clock: Clock) -> AsyncIterator[MemoryStore]:
    """Another store on the same database."""
    other = await open_store(uri, Settings(clock=clock))
    yield other
    await other.aclose()


Deed = Callable[[Rival, dict[str, str]], Awaitable[None]]
DEEDS: dict[str, Deed] = {
    "add": lambda rival, ids: rival.add("Moved to Tromsø"),
    "add the summary": lambda rival, ids: rival.add(f"{SUMMARY}."),
    "add the old": lambda rival, ids: rival.add(PARROTS[1]),
    "change the old": lambda rival, ids: rival.change(ids[PARROTS[0]], "Keeps three parrots"),
    "change the turning": lambda rival, ids: rival.change(ids["Owns a kayak"], "Owns a canoe"),
    "change the new": lambda rival, ids: rival.change(ids[SUMMARY], "Works at night"),
    "delete the old": lambda rival, ids: rival.delete(ids[PARROTS[0]]),
    "delete the turning": lambda rival, ids: rival.delete(ids["Owns a kayak"]),
    "erase": lambda rival, ids: rival.erase(),
}


async def meddled(
    store: MemoryStore, other: MemoryStore, at: int, name: str, *, undo: bool
) -> tuple[Rival, bool, bool]:
    """Swap, or undo, with a deed at one point; the rival, whether there was a conflict, whether the deed was done."""
    await other.remove.erase("lin")
    old = await filled(other, [*PARROTS, "Owns a kayak"])
    ids = {memory.memory: str(memory.memory_id) for memory in old}
    rival = Rival(other)
    begun = await store.captures.begun("lin")
    revise = [(old[3], old[3].model_copy(update={"memory": "Owns a red kayak"}))]
    plan = plan_of(old[:3], SUMMARY, PARROTS[1].upper(), run_id=f"run-{at}", revise=revise, erasures=begun)
    if undo:
        done = await store.swaps.swap(plan)
        ids |= {memory.memory: str(memory.memory_id) for memory in done.added}
    gate = Meddling(at, lambda: DEEDS[name](rival, ids))
    before = store._core.gate
    object.__setattr__(store._core, "gate", gate)
    conflict = False
    try:
        if undo:
            await store.swaps.undo("lin", f"run-{at}")
        else:
            await store.swaps.swap(plan)
    except (OptimizationConflictError, OptimizationNotFoundError):
        conflict = True
    finally:
        object.__setattr__(store._core, "gate", before)
    return rival, conflict, gate.left <= 0


def everywhere(store: MemoryStore) -> bool:
    """Whether somebody meddles at every point; on the embedded server, which is slow, only at some."""
    return store.capabilities.version[0] == 6


async def points(
    store: MemoryStore, other: MemoryStore, name: str, *, undo: bool = False
) -> AsyncIterator[tuple[Rival, bool, list[str]]]:
    """Do the deed at every point; on the embedded server, which is slow, at every twelfth."""
    step = 1 if everywhere(store) else 12
    for at in range(1, 200, step):
        rival, conflict, happened = await meddled(store, other, at, name, undo=undo)
        if not happened:
            assert at > 8
            return
        yield rival, conflict, await texts(other)


OLD = sorted([*PARROTS, "Owns a kayak"])
NEW = sorted([SUMMARY, PARROTS[1].upper(), "Owns a red kayak"])


async def test_what_is_added_during_a_swap_is_there(store: MemoryStore, other: MemoryStore) -> None:
    """At every point: the addition and the new set live."""
    async for _, conflict, there in points(store, other, "add"):
        assert (conflict, there) == (False, sorted([*NEW, "Moved to Tromsø"]))


async def test_the_summary_said_by_somebody_else_is_there_once(store: MemoryStore, other: MemoryStore) -> None:
    """At every point: there is one memory of that text."""
    async for _, conflict, there in points(store, other, "add the summary"):
        assert (conflict, [t.rstrip(".") for t in there]) == (False, NEW)


async def test_what_is_said_again_during_a_swap_is_there_once(store: MemoryStore, other: MemoryStore) -> None:
    """A text that goes, and comes in other letters: said again at any point, it is there once."""
    async for _, conflict, there in points(store, other, "add the old"):
        assert (conflict, sorted(t.upper() for t in there)) == (False, sorted(t.upper() for t in NEW))


@pytest.mark.parametrize("name", ["change the old", "change the turning"])
async def test_what_is_changed_during_a_swap_stays(store: MemoryStore, other: MemoryStore, name: str) -> None:
    """At every point: a change that was acknowledged lives, or the memory was gone before it."""
    stayed = 0
    async for rival, conflict, there in points(store, other, name):
        assert not conflict
        if isinstance(rival.done, UserMemory):
            stayed += 1
            assert rival.done.memory in there
            expected = {*NEW, rival.done.memory} - ({"Owns a red kayak"} if name == "change the turning" else set())
            assert set(there) == expected
        else:
            assert there == NEW
    assert stayed > (2 if everywhere(store) else 0)


@pytest.mark.parametrize("name", ["delete the old", "delete the turning"])
async def test_a_deletion_during_a_swap_wins(store: MemoryStore, other: MemoryStore, name: str) -> None:
    """At every point: a source that was deleted leaves all else untouched, or the memory was gone before it."""
    won = 0
    async for rival, conflict, there in points(store, other, name):
        if conflict:
            won += 1
            assert isinstance(rival.done, UserMemory)
            assert there == [text for text in OLD if text != rival.done.memory]
            assert await other.swaps.runs("lin") == []
            found = {name: await getattr(other._core.collections, name).count_documents({}) for name in KEPT}
            assert found == {"archive": 1 + MARKS, "optimizations": 0}
        else:
            assert there == NEW if rival.done is None else sorted({*NEW} - {"Owns a red kayak"})
    assert won > (2 if everywhere(store) else 0)


KEPT = ("archive", "optimizations")
MARKS = 1
"""The archive's mark that the user was erased, before each round."""


@pytest.mark.parametrize("undo", [False, True], ids=["swap", "undo"])
async def test_an_erasure_during_a_swap_leaves_nothing(store: MemoryStore, other: MemoryStore, undo: bool) -> None:
    """At every point: nothing of the user is left in any collection."""
    async for _, _, there in points(store, other, "erase", undo=undo):
        assert there == []
        for name in ("memories", "archive", "captures", "optimizations"):
            assert await getattr(other._core.collections, name).count_documents({"user_id": "lin"}) == 0


async def test_an_addition_during_an_undo_is_there(store: MemoryStore, other: MemoryStore) -> None:
    """At every point: the addition and the old set live."""
    async for _, conflict, there in points(store, other, "add", undo=True):
        assert (conflict, there) == (False, sorted([*OLD, "Moved to Tromsø"]))


async def test_the_old_said_by_somebody_else_during_an_undo_is_there_once(
    store: MemoryStore, other: MemoryStore
) -> None:
    """At every point: there is one memory of that text, and everything else is back."""
    async for _, conflict, there in points(store, other, "add the old", undo=True):
        assert (conflict, sorted(t.upper() for t in there)) == (False, sorted(t.upper() for t in OLD))


@pytest.mark.parametrize("name", ["change the turning", "change the new"])
async def test_what_is_changed_during_an_undo_stays(store: MemoryStore, other: MemoryStore, name: str) -> None:
    """At every point: a change that was acknowledged lives beside the old set, or the memory was gone before it."""
    async for rival, conflict, there in points(store, other, name, undo=True):
        assert not conflict
        expected = {rival.done.memory} if isinstance(rival.done, UserMemory) else set()
        assert set(there) == {*OLD, *expected} - ({"Owns a kayak"} if name == "change the turning" else set())


async def test_a_deletion_during_an_undo_wins(store: MemoryStore, other: MemoryStore) -> None:
    """At every point: what came back and was deleted since does not come back again."""
    async for rival, conflict, there in points(store, other, "delete the old", undo=True):
        assert (conflict, there) == (False, [t for t in OLD if rival.done is None or t != PARROTS[0]])


# ---------------------------------------------------------------------------------------------------------- undo


async def test_undo_leaves_what_was_changed_since(store: MemoryStore, clock: Clock) -> None:
    """A new memory that was changed stays and is listed, as is one that says what would have come back."""
    old = await filled(store, [*PARROTS, "Owns a kayak"])
    revise = [(old[3], old[3].model_copy(update={"memory": "Owns a red kayak"}))]
    done = await store.swaps.swap(plan_of(old[:3], SUMMARY, "Likes birds", revise=revise))
    added = {m.memory: str(m.memory_id) for m in done.added}
    await store.write.change("lin", added["Likes birds"], {"memory": "Likes all birds"}, "manual")
    await store.write.change("lin", str(old[3].memory_id), {"memory": "Owns a canoe"}, "manual")
    await store.write.add(UserMemory(memory="works nights!"), "lin", "manual")
    back = await store.swaps.undo("lin", "run-1")
    assert sorted(m.memory for m in back.stayed) == ["Likes all birds", "Owns a canoe", "works nights!"]
    assert (sorted(m.memory for m in back.restored), back.removed) == (sorted([PARROTS[0], PARROTS[2]]), 1)
    assert await texts(store) == sorted([PARROTS[0], PARROTS[2], "Likes all birds", "Owns a canoe", "works nights!"])


async def test_undo_leaves_a_memory_that_was_brought_back_by_hand(store: MemoryStore) -> None:
    """A retired memory that was reverted since is left as it is, and listed."""
    old = await filled(store)
    await store.swaps.swap(plan_of(old, SUMMARY))
    await store.write.revert("lin", str(old[0].memory_id), 1)
    back = await store.swaps.undo("lin", "run-1")
    assert [(m.memory_id, m.revision) for m in back.stayed] == [(old[0].memory_id, 3)]
    assert await texts(store) == sorted(PARROTS)


# ---------------------------------------------------------------------------------------------------------- plans


async def test_what_changes_nothing_is_not_revised(store: MemoryStore) -> None:
    """A revision to the same values is none, and a full history goes to the archive like at any other change."""
    old = await filled(store)
    done = await store.swaps.swap(plan_of([], run_id="run-0", revise=[(old[0], old[0])]))
    assert (done.run.revised, done.revised, done.run.added) == (0, [], 0)
    for number in range(25):
        await store.write.change("lin", str(old[0].memory_id), {"memory": f"Keeps {number} parrots"}, "manual")
    seen = next(m for m in await store.swaps.snapshot("lin") if m.memory_id == old[0].memory_id)
    ids = [str(seen.memory_id)]
    before, told = await raw(store), await histories(store, ids)
    await store.swaps.swap(plan_of([], revise=[(seen, seen.model_copy(update={"topics": ["birds"]}))]))
    assert len((await histories(store, ids))[0]) == 27
    await store.swaps.undo("lin", "run-1")
    assert (await raw(store), await histories(store, ids)) == (before, told)


async def test_a_revision_to_what_another_one_says_is_left(store: MemoryStore) -> None:
    """The memory stays as it is and is listed."""
    old = await filled(store)
    revise = [(old[0], old[0].model_copy(update={"memory": "works nights."}))]
    done = await store.swaps.swap(plan_of([old[2]], SUMMARY, SUMMARY.lower(), revise=revise))
    assert ([m.memory for m in done.stayed], done.revised) == ([PARROTS[0]], [])
    assert await texts(store) == sorted([SUMMARY, PARROTS[0], PARROTS[1]])


async def test_a_summary_that_expired_memories_said_is_added(store: MemoryStore, clock: Clock) -> None:
    """A memory of that text that has expired makes room, swept or not."""
    old = await filled(store)
    soon = UserMemory(memory=SUMMARY, expires_at=clock.now + timedelta(minutes=1))
    await store.write.add(soon, "lin", "manual")
    clock.advance(minutes=2)
    done = await store.swaps.swap(plan_of(old, SUMMARY))
    assert ([m.memory for m in done.added], await texts(store)) == ([SUMMARY], [SUMMARY])


async def test_a_run_id_is_used_once(store: MemoryStore) -> None:
    """The second swap of a run id is refused and touches nothing."""
    old = await filled(store)
    await store.swaps.swap(plan_of(old[:2], SUMMARY))
    with pytest.raises(OptimizationConflictError, match="run_id"):
        await store.swaps.swap(plan_of(old[2:], "Birds"))
    assert await texts(store) == sorted([SUMMARY, PARROTS[2]])
    assert [r.retired for r in await store.swaps.runs("lin")] == [2]


async def test_what_an_erased_user_s_plan_holds_is_not_written(store: MemoryStore) -> None:
    """A plan that was made before an erasure is refused."""
    old = await filled(store)
    await store.remove.erase("lin")
    await filled(store)
    with pytest.raises(OptimizationConflictError):
        await store.swaps.swap(plan_of(old, SUMMARY))
    with pytest.raises(OptimizationConflictError, match="erased"):
        await store.swaps.swap(plan_of(await store.swaps.snapshot("lin"), SUMMARY))
    assert await texts(store) == sorted(PARROTS)


async def test_a_deletion_that_never_happened_is_forgotten(store: MemoryStore, clock: Clock) -> None:
    """A memory whose deletion a crash left announced can't be optimized for a minute, then it can."""
    old = await filled(store)
    row = await store.read.row("lin", str(old[0].memory_id))
    assert row is not None
    await store.archive.keep([row], "delete", "manual", clock.now)
    with pytest.raises(OptimizationConflictError, match="deleted meanwhile"):
        await store.swaps.swap(plan_of(old, SUMMARY))
    clock.advance(minutes=2)
    await store.swaps.swap(plan_of(old, SUMMARY))
    await store.swaps.undo("lin", "run-1")
    assert await texts(store) == sorted(PARROTS)
