"""The embedded server on real processes: who starts it, who shares it, what it survives, and that it goes."""

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from pymongo import AsyncMongoClient, MongoClient, WriteConcern
from pymongo.errors import OperationFailure, PyMongoError
from pymongo.uri_parser import parse_uri

import asyncmem
from asyncmem.errors import (
    ConfigurationError,
    EmbeddedServerError,
    EmbeddedUnavailableError,
)
from asyncmem.store.embedded import EmbeddedServer, open_embedded
from asyncmem.store.embedded_folder import Folder, ServerRecord
from asyncmem.store.embedded_locks import FileLock, Mode, is_held
from asyncmem.store.embedded_opening import AbandonedError, Opening
from tests.servers import find_mongod, server_folder

pytestmark = pytest.mark.anyio

ENGINES = ("mongod", "secantus")
SAFE = WriteConcern("majority", j=True)
Client = AsyncMongoClient[dict[str, Any]]

# A program that uses the server: says its address, and leaves when it is told to.
PROGRAM = """
import json, sys
import anyio
from pathlib import Path
from asyncmem.store.embedded import open_embedded

async def main():
    server = await open_embedded(Path(sys.argv[1]))
    print(json.dumps(server.uri), flush=True)
    await anyio.to_thread.run_sync(sys.stdin.readline)
    await server.release()
    print("released", flush=True)

anyio.run(main)
"""


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """A folder for this module's servers; no process may be left in it at the end."""
    folder = server_folder()
    yield folder
    wait_until(lambda: not processes_in(folder))
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def made(root: Path) -> Callable[[str], Path]:
    """A folder that the engine has served, with row 1 in it, to be copied: that is faster than to make one."""

    def make(engine: str) -> Path:
        folder = root / engine
        if not folder.exists():
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("ASYNCMEM_EMBEDDED_ENGINE", engine)
                anyio.run(fill, folder)
        return folder

    return make


@pytest.fixture(scope="module")
def running(root: Path, made: Callable[[str], Path]) -> Iterator[Path]:
    """A folder whose server, a mongod, runs and is used by us; not to be stopped."""
    folder = root / "running"
    shutil.copytree(made("mongod"), folder)
    server = anyio.run(open_embedded, folder)
    yield folder
    kill_all_in(folder)
    anyio.run(server.release)


@pytest.fixture
def path(root: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that does not exist yet; what still runs in it after a test that failed is ended."""
    folder = root / request.node.name.replace("[", "-").strip("]")
    yield folder
    kill_all_in(folder)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each engine in turn."""
    monkeypatch.setenv("ASYNCMEM_EMBEDDED_ENGINE", request.param)
    return str(request.param)


@pytest.fixture
def used_path(path: Path, engine: str, made: Callable[[str], Path]) -> Path:
    """A folder that the engine has served before."""
    shutil.copytree(made(engine), path)
    return path


@pytest.fixture
def mongod_path(path: Path, made: Callable[[str], Path]) -> Path:
    """A folder that mongod has served before."""
    shutil.copytree(made("mongod"), path)
    return path


async def fill(folder: Path) -> None:
    server = await open_embedded(folder)
    await anyio.to_thread.run_sync(put_in, server.uri, 1)
    await server.release()


@asynccontextmanager
async def opened(folder: Path, *, gently: bool = False) -> AsyncIterator[EmbeddedServer]:
    """A server that is killed afterwards, which takes a second less than to end it in order."""
    server = await open_embedded(folder)
    try:
        yield server
    finally:
        if not gently:
            kill_all_in(folder)
        await server.release()


@contextlib.contextmanager
def program(folder: Path) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)],
        env={**os.environ, "PYTHONPATH": str(Path(asyncmem.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def leave(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert said(process) == "released\n"
    assert process.wait() == 0


def command_lines() -> dict[int, str]:
    lines: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return lines


def processes_in(folder: Path) -> list[int]:
    """The server's processes: engine and supervisor."""
    return [pid for pid, line in command_lines().items() if str(folder) in line and "open_embedded" not in line]


def kill_all_in(folder: Path) -> None:
    for pid in processes_in(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def open_descriptors(file: Path) -> int:
    """How often this process has the file open."""
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            count += descriptor.readlink() == file
    return count


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def read_record(folder: Path) -> ServerRecord:
    found = Folder(folder).server()
    assert found is not None
    return found


async def record(folder: Path) -> ServerRecord:
    return await anyio.to_thread.run_sync(read_record, folder)


def port_of(uri: str) -> int:
    (node,) = parse_uri(uri)["nodelist"]
    return int(node[1])


def is_listening(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def closing_listener(port: int) -> Iterator[None]:
    """Somebody else's server, which has nothing to say to us."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                listener.accept()[0].close()

    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def put_in(uri: str, *ids: int) -> None:
    client: MongoClient[dict[str, Any]]
    with MongoClient(uri) as client:
        things = client.get_default_database().get_collection("things", write_concern=SAFE)
        things.insert_many([{"_id": i} for i in ids])


def ids_in(uri: str) -> list[int]:
    client: MongoClient[dict[str, Any]]
    with MongoClient(uri) as client:
        return sorted(d["_id"] for d in client.get_default_database().things.find())


async def test_a_new_folder_becomes_a_private_server(root: Path, engine: str) -> None:
    """The first opening makes a server that only its password opens, seen by nobody, gone after the release."""
    path = root / engine
    server = await open_embedded(path)
    assert server.engine == engine
    assert server.path == path
    await anyio.to_thread.run_sync(put_in, server.uri, 1)

    parts = parse_uri(server.uri)
    assert (parts["username"], parts["database"]) == ("asyncmem", "asyncmem")
    assert parts["nodelist"][0][0] == "127.0.0.1"
    assert parts["password"] not in repr(server)
    stranger = f"mongodb://127.0.0.1:{port_of(server.uri)}/asyncmem?directConnection=true"
    with pytest.raises(OperationFailure) as refused:
        await anyio.to_thread.run_sync(ids_in, stranger)
    assert refused.value.code == 13
    with pytest.raises(OperationFailure) as refused:
        await anyio.to_thread.run_sync(ids_in, server.uri.replace(parts["password"], "wrong"))
    assert refused.value.code == 18

    secrets = {(path / "password").read_text(), (path / "key").read_text()}
    assert parts["password"] in secrets
    assert not [line for line in command_lines().values() if any(secret in line for secret in secrets)]
    assert not [
        log for log in path.glob("*.log") if any(secret in log.read_text(errors="replace") for secret in secrets)
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((path / "password").stat().st_mode) == 0o600
    assert stat.S_IMODE((path / "key").stat().st_mode) == 0o600

    await server.release()
    await server.release()
    assert processes_in(path) == []
    assert not is_listening(port_of(server.uri))


async def test_processes_share_a_server(used_path: Path, engine: str) -> None:
    """Two processes get one server; it stays when the first leaves, and goes when the last is killed."""
    with program(used_path) as other:
        uri = json.loads(await anyio.to_thread.run_sync(said, other))
        server = await open_embedded(used_path)
        assert server.uri == uri
        await server.release()
        await anyio.to_thread.run_sync(put_in, uri, 2)
        assert await anyio.to_thread.run_sync(ids_in, uri) == [1, 2]
        other.kill()
        wait_until(lambda: not processes_in(used_path))


async def test_openings_at_once_start_one_server(root: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes and two tasks that open a new folder at the same moment get the same one server."""
    monkeypatch.setenv("ASYNCMEM_EMBEDDED_ENGINE", "mongod")
    servers: list[EmbeddedServer] = []

    async def open_one() -> None:
        servers.append(await open_embedded(path))

    with program(path) as first, program(path) as second:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_one)
            tasks.start_soon(open_one)
        uris = {json.loads(said(first)), json.loads(said(second)), *(server.uri for server in servers)}
        assert len(uris) == 1
        assert len(processes_in(path)) == 2
        leave(first)
        leave(second)
    await servers[0].release()
    assert len(processes_in(path)) == 2
    await servers[1].release()
    assert processes_in(path) == []


async def test_a_killed_engine_comes_back_with_every_write(used_path: Path, engine: str) -> None:
    """An engine killed while four tasks write comes back at its address; no acknowledged write is lost."""
    rounds = 3 if engine == "mongod" else 2
    acknowledged: set[int] = set()

    async with opened(used_path) as server, Client(server.uri) as client:
        things = client.get_default_database().get_collection("things", write_concern=SAFE)

        async def write(start: int) -> None:
            number = start
            while True:
                with contextlib.suppress(PyMongoError):
                    await things.insert_one({"_id": number})
                    acknowledged.add(number)
                number += 4

        async with anyio.create_task_group() as tasks:
            for start in range(4):
                tasks.start_soon(write, start)
            for _ in range(rounds):
                before = len(acknowledged)
                while len(acknowledged) < before + 100:
                    await anyio.sleep(0.01)
                os.kill((await record(used_path)).engine, signal.SIGKILL)
            before = len(acknowledged)
            while len(acknowledged) < before + 20:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        stored = {document["_id"] async for document in things.find()}
    assert acknowledged - stored == set()
    assert len(acknowledged) > rounds * 100


async def test_a_killed_supervisor_is_replaced(mongod_path: Path) -> None:
    """The engine dies with a supervisor that is killed; the next opening heals it at the same address."""
    async with opened(mongod_path) as first:
        killed = await record(mongod_path)
        os.kill(killed.supervisor, signal.SIGKILL)
        wait_until(lambda: not processes_in(mongod_path))
        assert await record(mongod_path) == killed
        async with opened(mongod_path) as second:
            assert second.uri == first.uri
            assert (await record(mongod_path)).supervisor != killed.supervisor
            assert await anyio.to_thread.run_sync(ids_in, first.uri) == [1]


async def test_an_engine_that_was_left_alone_is_ended(mongod_path: Path) -> None:
    """An engine that outlived its supervisor is ended, and what was written about it is not believed."""
    lock = FileLock(mongod_path / "engine.lock")
    assert lock.take(Mode.EXCLUSIVE)
    with subprocess.Popen(["sleep", "30"], pass_fds=[lock.descriptor()]) as orphan:
        os.close(lock.descriptor())
        left = ServerRecord(os.getpid(), orphan.pid, 1, ready=True)
        await anyio.to_thread.run_sync(Folder(mongod_path).write_server, left)
        (mongod_path / "port").write_text("no number")
        async with opened(mongod_path, gently=True) as server:
            assert orphan.wait() == -signal.SIGTERM
            assert port_of(server.uri) == (await record(mongod_path)).port != 1


async def test_a_taken_port_is_left_to_its_owner(mongod_path: Path) -> None:
    """When the last port is taken, the server moves: data, transactions and change streams work as before."""
    last = int((mongod_path / "port").read_text())
    with closing_listener(last):
        async with opened(mongod_path, gently=True) as moved, Client(moved.uri) as client:
            assert port_of(moved.uri) != last
            things = client.get_default_database().things
            async with await things.watch() as changes:
                async with client.start_session() as session, await session.start_transaction():
                    await things.insert_one({"_id": 2}, session=session)
                assert (await changes.next())["documentKey"] == {"_id": 2}
            assert await things.distinct("_id") == [1, 2]


async def test_a_lost_password_is_replaced(mongod_path: Path) -> None:
    """A folder whose password file was deleted gets a new password, and keeps its data."""
    old = (mongod_path / "password").read_text()
    (mongod_path / "password").unlink()
    async with opened(mongod_path, gently=True) as server:
        assert old not in server.uri
        assert await anyio.to_thread.run_sync(ids_in, server.uri) == [1]


async def test_a_folder_belongs_to_its_engine(mongod_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that one engine made is not opened by the other; the error names both."""
    monkeypatch.setenv("ASYNCMEM_EMBEDDED_ENGINE", "secantus")
    with pytest.raises(EmbeddedServerError, match=r"made by MongoDB's mongod.* asks for SecantusDB"):
        await open_embedded(mongod_path)
    assert processes_in(mongod_path) == []


async def test_no_engine_says_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the engine asked for does not run, the error says so, and nothing is left behind."""
    monkeypatch.setenv("ASYNCMEM_EMBEDDED_ENGINE", "mongod")
    monkeypatch.setenv("ASYNCMEM_MONGOD", "/nowhere/mongod")
    with pytest.raises(EmbeddedUnavailableError, match="ASYNCMEM_MONGOD is '/nowhere/mongod', which does not run"):
        await open_embedded(path)
    wait_until(lambda: not processes_in(path))
    monkeypatch.setenv("ASYNCMEM_EMBEDDED_ENGINE", "oracle")
    with pytest.raises(ConfigurationError, match="may be mongod or secantus"):
        await open_embedded(path)


async def test_an_engine_that_does_not_start_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed first start names the engine's log, and the folder is as good as new for the next one."""
    path.mkdir()
    broken = path.parent / "broken-mongod"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] || exit 3\n')
    broken.chmod(0o755)
    monkeypatch.setenv("ASYNCMEM_EMBEDDED_ENGINE", "mongod")
    monkeypatch.setenv("ASYNCMEM_MONGOD", str(broken))
    with pytest.raises(EmbeddedServerError, match=r"mongod ended with exit code 3 .*engine\.log"):
        await open_embedded(path)
    assert not (path / "data").exists()
    monkeypatch.delenv("ASYNCMEM_MONGOD")
    async with opened(path) as server:
        assert server.engine == "mongod"


async def test_an_engine_that_keeps_dying_is_given_up(mongod_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor starts an engine again a few times only; then it ends, and the next opening tries anew."""
    stop = mongod_path.parent / "stop"
    brittle = mongod_path.parent / "brittle-mongod"
    brittle.write_text(f'#!/bin/sh\n[ -e "{stop}" ] && exit 3\nexec "{find_mongod()}" "$@"\n')
    brittle.chmod(0o755)
    monkeypatch.setenv("ASYNCMEM_MONGOD", str(brittle))
    async with opened(mongod_path):
        stop.touch()
        os.kill((await record(mongod_path)).engine, signal.SIGKILL)
        wait_until(lambda: not processes_in(mongod_path))
        assert "died 6 times within a minute" in (mongod_path / "supervisor.log").read_text()
        stop.unlink()
        async with opened(mongod_path):
            assert len(processes_in(mongod_path)) == 2


async def test_a_supervisor_that_is_told_to_end_ends_in_order(mongod_path: Path) -> None:
    """SIGTERM stops the server in order, whoever uses it."""
    async with opened(mongod_path) as server:
        os.kill((await record(mongod_path)).supervisor, signal.SIGTERM)
        wait_until(lambda: not processes_in(mongod_path))
        assert '"exitCode":0' in (mongod_path / "engine.log").read_text()
        assert not is_listening(port_of(server.uri))


async def test_a_supervisor_that_dies_at_once_is_reported(mongod_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervisor that can't even start is an error that names its log."""
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with pytest.raises(EmbeddedServerError, match=r"ended without a word; its log is .*supervisor\.log"):
        await open_embedded(mongod_path)


def is_asked_for(path: Path) -> bool:
    return True


def has_a_supervisor(path: Path) -> bool:
    return bool(processes_in(path))


def has_an_engine(path: Path) -> bool:
    return (path / "server.json").exists()


@pytest.mark.parametrize("moment", [is_asked_for, has_a_supervisor, has_an_engine])
async def test_a_cancelled_opening_leaves_nothing(mongod_path: Path, moment: Callable[[Path], bool]) -> None:
    """An opening that is cancelled, early or late, leaves no process and no right to use the server."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_embedded, mongod_path)
        await anyio.sleep(0)
        while not moment(mongod_path):
            await anyio.sleep(0.005)
        tasks.cancel_scope.cancel()
    wait_until(lambda: not processes_in(mongod_path))
    assert open_descriptors(mongod_path / "users.lock") == 0


async def test_an_opening_that_was_given_up_holds_nothing(running: Path) -> None:
    """An opening that is given up just before, or just after, it got the server, does not keep it."""
    early, late = (Opening(running, timedelta(seconds=10)) for _ in range(2))
    early.abandon()
    with pytest.raises(AbandonedError):
        await anyio.to_thread.run_sync(early.run)
    await anyio.to_thread.run_sync(late.run)
    assert open_descriptors(running / "users.lock") == 2
    late.abandon()
    assert open_descriptors(running / "users.lock") == 1


async def test_a_second_supervisor_leaves_at_once(running: Path) -> None:
    """A supervisor that finds another one at work has nothing to report and ends."""
    before = await record(running)
    command = [sys.executable, "-m", "asyncmem.store.supervisor", str(running)]
    rival = await anyio.run_process(command, cwd=Path(asyncmem.__file__).parents[1])
    assert rival.stdout == b"{}\n"
    assert await record(running) == before
    assert len(processes_in(running)) == 2


async def test_an_opening_that_takes_too_long_says_so(mongod_path: Path) -> None:
    """A time-out is an error that may go away, names the logs, and leaves nothing."""
    with pytest.raises(EmbeddedServerError, match=r"no embedded server after 0\.2 s.*engine\.log") as late:
        await open_embedded(mongod_path, timeout=timedelta(seconds=0.2))
    assert late.value.retryable
    wait_until(lambda: not processes_in(mongod_path))


async def test_a_server_that_is_being_stopped_is_not_joined(mongod_path: Path) -> None:
    """A release that is cancelled has released; who opens while the server is being stopped gets a new one."""
    server = await open_embedded(mongod_path)
    supervisor = (await record(mongod_path)).supervisor
    with anyio.move_on_after(0.1) as scope:
        await server.release()
    assert scope.cancelled_caught
    wait_until(lambda: is_held(mongod_path / "users.lock", Mode.SHARED))
    async with opened(mongod_path):
        assert (await record(mongod_path)).supervisor != supervisor
        assert len(processes_in(mongod_path)) == 2


def no_place(path: Path) -> Path:
    return Path("/proc/asyncmem")


def a_file(path: Path) -> Path:
    path.touch()
    return path


def a_thesis(path: Path) -> Path:
    path.mkdir()
    (path / "thesis.txt").touch()
    return path


def damaged(path: Path) -> Path:
    Folder(path).prepare()
    (path / "engine").mkdir()
    return path


def blocked(path: Path) -> Path:
    Folder(path).prepare()
    (path / "data").touch()
    return path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (no_place, "can't use its folder /proc/asyncmem"),
        (a_file, "is a file"),
        (a_thesis, "holds other things"),
        (damaged, "Is a directory"),
        (blocked, "is a file"),
    ],
)
async def test_a_folder_that_cannot_be_used_is_an_error(path: Path, make: Callable[[Path], Path], message: str) -> None:
    """A folder that can't be made, is a file, or holds other things is refused with what to do, and left alone."""
    folder = await anyio.to_thread.run_sync(make, path)
    with pytest.raises(EmbeddedServerError, match=message) as refused:
        await open_embedded(folder)
    assert "embedded:PATH" in str(refused.value)
    assert not (folder / "thesis.txt").exists() or os.listdir(folder) == ["thesis.txt"]


async def test_windows_has_no_embedded_server(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows the error says what to do instead."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(ConfigurationError, match="On Windows, install MongoDB"):
        await open_embedded(path)
