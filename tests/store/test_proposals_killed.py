"""kill -9 at writes that propose and approve: nothing is lost, nothing is proposed or carried out twice."""

from typing import Any

import pytest
from pymongo import AsyncMongoClient

from asyncmem import MemoryManager
from asyncmem.testing import ScriptedModel

from ..servers import running_mongod, with_database
from .killing import PLAN, approve, propose
from .test_killed import NEW, OLD, fill, run

pytestmark = pytest.mark.anyio
WRITES = 12


@pytest.mark.parametrize("replica_set", [True, False], ids=["replica_set", "standalone"])
async def test_killed_proposals_and_approvals_happen_once(replica_set: bool) -> None:
    """At each of their first writes, before and after it: done again, all is proposed once and carried out once."""
    points = [(write, when) for write in range(1, WRITES + 1) for when in ("before", "after")]
    jobs = [(f"{what} {n}", *point) for what in ("propose", "approve") for n, point in enumerate(points)]
    users = [user for user, _, _ in jobs]
    with running_mongod(replica_set=replica_set) as server:
        # what a killed client's transaction has locked is free after a minute by default
        async with AsyncMongoClient[dict[str, Any]](server.uri) as client:
            await client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)
        uri = with_database(server.uri, "killed")
        async with MemoryManager(uri) as manager:
            await fill(manager, users)
        assert "killed" in run(uri, jobs)
        model = ScriptedModel([PLAN] * len(users))
        async with MemoryManager(uri, model=model, delete_memories=True) as manager:
            for user_id in users:
                if user_id.startswith("propose"):
                    assert sorted(m.memory for m in await manager.get_user_memories(user_id=user_id)) == sorted(OLD)
                    await propose(manager, user_id)
                await approve(manager, user_id)
                memories = await manager.get_user_memories(user_id=user_id)
                assert sorted(m.memory for m in memories) == sorted(NEW), user_id
                assert [m.revision for m in memories if m.memory == "Works at Oakline"] == [2], user_id
