"""What the supervisor tells a server that it started: its replica set and its users."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError

from ..errors import EmbeddedServerError
from .embedded_engines import REPLICA_SET
from .embedded_folder import USER, EngineName, Folder

_ROLES = ["readWriteAnyDatabase", "dbAdminAnyDatabase", "clusterMonitor"]

# The supervisor's own user: for mongod the one that the key file stands for, which exists before any other.
_KEEPERS = {"mongod": ("__system", "local"), "secantus": ("supervisor", "admin")}
_NOT_INITIATED = 94
_CONNECT_TIMEOUT = 3_000
# A mongod that moved to another port first asks whoever listens at the old one, for up to 30 s.
_TIMEOUT = 60_000
_PATIENCE = 60.0

Client = MongoClient[dict[str, Any]]


def set_up(engine: EngineName, port: int, folder: Folder, go_on: Callable[[], bool]) -> None:
    """Make the server one that takes writes from ``USER``, whatever it was before.

    Args:
        engine: what serves.
        port: where it listens.
        folder: knows the passwords.
        go_on: waits a little and tells whether the server still runs; may raise to give up.

    Raises:
        EmbeddedServerError: the server refused, or went away.
    """
    deadline = time.monotonic() + _PATIENCE
    with _refusals(folder):
        while True:
            try:
                return _set_up(engine, port, folder, go_on)
            except AutoReconnect:
                # A mongod closes its connections when what it knows of its replica set changes.
                if not go_on() or time.monotonic() > deadline:
                    raise


def _set_up(engine: EngineName, port: int, folder: Folder, go_on: Callable[[], bool]) -> None:
    with _connect_as_keeper(engine, port, folder) as client:
        if engine == "mongod":
            _name_ourselves(client, port, go_on, fresh=folder.engine() is None)
        while not client.admin.command("hello")["isWritablePrimary"]:
            go_on()
        password = folder.secret(folder.password_file)
        if not _accepts(port, password):
            _give_password(client, password)


def make_first_users(engine: EngineName, port: int, folder: Folder) -> None:
    """Make the users of a server that is not secured yet.

    Raises:
        EmbeddedServerError: the server refused, or went away.
    """
    keeper, database = _KEEPERS[engine]
    with _refusals(folder), _connect(port) as client:
        client[database].command("createUser", keeper, pwd=folder.secret(folder.key_file), roles=["root"])


def check_users(engine: EngineName, port: int, folder: Folder) -> None:
    """Check, once the server is secured, that nobody else made a user while it was not.

    Raises:
        EmbeddedServerError: somebody did, or the server refused.
    """
    with _refusals(folder), _connect_as_keeper(engine, port, folder) as client:
        users = {user["user"] for user in client.admin["system.users"].find()}
    if users != {_KEEPERS[engine][0], USER}:
        raise EmbeddedServerError(
            "another process made a database user while the embedded server was set up, try again"
        )


@contextmanager
def _refusals(folder: Folder) -> Generator[None]:
    try:
        yield
    except PyMongoError as error:
        raise EmbeddedServerError(
            f"the embedded server refused its set-up ({type(error).__name__}). Its log is {folder.engine_log}",
            retryable=True,
        ) from error


def _connect_as_keeper(engine: EngineName, port: int, folder: Folder) -> Client:
    keeper, database = _KEEPERS[engine]
    return _connect(port, keeper, folder.secret(folder.key_file), database)


def _connect(port: int, user: str | None = None, password: str | None = None, database: str = "admin") -> Client:
    who: dict[str, Any] = {"username": user, "password": password, "authSource": database} if user else {}
    return MongoClient(
        "127.0.0.1",
        port,
        directConnection=True,
        serverSelectionTimeoutMS=_CONNECT_TIMEOUT,
        socketTimeoutMS=_TIMEOUT,
        **who,
    )


def _name_ourselves(client: Client, port: int, go_on: Callable[[], bool], *, fresh: bool) -> None:
    members = [{"_id": 0, "host": f"127.0.0.1:{port}"}]
    config = _replica_set(client)
    if config is None and fresh:
        client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": members})
        return
    while config is None:
        # It is still finding out whether it is the node that its data speaks of.
        go_on()
        config = _replica_set(client)
    if config["members"][0]["host"] != members[0]["host"]:
        # Source: MongoDB manual, replSetReconfig: a member that isn't primary takes a configuration only by force.
        changed = {**config, "members": members, "version": config["version"] + 1}
        client.admin.command("replSetReconfig", changed, force=True)


def _replica_set(client: Client) -> dict[str, Any] | None:
    try:
        config: dict[str, Any] = client.admin.command("replSetGetConfig")["config"]
    except OperationFailure as error:
        if error.code != _NOT_INITIATED:
            raise
        return None
    return config


def _accepts(port: int, password: str) -> bool:
    try:
        with _connect(port, USER, password, "admin") as client:
            client.admin.command("ping")
    except OperationFailure:
        return False
    return True


def _give_password(client: Client, password: str) -> None:
    known = client.admin.command("usersInfo", USER)["users"]
    client.admin.command("updateUser" if known else "createUser", USER, pwd=password, roles=_ROLES)
