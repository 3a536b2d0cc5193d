"""One optimization of one user at a time, work that is left and finished by others, and what searches see of it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import OperationFailure

from asyncmem import MemoryManager, OptimizationConflictError, Settings, UserMemory
from asyncmem.operations import Delete, Grounded, Update
from asyncmem.store import leases, transactions
from asyncmem.store import swaps as swaps_module
from asyncmem.store.batch import Batch
from asyncmem.store.store import MemoryStore, open_store
from asyncmem.store.swaps import SwapPlan, Swaps
from asyncmem.store.transacting import TooLargeError, transact
from asyncmem.testing import HashEmbedder, ScriptedModel
from asyncmem.types import Scope

from .conftest import Clock

pytestmark = pytest.mark.anyio
TEXTS = ["Keeps two parrots", "Works nights", "Owns a kayak"]


@pytest.fixture
async def store(uri: str, clock: Clock) -> AsyncIterator[MemoryStore]:
    """A store on each kind of server."""
    store = await open_store(uri, Settings(clock=clock))
    yield store
    await store.aclose()


def swaps_of(store: MemoryStore, lasting: timedelta = leases.LASTING) -> Swaps:
    """Another optimizer of the same database."""
    transactions = store.capabilities.transactions
    return Swaps(store._core, store.archive, store.captures, transactions=transactions, lasting=lasting)


async def plan_for(store: MemoryStore, run_id: str = "run-1", user_id: str = "lin") -> SwapPlan:
    """A plan that retires all but the kayak."""
    if not await store.read.count(user_id):
        await store.write.add_many([(UserMemory(memory=t), user_id) for t in TEXTS], "manual")
    old = [m for m in await store.swaps.snapshot(user_id) if m.memory != "Owns a kayak"]
    return SwapPlan(run_id, user_id, "summarize", retire=old, add=[UserMemory(memory="Parrots and nights")])


async def texts(store: MemoryStore, user_id: str = "lin") -> list[str]:
    """What the user's memories say."""
    return sorted(memory.memory for memory in await store.swaps.snapshot(user_id))


NEW = ["Owns a kayak", "Parrots and nights"]


async def test_one_optimization_of_a_user_at_a_time(store: MemoryStore) -> None:
    """Somebody else's is refused while one is under way, another user's is not, and the next one may come after it."""
    other = swaps_of(store)
    plan = await plan_for(store)
    async with store.swaps.reserving("lin"):
        with pytest.raises(OptimizationConflictError, match="try again when it has ended"):
            async with other.reserving("lin"):
                pass
        for refused in (other.swap(plan), other.undo("lin", "run-1")):
            with pytest.raises(OptimizationConflictError):
                await refused
        async with other.reserving("omar"), store.swaps.reserving("lin"):
            pass
        await store.swaps.swap(plan)
    async with other.reserving("lin"):
        assert await texts(store) == NEW
    assert await store._core.collections.optimizations.count_documents({"kind": "lease"}) == 0


async def test_a_race_has_one_winner(store: MemoryStore) -> None:
    """Of ten that begin at once, those that are refused change nothing."""
    plans = [await plan_for(store, f"run-{n}") for n in range(10)]
    ends = await asyncio.gather(*(swaps_of(store).swap(plan) for plan in plans), return_exceptions=True)
    assert sum(isinstance(end, OptimizationConflictError) for end in ends) == 9
    assert (await texts(store), len(await store.swaps.runs("lin"))) == (NEW, 1)


async def test_a_lease_that_nobody_renews_lapses(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever lost it to somebody else is refused and touches nothing."""
    slow, plan = swaps_of(store, timedelta(seconds=0.2)), await plan_for(store)

    async def never(lease: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(slow._leases, "_renew", never)
    async with slow.reserving("lin"):
        await asyncio.sleep(0.3)
        async with store.swaps.reserving("lin"):
            with pytest.raises(OptimizationConflictError, match="nothing was changed"):
                await slow.swap(plan)
    assert (await texts(store), await store.swaps.runs("lin")) == (sorted(TEXTS), [])
    assert await store._core.collections.archive.count_documents({}) == 0


async def test_a_lease_is_renewed(store: MemoryStore) -> None:
    """Work that takes longer than a lease keeps it."""
    quick = swaps_of(store, timedelta(seconds=0.6))
    async with quick.reserving("lin"):
        await asyncio.sleep(1.2)
        with pytest.raises(OptimizationConflictError):
            async with store.swaps.reserving("lin"):
                pass


# ------------------------------------------------------------------------------------------------------- recovery


class StoppedError(Exception):
    """The process ends here."""


@pytest.fixture
def journalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is too large for a transaction."""
    monkeypatch.setattr(swaps_module, "LARGEST", 0)


async def left(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A swap that was announced, and of which nothing was done."""
    plan = await plan_for(store)

    async def stopped(*arguments: object) -> None:
        raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr(type(store.swaps._journalled), "carry_out", stopped)
        with pytest.raises(StoppedError):
            await store.swaps.swap(plan)
    assert await texts(store) == sorted(TEXTS)


@pytest.mark.usefixtures("journalled")
async def test_a_capture_finishes_what_was_left(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it reads, the swap that somebody left is done; so it is by an opening, and by the next optimization."""
    await left(store, monkeypatch)
    assert await store.applier.recover("omar") == 0
    assert await store.applier.recover("lin") == 1
    assert (await texts(store), await store.applier.recover()) == (NEW, 0)
    await store.swaps.undo("lin", "run-1")
    assert await texts(store) == sorted(TEXTS)


@pytest.mark.usefixtures("journalled")
async def test_several_finish_the_same_swap_once(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes second finds it done."""
    await left(store, monkeypatch)
    await asyncio.gather(*(swaps_of(store).recover("lin") for _ in range(5)))
    assert await texts(store) == NEW
    run = (await store.swaps.runs("lin"))[0]
    assert (run.retired, run.added) == (2, 1)


@pytest.mark.usefixtures("journalled")
async def test_a_cancelled_swap_is_whole(store: MemoryStore) -> None:
    """What was announced is done before the cancellation comes out; the lease is given back."""
    plan = await plan_for(store)
    for delay in range(0, 40, 2):
        task = asyncio.create_task(store.swaps.swap(plan))
        await asyncio.sleep(delay / 1000)
        task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        there = await texts(store)
        assert there in (sorted(TEXTS), NEW)
        if not isinstance(ended, asyncio.CancelledError) or there == NEW:
            break
    async with swaps_of(store).reserving("lin"):
        assert await store._core.collections.optimizations.count_documents({"status": "prepared"}) == 0


async def test_too_much_for_a_transaction_goes_by_the_journal(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that refuses so much at once gets it write by write."""

    async def full(core: object, attempt: object) -> None:
        raise TooLargeError

    monkeypatch.setattr(transactions, "transact", full)
    await store.swaps.swap(await plan_for(store))
    assert await texts(store) == NEW
    await store.swaps.undo("lin", "run-1")
    assert await texts(store) == sorted(TEXTS)


@pytest.mark.parametrize("code", [257, 290, 388])
async def test_a_transaction_that_is_too_large_is_told_apart(store: MemoryStore, code: int) -> None:
    """MongoDB's three ways to say so."""

    async def refuse(session: Any) -> None:
        raise OperationFailure("too large", code)

    if store.capabilities.transactions:
        with pytest.raises(TooLargeError):
            await transact(store._core, refuse)


# --------------------------------------------------------------------------------------------- captures, searches


@pytest.mark.parametrize("strict", [True, False])
async def test_a_capture_of_what_was_optimized_meanwhile(store: MemoryStore, strict: bool) -> None:
    """It decides anew; the second time, what it has to say of a retired memory becomes one of its own."""
    plan = await plan_for(store)
    seen = {str(m.memory_id): m for m in plan.retire}
    parrots, nights = (next(i for i, m in seen.items() if m.memory == text) for text in TEXTS[:2])
    operations = [Grounded(Update(parrots, "Keeps three parrots", None, "three parrots")), Grounded(Delete(nights))]
    await store.swaps.swap(plan)
    applied = await store.applier.apply(Batch(Scope("lin"), operations, seen=seen, strict=strict))
    assert applied.stale == strict
    assert [c.kind for c in applied.changes] == ([] if strict else ["add"])
    assert await texts(store) == (NEW if strict else sorted([*NEW, "Keeps three parrots"]))


async def test_searches_see_the_swap_and_its_undo_at_once(uri: str) -> None:
    """Another manager's keyword and semantic searches, warm before, find the new set, then the old one."""
    async with (
        MemoryManager(uri, model=ScriptedModel([]), embedding_model=HashEmbedder()) as one,
        MemoryManager(uri, model=ScriptedModel([]), embedding_model=HashEmbedder()) as two,
    ):
        await one.add_user_memories([UserMemory(memory=text) for text in TEXTS], user_id="lin")
        store = await one._opening.store()

        async def found(method: str) -> list[str]:
            hits = await two.search_user_memories("parrots", user_id="lin", retrieval_method=method)
            return sorted(m.memory for m in hits)

        before = {method: await found(method) for method in ("keyword", "semantic", "hybrid")}
        await store.swaps.swap(await plan_for(store))
        assert await found("keyword") == ["Parrots and nights"]
        assert "Keeps two parrots" not in [*await found("semantic"), *await found("hybrid")]
        await store.swaps.undo("lin", "run-1")
        assert {method: await found(method) for method in before} == before


async def test_five_thousand_memories(store: MemoryStore) -> None:
    """They change hands and come back as they were; on the embedded server, which is slow, five hundred."""
    count = 5_000 if store.capabilities.version[0] == 6 else 500
    await store.write.add_many([(UserMemory(memory=f"Owns boat {n}"), "lin") for n in range(count)], "manual")
    old = await store.swaps.snapshot("lin")
    assert [m.memory for m in old] == [f"Owns boat {n}" for n in range(count)]
    done = await store.swaps.swap(SwapPlan("run-1", "lin", "s", retire=old, add=[UserMemory(memory="Owns a fleet")]))
    assert (len(done.retired), done.run.retired, await texts(store)) == (count, count, ["Owns a fleet"])
    back = await store.swaps.undo("lin", "run-1")
    assert (len(back.restored), await store.swaps.snapshot("lin")) == (count, old)


async def test_erasing_counts_optimizations(store: MemoryStore) -> None:
    """Runs and their parts are in the receipt, and gone."""
    await store.swaps.swap(await plan_for(store))
    receipt = await store.remove.erase("lin")
    assert receipt.counts["optimizations"] == 3
    assert await store._core.collections.optimizations.count_documents({}) == 0


async def test_a_lease_s_time_is_the_server_s(store: MemoryStore) -> None:
    """However wrong the client's clock is."""
    async with store.swaps.reserving("lin"):
        lease = await store._core.collections.optimizations.find_one({"kind": "lease"})
    assert lease is not None
    assert abs(lease["until"].replace(tzinfo=UTC) - datetime.now(UTC) - leases.LASTING) < timedelta(seconds=20)
