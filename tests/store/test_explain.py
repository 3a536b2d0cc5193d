"""Every query that the library sends, explained by the server: an index answers it, and it is about one user."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from asyncmem import (
    Agent,
    Curator,
    LearningMachine,
    LearningMode,
    MemoryManager,
    ProposalOutdatedError,
    Range,
    Settings,
    UserMemory,
    UserMemoryConfig,
    UserProfileConfig,
)
from asyncmem.testing import HashEmbedder, ScriptedModel

from ..servers import with_database
from .queries_seen import Recorder, Row, collection_of, explained, filter_of, shape, single

pytestmark = pytest.mark.anyio

EVERYBODY = {"asyncmem_memories": 2, "asyncmem_captures": 1, "asyncmem_optimizations": 1, "asyncmem_jobs": 3}
"""Shapes of queries that are about all users at once, by collection: pages of user ids; journals at opening; what in
the queue is due, what waits, what is dead."""
OTHERS = 300


@asynccontextmanager
async def recorded(uri: str, *steps: Any) -> AsyncIterator[tuple[MemoryManager, Recorder]]:
    """A manager, and what it sends."""
    recorder = Recorder()
    client: AsyncMongoClient[Row] = AsyncMongoClient(uri, event_listeners=[recorder])
    model = ScriptedModel(steps)
    settings = Settings(history_limit=1, debounce=timedelta(seconds=0.2))
    async with (
        client,
        MemoryManager(
            client.get_default_database(),
            model=model,
            embedding_model=HashEmbedder(8),
            settings=settings,
            delete_memories=True,
            clear_memories=True,
        ) as manager,
    ):
        yield manager, recorder


def plan(*operations: Row) -> str:
    """What a model answers."""
    return json.dumps({"operations": list(operations)})


async def use_everything(manager: MemoryManager) -> None:
    """Call every verb that reads or writes."""
    lin = "lin"
    first = await manager.add_user_memory(UserMemory(memory="Plays chess", topics=["games"]), user_id=lin)
    more = [UserMemory(memory=f"Fact number {n}", topics=[f"t{n % 3}"], metadata={"n": n}) for n in range(60)]
    ids = await manager.add_user_memories(more, user_id=lin)
    await manager.add_user_memory(UserMemory(memory="plays chess.", topics=["fun"]), user_id=lin)
    page = await manager.get_user_memories(user_id=lin, limit=5)
    await manager.get_user_memories(user_id=lin, limit=5, after=page[-1], topics=["t1"], agent_id="a", team_id="t")
    await manager.get_user_memory(first, user_id=lin)
    for text in ("Plays go", "Plays shogi", "Plays backgammon"):
        await manager.update_user_memory(first, memory=text, user_id=lin)
    await manager.replace_user_memory(first, UserMemory(memory="Plays hex"), user_id=lin)
    await manager.history(first, user_id=lin)
    await manager.revert(first, 1, user_id=lin)
    await manager.delete_user_memory(ids[0], user_id=lin)
    await manager.revert(ids[0], 1, user_id=lin)
    await manager.count_user_memories(user_id=lin)
    await manager.get_topics(user_id=lin, limit=2, after="a")
    await manager.get_users(limit=2, after="a")
    await search_everything(manager, lin)
    await manager.reembed(user_id=lin)
    await curate(manager, lin)


async def search_everything(manager: MemoryManager, lin: str) -> None:
    """Call every method of retrieval, with and without filters."""
    since = "2020-01-01T00:00:00+00:00"
    filters: Row = {"topics": ["t1"], "created_after": since, "updated_before": "2100-01-01T00:00:00+00:00"}
    for method in ("last_n", "first_n", "keyword", "semantic", "hybrid"):
        await manager.search_user_memories("fact chess", user_id=lin, retrieval_method=method, limit=3)
        await manager.search_user_memories("fact", user_id=lin, retrieval_method=method, limit=3, **filters)
        await manager.search_user_memories(
            "fact", user_id=lin, retrieval_method=method, topics_all=["t1"], metadata={"n": Range(gte=1)}, agent_id="a"
        )
    await manager.add_user_memory(UserMemory(memory="Another one"), user_id=lin)
    await manager.search_user_memories("one", user_id=lin, retrieval_method="keyword")
    await manager.build_context(user_id=lin)
    await manager.build_context(user_id=lin, query="chess")


async def curate(manager: MemoryManager, lin: str) -> None:
    """Prune, optimize, undo, list, erase."""
    curator = Curator(manager)
    await manager.add_user_memories([UserMemory(memory="Likes tea"), UserMemory(memory="likes tea, too")], user_id=lin)
    await curator.prune(user_id=lin, max_count=50)
    await curator.deduplicate(user_id=lin)
    async for _ in curator.users():
        pass
    await manager.list_optimizations(user_id=lin)
    await manager.add_user_memories([UserMemory(memory="Plays the oboe", agent_id=a) for a in ("x", "y")], user_id=lin)
    run = await manager.optimize_memories(user_id=lin, strategy="deduplicate")
    if run.run_id is not None:
        await manager.undo_optimization(run.run_id, user_id=lin)


async def capture(manager: MemoryManager, lin: str = "lin") -> None:
    """Capture, forget, clear, erase."""
    for message in ("I keep bees", "I moved to Porto", "Forget that I keep bees", "Forget everything about me"):
        await manager.create_user_memories(message, user_id=lin, idempotency_key=message)
    await manager.clear_user_memories(user_id=lin)
    await converse(manager, lin)
    await wait_in_line(manager, lin)
    await manager.erase_user(lin)


async def converse(manager: MemoryManager, lin: str) -> None:
    """Talk to an agent, in a session that is summarised and captured, then look at it and delete it."""
    agent = Agent(
        ScriptedModel(["Hi", "In short", "Hello", "In short", "Yes"]),
        memory_manager=manager,
        history_tokens=20,
        update_memory_on_run=True,
    )
    store = await manager.opened()
    for words in ("I am Lin " * 5, "Call me Lin " * 5, "Am I Lin?"):
        for ticket in (await agent.run(words, user_id=lin, session_id="s")).captures:
            await ticket.wait(timeout=30)
    assert await store.sessions.pending(lin, "s") == []
    first = (await store.sessions.between(lin, "s", 1, 1))[0]
    await store.sessions.newest(lin, "s", 0, before=3)
    await store.sessions.append(lin, "s", first.said, None, await store.sessions.begun(lin))
    assert len(await agent.get_messages("s", user_id=lin)) == 8
    await agent.list_sessions(user_id=lin)
    await agent.delete_session("s", user_id=lin)


async def wait_in_line(manager: MemoryManager, lin: str) -> None:
    """Schedule, look, wait, fail, try again."""
    ticket = await manager.schedule("I row", user_id=lin, idempotency_key="row")
    await manager.build_context(user_id=lin, include_pending=True)
    await manager.schedule("I swim", user_id=lin, flush=True)
    await ticket.wait(timeout=30)
    await (await manager.get_ticket(ticket.id, user_id=lin)).wait(timeout=30)
    await manager.drain(timeout=30)
    await manager.queue_status()
    await manager.retry_dead(lin)
    await manager.retry_dead()


@pytest.mark.parametrize("kind", ["replica_set", "standalone"])
async def test_every_query_is_answered_by_an_index(
    kind: str, request: pytest.FixtureRequest, database_name: str
) -> None:
    """No query of any verb scans a collection, each names its user, and the index that answers begins with the user
    or the id; only paging through users, and finishing what others left, are about everybody."""
    uri = with_database(request.getfixturevalue(f"{kind}_uri"), database_name)
    says = [
        plan({"op": "add", "memory": "Keeps bees", "evidence": "I keep bees"}),
        plan({"op": "add", "memory": "Moved to Porto", "evidence": "I moved to Porto"}),
        plan({"op": "delete", "memory_id": "1", "evidence": "Forget that I keep bees"}),
        plan({"op": "clear"}),
        *[plan()] * 3,
        plan({"op": "add", "memory": "Rows", "evidence": "I row"}),
    ]
    async with recorded(uri, *says) as (manager, recorder):
        crowd = [UserMemory(memory=f"Of others {n}", user_id=f"other{n % 20}") for n in range(OTHERS)]
        await manager.add_user_memories(crowd)
        await use_everything(manager)
        await capture(manager)
        await use_everything(manager)
        commands = list(recorder.commands)
        await check(uri, database_name, commands)


@pytest.mark.parametrize("kind", ["replica_set", "standalone"])
async def test_every_query_of_learning_is_answered_by_an_index(
    kind: str, request: pytest.FixtureRequest, database_name: str
) -> None:
    """So it is with proposals, and with profiles that are read in the background."""
    uri = with_database(request.getfixturevalue(f"{kind}_uri"), database_name)
    rows, swims = ({"op": "add", "memory": f"{what}", "evidence": f"I {what}"} for what in ("row", "swim"))
    named = {"changes": [{"field": "name", "action": "set", "value": "Ada", "evidence": "my name is Ada"}]}
    unnamed = {"changes": [{"field": "name", "action": "set", "value": "Eve", "evidence": "my name is Eve"}]}
    async with recorded(uri, plan(rows, swims), json.dumps(named), json.dumps(unnamed)) as (manager, recorder):
        await learn(manager, "lin")
        everybody = {name: count for name, count in EVERYBODY.items() if name != "asyncmem_memories"}
        await check(uri, database_name, list(recorder.commands), everybody | {"asyncmem_profile_jobs": 3}, least=20)


async def learn(manager: MemoryManager, lin: str) -> None:
    """Propose, list, approve, reject, come too late; read for a profile at once and in the background; erase."""
    memories = LearningMachine(manager, user_memory=UserMemoryConfig(mode=LearningMode.PROPOSE))
    profiles = LearningMachine(manager, user_profile=UserProfileConfig(mode=LearningMode.PROPOSE))
    first, second = (await memories.capture("I row and I swim", user_id=lin)).proposals
    for status in ("pending", "expired", None):
        await memories.list_proposals(user_id=lin, status=status, limit=5)
    await memories.approve(first.proposal_id, user_id=lin)
    await memories.reject(second.proposal_id, user_id=lin)
    (field,) = (await profiles.capture("my name is Ada", user_id=lin)).proposals
    await profiles.user_profile_store.update(lin, name="Bea")
    with pytest.raises(ProposalOutdatedError):
        await profiles.approve(field.proposal_id, user_id=lin)
    tickets = await profiles.process("my name is Eve", user_id=lin)
    (field,) = (await tickets.wait(30)).proposals
    await profiles.approve(field.proposal_id, user_id=lin)
    await profiles.drain(30)
    await manager.erase_user(lin)


async def check(
    uri: str, database: str, commands: list[Row], all_users: dict[str, int] = EVERYBODY, least: int = 40
) -> None:
    """Explain each shape of query once."""
    seen: dict[str, Row] = {}
    for command in commands:
        for one in single(command):
            seen.setdefault(json.dumps([collection_of(one), shape(one)], sort_keys=True, default=str), one)
    assert len(seen) > least
    everybody: dict[str, set[str]] = {}
    async with AsyncMongoClient[Row](uri) as client:
        for one in seen.values():
            where, what = collection_of(one), filter_of(one)
            stages = await explained(client, database, one)
            names = {stage["stage"] for stage in stages}
            assert "COLLSCAN" not in names, (where, what, names)
            scans = [stage for stage in stages if stage["stage"] in ("IXSCAN", "DISTINCT_SCAN", "COUNT_SCAN")]
            assert scans or names & {"IDHACK", "EOF"}, (where, what, names)
            if isinstance(what.get("user_id"), str):
                leading = {next(iter(stage["keyPattern"])) for stage in scans}
                # the index of what is pending holds little else: work that somebody has begun and not finished
                assert leading <= {"user_id", "_id", "pending"}, (where, what, leading)
            else:
                everybody.setdefault(where, set()).add(json.dumps(shape(what), sort_keys=True))
    assert {where: len(shapes) for where, shapes in everybody.items()} == all_users, everybody
