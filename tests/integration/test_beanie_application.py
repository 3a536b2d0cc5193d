"""An application that uses Beanie itself keeps working beside asyncmem."""

import asyncio
from typing import Any

import pytest
from beanie import Document, init_beanie
from pymongo import AsyncMongoClient

from asyncmem import MemoryManager, UserMemory

from ..servers import with_database

pytestmark = pytest.mark.anyio


class Order(Document):
    """A document of the application's."""

    number: int

    class Settings:
        """Its own collection."""

        name = "orders"


class Memory(Document):
    """A document of the application's that is called like one of ours."""

    note: str

    class Settings:
        """Its own collection."""

        name = "notes"


async def both_work(manager: MemoryManager, number: int) -> None:
    """The application's documents and ours store and find, also at once."""

    async def application(n: int) -> None:
        await Order(number=n).insert()
        await Memory(note=f"note {n}").insert()

    async def ours(n: int) -> None:
        await manager.add_user_memory(UserMemory(memory=f"Fact {n}"), user_id="lin")

    numbers = range(number, number + 10)
    await asyncio.gather(*(f(n) for n in numbers for f in (application, ours)))
    assert await Order.find(Order.number >= number, Order.number < number + 10).count() == 10
    assert await Memory.find(Memory.note == f"note {number}").count() == 1
    memories = {m.memory for m in await manager.get_user_memories(user_id="lin")}
    assert {f"Fact {n}" for n in numbers} <= memories


@pytest.mark.parametrize("where", ["the same database", "another database"])
async def test_init_beanie_before_and_after_ours(replica_set_uri: str, database_name: str, where: str) -> None:
    """The application's init_beanie runs before and after ours, on one database or two: every row where it belongs."""
    async with AsyncMongoClient(with_database(replica_set_uri, database_name)) as client:
        mine: Any = client[database_name if where == "the same database" else f"{database_name}_app"]
        await init_beanie(database=mine, document_models=[Order, Memory])
        async with MemoryManager(client[database_name]) as manager:
            await both_work(manager, 0)
            await init_beanie(database=mine, document_models=[Order, Memory])
            await both_work(manager, 100)
        assert {"orders", "notes"} <= set(await mine.list_collection_names())
        assert await mine["orders"].count_documents({}) == 20
        assert await client[database_name]["asyncmem_memories"].count_documents({}) == 20
        await client.drop_database(mine.name)


async def test_two_managers_do_not_rebind_each_other(replica_set_uri: str, database_name: str) -> None:
    """A manager that opens later on another database leaves the first one's rows where they are."""
    async with AsyncMongoClient(replica_set_uri) as client:
        names = [database_name, f"{database_name}_two"]
        async with MemoryManager(client[names[0]]) as one:
            await one.add_user_memory(UserMemory(memory="one"), user_id="lin")
            async with MemoryManager(client[names[1]]) as two:
                await one.add_user_memory(UserMemory(memory="one more"), user_id="lin")
                assert await two.get_user_memories(user_id="lin") == []
            assert await one.count_user_memories(user_id="lin") == 2
        await client.drop_database(names[1])
