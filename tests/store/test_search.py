"""``keyword``, ``semantic`` and ``hybrid``, their filters and their index in memory, on every kind of server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from asyncmem import InvalidQueryError, MemoryManager, MemorySearchResult, Settings, UserMemory
from asyncmem.filters import Range
from asyncmem.search import SearchRequest, Sources
from asyncmem.testing import HashEmbedder, ScriptedModel

from .conftest import Clock

pytestmark = pytest.mark.anyio
RANKING = ("keyword", "semantic", "hybrid")


@pytest.fixture
async def finder(uri: str, clock: Clock) -> AsyncIterator[MemoryManager]:
    """A manager with an embedder, whose model must not be asked."""
    async with MemoryManager(
        uri, model=ScriptedModel([]), embedding_model=HashEmbedder(), settings=Settings(clock=clock)
    ) as memory:
        yield memory


async def add(manager: MemoryManager, *texts: str, user_id: str = "lin", **values: Any) -> list[str]:
    return await manager.add_user_memories([UserMemory(memory=t, **values) for t in texts], user_id=user_id)


async def texts(manager: MemoryManager, query: str, method: str = "keyword", **options: Any) -> list[str]:
    found = await manager.search_user_memories(query, user_id="lin", retrieval_method=method, **options)
    return [m.memory for m in found]


# ---------------------------------------------------------------------------------------------------- keyword


async def test_keyword_ranks_by_words(finder: MemoryManager) -> None:
    """What shares rarer and more words comes first; what shares none is not found; scores fall and are aligned."""
    await add(finder, "Likes tea", "Likes green tea", "Likes coffee", "Plays chess")
    found = await finder.search_user_memories("green tea", user_id="lin", retrieval_method="keyword")
    assert [m.memory for m in found] == ["Likes green tea", "Likes tea"]
    assert found.scores == sorted(found.scores, reverse=True)
    assert (len(found.scores), found.method, found.tier, found.usage.calls) == (2, "keyword", None, 0)
    assert await texts(finder, "tea", limit=1) == ["Likes tea"]
    for limit in (None, 0, -1):
        assert len(await texts(finder, "likes", limit=limit)) == 3


async def test_keyword_ties_break_by_insertion(finder: MemoryManager) -> None:
    """Equal scores keep the order of insertion, whatever the times say."""
    for day, name in ((3, "red"), (1, "blue"), (2, "green")):
        await add(finder, f"Owns a {name} kayak", updated_at=f"2020-01-0{day}")
    assert await texts(finder, "kayak") == ["Owns a red kayak", "Owns a blue kayak", "Owns a green kayak"]


async def test_keyword_finds_topics(finder: MemoryManager) -> None:
    """A topic's word finds the memory too."""
    await add(finder, "Plays chess", topics=["hobbies"])
    assert await texts(finder, "which hobby?") == ["Plays chess"]


async def test_case_12_keyword_in_chinese(finder: MemoryManager) -> None:
    """豆包 is found inside a sentence without spaces, on a plain server (case 12)."""
    await add(finder, "下个月要搬到苏州，养了一只叫豆包的猫", "喜欢喝咖啡")
    assert await texts(finder, "豆包") == ["下个月要搬到苏州，养了一只叫豆包的猫"]


async def test_query_operators_are_words(finder: MemoryManager) -> None:
    """Quotes, minus signs, patterns and operators are text, never syntax."""
    await add(finder, "Likes tea", "Costs $where 5.0 dollars", "Uses C++")
    assert await texts(finder, '-tea "likes"') == ["Likes tea"]
    assert await texts(finder, "$where .*") == ["Costs $where 5.0 dollars"]
    assert await texts(finder, '{"$ne": null}') == []
    assert await texts(finder, "(c++") == ["Uses C++"]


# ------------------------------------------------------------------------------------------ staying up to date


async def test_every_write_is_seen_by_the_next_search(finder: MemoryManager, uri: str, clock: Clock) -> None:
    """Adds, updates, deletes, reverts, clears and erasures of another manager show in a search that was warm."""
    async with MemoryManager(uri, model=ScriptedModel([]), settings=Settings(clock=clock)) as other:
        ids = await add(other, *(f"Number {n} is a prime" for n in range(40)))
        assert len(await texts(finder, "prime")) == 40
        await add(other, "Eleven is a prime")
        assert len(await texts(finder, "prime")) == 41
        await other.update_user_memory(ids[3], user_id="lin", memory="Owns a violin")
        assert await texts(finder, "violin") == ["Owns a violin"]
        assert len(await texts(finder, "prime")) == 40
        await other.update_user_memory(ids[4], user_id="lin", topics=["zebra"])
        assert await texts(finder, "zebra") == ["Number 4 is a prime"]
        await other.delete_user_memory(ids[3], user_id="lin")
        assert await texts(finder, "violin") == []
        await other.revert(ids[3], 2, user_id="lin")
        assert await texts(finder, "violin") == ["Owns a violin"]
        await other.clear_user_memories(user_id="lin")
        assert await texts(finder, "prime") == []
        await add(other, "Seven is a prime")
        assert await texts(finder, "prime") == ["Seven is a prime"]
        await other.erase_user("lin")
        assert await texts(finder, "prime") == []


async def test_a_deletion_and_an_addition_between_two_searches(finder: MemoryManager, uri: str, clock: Clock) -> None:
    """The number of rows stays the same, and both are seen."""
    async with MemoryManager(uri, model=ScriptedModel([]), settings=Settings(clock=clock)) as other:
        ids = await add(other, "Owns a violin", "Owns a drum")
        assert len(await texts(finder, "owns")) == 2
        await other.delete_user_memory(ids[0], user_id="lin")
        await add(other, "Owns a harp", updated_at="1999-01-01")
        assert await texts(finder, "owns") == ["Owns a drum", "Owns a harp"]


async def test_expired_memories_are_not_found(finder: MemoryManager, clock: Clock) -> None:
    """After its time no method finds a memory, whether or not the server has swept it."""
    until = datetime(2096, 1, 5, 9, 0, tzinfo=UTC)
    await add(finder, "Parking ticket for today", expires_at=until)
    await add(finder, "Parking costs 3 euros")
    assert len(await texts(finder, "parking")) == 2
    clock.advance(hours=1)
    for method in (*RANKING, "last_n", "first_n"):
        assert await texts(finder, "parking", method) == ["Parking costs 3 euros"]


async def test_rows_of_other_software_are_found(finder: MemoryManager, uri: str) -> None:
    """Rows without tokens and stamps are found by their words and meaning as they are now, until they are gone."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(uri)
    rows = client.get_default_database()["asyncmem_memories"]
    try:
        await rows.insert_one({"_id": "x", "user_id": "lin", "memory": "Owns a kayak", "topics": ["sport"]})
        await rows.insert_one({"_id": "y", "user_id": "lin", "memory": "Owns a tent", "tokens": {"scheme": 0}})
        await add(finder, "Owns a violin")
        assert await texts(finder, "kayak sport") == ["Owns a kayak"]
        for method in RANKING:
            assert len(await texts(finder, "owns", method)) == 3
        await rows.update_one({"_id": "x"}, {"$set": {"memory": "Sold the canoe"}})
        assert await texts(finder, "canoe") == ["Sold the canoe"]
        await rows.delete_one({"_id": "x"})
        await rows.insert_one({"_id": "z", "user_id": "lin", "memory": "Has an oar"})
        assert await texts(finder, "canoe oar") == ["Has an oar"]
    finally:
        await client.close()


async def test_searches_beside_writers_find_what_stays(finder: MemoryManager, uri: str, clock: Clock) -> None:
    """While two managers add, change and delete, each search finds every memory that is not touched."""
    async with MemoryManager(uri, model=ScriptedModel([]), settings=Settings(clock=clock)) as other:
        await add(finder, *(f"Anchor {n}" for n in range(60)))
        moving = await add(other, *(f"Draft {n}" for n in range(20)))

        async def write(manager: MemoryManager, part: Sequence[str]) -> None:
            for n, memory_id in enumerate(part):
                await manager.update_user_memory(memory_id, user_id="lin", memory=f"Final {memory_id}")
                await add(manager, f"Extra {memory_id}")
                if n % 2:
                    await manager.delete_user_memory(memory_id, user_id="lin")

        async def search() -> None:
            for _ in range(8):
                assert len(await texts(finder, "anchor")) == 60

        await asyncio.gather(write(other, moving[:10]), write(finder, moving[10:]), search(), search())
        assert len(await texts(finder, "final")) == 10
        assert len(await texts(finder, "extra")) == 20
        assert await texts(finder, "draft") == []


async def test_indexes_in_memory_are_bounded(uri: str, clock: Clock) -> None:
    """With no room to keep any, every search still is right."""
    settings = Settings(clock=clock, search_cache=0)
    async with MemoryManager(uri, model=ScriptedModel([]), embedding_model=HashEmbedder(), settings=settings) as tight:
        for user in ("lin", "omar"):
            await add(tight, f"Belongs to {user}", user_id=user)
        for _ in range(2):
            for user in ("lin", "omar"):
                for method in RANKING:
                    found = await tight.search_user_memories("belongs", user_id=user, retrieval_method=method)
                    assert [m.memory for m in found] == [f"Belongs to {user}"]


# --------------------------------------------------------------------------------------------------- filters

KAYAK, TENT, OAR = "Owns a kayak", "Owns a tent", "Owns an oar"
FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"topics": ["water", "land"]}, [KAYAK, TENT, OAR]),
    ({"topics": ["water"]}, [KAYAK, OAR]),
    ({"topics_all": ["water", "wood"]}, [OAR]),
    ({"topics": ["land", "wood"], "topics_all": ["water"]}, [OAR]),
    ({"agent_id": "a1"}, [KAYAK]),
    ({"team_id": "t1"}, [TENT]),
    ({"updated_after": "2020-01-02"}, [TENT, OAR]),
    ({"updated_before": "2020-01-02"}, [KAYAK]),
    ({"updated_after": "2020-01-02", "updated_before": 1_578_009_600}, [TENT]),
    ({"created_before": datetime(2020, 1, 3, tzinfo=UTC)}, [KAYAK, TENT]),
    ({"created_after": "2020-01-03"}, [OAR]),
    ({"metadata": {"length": 5}}, [KAYAK]),
    ({"metadata": {"length": Range(gte=2, lt=5)}}, [TENT, OAR]),
    ({"metadata": {"length": Range(gt=2, lte=5), "color": "red"}}, [KAYAK]),
    ({"metadata": {"color": Range(gte="b", lt="s")}}, [KAYAK, TENT]),
    ({"metadata": {"old": True}}, [OAR]),
    ({"metadata": {"color": "none"}}, []),
]


@pytest.mark.parametrize("method", ["last_n", "first_n", *RANKING])
async def test_filters_hold_for_every_method(finder: MemoryManager, method: str) -> None:
    """Each filter gives exactly the memories that pass it, in every method; limits come after filters."""
    memories = [
        UserMemory(memory=KAYAK, topics=["water"], agent_id="a1", metadata={"length": 5, "color": "red"}),
        UserMemory(memory=TENT, topics=["land"], team_id="t1", metadata={"length": 3, "color": "blue"}),
        UserMemory(memory=OAR, topics=["water", "wood"], metadata={"length": 2.5, "old": True}),
    ]
    for day, memory in enumerate(memories, 1):
        at = f"2020-01-0{day}"
        await finder.add_user_memory(memory.model_copy(update={"created_at": at, "updated_at": at}), user_id="lin")
    await add(finder, KAYAK, TENT, OAR, user_id="omar", topics=["water"], metadata={"length": 5})
    for filters, expected in FILTERS:
        assert sorted(await texts(finder, "owns", method, **filters)) == sorted(expected), (method, filters)
        assert len(await texts(finder, "owns", method, limit=1, **filters)) == min(1, len(expected))


@pytest.mark.parametrize(
    "filters",
    [
        {"metadata": {"$where": "1"}},
        {"metadata": {"a.b": 1}},
        {"metadata": {"": 1}},
        {"metadata": {"a": {"$ne": None}}},
        {"metadata": {"a": [1]}},
        {"metadata": {"a": float("nan")}},
        {"metadata": {"a": 2**64}},
        {"metadata": {3: 1}},
        {"metadata": "a"},
        {"topics": {"$ne": ""}},
        {"topics_all": [{"$gt": ""}]},
        {"updated_after": {"$gt": 0}},
        {"created_before": "yesterday"},
        {"tpoics": ["a"]},
        {"candidates": "all"},
    ],
)
async def test_unsafe_filters_are_refused(finder: MemoryManager, filters: dict[str, Any]) -> None:
    """Operators, dotted keys and unknown filters are errors, for every method."""
    for method in ("last_n", "keyword"):
        with pytest.raises(InvalidQueryError):
            await texts(finder, "owns", method, **filters)


# -------------------------------------------------------------------------------------------------- retrievers


class Thief:
    """A retriever that returns more than is the user's."""

    needs_query = False

    def __init__(self, *extra: UserMemory) -> None:
        self.extra = extra

    async def retrieve(self, request: SearchRequest, sources: Sources) -> MemorySearchResult:
        found = await sources.search("keyword", request)
        return MemorySearchResult([*self.extra, *found, *found], [9.0] * len(self.extra) + [*found.scores] * 2)


async def test_a_retriever_of_ones_own_shows_only_the_users_memories(finder: MemoryManager) -> None:
    """Another user's row and a row that is gone are not shown, a row is shown once, limit and filters hold."""
    await add(finder, "Owns a violin", "Owns a drum")
    (foreign,) = await add(finder, "Owns a secret", user_id="omar")
    secret = await finder.get_user_memory(foreign, user_id="omar")
    assert secret is not None
    thief = Thief(secret, UserMemory(memory="Never stored"), secret.model_copy(update={"user_id": "lin"}))
    found = await finder.search_user_memories("owns", user_id="lin", retrieval_method=thief)
    assert [m.memory for m in found] == ["Owns a violin", "Owns a drum"]
    assert (len(found.scores), found.method) == (2, "Thief")
    found = await finder.search_user_memories("owns", user_id="lin", retrieval_method=thief, limit=1, topics=["x"])
    assert list(found) == []


class Wrong:
    """A retriever that returns what it should not."""

    needs_query = False

    async def retrieve(self, request: SearchRequest, sources: Sources) -> Any:
        return ["Owns a violin"]


async def test_a_retriever_that_returns_no_memories_is_refused(finder: MemoryManager) -> None:
    """What is no memory is an error that names the retriever."""
    with pytest.raises(InvalidQueryError, match=r"Wrong\.retrieve"):
        await finder.search_user_memories(user_id="lin", retrieval_method=Wrong())
