"""Work that goes on beside the caller: tasks that a manager owns, and ends when it is closed."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from .errors import EventLoopError, ManagerClosedError

_log = logging.getLogger(__name__)


class Tasks:
    """A group of tasks in one event loop. One that fails is logged, and the others go on."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, name: str, function: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Run a coroutine function in a task of its own, until it returns or the group is closed.

        Args:
            name: what logs call it. It must name no user.
            function: what to run.

        Raises:
            ManagerClosedError: the group is closed.
        """
        if self._closed:
            raise ManagerClosedError("this manager is closed: make a new one")
        task = asyncio.get_running_loop().create_task(_guarded(name, function), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def aclose(self, within: timedelta) -> list[str]:
        """Cancel all tasks, and wait until they have ended; the names of those that had not in time.

        Closing twice does nothing more. Nothing can be started afterwards.

        Raises:
            EventLoopError: the tasks run in another event loop.
        """
        tasks, loop = list(self._tasks), asyncio.get_running_loop()
        if any(task.get_loop() is not loop for task in tasks):
            raise EventLoopError("close a manager in the event loop that opened it")
        self._closed = True
        for task in tasks:
            task.cancel()
        left = (await asyncio.wait(tasks, timeout=within.total_seconds()))[1] if tasks else set[Any]()
        names = sorted(task.get_name() for task in left)
        if names:
            _log.warning("closed while still running: %s", ", ".join(names))
        return names


async def _guarded(name: str, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        await function()
    except Exception as error:  # noqa: BLE001  whatever it is, nobody awaits this task: the log has to tell
        # only the class: the text, or a line of the traceback, may hold what a user said
        _log.error("%s ended with %s", name, type(error).__name__)
