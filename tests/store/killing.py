"""A process that forks captures and kills them: ``python -m tests.store.killing URI JOBS``.

JOBS is JSON: a list of ``[user_id, write, when]``. Each capture is killed at its so-manieth write, ``"before"`` the
server has it or ``"after"`` it answered; ``user_id`` null only opens the store, which finishes what others left. Prints
one line a job: ``killed``, or ``done`` if there were fewer writes.
"""

import asyncio
import importlib
import json
import os
import signal
import sys
from typing import Any

from pymongo import AsyncMongoClient
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from asyncmem import LearningMachine, LearningMode, MemoryManager, UserMemoryConfig
from asyncmem.testing import ScriptedModel

SAID = "I started at Oakline, no longer swim, and have a cat and a dog"
PLAN: dict[str, Any] = {
    "operations": [
        {"op": "update", "memory_id": "1", "memory": "Works at Oakline", "evidence": SAID},
        {"op": "delete", "memory_id": "2", "evidence": SAID},
        {"op": "add", "memory": "Has a cat", "evidence": SAID},
        {"op": "add", "memory": "Has a dog", "evidence": SAID},
    ]
}
WRITES = {"insert", "update", "delete", "findAndModify", "commitTransaction"}


class Killer(CommandListener):
    """Kills this process at a write to our collections."""

    def __init__(self, write: int, when: str) -> None:
        self.left = write
        self.when = when
        self.armed = False

    def _pass(self, name: str, when: str) -> None:
        if self.armed and name in WRITES and when == self.when:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def started(self, event: CommandStartedEvent) -> None:
        self._pass(event.command_name, "before")

    def succeeded(self, event: CommandSucceededEvent) -> None:
        self._pass(event.command_name, "after")

    def failed(self, event: CommandFailedEvent) -> None:
        """Nothing was written."""


async def capture(uri: str, user_id: str | None, write: int, when: str) -> None:
    """Capture, or only open, until the kill."""
    killer = Killer(write, when)
    killer.armed = user_id is None
    async with (
        AsyncMongoClient[dict[str, Any]](uri, event_listeners=[killer]) as client,
        MemoryManager(client, model=ScriptedModel([PLAN]), delete_memories=True) as manager,
    ):
        if user_id is not None and user_id.startswith("approve"):
            await propose(manager, user_id)
        killer.armed = True
        if user_id is not None:
            await {"propose": propose, "approve": approve}.get(user_id.split()[0], always)(manager, user_id)


async def always(manager: MemoryManager, user_id: str) -> None:
    """Capture."""
    await manager.create_user_memories(SAID, user_id=user_id)


async def propose(manager: MemoryManager, user_id: str) -> None:
    """Capture into proposals."""
    machine = LearningMachine(manager, user_memory=UserMemoryConfig(mode=LearningMode.PROPOSE))
    await machine.capture(SAID, user_id=user_id)


async def approve(manager: MemoryManager, user_id: str) -> None:
    """Approve what is proposed."""
    machine = LearningMachine(manager, user_memory=True)
    for proposal in await machine.list_proposals(user_id=user_id):
        await machine.approve(proposal.proposal_id, user_id=user_id)


def main() -> None:
    """Run the jobs, one process each, all of which have everything imported."""
    importlib.import_module("asyncmem.store.store")
    for user_id, write, when in json.loads(sys.argv[2]):
        child = os.fork()
        if not child:
            asyncio.run(capture(sys.argv[1], user_id, write, when))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "done" if status == 0 else f"failed {status}", flush=True)


if __name__ == "__main__":
    main()
