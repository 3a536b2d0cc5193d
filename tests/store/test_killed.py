"""kill -9 at every write of a capture: afterwards the memories are what they were, or what they were to become."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from asyncmem import MemoryManager, UserMemory
from asyncmem.testing import ScriptedModel

from ..servers import running_mongod, with_database
from .killing import PLAN, SAID

pytestmark = pytest.mark.anyio
OLD = ["Works at Brightwater", "Swims", "Lives in Leeds"]
NEW = ["Lives in Leeds", "Works at Oakline", "Has a cat", "Has a dog"]
KILLS = 100
RECOVERIES = 28


def run(uri: str, jobs: Sequence[tuple[str | None, int, str]]) -> list[str]:
    """What became of each job."""
    command = [sys.executable, "-m", "tests.store.killing", uri, json.dumps(jobs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


async def fill(manager: MemoryManager, users: list[str]) -> None:
    """Give each user the old memories."""
    await manager.add_user_memories([UserMemory(memory=text, user_id=user) for user in users for text in OLD])


@pytest.mark.parametrize("replica_set", [True, False], ids=["replica_set", "standalone"])
async def test_a_killed_capture_is_whole_or_nothing(replica_set: bool) -> None:
    """At each of its writes, before and after it: all operations or none, and the same messages finish the rest."""
    with running_mongod(replica_set=replica_set) as server:
        # what a killed client's transaction has locked is free after a minute by default
        async with AsyncMongoClient[dict[str, Any]](server.uri) as client:
            await client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)
        await kill_captures(with_database(server.uri, "killed"))


async def kill_captures(uri: str) -> None:
    """Kill captures and openings, and look at what is there."""
    async with MemoryManager(uri, default_user_id=None) as manager:
        probes = [f"probe {n}" for n in range(1, 20)]
        await fill(manager, [*probes, *(f"user {n}" for n in range(KILLS))])
    writes = run(uri, [(user, n, "after") for n, user in enumerate(probes, 1)]).index("done")
    points = [(write, when) for write in range(1, writes + 1) for when in ("before", "after")]
    jobs = [(f"user {n}", *points[n % len(points)]) for n in range(KILLS)]
    assert run(uri, jobs) == ["killed"] * KILLS
    # opening finishes what was left; it is killed too, again and again
    run(uri, [(None, n // 2 % 7 + 1, "before" if n % 2 else "after") for n in range(RECOVERIES)])
    async with MemoryManager(uri, default_user_id=None) as manager:
        outcomes: list[str] = []
        for user_id, write, when in jobs:
            memories = sorted([m.memory for m in await manager.get_user_memories(user_id=user_id)])
            assert memories in (sorted(OLD), sorted(NEW)), (user_id, write, when, memories)
            outcomes.append("new" if "Has a cat" in memories else "old")
        assert set(outcomes) == {"new", "old"}
    model = ScriptedModel([PLAN] * outcomes.count("old"))
    async with model, MemoryManager(uri, model=model, delete_memories=True, default_user_id=None) as manager:
        for (user_id, _, _), outcome in zip(jobs, outcomes, strict=True):
            result = await manager.create_user_memories(SAID, user_id=user_id)
            assert result.repeated == (outcome == "new")
            memories = await manager.get_user_memories(user_id=user_id)
            assert sorted(m.memory for m in memories) == sorted(NEW)
            changed = next(m for m in memories if m.memory == "Works at Oakline")
            history = await manager.history(str(changed.memory_id), user_id=user_id)
            assert [c.kind for c in history] == ["add", "update"]
