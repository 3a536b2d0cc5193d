"""Joining those who use an embedded server, starting it if it does not run; blocking, for a worker thread."""

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from ..errors import AsyncMemError, EmbeddedServerError
from .embedded_engines import check_engine, wanted_engine
from .embedded_folder import EngineName, Folder, ServerRecord, folder_at, folder_error
from .embedded_locks import FileLock, Mode, is_held

_TICK = 0.02
_STOP_SECONDS = 30.0
_STRIKES = 3
_ROOT = Path(__file__).resolve().parents[2]


class AbandonedError(Exception):
    """Nobody waits for the opening any more."""


class Lease:
    """The right to use a folder's server, which runs as long as somebody has one."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._lock = FileLock(folder.users_lock)
        self._pid = os.getpid()

    def take(self) -> bool:
        """Take it, without waiting. Not possible while the server is being stopped."""
        return self._lock.take(Mode.SHARED)

    def give_up(self) -> bool:
        """Give it up, without waiting. ``False`` in a forked process, whose parent has the lease."""
        if self._pid != os.getpid():
            return False
        self._lock.release()
        return True


@dataclass(frozen=True)
class Opened:
    """What an opening gives.

    Attributes:
        lease: the right to use the server.
        engine: what serves.
        uri: the server's address, with the password.
    """

    lease: Lease
    engine: EngineName
    uri: str = field(repr=False)


class Opening:
    """One attempt to get a lease and a server. :meth:`run` blocks; :meth:`abandon` ends it, from another thread.

    Args:
        path: the folder, or ``None`` for the user's own.
        timeout: how long it may take.
    """

    def __init__(self, path: Path | None, timeout: timedelta) -> None:
        self._path = path
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout.total_seconds()
        self._abandoned = threading.Event()
        self._guard = threading.Lock()
        self._lease: Lease | None = None

    def run(self) -> Opened:
        """A lease and its server.

        Raises:
            AbandonedError: nobody waits any more.
            ConfigurationError: what the environment asks for does not exist, or is not installed.
            EmbeddedServerError: the folder can't be used, or the server does not start.
        """
        folder = folder_at(self._path, os.environ)
        folder.prepare()
        lease = Lease(folder)
        try:
            check_engine(folder.path, folder.engine(), wanted_engine(os.environ))
            opened = self._reach(lease)
            self._hand_over(lease)
        except OSError as error:
            lease.give_up()
            raise folder_error(error, folder.path) from error
        except BaseException:
            lease.give_up()
            raise
        return opened

    def _hand_over(self, lease: Lease) -> None:
        with self._guard:
            if self._abandoned.is_set():
                raise AbandonedError
            self._lease = lease

    def abandon(self) -> None:
        """End it, and give the lease up if there is one already."""
        with self._guard:
            self._abandoned.set()
            if self._lease is not None:
                self._lease.give_up()

    def _reach(self, lease: Lease) -> Opened:
        folder = lease.folder
        while not lease.take():
            self._wait(folder, "the last one is still being stopped")
        while True:
            server, engine = running_server(folder), folder.engine()
            if server is not None and engine is not None:
                return Opened(lease, engine, folder.uri(server.port))
            if not is_held(folder.supervisor_lock, Mode.SHARED):
                self._start_supervisor(folder)
            self._wait(folder, "it is still starting")

    def _start_supervisor(self, folder: Folder) -> None:
        folder.trim_logs()
        with (
            folder.supervisor_log.open("ab") as log,
            subprocess.Popen(  # noqa: S603  our own program
                [sys.executable, "-P", "-m", "asyncmem.store.supervisor", str(folder.path)],
                env={**os.environ, "PYTHONPATH": python_path(os.environ.get("PYTHONPATH"))},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            ) as launcher,
        ):
            failure = self._read_report(folder, launcher)
        if failure is not None:
            while is_held(folder.supervisor_lock, Mode.SHARED):
                self._wait(folder, str(failure))
            raise failure

    def _read_report(self, folder: Folder, launcher: "subprocess.Popen[bytes]") -> AsyncMemError | None:
        from .supervisor import read_report

        pipe = launcher.stdout
        assert pipe is not None
        while not select.select([pipe], [], [], 0)[0]:
            self._wait(folder, "it is still starting")
        line = pipe.readline()
        if not line:
            raise EmbeddedServerError(
                f"the embedded server's supervisor ended without a word; its log is {folder.supervisor_log}"
            )
        return read_report(line)

    def _wait(self, folder: Folder, what_for: str) -> None:
        if self._abandoned.wait(_TICK):
            raise AbandonedError
        if time.monotonic() > self._deadline:
            raise EmbeddedServerError(
                f"no embedded server after {self._timeout.total_seconds():g} s: {what_for}. Its logs are "
                f"{folder.supervisor_log} and {folder.engine_log}",
                retryable=True,
            )


def running_server(folder: Folder) -> ServerRecord | None:
    """The server that serves the folder now and is ready, if there is one."""
    if not is_held(folder.supervisor_lock, Mode.SHARED):
        return None
    server = folder.server()
    # A supervisor that is just starting has not yet removed what one that was killed wrote.
    return server if server is not None and server.ready and _is_alive(server.supervisor) else None


def wait_until_down(folder: Folder) -> None:
    """Wait until the server is gone, for a while; not at all if somebody else uses it."""
    deadline = time.monotonic() + _STOP_SECONDS
    strikes = 0
    while strikes < _STRIKES and time.monotonic() < deadline and is_held(folder.supervisor_lock, Mode.SHARED):
        # Shared with others: in use. Free: its supervisor is about to notice. Held alone: it is being stopped.
        in_use = is_held(folder.users_lock, Mode.EXCLUSIVE) and not is_held(folder.users_lock, Mode.SHARED)
        strikes = strikes + 1 if in_use else 0
        time.sleep(_TICK)


def python_path(inherited: str | None) -> str:
    """The module search path with which another Python finds this very package."""
    return os.pathsep.join(filter(None, [inherited, str(_ROOT)]))


def _is_alive(pid: int) -> bool:
    # A process of that id that we may not signal is not our supervisor either.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, 0)
        return True
    return False
