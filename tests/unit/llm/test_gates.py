"""The gate in front of a model."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from asyncmem.llm import gates
from asyncmem.llm.gates import Gate, Gates

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("most", "each"), [(1, 1), (9, 1), (16, 1), (17, 17), (256, 256)])
async def test_calls_begin_one_a_turn_up_to_a_bound_of_16(most: int, each: int) -> None:
    """Calls that come together begin one by one, the loop's other work in between; with a higher bound, at once."""
    gate = Gate(most)
    turns = 0
    began: list[int] = []

    async def call() -> None:
        async with gate.passage():
            began.append(turns)
            await asyncio.sleep(0)

    tasks = [asyncio.ensure_future(call()) for _ in range(5 * each)]
    while not all(task.done() for task in tasks):
        turns += 1
        await asyncio.sleep(0)
    assert [began.count(turn) for turn in sorted(set(began))] == [each] * 5


async def test_no_more_than_so_many_are_inside() -> None:
    """Beyond the bound calls wait until one leaves."""
    gate = Gate(2)
    inside = most = 0

    async def call() -> None:
        nonlocal inside, most
        async with gate.passage() as start:
            inside += 1
            most = max(most, inside)
            await start.through(asyncio.sleep(0.002))
            inside -= 1

    await asyncio.gather(*(call() for _ in range(7)))
    assert most == 2


@pytest.mark.parametrize("waits", [1, 2, 3])
async def test_one_begins_when_the_one_before_waits_for_so_many_things(
    waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is prepared in a worker thread is prepared before the next call begins, whatever it takes after that."""
    monkeypatch.setattr(gates, "PATIENCE", 60.0)
    gate = Gate(16)
    steps: list[tuple[int, int]] = []
    answer = asyncio.Event()

    async def work(n: int) -> None:
        for step in range(waits - 1):
            await asyncio.to_thread(steps.append, (n, step))
        steps.append((n, waits - 1))
        await answer.wait()

    async def call(n: int) -> None:
        async with gate.passage(waits) as start:
            await start.through(work(n))

    tasks = [asyncio.ensure_future(call(n)) for n in range(4)]
    async with asyncio.timeout(10):
        while len(steps) < 4 * waits:
            await asyncio.sleep(0.001)
        assert steps == [(n, step) for n in range(4) for step in range(waits)]
        answer.set()
        await asyncio.gather(*tasks)


async def test_none_begins_before_the_one_before_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that has its turn and does not wait for anything yet is the only one."""
    monkeypatch.setattr(gates, "PATIENCE", 60.0)
    gate = Gate(16)
    begun = asyncio.Event()

    async def next_one() -> None:
        async with gate.passage():
            begun.set()

    async with gate.passage() as start:
        task = asyncio.ensure_future(next_one())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not begun.is_set()
        await start.through(begun.wait())
    await task


async def test_no_error_carries_what_came_before_it() -> None:
    """What the work raises after a failure that it took care of has no context: it may hold a prompt and a key."""
    gate = Gate(1)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        failing = loop.create_future()
        loop.call_soon(failing.set_exception, OSError("the prompt"))
        failed = False
        try:
            await failing
        except OSError:
            failed = True
        if failed:
            raise LookupError("unchained")

    async with gate.passage() as start:
        with pytest.raises(LookupError) as caught:
            await start.through(work())
    assert caught.value.__context__ is None


async def test_one_that_takes_long_to_begin_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call whose preparation waits, for a pool of threads that is full, keeps its turn for a moment only."""
    gate = Gate(16)
    never = asyncio.get_running_loop().create_future  # one each: who is cancelled cancels what it waits for

    async def call(work: Callable[[], Awaitable[object]]) -> None:
        async def begun() -> None:
            await work()

        async with gate.passage(2) as start:
            await start.through(begun())

    monkeypatch.setattr(gates, "PATIENCE", 60.0)
    patient = asyncio.ensure_future(call(never))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(call(lambda: asyncio.sleep(0)))
    done, _ = await asyncio.wait([second], timeout=0.05)
    assert not done
    patient.cancel()
    async with asyncio.timeout(10):
        await second

    monkeypatch.setattr(gates, "PATIENCE", 0.001)
    stuck = asyncio.ensure_future(call(never))
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await call(lambda: asyncio.sleep(0))
    stuck.cancel()


async def test_work_that_is_counted_is_the_same_work() -> None:
    """What it gives, what it raises and what is raised in it come out and go in as without counting."""
    gate = Gate(1)

    async def work(waits: int, outcome: object) -> object:
        for _ in range(waits):
            await asyncio.sleep(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    for waits in range(4):
        async with gate.passage(2) as start:
            assert await start.through(work(waits, "given")) == "given"
            assert await start.through(work(waits, "again")) == "again"
        async with gate.passage(2) as start:
            with pytest.raises(LookupError, match="gone"):
                await start.through(work(waits, LookupError("gone")))

    async def late() -> str:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.sleep(60)
        except TimeoutError:
            await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        failing = loop.create_future()
        loop.call_soon(failing.set_exception, OSError("reset"))
        with pytest.raises(OSError, match="reset"):
            await failing
        return "mended"

    async with gate.passage(1) as start:
        assert await start.through(late()) == "mended"


async def test_place_of_a_cancelled_call_is_free_again() -> None:
    """A call that is cancelled while it waits for its turn, or inside, leaves its place to others."""
    gate = Gate(1)
    for turns in range(6):
        task = asyncio.ensure_future(_hold(gate))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
    async with asyncio.timeout(1), gate.passage():
        pass


async def _hold(gate: Gate) -> None:
    async with gate.passage() as start:
        await start.through(asyncio.sleep(60))


async def test_each_loop_has_its_own_gate() -> None:
    """The running loop's gate is always the same one, another loop's is another."""
    gates = Gates(1)
    mine = gates.here()
    assert gates.here() is mine

    def elsewhere() -> Gate:
        async def here() -> Gate:
            return gates.here()

        return asyncio.run(here())

    assert await asyncio.to_thread(elsewhere) is not mine
