"""For how long a call keeps the event loop from others, by the clock and by what its thread computed."""

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager


@contextmanager
def collector_seconds() -> Iterator[list[float]]:
    """CPU seconds of this thread that Python's garbage collector took, summed up in the list's one place."""
    spent, began, thread = [0.0], 0.0, threading.get_ident()

    def watch(phase: str, _: dict[str, int]) -> None:
        nonlocal began
        if threading.get_ident() != thread:
            return
        if phase == "start":
            began = time.thread_time()
        else:
            spent[0] += time.thread_time() - began

    gc.callbacks.append(watch)
    try:
        yield spent
    finally:
        gc.callbacks.remove(watch)


async def longest_stall(call: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """For how long others waited for the event loop at most, while a call ran, in milliseconds.

    ``stall`` is wall-clock, so it counts whatever else the machine did meanwhile; ``cpu`` is the most that the loop's
    own thread computed between two turns of another task, and ``own`` the most without the garbage collector's part:
    each of the three can be of another turn.
    """
    most, running = {"stall": 0.0, "cpu": 0.0, "own": 0.0}, True

    async def watch() -> None:
        while running:
            began, cpu, freed = time.perf_counter(), time.thread_time(), spent[0]
            await asyncio.sleep(0)
            cpu = time.thread_time() - cpu
            turn = {"stall": time.perf_counter() - began, "cpu": cpu, "own": cpu - (spent[0] - freed)}
            most.update({name: max(most[name], seconds * 1000) for name, seconds in turn.items()})

    with collector_seconds() as spent:
        task = asyncio.create_task(watch())
        await call()
        running = False
        await task
    return {name: round(milliseconds, 1) for name, milliseconds in most.items()}
