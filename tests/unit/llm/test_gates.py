"""The gate in front of a model."""

import asyncio

import pytest

from asyncmem.llm.gates import Gate, Gates

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("most", "each"), [(1, 1), (9, 1), (16, 1), (17, 17), (256, 256)])
async def test_calls_begin_one_a_turn_up_to_a_bound_of_16(most: int, each: int) -> None:
    """Calls that come together begin one by one, the loop's other work in between; with a higher bound, at once."""
    gate = Gate(most)
    turns = 0
    began: list[int] = []

    async def call() -> None:
        async with gate:
            began.append(turns)

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
        async with gate:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.002)
            inside -= 1

    await asyncio.gather(*(call() for _ in range(7)))
    assert most == 2


async def test_place_of_a_cancelled_call_is_free_again() -> None:
    """A call that is cancelled while it waits for its turn, or inside, leaves its place to others."""
    gate = Gate(1)
    for turns in range(6):
        task = asyncio.ensure_future(_hold(gate))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(1), gate:
        pass


async def _hold(gate: Gate) -> None:
    async with gate:
        await asyncio.sleep(60)


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
