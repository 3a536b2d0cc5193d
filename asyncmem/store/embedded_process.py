"""The engine's process: started on a free port, watched while it starts, ended in order."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable

from ..errors import EmbeddedServerError
from .embedded_engines import Engine
from .embedded_folder import Folder, ServerRecord

# Below the ports that kernels give to outgoing connections: one of those could take a port between our look at it
# and the engine's.
_PORTS = range(20_000, 32_000)
_PORT_ATTEMPTS = 5
_PORT_PATIENCE = 0.5
_START_SECONDS = 300.0
_STOP_SECONDS = 20.0
_STOP_TICK = 0.05
_LOW_SPACE = 200_000_000


class EngineProcess:
    """An engine that serves a folder, as our child.

    Args:
        engine: what to run.
        folder: what it serves.
        lock: descriptor of a lock that it is to hold while it lives.
        pause: waits a little, or raises to give up.
        on_end: called, in a thread, when the process ended.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Folder,
        *,
        lock: int,
        pause: Callable[[], None],
        on_end: Callable[["EngineProcess"], None],
    ) -> None:
        self.port: int = 0
        self._engine = engine
        self._folder = folder
        self._lock = lock
        self._pause = pause
        self._on_end = on_end
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process's id; 0 before it was started."""
        return self._process.pid if self._process else 0

    @property
    def code(self) -> int | None:
        """The process's exit code, if it ended."""
        return self._process.poll() if self._process else None

    def start(self, port: int | None = None, *, secured: bool = True) -> None:
        """Start it and wait until it listens, on this port or on a free one.

        Raises:
            EmbeddedServerError: it ended, does not come to listen, or there is no free port.
        """
        preferred = port or self._folder.last_port()
        ports = [] if port else random.sample(_PORTS, _PORT_ATTEMPTS)
        for candidate in [preferred, *ports] if preferred else ports:
            if not self._gets_free(candidate, _PORT_PATIENCE if candidate == preferred else 0.0):
                continue
            self._spawn(candidate, secured=secured)
            if self._comes_to_listen(candidate):
                return
            if _is_free(candidate):
                raise start_failure(self._engine, self.code, self._folder, _free_space(self._folder))
        what = f"port {port} taken" if port else "no free port"
        raise EmbeddedServerError(f"{self._engine.name} found {what} on the loopback address", retryable=True)

    def stop(self) -> None:
        """End it in order; by force if that takes too long. Nothing acknowledged is lost either way."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TICK)
                return
            if time.monotonic() > deadline:
                process.kill()
            # SecantusDB notices that it is to end when the next connection comes, or two seconds later.
            _listens(self.port)

    def announce(self, *, ready: bool) -> None:
        """Write down where it is to be found."""
        self._folder.write_server(ServerRecord(os.getpid(), self.pid, self.port, ready))

    def _spawn(self, port: int, *, secured: bool) -> None:
        self.port = port
        with self._folder.engine_log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603  a program that we were told to run
                self._engine.command(self._folder, port, secured=secured),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(self._lock,),
            )
        self._process = process
        self.announce(ready=False)

        def watch() -> None:
            process.wait()
            self._on_end(self)

        threading.Thread(target=watch, daemon=True).start()

    def _gets_free(self, port: int, patience: float) -> bool:
        # An engine that was killed lets go of its lock a moment before it does of its port.
        deadline = time.monotonic() + patience
        while not _is_free(port):
            if time.monotonic() > deadline:
                return False
            self._pause()
        return True

    def _comes_to_listen(self, port: int) -> bool:
        deadline = time.monotonic() + _START_SECONDS
        while self.code is None:
            if _listens(port):
                return True
            if time.monotonic() > deadline:
                return False
            self._pause()
        return False


def start_failure(engine: Engine, code: int | None, folder: Folder, free_space: int) -> EmbeddedServerError:
    """Why an engine did not start, as far as one can tell, and where to read on."""
    match code:
        case None:
            what = f"does not come to listen after {_START_SECONDS:.0f} s"
        case -4:
            what = "is not made for this processor (MongoDB 5 and later need AVX)"
        case -9:
            what = "was killed while it started, perhaps for want of memory"
        case 62:
            what = "is too new, or too old, for the data of this folder"
        case _:
            what = f"ended with exit code {code} while it started"
    space = f". The disk has only {free_space // 1_000_000} MB left" if free_space < _LOW_SPACE else ""
    return EmbeddedServerError(f"{engine.name} {what}{space}. Its log is {folder.engine_log}", retryable=code == -9)


def _free_space(folder: Folder) -> int:
    return shutil.disk_usage(folder.path).free


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do, so that connections of the last server that are not quite over don't count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
