"""The process that runs one embedded server for all who use it: ``python -m asyncmem.store.supervisor FOLDER``.

It starts the engine as its child, says on its standard output how that went, starts it again if it dies, and ends
it when nobody holds the users' lock any more, whether they let go or were killed. It belongs to no user: the first
to open the folder starts it, and it outlives them while others use the server.
"""

import contextlib
import importlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType, ModuleType

from ..errors import AsyncMemError, ConfigurationError, EmbeddedServerError, EmbeddedUnavailableError
from .embedded_engines import Engine, Installed, choose_engine
from .embedded_folder import Folder, folder_error
from .embedded_locks import FileLock, Mode
from .embedded_process import EngineProcess

_SETUP = "asyncmem.store.embedded_setup"
_RESTARTS = 5
_RESTARTS_WITHIN = 60.0
_ORPHAN_GRACE = 1.0
_ORPHAN_SECONDS = 20.0
_RIVAL_SECONDS = 0.2
_TICK = 0.01

_log = logging.getLogger("asyncmem.supervisor")
_ERRORS: dict[str, type[AsyncMemError]] = {
    error.__name__: error for error in (ConfigurationError, EmbeddedServerError, EmbeddedUnavailableError)
}


class _NotWantedError(Exception):
    """Nobody uses the server any more, or we were told to end."""


@dataclass(frozen=True)
class _Ended:
    process: EngineProcess


@dataclass(frozen=True)
class _Leave:
    why: str


class Supervisor:
    """Runs the engine of one folder while somebody uses it.

    Args:
        folder: what to serve.
        installed: where engines are looked for.
    """

    def __init__(self, folder: Folder, installed: Installed) -> None:
        self._folder = folder
        self._installed = installed
        self._events: SimpleQueue[_Ended | _Leave] = SimpleQueue()
        self._users = FileLock(folder.users_lock)
        self._engine_lock = FileLock(folder.engine_lock)
        self._process: EngineProcess | None = None

    def run(self, report: Callable[[AsyncMemError | None], None]) -> None:
        """Start the server, report that, and keep it until nobody uses it.

        Args:
            report: takes ``None`` when the server is ready; or what went wrong, when all of it is gone again.
        """
        threading.Thread(target=self._watch_users, daemon=True).start()
        failure: AsyncMemError | None = None
        try:
            engine = self._start()
            report(None)
            self._keep(engine)
        except _NotWantedError as why:
            _log.info("stopping: %s", why)
        except AsyncMemError as error:
            failure = error
        except OSError as error:
            failure = folder_error(error, self._folder.path)
        finally:
            self._stop()
        if failure is not None:
            _log.error("stopped: %s", failure)
            report(failure)

    def leave(self, why: str) -> None:
        """Stop the server and end. Signal handlers and other threads may call it."""
        self._events.put(_Leave(why))

    def _watch_users(self) -> None:
        self._users.wait_exclusive()
        self.leave("the last user left")

    def _start(self) -> Engine:
        folder = self._folder
        self._take_engine_lock()
        folder.forget_server()
        made_by = folder.engine()
        engine = choose_engine(folder.path, made_by, self._installed)
        # PyMongo takes a while to import, and so does the engine to start.
        threading.Thread(target=importlib.import_module, args=(_SETUP,), daemon=True).start()
        process = self._serve(engine) if made_by else self._make_data(engine)
        process.announce(ready=True)
        _log.info("%s serves on port %d", engine.name, process.port)
        return engine

    def _take_engine_lock(self) -> None:
        """Make sure that nothing serves the folder: a supervisor that was killed may have left its engine."""
        started = time.monotonic()
        orphan = self._folder.server()
        while not self._engine_lock.take(Mode.EXCLUSIVE):
            waited = time.monotonic() - started
            if orphan is not None and waited > _ORPHAN_GRACE:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(orphan.engine, signal.SIGTERM if waited < _ORPHAN_SECONDS else signal.SIGKILL)
            self._pause()

    def _make_data(self, engine: Engine) -> EngineProcess:
        folder = self._folder
        folder.begin_data()
        folder.config_file.touch(mode=0o600)
        if engine.name == "secantus":
            # It lets nobody in before it has a user, so the first one is made before it is secured.
            process = self._boot(engine, secured=False)
            self._setup.make_first_users(engine.name, process.port, folder)
            process.stop()
        process = self._serve(engine)
        if engine.name == "secantus":
            self._setup.check_users(engine.name, process.port, folder)
        folder.finish_data(engine.name)
        return process

    def _serve(self, engine: Engine, port: int | None = None) -> EngineProcess:
        process = self._boot(engine, port)

        def go_on() -> bool:
            self._pause()
            return process.code is None

        self._setup.set_up(engine.name, process.port, self._folder, go_on)
        return process

    def _boot(self, engine: Engine, port: int | None = None, *, secured: bool = True) -> EngineProcess:
        self._folder.secret(self._folder.key_file)
        process = self._process = EngineProcess(
            engine,
            self._folder,
            lock=self._engine_lock.descriptor(),
            pause=self._pause,
            on_end=lambda ended: self._events.put(_Ended(ended)),
        )
        process.start(port, secured=secured)
        return process

    def _pause(self) -> None:
        """Wait a moment, or give up because the server is not wanted any more."""
        with contextlib.suppress(Empty):
            event = self._events.get(timeout=_TICK)
            if isinstance(event, _Leave):
                raise _NotWantedError(event.why)

    def _keep(self, engine: Engine) -> None:
        """Start the engine again, on the same port, whenever it dies and somebody uses it."""
        deaths: deque[float] = deque(maxlen=_RESTARTS)
        while True:
            process = self._wait_for_death()
            _log.warning("%s ended with %s: starting it again", engine.name, process.code)
            now = time.monotonic()
            if len(deaths) == _RESTARTS and now - deaths[0] < _RESTARTS_WITHIN:
                raise EmbeddedServerError(f"{engine.name} died {_RESTARTS + 1} times within a minute")
            deaths.append(now)
            self._revive(engine, process.port)

    def _wait_for_death(self) -> EngineProcess:
        process = self._process
        while process is None or process.code is None:
            event = self._events.get()
            if isinstance(event, _Leave):
                raise _NotWantedError(event.why)
        return process

    def _revive(self, engine: Engine, port: int) -> None:
        try:
            self._serve(engine, port).announce(ready=True)
        except EmbeddedServerError as error:
            _log.warning("%s", error)
            self._stop_engine()

    def _stop(self) -> None:
        self._folder.forget_server()
        self._stop_engine()
        self._folder.discard_unfinished()

    def _stop_engine(self) -> None:
        if self._process is not None:
            self._process.stop()

    @property
    def _setup(self) -> ModuleType:
        return importlib.import_module(_SETUP)


def report_to(descriptor: int) -> Callable[[AsyncMemError | None], None]:
    """A function that writes to the descriptor how the start went, for :func:`read_report`."""

    def report(failure: AsyncMemError | None) -> None:
        name = next((name for name, kind in _ERRORS.items() if type(failure) is kind), "EmbeddedServerError")
        line = json.dumps({} if failure is None else {"error": name, "message": str(failure)})
        # Whoever started us may be gone, or have given up waiting.
        with contextlib.suppress(OSError):
            os.write(descriptor, f"{line}\n".encode())

    return report


def read_report(line: bytes) -> AsyncMemError | None:
    """What went wrong, if something did."""
    said: dict[str, str] = json.loads(line)
    return _ERRORS[said["error"]](said["message"]) if said else None


def main() -> None:
    """Run as a process of its own, which belongs to nobody."""
    if os.fork():
        # The one who started us need not wait for us, nor bury us.
        os._exit(0)  # pragma: no cover  measurements are lost with it
    os.chdir("/")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    folder = Folder(Path(sys.argv[1]))
    report = report_to(sys.stdout.fileno())
    only_one = FileLock(folder.supervisor_lock)
    patience = time.monotonic() + _RIVAL_SECONDS
    while not only_one.take(Mode.EXCLUSIVE):
        if time.monotonic() > patience:
            report(None)
            return
        time.sleep(_TICK)
    supervisor = Supervisor(folder, Installed(os.environ))

    def terminate(_signal: int, _frame: FrameType | None) -> None:
        supervisor.leave("told to")

    signal.signal(signal.SIGTERM, terminate)
    supervisor.run(report)


if __name__ == "__main__":
    main()
