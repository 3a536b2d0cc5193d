"""``db="embedded"``: a server of the user's own, started by the first to open it, ended by the last to leave."""

import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.to_thread

from ..errors import ConfigurationError

if sys.platform != "win32":  # pragma: no branch  these need fcntl
    from .embedded_folder import EngineName
    from .embedded_opening import Lease, Opening, wait_until_down

DEFAULT_TIMEOUT = timedelta(seconds=30)
"""How long opening waits for a server to start."""


@dataclass(frozen=True)
class EmbeddedServer:
    """A running server, and the right to use it.

    Attributes:
        uri: its address, with user, password and database.
        engine: ``"mongod"`` or ``"secantus"``.
        path: its folder.
    """

    uri: str = field(repr=False)
    engine: EngineName
    path: Path
    _lease: Lease = field(repr=False, compare=False)

    async def release(self) -> None:
        """Stop using it. If nobody else does, wait until the server is down. May be called again.

        The right is given up at once, so a cancelled release only means not to wait.
        """
        if self._lease.give_up():
            await anyio.to_thread.run_sync(wait_until_down, self._lease.folder, abandon_on_cancel=True)


async def open_embedded(path: Path | None = None, *, timeout: timedelta = DEFAULT_TIMEOUT) -> EmbeddedServer:
    """The server of a folder, started if nobody uses it yet.

    Args:
        path: the folder. By default ``ASYNCMEM_DATA``, else ``asyncmem/embedded`` in the user's data directory.
        timeout: how long that may take.

    Raises:
        ConfigurationError: this system has no embedded server, or the environment asks for an unknown engine.
        EmbeddedUnavailableError: the engine, or any, is not installed.
        EmbeddedServerError: the folder can't be used, or the server does not start.
    """
    if sys.platform == "win32":
        raise ConfigurationError(
            'db="embedded" needs Linux or macOS. On Windows, install MongoDB and pass db="mongodb://localhost/name"'
        )
    opening = Opening(path, timeout)
    try:
        # A limiter of its own: starting takes long, and must neither hold up nor wait for other worker threads.
        found = await anyio.to_thread.run_sync(opening.run, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    except BaseException:
        opening.abandon()
        raise
    return EmbeddedServer(found.uri, found.engine, found.lease.folder.path, found.lease)
