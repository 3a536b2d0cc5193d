"""From what ``db=`` may be to a database that answers."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import pymongo
import pymongo.database
from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient, ReadPreference
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.driver_info import DriverInfo
from pymongo.errors import ConfigurationError as MongoConfigurationError
from pymongo.write_concern import WriteConcern

from ..errors import ConfigurationError
from ..settings import Settings
from .documents import Database, Row
from .embedded import open_embedded
from .translate import translated

CHOICES = (
    'pass db="mongodb://host:27017/name", db="embedded" (a server of your own, started for you), '
    "or a PyMongo async client or database; or set ASYNCMEM_DB"
)
_SAFE = WriteConcern("majority", j=True)
_BOOT = timedelta(seconds=30)
"""What an embedded server may take to start, on top of answering."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the server can do, as it said when it was first asked.

    Attributes:
        version: the server's version, such as ``(6, 0, 5)``.
        transactions: it takes transactions and change streams (replica sets and sharded clusters do).
    """

    version: tuple[int, ...]
    transactions: bool


@dataclass(frozen=True, slots=True)
class Connection:
    """A database that answered, and how to let go of it."""

    database: Database
    capabilities: Capabilities
    close: Callable[[], Awaitable[None]]


async def connect(db: object, settings: Settings) -> Connection:
    """Connect to what ``db=`` names, and ask the server what it can do.

    Raises:
        ConfigurationError: ``db`` can't be used.
        StoreError: no server answers, or it refuses the user.
    """
    held = await _hold(db if db is not None else os.environ.get("ASYNCMEM_DB"), settings)
    try:
        safe = _with_our_options(held.choose(held.client))
        return Connection(safe, await _probe(safe, settings), held.close)
    except BaseException:
        await held.close()
        raise


async def _nothing() -> None:
    """What closing a client that was handed in does."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A client, which of its databases is meant, and how to let go of it."""

    client: AsyncMongoClient[Row]
    choose: Callable[[AsyncMongoClient[Row]], Database]
    close: Callable[[], Awaitable[None]]


async def _hold(db: object, settings: Settings) -> _Held:
    match db:
        case None:
            raise ConfigurationError(f"no database is named: {CHOICES}")
        case "embedded:":
            raise ConfigurationError('db="embedded:" names no folder: put one behind the colon, or leave the colon out')
        case str() if (db == "embedded" or db.startswith("embedded:")) and "\0" not in db:
            return await _embedded(db.removeprefix("embedded").removeprefix(":"), settings)
        case str() if db.startswith(("mongodb://", "mongodb+srv://")):
            client = await _client(host=db)
            return _Held(client, _default_database, client.close)
        case AsyncDatabase():
            given = cast("Database", db)
            return _Held(given.client, lambda _: given, _nothing)
        case AsyncMongoClient():
            return _Held(cast("AsyncMongoClient[Row]", db), _default_database, _nothing)
        case _ if type(db).__module__.split(".")[0] == "motor":
            return await _from_motor(db)
        case str():
            raise ConfigurationError(f"db= is a str that is neither a MongoDB URI nor 'embedded': {CHOICES}")
        case _:
            raise ConfigurationError(f"db= can't be a {type(db).__name__}: {CHOICES}")


async def _embedded(path: str, settings: Settings) -> _Held:
    server = await open_embedded(Path(path) if path else None, timeout=settings.open_timeout + _BOOT)
    try:
        client = await _client(host=server.uri)
    except BaseException:
        await server.release()
        raise

    async def close() -> None:
        await client.close()
        await server.release()

    return _Held(client, _default_database, close)


async def _client(**options: Any) -> AsyncMongoClient[Row]:
    """A client of our own, made in a worker thread: making one reads files (certificates, container marks)."""
    make = partial(AsyncMongoClient[Row], **options, driver=DriverInfo("asyncmem"))
    try:
        with translated():
            return await anyio.to_thread.run_sync(make)
    except (
        ValueError,
        TypeError,
        OSError,
    ) as error:  # what PyMongo doesn't wrap of files, ports and values
        raise ConfigurationError(f"db= can't be used ({type(error).__name__}): check the URI") from None


def _default_database(client: AsyncMongoClient[Row]) -> Database:
    try:
        return client.get_default_database()
    except MongoConfigurationError:
        raise ConfigurationError(
            "the URI names no database: put its name behind the host, as in mongodb://localhost:27017/app, "
            'or pass a database, as in client["app"]'
        ) from None


async def _from_motor(db: Any) -> _Held:
    """A PyMongo client with the options of a Motor client. Motor's own can't serve Beanie 2."""
    delegate: Any = getattr(db, "delegate", None)
    given = isinstance(delegate, pymongo.database.Database)
    sync: Any = cast("Any", delegate).client if given else delegate
    options: object = getattr(sync, "_init_kwargs", None)
    if not isinstance(options, dict):
        raise ConfigurationError(f"a Motor {type(db).__name__} of this version can't be taken over: {CHOICES}")
    client = await _client(**{k: v for k, v in cast("dict[str, Any]", options).items() if k != "driver"})

    def same_database(client: AsyncMongoClient[Row]) -> Database:
        concerns = {name: getattr(delegate, name) for name in ("read_preference", "write_concern", "read_concern")}
        return client.get_database(delegate.name, **concerns)

    return _Held(client, same_database if given else _default_database, client.close)


def _with_our_options(database: Database) -> Database:
    """Acknowledged by a majority and journaled, unless the caller configured a write concern of their own.

    Reads go to the primary: a manager must see what it has just written.
    """
    concern = database.write_concern
    if concern.document and not concern.acknowledged:
        raise ConfigurationError("a write concern of w=0 would report failed writes as stored: use w='majority'")
    return database.with_options(
        codec_options=CodecOptions(),
        read_preference=ReadPreference.PRIMARY,
        write_concern=concern if concern.document else _SAFE,
    )


async def _probe(database: Database, settings: Settings) -> Capabilities:
    patience = settings.open_timeout.total_seconds()
    with translated():
        # what watches the servers begins here, outside of any timeout: PyMongo 4.13 would let it inherit that for good
        await database.client.aconnect()
    # to find a server at all, PyMongo's own patience counts too, where the URI or the client makes it shorter
    with translated(), pymongo.timeout(min(patience, database.client.options.server_selection_timeout)):
        hello = await database.client.admin.command("hello")
    with translated(), pymongo.timeout(patience):
        build = await database.client.admin.command("buildInfo")
        await database.command("ping")
    version = tuple(int(part) for part in str(build["version"]).split(".")[:3] if part.isdecimal())
    return Capabilities(version, "setName" in hello or hello.get("msg") == "isdbgrid")
