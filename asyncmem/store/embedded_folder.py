"""The embedded server's folder: what is in it, and how it is made, read and refused."""

import contextlib
import errno
import json
import os
import secrets
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from ..errors import ConfigurationError, EmbeddedServerError

EngineName = Literal["mongod", "secantus"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
USER = "asyncmem"
"""The database user that managers sign in as."""
DATABASE = "asyncmem"
"""The database that an embedded server's address names."""

_MARK = "asyncmem.txt"
_MARK_TEXT = """\
Memories that asyncmem keeps for programs that say db="embedded". Format 1.
To start over, delete this folder while no such program runs. To make a copy, do it then, and copy all of it.
"""
_LOCKS = ("users.lock", "supervisor.lock", "engine.lock")
_LOG_LIMIT = 5_000_000


@dataclass(frozen=True)
class ServerRecord:
    """A server that runs, or did: the folder's ``server.json``.

    Attributes:
        supervisor: process id of the server's supervisor.
        engine: process id of the server.
        port: where it listens, on the loopback address.
        ready: it takes commands; else it is only starting.
    """

    supervisor: int
    engine: int
    port: int
    ready: bool


@dataclass(frozen=True)
class Folder:
    """The folder of one embedded server. Its methods do file I/O: call them in a worker thread."""

    path: Path

    @property
    def data(self) -> Path:
        """The engine's own folder."""
        return self.path / "data"

    @property
    def engine_log(self) -> Path:
        """What the engine writes about itself."""
        return self.path / "engine.log"

    @property
    def supervisor_log(self) -> Path:
        """What the supervisor writes about itself."""
        return self.path / "supervisor.log"

    @property
    def users_lock(self) -> Path:
        """Shared by everybody who uses the server."""
        return self.path / "users.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the supervisor."""
        return self.path / "supervisor.lock"

    @property
    def engine_lock(self) -> Path:
        """Held by the engine, and by the supervisor that made it."""
        return self.path / "engine.lock"

    @property
    def key_file(self) -> Path:
        """The secret of the server itself and of its supervisor."""
        return self.path / "key"

    @property
    def password_file(self) -> Path:
        """The password of the database user ``asyncmem``."""
        return self.path / "password"

    @property
    def config_file(self) -> Path:
        """Settings of an engine that reads them from a file."""
        return self.path / "engine.toml"

    def prepare(self) -> None:
        """Make the folder, or check that it is one of ours.

        Raises:
            EmbeddedServerError: it can't be made, can't be written to, or holds something else.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not (self.path / _MARK).exists():
                self._take_over()
            # Opening the locks for writing shows whether the folder can be used, on a read-only disk too.
            for name in _LOCKS:
                os.close(os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise folder_error(error, self.path) from error

    def _take_over(self) -> None:
        names = sorted(entry.name for entry in self.path.iterdir())
        foreign = [name for name in names if name not in _LOCKS and not name.startswith(_MARK)]
        if foreign:
            raise EmbeddedServerError(
                f"{self.path} holds other things ({foreign[0]!r}), so it can't be the embedded server's folder: "
                'pass db="embedded:PATH" with the path of an empty or new folder'
            )
        self.path.chmod(0o700)
        _write(self.path / _MARK, _MARK_TEXT)

    def engine(self) -> EngineName | None:
        """The engine that made the folder's data; ``None`` if no data was made yet.

        Raises:
            EmbeddedServerError: the file that says so can't be read.
        """
        text = _read(self.path / "engine")
        if text is None:
            return None
        for name in ENGINES:
            if text.strip() == name:
                return name
        raise EmbeddedServerError(
            f"{self.path / 'engine'} names no engine that this version of asyncmem knows "
            f"({', '.join(ENGINES)}): restore the file, update asyncmem, or pass another folder"
        )

    def begin_data(self) -> None:
        """Make room for a first start, removing what an earlier one left that did not come to its end.

        Raises:
            EmbeddedServerError: there is data, and nothing says that it is unfinished.
        """
        self.discard_unfinished()
        if self.data.exists() and any(self.data.iterdir()):
            raise EmbeddedServerError(
                f"{self.path} holds data, but its file 'engine' is missing: restore it (one word, the engine that "
                f"made the data: {' or '.join(ENGINES)}), or pass another folder"
            )
        _write(self._unfinished, "")
        self.data.mkdir(mode=0o700, exist_ok=True)

    def finish_data(self, name: EngineName) -> None:
        """Write down that the data is made, and by which engine."""
        _write(self.path / "engine", f"{name}\n")
        self._unfinished.unlink(missing_ok=True)

    def discard_unfinished(self) -> None:
        """Remove the data of a first start that did not come to its end."""
        if self._unfinished.exists() and self.engine() is None:
            shutil.rmtree(self.data, ignore_errors=True)
            self._unfinished.unlink()

    @property
    def _unfinished(self) -> Path:
        return self.path / "unfinished"

    def secret(self, file: Path) -> str:
        """What the file holds, made up at random if there is no such file."""
        text = _read(file)
        if not text:
            text = secrets.token_hex(32)
            _write(file, text)
        return text

    def uri(self, port: int) -> str:
        """The address of the folder's server, with user, password and database."""
        who = f"{USER}:{self.secret(self.password_file)}"
        return f"mongodb://{who}@127.0.0.1:{port}/{DATABASE}?authSource=admin&directConnection=true"

    def last_port(self) -> int | None:
        """The port of the last server, so that those who still know it find the next one there."""
        text = _read(self.path / "port") or ""
        return int(text) if text.isdecimal() else None

    def server(self) -> ServerRecord | None:
        """The server that was written down last, if that can be read."""
        try:
            record = ServerRecord(**json.loads(_read(self.path / "server.json") or ""))
        except (ValueError, TypeError):
            return None
        return record

    def write_server(self, record: ServerRecord) -> None:
        """Write down the server."""
        _write(self.path / "port", str(record.port))
        _write(self.path / "server.json", json.dumps(asdict(record)))

    def forget_server(self) -> None:
        """Write down that there is no server."""
        (self.path / "server.json").unlink(missing_ok=True)

    def trim_logs(self) -> None:
        """Put large logs aside, replacing those that were put aside before."""
        for log in (self.engine_log, self.supervisor_log):
            with contextlib.suppress(FileNotFoundError):
                if log.stat().st_size > _LOG_LIMIT:
                    log.replace(log.with_suffix(".log.1"))


def folder_at(path: Path | None, environ: Mapping[str, str], platform: str = sys.platform) -> Folder:
    """The folder of that path, or the user's own.

    Raises:
        ConfigurationError: the path starts in the home directory of nobody that is known here.
    """
    try:
        path = (path or _default_path(environ, platform)).expanduser()
    except RuntimeError as error:
        raise ConfigurationError(
            f'where to keep the embedded server\'s data? {error} Pass db="embedded:PATH" with an absolute path'
        ) from error
    return Folder(Path(os.path.realpath(path)))


def _default_path(environ: Mapping[str, str], platform: str) -> Path:
    # Source: XDG Base Directory Specification, $XDG_DATA_HOME: a relative path in it is to be ignored.
    if named := environ.get("ASYNCMEM_DATA"):
        return Path(named)
    xdg = environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(xdg):
        data = Path(xdg)
    elif platform == "darwin":
        data = Path("~/Library/Application Support")
    else:
        data = Path("~/.local/share")
    return data / "asyncmem" / "embedded"


def folder_error(error: OSError, path: Path) -> EmbeddedServerError:
    """What went wrong with the folder, and what to do."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            why, advice = "the disk is full", "make room"
        case errno.ENOTDIR | errno.EEXIST:
            why, advice = "it, or a part of its path, is a file", "name a folder"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            why, advice = f"it can't be written to ({error.strerror})", "give yourself the right to"
        case _:
            why, advice = error.strerror or type(error).__name__, "check the path"
    return EmbeddedServerError(
        f"the embedded server can't use its folder {path}: {why}. Either {advice}, or pass another one: "
        'db="embedded:PATH", or the environment variable ASYNCMEM_DATA'
    )


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _write(file: Path, text: str) -> None:
    new = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
