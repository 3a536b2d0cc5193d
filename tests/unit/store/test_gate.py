"""The gate in front of a store's connections, and how it is closed."""

import asyncio
import dataclasses
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from asyncmem import ManagerClosedError, Settings, StoreTimeoutError
from asyncmem.store.core import Gate
from asyncmem.store.store import MemoryStore

pytestmark = pytest.mark.anyio
LONG = timedelta(seconds=60)


async def hold(gate: Gate, until: asyncio.Event) -> None:
    """One call that takes until then."""
    async with gate.passing():
        await until.wait()


async def held(gate: Gate, until: asyncio.Event) -> asyncio.Task[None]:
    """A call that is inside."""
    task = asyncio.ensure_future(hold(gate, until))
    await asyncio.sleep(0)
    return task


async def test_closing_waits_for_calls_under_way() -> None:
    """A gate closes when those inside have left; later calls are refused."""
    gate, until = Gate(2), asyncio.Event()
    call = await held(gate, until)
    closing = asyncio.ensure_future(gate.close(LONG))
    await asyncio.sleep(0.01)
    assert not closing.done()
    until.set()
    await asyncio.gather(call, closing)
    with pytest.raises(ManagerClosedError):
        await hold(gate, until)


async def test_cancelled_closing_leaves_the_gate_open() -> None:
    """A closing that is cancelled gives back the places it has taken: as many calls as before go through at once."""
    gate, until = Gate(3), asyncio.Event()
    first = await held(gate, until)
    closing = asyncio.ensure_future(gate.close(LONG))
    await asyncio.sleep(0.01)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    others = [await held(gate, until) for _ in range(2)]
    until.set()
    async with asyncio.timeout(1):
        await asyncio.gather(first, *others)
        await gate.close(LONG)


async def test_calls_that_take_too_long_are_ended() -> None:
    """After the bound the gate closes all the same: calls inside get a StoreError, those in line a closed manager."""
    gate, never = Gate(1), asyncio.Event()
    inside, waiting = await held(gate, never), await held(gate, never)
    async with asyncio.timeout(5):
        await gate.close(timedelta(seconds=0.02))
        results = await asyncio.gather(inside, waiting, return_exceptions=True)
    assert [type(result) for result in results] == [StoreTimeoutError, ManagerClosedError]


async def test_time_outs_of_calls_themselves_stay() -> None:
    """A TimeoutError that a call raises is not taken for the gate's."""
    with pytest.raises(TimeoutError, match="mine"):
        async with Gate(1).passing():
            raise TimeoutError("mine")


async def test_connection_that_does_not_close_is_closed_again() -> None:
    """A goodbye that the server never answers is given up after the bound, and the connection closed without it."""
    closed: list[str] = []

    async def close() -> None:
        closed.append("asked")
        if len(closed) == 1:
            await asyncio.Event().wait()

    connection: Any = SimpleNamespace(close=close)
    fields: dict[str, Any] = dict.fromkeys(field.name for field in dataclasses.fields(MemoryStore))
    core: Any = SimpleNamespace(gate=Gate(1), settings=Settings(close_timeout=timedelta(0)))
    fields |= {"_connection": connection, "_core": core}
    async with asyncio.timeout(10):
        await MemoryStore(**fields).aclose()
    assert closed == ["asked", "asked"]
