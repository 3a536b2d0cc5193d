"""The manager's own tasks: each ends for itself, and all with the manager."""

import asyncio
import logging
from datetime import timedelta

import pytest

from asyncmem import EventLoopError, ManagerClosedError, MemoryManager
from asyncmem.tasks import Tasks

pytestmark = pytest.mark.anyio
SOON = timedelta(seconds=5)


async def test_closing_cancels_and_waits() -> None:
    """A task under way is cancelled, what it does on its way out is waited for, and nothing starts afterwards."""
    tasks, seen = Tasks(), list[str]()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            seen.append("ended")
            raise

    task = tasks.start("work", work)
    await asyncio.sleep(0)
    assert len(tasks) == 1
    assert await tasks.aclose(SOON) == []
    assert (seen, task.cancelled(), len(tasks)) == (["ended"], True, 0)
    assert await tasks.aclose(SOON) == []
    with pytest.raises(ManagerClosedError):
        tasks.start("work", work)


async def test_an_error_ends_its_own_task_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The others go on; the log has the task's name and the error's class, and not its text."""
    tasks, release = Tasks(), asyncio.Event()

    async def fail() -> None:
        raise ValueError("Plays chess")

    async def wait() -> None:
        await release.wait()

    failing, waiting = tasks.start("failing", fail), tasks.start("waiting", wait)
    with caplog.at_level(logging.DEBUG, "asyncmem"):
        await asyncio.wait([failing])
    assert [record.getMessage() for record in caplog.records] == ["failing ended with ValueError"]
    assert "chess" not in caplog.text
    assert not waiting.done()
    release.set()
    await waiting
    assert len(tasks) == 0


async def test_a_task_that_does_not_end_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """Closing lasts no longer than it may, and says which task still runs."""
    tasks, release = Tasks(), asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    task = tasks.start("stubborn", stubborn)
    await asyncio.sleep(0)
    with caplog.at_level(logging.WARNING, "asyncmem"):
        assert await tasks.aclose(timedelta(milliseconds=10)) == ["stubborn"]
    assert "stubborn" in caplog.text
    release.set()
    await asyncio.wait([task])


def test_tasks_are_closed_in_their_own_loop() -> None:
    """Another loop can't end them, and is told so."""
    tasks = Tasks()

    async def forever() -> None:
        await asyncio.sleep(60)

    async def begin() -> None:
        tasks.start("forever", forever)

    with asyncio.Runner() as first, asyncio.Runner() as second:
        first.run(begin())
        with pytest.raises(EventLoopError):
            second.run(tasks.aclose(SOON))
        assert first.run(tasks.aclose(SOON)) == []


async def test_a_manager_ends_its_tasks() -> None:
    """Closing a manager ends what it had started."""
    manager = MemoryManager("mongodb://localhost/app")
    task = manager._tasks.start("forever", lambda: asyncio.sleep(60))
    await manager.aclose()
    assert task.cancelled()
    with pytest.raises(ManagerClosedError):
        manager._tasks.start("more", lambda: asyncio.sleep(0))
