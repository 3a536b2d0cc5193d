"""What ``db=`` may be, and what happens when it can't be used."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import AsyncMongoClient, MongoClient
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from asyncmem import (
    AsyncMemError,
    ConfigurationError,
    EventLoopError,
    ManagerClosedError,
    MemoryManager,
    Settings,
    StoreAuthenticationError,
    StoreError,
    StorePermissionError,
    StoreTimeoutError,
    StoreUnavailableError,
    UserMemory,
)
from asyncmem.store import connect

from ..servers import MongodServer, free_port, running_mongod, with_database

pytestmark = pytest.mark.anyio
MEMORY = UserMemory(memory="Plays chess")
IMPATIENT = Settings(open_timeout=timedelta(seconds=1))


async def works(db: object) -> None:
    """A manager on ``db`` stores and finds."""
    async with MemoryManager(db) as manager:
        memory_id = await manager.add_user_memory(MEMORY, user_id="lin")
        found = await manager.get_user_memory(memory_id, user_id="lin")
        assert found is not None


@pytest.fixture
async def client(replica_set_uri: str, database_name: str) -> AsyncIterator[AsyncMongoClient[dict[str, Any]]]:
    """An application's own client."""
    async with AsyncMongoClient(with_database(replica_set_uri, database_name)) as client:
        yield client


# --------------------------------------------------------------------------------------------- handed-over clients


async def test_a_client_is_used_and_left_open(client: AsyncMongoClient[dict[str, Any]], database_name: str) -> None:
    """A client that was handed in keeps working after the manager is closed."""
    await works(client)
    assert await client[database_name]["asyncmem_memories"].count_documents({}) == 1


async def test_a_database_is_used_as_it_is(client: AsyncMongoClient[dict[str, Any]], database_name: str) -> None:
    """A database of a client is used, whatever the client's options say of decoding."""
    await works(client[database_name])
    assert await client[database_name]["asyncmem_memories"].count_documents({}) == 1


async def test_naive_and_aware_clients_read_the_same(replica_set_uri: str, database_name: str) -> None:
    """Times are aware whatever the handed-over client's codec options are."""
    for aware in (False, True):
        uri = with_database(replica_set_uri, database_name)
        async with AsyncMongoClient(uri, tz_aware=aware) as client, MemoryManager(client) as manager:
            memory_id = await manager.add_user_memory(MEMORY, user_id="lin")
            memory = await manager.get_user_memory(memory_id, user_id="lin")
            assert memory is not None
            assert memory.created_at is not None
            assert memory.created_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("what", ["client", "database"])
async def test_motor_hands_over_what_it_was_configured_with(
    auth_server: MongodServer, database_name: str, what: str
) -> None:
    """User, password, pool, application name, read and write concern of a Motor client carry over."""
    uri = with_database(auth_server.uri, database_name)
    motor: Any = AsyncIOMotorClient(
        uri, maxPoolSize=37, appname="shop", w="majority", wtimeoutms=5000, readConcernLevel="majority"
    )
    try:
        db = motor if what == "client" else motor[database_name]
        async with MemoryManager(db) as manager:
            await manager.add_user_memory(MEMORY, user_id="lin")
            store = await manager._opening.store()
            database = store.read._memories.database
            options = database.client.options
            assert options.pool_options.max_pool_size == 37
            assert options.pool_options.appname == "shop"
            assert database.write_concern == WriteConcern("majority", wtimeout=5000)
            assert database.read_concern == ReadConcern("majority")
        assert await motor[database_name]["asyncmem_memories"].count_documents({}) == 1
    finally:
        motor.close()


async def test_a_motor_database_keeps_its_own_concerns(auth_server: MongodServer, database_name: str) -> None:
    """Options of the database win over the client's."""
    motor: Any = AsyncIOMotorClient(auth_server.uri)
    try:
        database = motor.get_database(database_name, write_concern=WriteConcern(w=1, j=True))
        async with MemoryManager(database) as manager:
            store = await manager._opening.store()
            assert store.read._memories.write_concern == WriteConcern(w=1, j=True)
    finally:
        motor.close()


async def test_what_motor_has_no_database_for_is_refused(auth_server: MongodServer, database_name: str) -> None:
    """A Motor collection is no database; a client whose URI names none has none."""
    motor: Any = AsyncIOMotorClient(auth_server.uri)
    try:
        with pytest.raises(ConfigurationError, match="can't be taken over"):
            await works(motor[database_name]["rows"])
        with pytest.raises(ConfigurationError, match="names no database"):
            await works(motor)
    finally:
        motor.close()


async def test_writes_are_majority_and_journaled_by_default(replica_set_uri: str, database_name: str) -> None:
    """Unless a write concern was configured, ours is majority with journal, and reads go to the primary."""
    async with MemoryManager(with_database(replica_set_uri, database_name)) as manager:
        store = await manager._opening.store()
        assert store.read._memories.write_concern == WriteConcern("majority", j=True)
        assert store.read._memories.read_preference.mongos_mode == "primary"


async def test_unacknowledged_writes_are_refused(replica_set_uri: str, database_name: str) -> None:
    """w=0 would report failed writes as stored."""
    async with AsyncMongoClient(replica_set_uri, w=0) as client:
        with pytest.raises(ConfigurationError, match="w=0"):
            await works(client[database_name])


# ------------------------------------------------------------------------------------------------- what can't be used


@pytest.mark.parametrize(
    ("db", "message"),
    [
        ("postgres://localhost/app", "neither a MongoDB URI nor 'embedded'"),
        ("mongodb://localhost:27017", "names no database"),
        ("mongodb://localhost:99999/app", "can't be used"),
        ("mongodb://joe:hunter2@:0:/app", "can't be used"),
        ("mongodb://localhost/app?tls=true&tlsCAFile=/nowhere.pem", "can't be used"),
        ("embedded:", "names no folder"),
        ("embedded:a\0b", "neither a MongoDB URI nor 'embedded'"),
        (42, "can't be a int"),
        (MongoClient, "can't be a type"),
    ],
)
async def test_unusable_db_is_explained(db: object, message: str) -> None:
    """The error says what is wrong, shows the choices, and no password."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        await works(db)
    assert "hunter2" not in str(caught.value)


async def test_a_synchronous_client_is_refused() -> None:
    """PyMongo's blocking client would block the loop."""
    sync: MongoClient[dict[str, Any]] = MongoClient("mongodb://localhost/app", connect=False)
    try:
        with pytest.raises(ConfigurationError, match="MongoClient"):
            await works(sync)
    finally:
        sync.close()


async def test_no_db_at_all(monkeypatch: pytest.MonkeyPatch, replica_set_uri: str, database_name: str) -> None:
    """Without db= the environment decides; without both, the error shows the choices."""
    monkeypatch.delenv("ASYNCMEM_DB", raising=False)
    with pytest.raises(ConfigurationError, match="ASYNCMEM_DB") as caught:
        await works(None)
    assert "embedded" in str(caught.value)
    monkeypatch.setenv("ASYNCMEM_DB", with_database(replica_set_uri, database_name))
    await works(None)


async def test_unknown_options_are_named() -> None:
    """An option that does not exist is a ConfigurationError that names it."""
    with pytest.raises(ConfigurationError, match="'colour'"):
        MemoryManager(colour="red")  # type: ignore[arg-type]
    for options in ({"settings": 5}, {"llm": {}}, {"system_message": 5}):
        with pytest.raises(ConfigurationError, match="expected a"):
            MemoryManager(**options)  # type: ignore[arg-type]


async def test_unreachable_server() -> None:
    """Nobody listens: the error says so within the time that opening may take, and opening may be tried again."""
    manager = MemoryManager(f"mongodb://127.0.0.1:{free_port()}/app", settings=IMPATIENT)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="no MongoDB server answers") as caught:
            await manager.get_user_memories(user_id="lin")
        assert caught.value.retryable
    await manager.aclose()


async def test_servers_are_watched_beyond_the_opening(replica_set_uri: str, database_name: str) -> None:
    """How long opening may take bounds nothing that comes later: PyMongo 4.13 lets what watches servers inherit it."""
    uri = with_database(replica_set_uri, database_name) + "&heartbeatFrequencyMS=500"
    async with MemoryManager(uri, settings=Settings(open_timeout=timedelta(seconds=4))) as manager:
        await asyncio.sleep(5.5)
        await manager.add_user_memory(MEMORY, user_id="lin")


async def test_the_uris_own_patience_counts() -> None:
    """A URI that waits shorter for a server than opening may is taken at its word."""
    uri = f"mongodb://127.0.0.1:{free_port()}/app?serverSelectionTimeoutMS=200"
    async with asyncio.timeout(60):
        with pytest.raises(StoreUnavailableError, match="no MongoDB server answers"):
            await MemoryManager(uri, settings=Settings(open_timeout=timedelta(hours=1))).get_users()


async def test_wrong_password(auth_server: MongodServer, database_name: str) -> None:
    """The error says what to check and shows no password."""
    uri = auth_server.anonymous_uri.replace("//", "//tester:hunter2@")
    with pytest.raises(StoreAuthenticationError, match="password") as caught:
        await works(with_database(uri, database_name))
    assert "hunter2" not in str(caught.value)


async def test_no_password(auth_server: MongodServer, database_name: str) -> None:
    """A server that asks for a user refuses who names none."""
    with pytest.raises(StorePermissionError, match="may not do this"):
        await works(with_database(auth_server.anonymous_uri, database_name))


async def test_without_index_rights(replica_set_uri: str, database_name: str) -> None:
    """create_indexes=False makes no index, and everything but speed and folding works."""
    settings = Settings(create_indexes=False)
    async with MemoryManager(with_database(replica_set_uri, database_name), settings=settings) as manager:
        await manager.add_user_memory(MEMORY, user_id="lin")
        store = await manager._opening.store()
        assert list(await store.read._memories.index_information()) == ["_id_"]


# ---------------------------------------------------------------------------------------------- opening and closing


async def test_closed_manager(replica_set_uri: str, database_name: str) -> None:
    """After aclose every verb says that the manager is closed; closing again does nothing."""
    manager = MemoryManager(with_database(replica_set_uri, database_name))
    await manager.add_user_memory(MEMORY)
    await manager.aclose()
    await manager.aclose()
    with pytest.raises(ManagerClosedError, match="make a new one"):
        await manager.get_user_memories()
    never_opened = MemoryManager("mongodb://localhost/app")
    await never_opened.aclose()
    with pytest.raises(ManagerClosedError):
        async with never_opened:
            pass


async def test_first_calls_at_once_open_once(replica_set_uri: str, database_name: str) -> None:
    """Thirty first calls share one opening, and one that is cancelled does not fail the others."""
    manager = MemoryManager(with_database(replica_set_uri, database_name))
    calls = [asyncio.create_task(manager.count_user_memories()) for _ in range(30)]
    await asyncio.sleep(0)
    calls[0].cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [0] * 29
    await manager.aclose()


def said_in_a_process(code: str, uri: str) -> str:
    """What a program prints; in a process of its own, since a dead loop's sockets can't be closed any more."""
    prelude = (
        "import asyncio, sys; from asyncmem import EventLoopError, MemoryManager;"
        "from pymongo import AsyncMongoClient; uri = sys.argv[1]\n"
        "def said(main):\n    try:\n        asyncio.run(main)\n"
        "    except EventLoopError as error:\n        print(error)\n"
    )
    command = [sys.executable, "-P", "-W", "ignore", "-c", prelude + code, uri]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_loop_that_ended(replica_set_uri: str, database_name: str) -> None:
    """A manager that was opened in a loop that ended says so, and what to do."""
    code = (
        "manager = MemoryManager(uri)\n"
        "said(manager.count_user_memories())\nsaid(manager.count_user_memories())\nsaid(manager.aclose())"
    )
    first, second = said_in_a_process(code, with_database(replica_set_uri, database_name)).splitlines()
    assert "has ended: make one manager for each event loop" in first
    assert "in the event loop that opened it" in second


def test_another_loop_than_the_first(replica_set_uri: str, database_name: str) -> None:
    """A manager is of the loop that opened it, also while that loop still lives."""
    manager = MemoryManager(with_database(replica_set_uri, database_name))
    with asyncio.Runner() as one, asyncio.Runner() as two:
        one.run(manager.count_user_memories())
        with pytest.raises(EventLoopError, match="is another one"):
            two.run(manager.count_user_memories())
        with pytest.raises(EventLoopError, match="that opened it"):
            two.run(manager.aclose())
        one.run(manager.aclose())


async def test_an_embedded_server_is_let_go_when_no_client_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that was started for a client that can't be made is released."""
    released: list[bool] = []

    class Server:
        uri = "mongodb://localhost:99999/app"

        async def release(self) -> None:
            released.append(True)

    async def fake(path: object, *, timeout: object) -> Server:
        return Server()

    monkeypatch.setattr(connect, "open_embedded", fake)
    with pytest.raises(ConfigurationError):
        await works("embedded")
    assert released == [True]


def test_a_client_of_a_loop_that_ended(replica_set_uri: str, database_name: str) -> None:
    """A handed-over client that belongs to a dead loop gives an error that says so."""
    code = (
        "client = AsyncMongoClient(uri)\n"
        "async def ping():\n    await client.admin.command('ping')\n"
        "said(ping())\nsaid(MemoryManager(client).count_user_memories())"
    )
    assert "first used in another event loop" in said_in_a_process(code, with_database(replica_set_uri, database_name))


def test_loops_in_threads(replica_set_uri: str, database_name: str) -> None:
    """Four loops in four threads, each with its manager, on two databases: every row where it belongs."""
    names = [f"{database_name}_{n % 2}" for n in range(4)]
    errors: list[BaseException] = []

    async def fill(number: int) -> None:
        async with MemoryManager(with_database(replica_set_uri, names[number])) as manager:
            adds = (manager.add_user_memory(UserMemory(memory=f"{number} {n}"), user_id="lin") for n in range(25))
            await asyncio.gather(*adds)

    def run(number: int) -> None:
        try:
            asyncio.run(fill(number))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with MongoClient(replica_set_uri) as client:
        for number, name in enumerate(sorted(set(names))):
            rows = client[name]["asyncmem_memories"].find({}, {"memory": 1})
            assert {int(r["memory"][0]) % 2 for r in rows} == {number}
            assert client[name]["asyncmem_memories"].count_documents({}) == 50
            client.drop_database(name)


async def test_twenty_databases_at_once(replica_set_uri: str, database_name: str) -> None:
    """Twenty managers on twenty databases write at once, and no row goes astray."""
    async with AsyncMongoClient(replica_set_uri) as client:
        names = [f"{database_name}_{n}" for n in range(20)]
        managers = [MemoryManager(client[name]) for name in names]
        adds = [
            manager.add_user_memory(UserMemory(memory=f"{number} {n}"), user_id="lin")
            for n in range(5)
            for number, manager in enumerate(managers)
        ]
        await asyncio.gather(*adds)
        for number, (name, manager) in enumerate(zip(names, managers, strict=True)):
            memories = await manager.get_user_memories(user_id="lin")
            assert sorted(m.memory for m in memories) == [f"{number} {n}" for n in range(5)]
            await manager.aclose()
            await client.drop_database(name)


async def test_collections_are_named_by_the_prefix(
    client: AsyncMongoClient[dict[str, Any]], database_name: str
) -> None:
    """Two managers with two prefixes share a database and no row."""
    async with MemoryManager(client, settings=Settings(collection_prefix="other_")) as other:
        await other.add_user_memory(MEMORY, user_id="lin")
        async with MemoryManager(client) as manager:
            assert await manager.get_users() == []
    assert "other_memories" in await client[database_name].list_collection_names()


# ------------------------------------------------------------------------------------------------ a server that dies


async def test_a_server_that_dies_in_the_middle_of_adds() -> None:
    """Every id that was returned before, during and after a kill -9 is of a row that is there."""
    with running_mongod(replica_set=True) as server:
        uri = with_database(server.uri, "app") + "&serverSelectionTimeoutMS=500"
        manager = MemoryManager(uri, settings=IMPATIENT)
        acknowledged: list[str] = []
        failures: list[AsyncMemError] = []

        async def add(worker: int) -> None:
            for n in range(200):
                try:
                    text = f"Fact {worker} {n}"
                    acknowledged.append(await manager.add_user_memory(UserMemory(memory=text), user_id="lin"))
                except StoreError as error:
                    failures.append(error)
                    return

        adds = [asyncio.create_task(add(worker)) for worker in range(8)]
        while len(acknowledged) < 50:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(server.kill)
        await asyncio.gather(*adds)
        assert len(failures) == 8
        assert all(error.retryable for error in failures if isinstance(error, StoreError))
        await manager.aclose()
        again = subprocess.Popen(server.process.args)
        try:
            async with MemoryManager(with_database(server.uri, "app")) as survivor:
                rows = {m.memory_id for m in await survivor.get_user_memories(user_id="lin")}
        finally:
            again.kill()
            again.wait()
        assert set(acknowledged) <= rows


async def test_a_server_that_freezes(database_name: str) -> None:
    """A server that stops answering gives a typed error when the caller's time is up, and works when it goes on."""
    with running_mongod() as server:
        uri = with_database(server.uri, database_name) + "&timeoutMS=500"
        async with MemoryManager(uri) as manager:
            await manager.add_user_memory(MEMORY, user_id="lin")
            server.pause()
            try:
                with pytest.raises(StoreError) as caught:
                    await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
            finally:
                server.resume()
            assert caught.value.retryable
            await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
            assert await manager.count_user_memories(user_id="lin") == 2


async def test_closing_a_manager_on_a_frozen_server(database_name: str) -> None:
    """A server that stops answering keeps nobody: closing ends, and the call under way gets a typed error."""
    with running_mongod() as server:
        uri = with_database(server.uri, database_name)
        manager = MemoryManager(uri, settings=Settings(close_timeout=timedelta(seconds=0.5)))
        await manager.add_user_memory(MEMORY, user_id="lin")
        server.pause()
        try:
            call = asyncio.create_task(manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin"))
            await asyncio.sleep(0.1)
            async with asyncio.timeout(20):
                await manager.aclose()
                with pytest.raises(StoreTimeoutError, match="close_timeout"):
                    await call
        finally:
            server.resume()


async def test_a_closing_that_was_cancelled_can_be_made_again(replica_set_uri: str, database_name: str) -> None:
    """A manager whose closing is cancelled is still open, and is closed by the next closing."""
    manager = MemoryManager(with_database(replica_set_uri, database_name))
    await manager.add_user_memory(MEMORY, user_id="lin")
    gate = (await manager._opening.store())._core.gate
    async with gate.passing():
        closing = asyncio.create_task(manager.aclose())
        await asyncio.sleep(0.05)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
    assert await manager.count_user_memories(user_id="lin") == 1
    await manager.aclose()
    with pytest.raises(ManagerClosedError):
        await manager.count_user_memories(user_id="lin")
