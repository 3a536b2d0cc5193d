"""``last_n`` and ``first_n``, on every kind of server."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from asyncmem import InvalidQueryError, MemoryManager, UnknownRetrievalMethodError, UserMemory

pytestmark = pytest.mark.anyio


async def found(manager: MemoryManager, method: str, limit: int | None) -> list[str | None]:
    result = await manager.search_user_memories(user_id="lin", retrieval_method=method, limit=limit)
    return [m.memory_id for m in result]


async def fill(manager: MemoryManager, uri: str) -> None:
    """Rows 0 to 4 with update times 30, none, 10, 0, 20; row 1 was written by other software."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(uri)
    try:
        for row, seconds in enumerate((30, None, 10, 0, 20)):
            if seconds is None:
                rows = client.get_default_database()["asyncmem_memories"]
                await rows.insert_one({"_id": str(row), "user_id": "lin", "memory": f"Row {row}"})
            else:
                memory = UserMemory(memory=f"Row {row}", memory_id=str(row), updated_at=seconds)
                await manager.add_user_memory(memory, user_id="lin")
    finally:
        await client.close()


async def test_order_and_limits(manager: MemoryManager, uri: str) -> None:
    """Missing times are oldest for last_n and last for first_n; a limit that isn't positive is all (case 8)."""
    await fill(manager, uri)
    assert await found(manager, "last_n", 2) == ["4", "0"]
    assert await found(manager, "first_n", 2) == ["3", "2"]
    for limit in (None, 0, -1, 5, 100):
        assert await found(manager, "last_n", limit) == ["1", "3", "2", "4", "0"]
        assert await found(manager, "first_n", limit) == ["3", "2", "4", "0", "1"]
    assert await found(manager, "first_n", 4) == ["3", "2", "4", "0"]
    assert [m.memory_id for m in await manager.get_user_memories(user_id="lin")] == ["1", "3", "2", "4", "0"]


async def test_pages_lead_through_rows_without_times(manager: MemoryManager, uri: str) -> None:
    """Paging one by one visits every row, those of other software included."""
    await fill(manager, uri)
    seen: list[str | None] = []
    page = await manager.get_user_memories(user_id="lin", limit=1)
    while page:
        seen.append(page[0].memory_id)
        page = await manager.get_user_memories(user_id="lin", limit=1, after=page[0])
    assert seen == ["1", "3", "2", "4", "0"]


async def test_a_row_of_other_software_can_be_changed_and_deleted(manager: MemoryManager, uri: str) -> None:
    """Rows that lack our fields get them with the first change."""
    await fill(manager, uri)
    bare = await manager.get_user_memory("1", user_id="lin")
    assert bare is not None
    assert (bare.topics, bare.updated_at, bare.created_at, bare.revision) == ([], None, None, 1)
    noted = await manager.update_user_memory("1", user_id="lin", feedback="seen")
    assert (noted.updated_at, noted.revision) == (None, 2)
    memory = await manager.update_user_memory("1", user_id="lin", topics=["new"])
    assert (memory.topics, memory.revision) == (["new"], 3)
    assert [c.kind for c in await manager.history("1", user_id="lin")] == ["add", "update", "update"]
    assert await manager.delete_user_memory("1", user_id="lin") is True


async def test_ties_are_broken_by_insertion(manager: MemoryManager) -> None:
    """Equal times keep the order in which rows were written, whatever their ids are."""
    for name in ("z", "a", "m"):
        memory = UserMemory(memory=f"Memory {name}", memory_id=name, updated_at=1_000)
        await manager.add_user_memory(memory, user_id="lin")
    for method in ("last_n", "first_n"):
        assert await found(manager, method, None) == ["z", "a", "m"]
    assert await found(manager, "last_n", 2) == ["a", "m"]


async def test_filters_narrow_before_the_limit(manager: MemoryManager) -> None:
    """Agent, team and topics are applied in the server, before the limit."""
    for n in range(6):
        memory = UserMemory(memory=f"Row {n}", memory_id=str(n), topics=[f"t{n % 2}"], agent_id=f"a{n % 3}")
        await manager.add_user_memory(memory, user_id="lin")
    result = await manager.search_user_memories(user_id="lin", topics=["t0"], limit=2)
    assert [m.memory_id for m in result] == ["2", "4"]
    result = await manager.search_user_memories(user_id="lin", agent_id="a1", retrieval_method="first_n", limit=1)
    assert [m.memory_id for m in result] == ["1"]
    assert (result.scores, result.tier, result.degraded, result.usage.calls) == ([], None, False, 0)


async def test_result_is_a_sequence(manager: MemoryManager) -> None:
    """Length, index, slice, iteration and membership work."""
    await manager.add_user_memories([UserMemory(memory="one"), UserMemory(memory="two")], user_id="lin")
    result = await manager.search_user_memories(user_id="lin")
    assert (len(result), result[0].memory, [m.memory for m in result[1:]]) == (2, "one", ["two"])
    assert result[1] in result


async def test_unknown_methods_and_options_are_refused(manager: MemoryManager) -> None:
    """The error names what there is."""
    with pytest.raises(UnknownRetrievalMethodError, match="last_n, first_n, keyword, semantic, hybrid, agentic"):
        await manager.search_user_memories(user_id="lin", retrieval_method="fuzzy")
    with pytest.raises(UnknownRetrievalMethodError):
        await manager.search_user_memories(user_id="lin", retrieval_method=None)  # type: ignore[arg-type]
    with pytest.raises(InvalidQueryError, match="'topic'"):
        await manager.search_user_memories(user_id="lin", topic="x")  # type: ignore[arg-type]
    for limit in (True, 1.5, "3"):
        with pytest.raises(InvalidQueryError, match="limit"):
            await manager.search_user_memories(user_id="lin", limit=limit)  # type: ignore[arg-type]
    for query, message in ((5, "must be a str"), ("x" * 8_001, "8,001 characters")):
        with pytest.raises(InvalidQueryError, match=message):
            await manager.search_user_memories(query, user_id="lin")  # type: ignore[arg-type]
    with pytest.raises(InvalidQueryError, match="on_failure"):
        await manager.search_user_memories(user_id="lin", on_failure="ignore")


async def test_times_of_any_kind_are_one_instant(manager: MemoryManager) -> None:
    """Unix seconds, ISO text and datetimes of one instant are stored as the same."""
    instant = datetime(2026, 1, 5, 8, 0, 0, 123000, tzinfo=UTC)
    given = [instant, instant.timestamp(), "2026-01-05T16:00:00.123999+08:00", instant.replace(tzinfo=None)]
    for n, value in enumerate(given):
        memory = UserMemory(memory=f"Memory {n}", created_at=value, updated_at=value)  # type: ignore[arg-type]
        await manager.add_user_memory(memory, user_id="lin")
    stored = await manager.get_user_memories(user_id="lin")
    assert {m.created_at for m in stored} == {m.updated_at for m in stored} == {instant}
