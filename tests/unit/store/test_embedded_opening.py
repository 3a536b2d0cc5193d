"""How an opening sees whether a server runs."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import asyncmem
from asyncmem.store.embedded import EmbeddedServer
from asyncmem.store.embedded_folder import Folder, ServerRecord
from asyncmem.store.embedded_locks import FileLock, Mode, is_held
from asyncmem.store.embedded_opening import Lease, Opening, python_path, running_server


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder that was prepared."""
    made = Folder(tmp_path)
    made.prepare()
    return made


def test_a_server_runs_when_its_living_supervisor_says_so(folder: Folder) -> None:
    """A record counts when the supervisor's lock is held, its process lives, and the server is ready."""
    ready = ServerRecord(os.getpid(), 1, 5, ready=True)
    folder.write_server(ready)
    assert running_server(folder) is None
    lock = FileLock(folder.supervisor_lock)
    assert lock.take(Mode.EXCLUSIVE)
    assert running_server(folder) == ready
    folder.write_server(ServerRecord(os.getpid(), 1, 5, ready=False))
    assert running_server(folder) is None
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    folder.write_server(ServerRecord(dead.pid, 1, 5, ready=True))
    assert running_server(folder) is None
    folder.forget_server()
    assert running_server(folder) is None
    lock.release()


@pytest.mark.anyio
async def test_a_lease_belongs_to_its_process(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release in a process that was forked from the one that opened does nothing."""
    lease = Lease(folder)
    assert lease.take()
    server = EmbeddedServer("mongodb://", "mongod", folder.path, lease)
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: 1)
        await server.release()
    assert is_held(folder.users_lock, Mode.EXCLUSIVE)
    await server.release()
    assert not is_held(folder.users_lock, Mode.EXCLUSIVE)


@pytest.mark.parametrize("inherited", [None, "", "/first"])
def test_another_python_finds_this_package(inherited: str | None) -> None:
    """The supervisor's Python looks where this package is, after what it inherits."""
    found = python_path(inherited).split(os.pathsep)
    assert found == [*([inherited] if inherited else []), str(Path(asyncmem.__file__).resolve().parents[1])]


def test_who_finds_a_supervisor_starting_waits_for_it(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody else's supervisor is starting the server, none is started: the opening waits until it is ready."""
    lock = FileLock(folder.supervisor_lock)
    assert lock.take(Mode.EXCLUSIVE)
    waits: list[str] = []

    def wait(opening: Opening, at: Folder, what_for: str) -> None:
        waits.append(what_for)
        at.begin_data()
        at.finish_data("mongod")
        at.write_server(ServerRecord(os.getpid(), 1, 27017, ready=True))

    monkeypatch.setattr(Opening, "_wait", wait)
    monkeypatch.setattr(Opening, "_start_supervisor", None)
    opened = Opening(folder.path, timedelta(seconds=5))._reach(Lease(folder))
    assert waits == ["it is still starting"]
    assert opened.engine == "mongod"
    lock.release()
