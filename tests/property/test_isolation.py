"""No user ever sees another's memory, whatever is stored, asked and filtered by."""

import asyncio
import json
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asyncmem import ChatReply, MemoryManager, MemorySearchResult, Range, SearchRequest, Sources, UserMemory
from asyncmem.testing import HashEmbedder

from ..servers import drop_database, with_database

USERS = ("lin", "omar", "$ne", "lin ", "Lin", "林")
METHODS = ("last_n", "first_n", "keyword", "semantic", "hybrid")
words = st.sampled_from(["tea", "cat", "ovens", "4", "苏州", "豆包", "$gt", "river"])
phrases = st.lists(words, min_size=1, max_size=4).map(" ".join)
memories = st.builds(
    lambda memory, topics, agent, n: UserMemory(
        memory=memory, topics=topics, agent_id=agent, metadata={"n": n}, updated_at=n * 1_000
    ),
    phrases,
    st.lists(words, max_size=2),
    st.sampled_from([None, "a1", "a2"]),
    st.integers(0, 5),
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "topics": st.lists(words, max_size=2),
        "topics_all": st.lists(words, max_size=2),
        "agent_id": st.sampled_from(["a1", "a2"]),
        "updated_after": st.integers(0, 5_000),
        "updated_before": st.integers(0, 5_000),
        "metadata": st.fixed_dictionaries(
            {"n": st.one_of(st.integers(0, 5), st.builds(lambda n: Range(gte=n), st.integers(0, 5)))}
        ),
        "limit": st.integers(-1, 5),
    },
)


class Everything:
    """A retriever that returns what all users have."""

    needs_query = False

    def __init__(self, everything: list[UserMemory]) -> None:
        self.everything = everything

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        return MemorySearchResult(self.everything)


class Chooser:
    """A model that picks every alias, and ids that it could only have guessed."""

    name = "chooser"

    def __init__(self, guesses: list[str]) -> None:
        self.guesses = guesses

    async def complete(self, request: Any) -> Any:
        return ChatReply(content=json.dumps({"memory_ids": [*map(str, range(1, 30)), *self.guesses]}))


@pytest.fixture
def database(replica_set_uri: str) -> Any:
    name = f"asyncmem_test_{uuid.uuid4().hex[:12]}"
    yield with_database(replica_set_uri, name)
    drop_database(replica_set_uri, name)


def passes(memory: UserMemory, given: dict[str, Any]) -> bool:
    """The filters, in Python."""
    n = memory.metadata["n"]
    assert isinstance(n, int)
    wanted = given.get("metadata", {}).get("n", n)
    topics, at = set(memory.topics), n * 1_000
    return (
        (not given.get("topics") or bool(topics & set(given["topics"])))
        and set(given.get("topics_all", ())) <= topics
        and memory.agent_id == given.get("agent_id", memory.agent_id)
        and at >= given.get("updated_after", 0)
        and at < given.get("updated_before", 10**9)
        and (n >= wanted.gte if isinstance(wanted, Range) else n == wanted)
    )


def test_nobody_sees_anothers_memories(database: str) -> None:
    """Searches by every method with any filters, contexts and counts give the user's own memories only, and with
    no limit exactly those that pass the filters."""
    guesses: list[str] = []
    with asyncio.Runner() as runner:
        manager = MemoryManager(database, model=Chooser(guesses), embedding_model=HashEmbedder(16))  # type: ignore[arg-type]

        async def example(owned: list[tuple[str, UserMemory]], asker: str, query: str, given: dict[str, Any]) -> None:
            await manager.clear()
            for user in {user for user, _ in owned}:
                await manager.add_user_memories([m for u, m in owned if u == user], user_id=user)
            stored = {u: await manager.get_user_memories(user_id=u) for u in USERS}
            guesses[:] = [str(m.memory_id) for ms in stored.values() for m in ms][:30]
            mine = {m.memory_id for m in stored[asker]}
            expected = {m.memory_id for m in stored[asker] if passes(m, given)}
            everything = [m for ms in stored.values() for m in ms]
            for method in (*METHODS, "agentic", Everything(everything)):
                found = await manager.search_user_memories(query, user_id=asker, retrieval_method=method, **given)
                ids = [m.memory_id for m in found]
                assert set(ids) <= mine & expected, method
                assert len(ids) == len(set(ids))
                assert all(m.user_id == asker for m in found)
                if given.get("limit", 0) <= 0 and method not in ("keyword", "agentic"):
                    assert set(ids) == expected, method
            texts = {m.memory for m in stored[asker]}
            for asked in (None, query):
                block = await manager.build_context(user_id=asker, query=asked)
                lines = [line[2:].partition(" (")[0] for line in block.splitlines() if line.startswith("- ")]
                assert set(lines) <= texts
            assert await manager.count_user_memories(user_id=asker) == len(mine)

        @given(
            st.lists(st.tuples(st.sampled_from(USERS), memories), max_size=8), st.sampled_from(USERS), phrases, filters
        )
        @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
        def check(owned: Any, asker: str, query: str, given: dict[str, Any]) -> None:
            runner.run(example(owned, asker, query, given))

        try:
            check()
        finally:
            runner.run(manager.aclose())
