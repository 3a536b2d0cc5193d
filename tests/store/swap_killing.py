"""A process that forks optimizations and kills them: ``python -m tests.store.swap_killing URI JOBS``.

JOBS is JSON: a list of ``[user_id, verb, write, when]``. Each ``"swap"`` or ``"undo"`` is killed at its so-manieth
write, ``"before"`` the server has it or ``"after"`` it answered; ``"open"`` only opens the store, which finishes what
others left. Prints ``begin USER`` for each job, then ``killed USER``, or ``done-WRITES USER`` if there were fewer.
"""

import asyncio
import importlib
import json
import os
import sys
from typing import Any

from pymongo import AsyncMongoClient

from asyncmem import Settings, UserMemory
from asyncmem.store.store import MemoryStore, open_store
from asyncmem.store.swaps import SwapPlan

from .killing import Killer

RUN = "run-1"
GOING = ["Keeps two parrots", "Parrots are named Pip and Bo"]
OFTEN = "Works nights"
TURNING = "Owns a kayak"
TURNED = "Owns a red kayak"
BYSTANDER = "Lives in Leeds"


async def swap(store: MemoryStore, user_id: str) -> None:
    """Summarize what is there, but for the bystander; the summary holds the words of all that goes."""
    erasures = await store.captures.begun(user_id)
    async with store.swaps.reserving(user_id):
        seen = await store.swaps.snapshot(user_id)
        going = [m for m in seen if m.memory in GOING or m.memory.startswith(OFTEN)]
        turning = next(m for m in seen if m.memory == TURNING)
        plan = SwapPlan(
            RUN,
            user_id,
            "summarize",
            retire=going,
            revise=[(turning, turning.model_copy(update={"memory": TURNED}))],
            # the second says what a memory that goes says
            add=[
                UserMemory(memory="Summary: " + "; ".join(f"{m.memory}." for m in going)),
                UserMemory(memory=GOING[0].upper()),
            ],
            erasures=erasures,
        )
        await store.swaps.swap(plan)


async def work(uri: str, user_id: str, verb: str, write: int, when: str) -> None:
    """Swap, undo or only open, until the kill."""
    killer = Killer(write, when)
    killer.armed = verb == "open"
    async with AsyncMongoClient[dict[str, Any]](uri, event_listeners=[killer]) as client:
        store = await open_store(client, Settings())
        killer.armed = True
        if verb == "swap":
            await swap(store, user_id)
        elif verb == "undo":
            await store.swaps.undo(user_id, RUN)
        await store.aclose()
    print(f"done-{write - killer.left} {user_id}", flush=True)


def main() -> None:
    """Run the jobs, one process each, all of which have everything imported."""
    importlib.import_module("asyncmem.store.store")
    for user_id, verb, write, when in json.loads(sys.argv[2]):
        print("begin", user_id, flush=True)
        child = os.fork()
        if not child:
            asyncio.run(work(sys.argv[1], user_id, verb, write, when))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print("killed" if os.WIFSIGNALED(status) else f"failed-{status}", user_id, flush=True)


if __name__ == "__main__":
    main()
