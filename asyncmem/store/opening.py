"""Opening a store once, by whoever awaits first; imports PyMongo and Beanie only then, in a worker thread."""

import asyncio
import importlib
from typing import TYPE_CHECKING

import anyio.to_thread

from ..errors import EventLoopError, ManagerClosedError
from ..settings import Settings

if TYPE_CHECKING:
    from .store import MemoryStore


class Opening:
    """A store that is opened at its first use and belongs to the event loop of that use."""

    def __init__(self, db: object, settings: Settings) -> None:
        self._db = db
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[MemoryStore] | None = None
        self._closed = False

    async def store(self) -> "MemoryStore":
        """The opened store. A cancelled caller does not cancel the opening for others.

        Raises:
            ManagerClosedError: it was closed.
            EventLoopError: it was opened in another event loop.
        """
        if self._closed:
            raise ManagerClosedError("this manager is closed: make a new one")
        loop = asyncio.get_running_loop()
        if self._task is not None and self._loop is not loop:
            ended = "has ended" if self._loop is not None and self._loop.is_closed() else "is another one"
            raise EventLoopError(
                f"this manager was opened in an event loop that {ended}: make one manager for each event loop, "
                "and close it with aclose() before its loop ends"
            )
        if self._task is None:
            self._loop = loop
            self._task = loop.create_task(self._open())
        task = self._task
        try:
            return await asyncio.shield(task)
        except BaseException:
            if task.done() and self._task is task:
                self._task = None  # it failed: the next caller tries again
            raise

    async def _open(self) -> "MemoryStore":
        module = await anyio.to_thread.run_sync(importlib.import_module, "asyncmem.store.store")
        store: MemoryStore = await module.open_store(self._db, self._settings)
        return store

    async def abandon(self) -> None:
        """Give up an opening that its only caller no longer waits for; what was opened is closed."""
        self._closed = True
        if self._task is not None and self._task.cancel():
            await asyncio.gather(self._task, return_exceptions=True)
        elif self._task is not None and not self._task.cancelled() and self._task.exception() is None:
            await self._task.result().aclose()

    async def aclose(self) -> None:
        """Close what was opened; wait for an opening under way. Closing twice does nothing."""
        if self._closed:
            return
        if self._task is not None:
            if self._loop is not asyncio.get_running_loop():
                raise EventLoopError("close a manager in the event loop that opened it")
            self._closed = True
            try:
                (outcome,) = await asyncio.gather(asyncio.shield(self._task), return_exceptions=True)
                if not isinstance(outcome, BaseException):
                    await outcome.aclose()
            except BaseException:
                self._closed = False  # cancelled midway: it can be closed again
                raise
        self._closed = True
