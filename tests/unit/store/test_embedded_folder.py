"""The embedded server's folder: where it is, what it takes, what it refuses."""

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from asyncmem.errors import ConfigurationError, EmbeddedServerError
from asyncmem.store.embedded_folder import Folder, ServerRecord, folder_at, folder_error


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder that was prepared."""
    made = Folder(tmp_path / "new" / "data")
    made.prepare()
    return made


@pytest.mark.parametrize(
    ("path", "environ", "platform", "expected"),
    [
        (None, {}, "linux", "/home/jane/.local/share/asyncmem/embedded"),
        (None, {"XDG_DATA_HOME": "/xdg"}, "linux", "/xdg/asyncmem/embedded"),
        (None, {"XDG_DATA_HOME": "relative"}, "linux", "/home/jane/.local/share/asyncmem/embedded"),
        (None, {}, "darwin", "/home/jane/Library/Application Support/asyncmem/embedded"),
        (None, {"ASYNCMEM_DATA": "/named", "XDG_DATA_HOME": "/xdg"}, "linux", "/named"),
        (None, {"ASYNCMEM_DATA": "~/named"}, "linux", "/home/jane/named"),
        (Path("/given/../taken"), {"ASYNCMEM_DATA": "/named"}, "linux", "/taken"),
    ],
)
def test_where_data_is_kept(
    path: Path | None, environ: Mapping[str, str], platform: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path given comes first, then ASYNCMEM_DATA, then the user's data directory of the system."""
    monkeypatch.setenv("HOME", "/home/jane")
    assert folder_at(path, environ, platform) == Folder(Path(expected))


def test_relative_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path, or one through a link, leads to the same folder as the real one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert folder_at(Path("link"), {}) == folder_at(tmp_path / "real", {})


def test_nobodys_home_is_an_error() -> None:
    """A home directory that can't be told is an error that asks for a path."""
    with pytest.raises(ConfigurationError, match="absolute path"):
        folder_at(Path("~nobody-of-that-name/data"), {})


def test_a_new_folder_is_private(folder: Folder) -> None:
    """The folder is the user's alone and says what it is; preparing it again changes nothing."""
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert 'db="embedded"' in (folder.path / "asyncmem.txt").read_text()
    before = sorted(os.listdir(folder.path))
    folder.prepare()
    assert sorted(os.listdir(folder.path)) == before


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    """An empty folder that exists becomes the server's, and private."""
    tmp_path.chmod(0o755)
    Folder(tmp_path).prepare()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """A folder that holds something else is refused, and not touched."""
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(EmbeddedServerError, match=r"holds other things \('photo.jpg'\)"):
        Folder(tmp_path).prepare()
    assert os.listdir(tmp_path) == ["photo.jpg"]


@pytest.mark.parametrize("name", ["", "deeper"])
def test_a_file_is_no_folder(tmp_path: Path, name: str) -> None:
    """A path that is a file, or leads through one, is refused."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(EmbeddedServerError, match="is a file"):
        Folder(file / name).prepare()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, ["the disk is full", "make room"]),
        (errno.EDQUOT, ["the disk is full"]),
        (errno.EACCES, ["can't be written to (Permission denied)"]),
        (errno.EROFS, ["can't be written to (Read-only file system)"]),
        (errno.ENOTDIR, ["is a file", "name a folder"]),
        (errno.EIO, ["Input/output error", "check the path"]),
    ],
)
def test_trouble_with_the_folder_is_explained(number: int, words: list[str]) -> None:
    """Each kind of trouble with the folder says what it is, where, and what to do."""
    error = folder_error(OSError(number, os.strerror(number)), Path("/data"))
    for word in [*words, "/data", "ASYNCMEM_DATA", "embedded:PATH"]:
        assert word in str(error)
    assert str(folder_error(OSError(), Path("/data"))).startswith(
        "the embedded server can't use its folder /data: OSErr"
    )


def test_the_engine_is_remembered(folder: Folder) -> None:
    """A folder knows its engine from the end of its first start on."""
    assert folder.engine() is None
    folder.begin_data()
    assert folder.engine() is None
    folder.finish_data("secantus")
    assert folder.engine() == "secantus"
    folder.discard_unfinished()
    assert folder.data.is_dir()


def test_an_unfinished_first_start_is_begun_anew(folder: Folder) -> None:
    """What a first start left that was cut off is removed; data that was finished never is."""
    folder.begin_data()
    (folder.data / "half").touch()
    folder.begin_data()
    assert os.listdir(folder.data) == []
    (folder.data / "half").touch()
    folder.discard_unfinished()
    assert not folder.data.exists()


def test_data_without_an_engine_is_not_touched(folder: Folder) -> None:
    """Data whose engine is not known is refused, and stays."""
    folder.data.mkdir()
    (folder.data / "row").touch()
    with pytest.raises(EmbeddedServerError, match="file 'engine' is missing"):
        folder.begin_data()
    folder.discard_unfinished()
    assert os.listdir(folder.data) == ["row"]


def test_an_unknown_engine_is_refused(folder: Folder) -> None:
    """A folder of an engine that this version does not know is refused."""
    (folder.path / "engine").write_text("oracle\n")
    with pytest.raises(EmbeddedServerError, match="names no engine"):
        folder.engine()


def test_secrets_are_made_once(folder: Folder) -> None:
    """A secret is random, kept, the user's alone, and part of the address."""
    secret = folder.secret(folder.password_file)
    assert len(secret) == 64
    assert folder.secret(folder.password_file) == secret
    assert folder.secret(folder.key_file) != secret
    assert stat.S_IMODE(folder.password_file.stat().st_mode) == 0o600
    assert folder.uri(5) == (f"mongodb://asyncmem:{secret}@127.0.0.1:5/asyncmem?authSource=admin&directConnection=true")


def test_the_server_is_written_down(folder: Folder) -> None:
    """The record of a server is read as it was written; its port outlives it."""
    record = ServerRecord(supervisor=1, engine=2, port=3, ready=True)
    assert folder.server() is None
    assert folder.last_port() is None
    folder.write_server(record)
    assert folder.server() == record
    folder.forget_server()
    folder.forget_server()
    assert folder.server() is None
    assert folder.last_port() == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"port": 3}', '{"supervisor": 1, "secret": 2}'])
def test_a_record_that_makes_no_sense_is_none(folder: Folder, text: str) -> None:
    """A record that was damaged is as good as none."""
    (folder.path / "server.json").write_text(text)
    assert folder.server() is None


def test_large_logs_are_put_aside(folder: Folder) -> None:
    """A log grows to some megabytes, then another one is begun; one old one is kept."""
    folder.trim_logs()
    folder.engine_log.write_text("short")
    with folder.supervisor_log.open("w") as log:
        log.truncate(6_000_000)
    folder.trim_logs()
    assert folder.engine_log.read_text() == "short"
    assert not folder.supervisor_log.exists()
    assert (folder.path / "supervisor.log.1").stat().st_size == 6_000_000
