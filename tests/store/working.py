"""Worker processes for the tests: ``python -m tests.store.working URI [KILLS]``.

Without KILLS: one worker, until SIGTERM. With it, JSON of a list of ``[write, when]``: one worker after the other, each
killed at its so-manieth write, ``"before"`` the server has it or ``"after"`` it answered; prints ``killed`` or ``done``
for each. Writes: the lane that is taken, the lease that is lengthened, the capture's own, the job that is done.
"""

import asyncio
import importlib
import json
import os
import signal
import sys
from datetime import timedelta
from typing import Any

from pymongo import AsyncMongoClient

from asyncmem import ChatReply, ChatRequest, MemoryManager, Settings

from .killing import Killer
from .rivals import Echo

SETTINGS: dict[str, Any] = {
    "debounce": timedelta(0),
    "lease": timedelta(milliseconds=450),
    "job_attempts": 50,
    "job_backoff": timedelta(milliseconds=20),
    "workers": False,
}


class SlowEcho(Echo):
    """Adds what the user said, after longer than a lease goes unlengthened."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Add the last words, later."""
        await asyncio.sleep(0.2)
        return await super().complete(request)


async def killed_at(uri: str, write: int, when: str) -> None:
    """Work until the kill, or until there is nothing left."""
    killer, stop = Killer(write, when), asyncio.Event()
    settings = Settings(**SETTINGS)
    async with (
        AsyncMongoClient[dict[str, Any]](uri, event_listeners=[killer]) as client,
        MemoryManager(client, model=SlowEcho(), settings=settings) as manager,
    ):
        killer.armed = True
        working = asyncio.create_task(manager.run_worker(stop, concurrency=1))
        await manager.drain()
        killer.armed = False
        stop.set()
        await working


async def work(uri: str) -> None:
    """Work until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with MemoryManager(uri, model=SlowEcho(), settings=Settings(**SETTINGS)) as manager:
        print("ready", flush=True)
        print((await manager.run_worker(stop, concurrency=4)).done, flush=True)


def main() -> None:
    """Run one worker, or those that are killed."""
    importlib.import_module("asyncmem.store.store")
    if len(sys.argv) == 2:
        asyncio.run(work(sys.argv[1]))
        return
    for write, when in json.loads(sys.argv[2]):
        child = os.fork()
        if not child:
            asyncio.run(killed_at(sys.argv[1], write, when))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "done" if status == 0 else f"failed {status}", flush=True)


if __name__ == "__main__":
    main()
