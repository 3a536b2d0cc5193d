"""The suite's own ground: the servers are what they are said to be, and blocking calls are seen."""

import time
from pathlib import Path
from types import CodeType

import pytest
from blockbuster import BlockingError
from pymongo import AsyncMongoClient, MongoClient
from pymongo.errors import OperationFailure

import asyncmem
from tests.servers import MongodServer, database_of, running_mongod, server_folder_root, with_database

pytestmark = pytest.mark.anyio

Document = dict[str, object]


async def test_each_kind_of_server_stores(server_uri: str, database_name: str) -> None:
    """Every server of the suite takes a write and gives it back."""
    client: AsyncMongoClient[Document]
    async with AsyncMongoClient(with_database(server_uri, database_name)) as client:
        things = client.get_default_database().things
        await things.insert_one({"_id": 1})
        assert await things.find().to_list() == [{"_id": 1}]


async def test_standalone_is_standalone(standalone_uri: str) -> None:
    """The standalone server belongs to no replica set."""
    async with AsyncMongoClient(standalone_uri) as client:
        assert "setName" not in await client.admin.command("hello")


async def test_auth_server_asks_for_its_user(auth_server: MongodServer, database_name: str) -> None:
    """The server with users refuses strangers, and does transactions for its user."""
    client: AsyncMongoClient[Document]
    async with AsyncMongoClient(with_database(auth_server.anonymous_uri, database_name)) as client:
        with pytest.raises(OperationFailure) as refused:
            await client.get_default_database().things.insert_one({})
        assert refused.value.code == 13
    async with AsyncMongoClient(with_database(auth_server.uri, database_name)) as client:
        async with client.start_session() as session, await session.start_transaction():
            await client.get_default_database().things.insert_one({"_id": 1}, session=session)
        assert await client.get_default_database().things.count_documents({}) == 1


def test_a_server_goes_with_its_files() -> None:
    """A server of one's own is gone after its block, and so is its folder."""
    before = set(server_folder_root().glob("asyncmem-test-*"))
    with running_mongod() as server:
        assert len(set(server_folder_root().glob("asyncmem-test-*")) - before) == 1
        assert server.process.poll() is None
    assert server.process.returncode == -9
    assert set(server_folder_root().glob("asyncmem-test-*")) <= before


def test_addresses_keep_what_they_carry() -> None:
    """Naming a database in an address keeps user, password and options."""
    uri = with_database("mongodb://u:p%2F@127.0.0.1:1/?directConnection=true", "app")
    assert uri == "mongodb://u:p%2F@127.0.0.1:1/app?directConnection=true&authSource=admin"
    assert database_of(uri) == "app"


def _as_if_in(path: str) -> CodeType:
    return compile("import time\ntime.sleep(0.001)", path, "exec")


async def test_blocking_by_asyncmem_is_seen() -> None:
    """A blocking call raises when asyncmem's code makes it on the event loop, and only then."""
    inside = str(Path(asyncmem.__file__).with_name("example.py"))
    with pytest.raises(BlockingError):
        exec(_as_if_in(inside))
    exec(_as_if_in("/somewhere/site-packages/litellm/main.py"))
    time.sleep(0.001)


def test_the_suite_can_drop_what_it_made(replica_set_uri: str, database_name: str) -> None:
    """The name a test gets is a database that nobody has."""
    client: MongoClient[Document]
    with MongoClient(replica_set_uri) as client:
        assert database_name not in client.list_database_names()
