"""kill -9 at every write of a swap and of an undo, beside a writer: afterwards there is the old set or the new one.

What the writer was promised is there either way: what it added, and what it changed, or a summary that saw it.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from asyncmem import MemoryNotFoundError, Settings, UserMemory
from asyncmem.store.store import MemoryStore, open_store

from ..servers import running_mongod, with_database
from .swap_killing import BYSTANDER, GOING, OFTEN, RUN, TURNED, TURNING, swap

pytestmark = pytest.mark.anyio
Job = tuple[str, str, int, str]
SWAPS = 100
UNDOS = 64


@dataclass
class Promises:
    """What the server acknowledged to one user's writer."""

    added: list[str] = field(default_factory=list[str])
    often: str = OFTEN
    bystander: str = BYSTANDER


@dataclass
class Writer:
    """Adds and changes memories of a user for as long as that user's optimization runs."""

    store: MemoryStore
    promises: dict[str, Promises] = field(default_factory=dict[str, Promises])
    running: dict[str, "asyncio.Task[None]"] = field(default_factory=dict[str, "asyncio.Task[None]"])
    ended: set[str] = field(default_factory=set[str])

    def begin(self, user_id: str, verb: str) -> None:
        """Start writing."""
        self.running[user_id] = asyncio.create_task(self._write(user_id, often=verb == "swap"))

    async def _write(self, user_id: str, *, often: bool) -> None:
        there = await self.store.swaps.snapshot(user_id)
        memories = {m.memory.split(",")[0]: str(m.memory_id) for m in there}
        promised = self.promises.setdefault(user_id, Promises())
        for number in range(40):
            if user_id in self.ended:
                return
            text = f"Read book {number}"
            await self.store.write.add(UserMemory(memory=text), user_id, "manual")
            promised.added.append(text)
            text = f"{BYSTANDER}, street {number}"
            await self.store.write.change(user_id, memories[BYSTANDER], {"memory": text}, "manual")
            promised.bystander = text
            if often and number % 5 == 4:
                often = await self._change_often(user_id, memories[OFTEN], number)
            await asyncio.sleep(0.005)

    async def _change_often(self, user_id: str, memory_id: str, number: int) -> bool:
        """Change a memory that the optimization is about to retire; whether it still is there."""
        text = f"{OFTEN} {number}"
        try:
            await self.store.write.change(user_id, memory_id, {"memory": text}, "manual")
        except MemoryNotFoundError:
            return False
        self.promises[user_id].often = text
        return True


async def run(uri: str, jobs: Sequence[Job], writer: Writer, *, alone: bool = False) -> list[str]:
    """What became of each job, while the writer writes, unless it is to be alone."""
    command = (sys.executable, "-m", "tests.store.swap_killing", uri, json.dumps(jobs))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    verbs = {user_id: verb for user_id, verb, _, _ in jobs}
    outcomes: list[str] = []
    async for line in process.stdout:
        what, user_id = line.decode().split()
        if what != "begin":
            writer.ended.add(user_id)
            outcomes.append(what)
        elif verbs[user_id] != "open" and not alone:
            writer.begin(user_id, verbs[user_id])
    assert await process.wait() == 0
    await asyncio.gather(*writer.running.values())
    return outcomes


async def fill(store: MemoryStore, users: Sequence[str]) -> None:
    """Give each user the old memories."""
    texts = [*GOING, OFTEN, TURNING, BYSTANDER]
    await store.write.add_many([(UserMemory(memory=text), user) for user in users for text in texts], "manual")


def points(verb: str, prefix: str, writes: int, count: int) -> list[Job]:
    """So many kills, at each write, before and after it; after some of them, an opening is killed too."""
    places = [(write, when) for write in range(1, writes + 1) for when in ("before", "after")]
    jobs: list[Job] = []
    for number in range(count):
        jobs.append((f"{prefix}{number}", verb, *places[number % len(places)]))
        if number % 4 == 3:
            jobs.append((f"open-{prefix}{number}", "open", *places[number // 4 % 12]))
    return jobs


@pytest.mark.parametrize("replica_set", [True, False], ids=["replica_set", "standalone"])
async def test_killed_optimizations_are_whole_or_nothing(replica_set: bool) -> None:
    """At each write of swap and undo: the old set or the new one, and all that a concurrent writer was promised."""
    with running_mongod(replica_set=replica_set) as server:
        # what a killed client's transaction has locked is free after a minute by default
        async with AsyncMongoClient[dict[str, Any]](server.uri) as client:
            await client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)
        await kill_optimizations(with_database(server.uri, "killed"))


async def kill_optimizations(uri: str) -> None:
    """Kill swaps and undos, open anew, and look at what is there."""
    store = await open_store(uri, Settings())
    swaps, undos = [f"swap-{n}" for n in range(SWAPS)], [f"undo-{n}" for n in range(UNDOS)]
    await fill(store, [*swaps, *undos, "probe"])
    for user_id in undos:
        await swap(store, user_id)
    jobs: list[Job] = []
    for verb, prefix, count in (("swap", "swap-", SWAPS), ("undo", "undo-", UNDOS)):
        (ended,) = await run(uri, [("probe", verb, 1_000, "after")], Writer(store), alone=True)
        writes = int(ended.removeprefix("done-"))
        assert writes > 5
        jobs += points(verb, prefix, writes, count)
    writer = Writer(store)
    outcomes = await run(uri, jobs, writer)
    assert not any(outcome.startswith("failed") for outcome in outcomes)
    assert outcomes.count("killed") >= 150
    await store.aclose()
    store = await open_store(uri, Settings())
    ends = [await check(store, user_id, writer.promises[user_id]) for user_id in (*swaps, *undos)]
    await store.aclose()
    assert set(ends[:SWAPS]) == {"old", "new"} == set(ends[SWAPS:])


async def check(store: MemoryStore, user_id: str, promised: Promises) -> str:
    """Whether the old set or the new one is there, exactly, with all that was promised."""
    there = {m.memory for m in await store.swaps.snapshot(user_id)}
    rows = await store._core.collections.memories.find({"user_id": user_id}).to_list()
    assert len(rows) == len(there)
    assert all("key" in row for row in rows)
    assert there.issuperset(promised.added)
    assert promised.bystander in there
    summaries = [text for text in there if text.startswith("Summary: ")]
    runs = await store.swaps.runs(user_id)
    words = {text for text in there if text.startswith(OFTEN)}
    if TURNED in there:
        assert (len(summaries), TURNING in there, GOING[0].upper() in there) == (1, False, True)
        assert not there.intersection(GOING)
        # the last change that was acknowledged is there, or was seen by the summary
        assert words in ({promised.often}, set())
        assert words or f"{promised.often}." in summaries[0]
        assert [(r.run_id, r.status, r.added) for r in runs] == [(RUN, "applied", 2)]
        return "new"
    assert (summaries, GOING[0].upper() in there) == ([], False)
    assert there.issuperset([*GOING, TURNING])
    assert words == {promised.often}
    assert [r.status for r in runs] in ([], ["undone"])
    return "old"
