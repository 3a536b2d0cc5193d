"""The engine's process and its set-up, apart from the supervisor."""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pymongo import MongoClient
from pymongo.uri_parser import parse_uri

from asyncmem.errors import EmbeddedServerError
from asyncmem.store import embedded_process, embedded_setup
from asyncmem.store.embedded_engines import Engine
from asyncmem.store.embedded_folder import Folder, ServerRecord
from asyncmem.store.embedded_process import EngineProcess
from asyncmem.store.embedded_setup import check_users, make_first_users, set_up
from tests.servers import MongodServer, free_port

# Listens where it is told to; otherwise it is what the file "conduct" in the folder says.
ENGINE = """
import os, signal, socket, sys, time
port = int(sys.argv[sys.argv.index("--port") + 1])
conduct = open(sys.argv[1]).read()
if conduct == "dies":
    sys.exit(7)
if conduct == "loses the port":
    open(sys.argv[1], "w").write("listens")
    taken = socket.socket()
    taken.bind(("127.0.0.1", port))
    if os.fork():
        os._exit(48)
if conduct == "is stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if conduct not in ("sleeps", "loses the port"):
    listener = socket.create_server(("127.0.0.1", port))
time.sleep(5)
"""

Start = Callable[..., EngineProcess]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder that was prepared."""
    made = Folder(tmp_path)
    made.prepare()
    return made


@pytest.fixture
def process(folder: Folder) -> Iterator[Start]:
    """Makes an engine of that conduct, not started yet; ends it after the test."""
    made: list[EngineProcess] = []
    ended = threading.Semaphore(0)

    def make(conduct: str, on_pause: Callable[[], None] = lambda: None) -> EngineProcess:
        def pause() -> None:
            time.sleep(0.01)
            on_pause()

        (folder.path / "conduct").write_text(conduct)
        program = (sys.executable, "-c", ENGINE, str(folder.path / "conduct"))
        engine = EngineProcess(
            Engine("mongod", program),
            folder,
            lock=os.open(folder.engine_lock, os.O_RDWR),
            pause=pause,
            on_end=lambda _: ended.release(),
        )
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.stop()
        if engine.pid:
            assert ended.acquire(timeout=5)


def test_an_engine_starts_and_stops(folder: Folder, process: Start) -> None:
    """An engine that listens is written down, and gone after it was stopped."""
    engine = process("listens")
    engine.stop()
    engine.start()
    assert engine.port in range(20_000, 32_000)
    assert folder.server() == ServerRecord(os.getpid(), engine.pid, engine.port, ready=False)
    engine.announce(ready=True)
    assert folder.server() == ServerRecord(os.getpid(), engine.pid, engine.port, ready=True)
    engine.stop()
    assert engine.code == -15
    engine.stop()


def test_an_engine_comes_back_to_its_port(process: Start) -> None:
    """A server is found where the last one was, if the port is free."""
    first = process("listens")
    first.start()
    first.stop()
    second = process("listens")
    second.start()
    assert second.port == first.port


def test_a_port_that_gets_free_is_waited_for(folder: Folder, process: Start) -> None:
    """An engine that was killed may hold its port a moment longer than its lock: the next one waits for it."""
    port = free_port()
    (folder.path / "port").write_text(str(port))
    taken = socket.create_server(("127.0.0.1", port))
    engine = process("listens", on_pause=taken.close)
    engine.start()
    assert engine.port == port


def test_an_engine_that_ends_is_an_error(process: Start) -> None:
    """An engine that ends before it listens is an error with its exit code."""
    with pytest.raises(EmbeddedServerError, match="exit code 7"):
        process("dies").start()


def test_an_engine_that_lost_its_port_tries_another(process: Start) -> None:
    """An engine whose port was taken between our look and its own is started on another one."""
    ports: list[int] = []
    engine = process("loses the port", on_pause=lambda: ports.append(engine.port))
    engine.start()
    assert engine.code is None
    assert ports[0] != engine.port


def test_a_port_that_is_taken_is_an_error(process: Start) -> None:
    """An engine that must have a certain port, which is taken, is an error that may pass."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(EmbeddedServerError, match=f"port {port}") as taken:
        process("listens").start(port)
    assert taken.value.retryable


def test_an_engine_that_does_not_listen_is_an_error(process: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that runs but does not come to listen is given up."""
    monkeypatch.setattr(embedded_process, "_START_SECONDS", 0.2)
    with pytest.raises(EmbeddedServerError, match="does not come to listen"):
        process("sleeps").start()


def test_an_engine_that_does_not_stop_is_killed(process: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that does not end when it is told to is killed."""
    monkeypatch.setattr(embedded_process, "_STOP_SECONDS", 0.2)
    engine = process("is stubborn")
    engine.start()
    engine.stop()
    assert engine.code == -9


def test_a_set_up_that_is_refused_is_an_error(folder: Folder, replica_set: MongodServer) -> None:
    """A server that does not know our key is an error that names the log, and nothing of the key."""
    with pytest.raises(EmbeddedServerError, match=r"refused its set-up \(OperationFailure\).*engine\.log") as refused:
        set_up("mongod", replica_set.port, folder, lambda: True)
    assert folder.secret(folder.key_file) not in str(refused.value)


@pytest.mark.parametrize(
    ("lives", "patience", "recovers"), [(True, 60.0, True), (False, 60.0, False), (True, 0.0, False)]
)
def test_a_set_up_survives_a_closed_connection(
    folder: Folder,
    auth_server: MongodServer,
    monkeypatch: pytest.MonkeyPatch,
    lives: bool,
    patience: float,
    recovers: bool,
) -> None:
    """A server that closes the connection during its set-up is asked again, while it lives and time is left."""
    monkeypatch.setattr(embedded_setup, "_PATIENCE", patience)
    folder.key_file.write_text(auth_server.key)
    closing = {"failCommands": ["replSetGetConfig"], "closeConnection": True}
    client: MongoClient[dict[str, object]]
    with MongoClient(auth_server.uri) as client:
        client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=closing)
        try:
            if recovers:
                set_up("mongod", auth_server.port, folder, lambda: lives)
                with MongoClient(folder.uri(auth_server.port)) as user:
                    assert user.asyncmem.things.count_documents({}) == 0
                client.admin.command("dropUser", "asyncmem")
            else:
                with pytest.raises(EmbeddedServerError, match=r"refused its set-up \(AutoReconnect\)"):
                    set_up("mongod", auth_server.port, folder, lambda: lives)
        finally:
            client.admin.command("configureFailPoint", "failCommand", mode="off")


def test_a_mongod_that_does_not_know_itself_yet_is_waited_for(folder: Folder, auth_server: MongodServer) -> None:
    """A mongod that served before, and says that it has no replica set yet, is asked again, not made a new one."""
    folder.key_file.write_text(auth_server.key)
    folder.begin_data()
    folder.finish_data("mongod")
    not_yet = {"failCommands": ["replSetGetConfig"], "errorCode": 94}
    client: MongoClient[dict[str, object]]
    with MongoClient(auth_server.uri) as client:
        client.admin.command("configureFailPoint", "failCommand", mode={"times": 2}, data=not_yet)
        waited: list[bool] = []
        set_up("mongod", auth_server.port, folder, lambda: waited.append(True) or True)
        client.admin.command("dropUser", "asyncmem")
    assert len(waited) == 2


def test_a_stranger_among_the_users_is_an_error(folder: Folder, standalone_uri: str) -> None:
    """A user that somebody else made while the server was not secured is noticed."""
    (_, port), *_ = parse_uri(standalone_uri)["nodelist"]
    make_first_users("secantus", port, folder)
    try:
        with pytest.raises(EmbeddedServerError, match="another process made a database user"):
            check_users("secantus", port, folder)
    finally:
        client: MongoClient[dict[str, object]]
        with MongoClient(standalone_uri) as client:
            client.admin.command("dropUser", "supervisor")
