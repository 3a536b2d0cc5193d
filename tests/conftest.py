"""Fixtures of the whole suite: servers, fresh databases, and the watch over calls that block the event loop."""

import inspect
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import hypothesis
import pytest
from blockbuster import BlockBuster

import asyncmem
from asyncmem.store.embedded import open_embedded
from asyncmem.store.embedded_folder import Folder

from .servers import Credentials, MongodServer, drop_database, running_mongod, server_folder

SERVER_KINDS = ("replica_set", "standalone", "embedded")
_URI_FIXTURES = ("server_uri", "replica_set_uri", "standalone_uri", "embedded_uri")

_PACKAGE = str(Path(asyncmem.__file__).parent) + os.sep
# Blocks the loop in places that only its authors can mend; asyncmem's own calls around it are still watched.
_MAY_BLOCK = tuple(
    f"{os.sep}site-packages{os.sep}{name}{os.sep}" for name in ("litellm", "openai", "pymongo", "tiktoken")
)

# no test's outcome depends on how fast the machine is
hypothesis.settings.register_profile("asyncmem", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("fuzz", hypothesis.settings.get_profile("asyncmem"), max_examples=5_000)
hypothesis.settings.load_profile("asyncmem")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Every async test runs on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """asyncmem's code that blocks the event loop raises ``BlockingError`` in the test that ran it."""
    watch = BlockBuster(scanned_modules=[asyncmem])
    # Coverage's tracer takes its own lock out of any frame; asyncmem takes its locks by ``with``: not seen here.
    for name in ("acquire", "acquire_lock"):
        watch.functions.pop(f"threading.Lock.{name}", None)
    for function in watch.functions.values():
        function.can_block_predicate = _also_foreign(function.can_block_predicate)
    watch.activate()
    yield
    watch.deactivate()


def _also_foreign(predicate: Callable[..., bool]) -> Callable[..., bool]:
    def may_block(*args: object, **kwargs: object) -> bool:
        return bool(predicate(*args, **kwargs)) or _is_foreign()

    return may_block


def _is_foreign() -> bool:
    frame = inspect.currentframe()
    while frame is not None:
        filename = frame.f_code.co_filename
        if filename.startswith(_PACKAGE):
            return False
        if any(part in filename for part in _MAY_BLOCK):
            return True
        frame = frame.f_back
    return True


@pytest.fixture(scope="session")
def replica_set() -> Iterator[MongodServer]:
    """The session's replica set of one node. Don't stop it: tests that do start their own."""
    with running_mongod(replica_set=True) as server:
        yield server


@pytest.fixture(scope="session")
def replica_set_uri(request: pytest.FixtureRequest) -> str:
    """A replica set without users: ``ASYNCMEM_TEST_MONGODB_URI``, else the session's own."""
    named = os.environ.get("ASYNCMEM_TEST_MONGODB_URI")
    if named:
        return named
    server: MongodServer = request.getfixturevalue("replica_set")
    return server.uri


@pytest.fixture(scope="session")
def standalone_uri() -> Iterator[str]:
    """A server that is no replica set: no transactions, no change streams."""
    with running_mongod() as server:
        yield server.uri


@pytest.fixture(scope="session")
def auth_server() -> Iterator[MongodServer]:
    """A replica set that asks for a user: ``.uri`` names one, ``.anonymous_uri`` none."""
    with running_mongod(replica_set=True, credentials=Credentials()) as server:
        yield server


@pytest.fixture(scope="session")
def embedded_uri() -> Iterator[str]:
    """An embedded server, on the engine that is no MongoDB: SecantusDB."""
    root = server_folder()
    folder = Folder(root)
    folder.prepare()
    folder.config_file.write_text("[storage]\nttl_sweep_seconds = 1.0\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASYNCMEM_EMBEDDED_ENGINE", "secantus")
        server = anyio.run(partial(open_embedded, root, timeout=timedelta(minutes=3)))
    yield server.uri
    anyio.run(server.release)
    shutil.rmtree(root)


@pytest.fixture(params=SERVER_KINDS, scope="session")
def server_uri(request: pytest.FixtureRequest) -> str:
    """Each kind of server in turn."""
    uri: str = request.getfixturevalue(f"{request.param}_uri")
    return uri


@pytest.fixture
def database_name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A name that no database has; dropped afterwards on every server that the test asked for."""
    name = f"asyncmem_test_{uuid.uuid4().hex[:12]}"
    uris: list[str] = [request.getfixturevalue(f) for f in _URI_FIXTURES if f in request.fixturenames]
    if "auth_server" in request.fixturenames:
        server: MongodServer = request.getfixturevalue("auth_server")
        uris.append(server.uri)
    yield name
    for uri in uris:
        drop_database(uri, name)
