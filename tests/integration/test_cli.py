"""The commands, against a real server, with the model on loopback."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from asyncmem import MemoryManager, Settings
from asyncmem.interfaces.cli import main
from asyncmem.interfaces.commands import app, execute
from asyncmem.testing import Behaviour, ProviderSimulator

from ..servers import free_port, with_database

Run = Callable[..., Result]
PLAN = {
    "operations": [{"op": "add", "memory": "Lives in Porto", "topics": ["place"], "evidence": "I moved to Porto"}],
    "memory_ids": ["1"],
}


@pytest.fixture
def provider() -> Iterator[ProviderSimulator]:
    """A provider on loopback that remembers Porto."""
    with ProviderSimulator(Behaviour(says=PLAN)) as simulator:
        yield simulator


@pytest.fixture
def environment(replica_set_uri: str, database_name: str, provider: ProviderSimulator) -> dict[str, str]:
    """Where the commands find database and model."""
    return {
        "ASYNCMEM_DB": with_database(replica_set_uri, database_name),
        "ASYNCMEM_MODEL": "openai/simulated",
        "ASYNCMEM_API_BASE": provider.url,
        "ASYNCMEM_API_KEY": "sk-simulated-provider",
    }


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    """Runs a command in this process."""

    def runner(*arguments: str, env: dict[str, str] | None = None, answer: str | None = None) -> Result:
        return CliRunner().invoke(app, arguments, env=environment | (env or {}), input=answer)

    return runner


def test_add_list_forget_erase(run: Run) -> None:
    """A memory is added, listed, forgotten, and a user erased; every command prints JSON where asked."""
    added = run("add", "Plays chess", "--user", "jane", "--topic", "hobby", "--topic", "games", "--json")
    memory_id = json.loads(added.stdout)["memory_id"]
    assert run("add", "Lives in [bold]Porto[/bold]", "--user", "jane").stdout.strip()
    (chess, porto) = json.loads(run("list", "--user", "jane", "--json").stdout)
    assert (chess["memory_id"], chess["topics"]) == (memory_id, ["hobby", "games"])
    assert [m["memory_id"] for m in json.loads(run("list", "--user", "jane", "--limit", "1", "--json").stdout)] == [
        porto["memory_id"]
    ]
    table = run("list", "--user", "jane").stdout
    assert "2 memories" in table
    assert "[bold]" in table
    assert json.loads(run("list", "--user", "omar", "--json").stdout) == []
    gone = run("forget", memory_id, "--user", "omar")
    assert (gone.exit_code, gone.stdout.strip()) == (1, "this user has no such memory")
    gone = run("forget", memory_id, "--user", "jane", "--json")
    assert (gone.exit_code, json.loads(gone.stdout)) == (0, {"deleted": True})
    assert run("erase", "--user", "jane", answer="n\n").exit_code == 1
    erased = run("erase", "--user", "jane", answer="y\n")
    counts = "1 memories, 1 archive, 0 captures, 0 optimizations, 0 jobs, 0 profiles, 0 sessions, 0 proposals"
    assert " ".join(erased.stdout.split()).endswith(f"erased: {counts}")  # a long line is wrapped
    assert json.loads(run("erase", "--user", "jane", "--yes", "--json").stdout)["counts"]["memories"] == 0


def test_search_by_model_and_by_time(run: Run) -> None:
    """The model picks, or the newest are shown without one."""
    run("add", "Plays chess", "--user", "jane")
    run("add", "Swims", "--user", "jane")
    found = run("search", "Which games?", "--user", "jane", "--json")
    assert [m["memory"] for m in json.loads(found.stdout)] == ["Plays chess"]
    newest = run("search", "any", "--user", "jane", "--method", "last_n", "--limit", "1", env={"ASYNCMEM_MODEL": ""})
    assert "Swims" in newest.stdout
    assert "1 found by last_n" in newest.stdout


def test_demo_on_the_shipped_conversation(run: Run, provider: ProviderSimulator) -> None:
    """Turns, changes, the table, the questions, what went wrong, and what it took are shown; exit code 0."""
    operations = [{"op": "add", "memory": "Lives in Porto", "evidence": "Porto"}]
    provider.behaviour = Behaviour(says={"operations": operations, "memory_ids": ["1"]})
    done = run("demo")
    assert done.exit_code == 0, done.output
    for shown in ("user: ", "+ Lives in Porto", "skipped add", "What is remembered", "Which city does she live in?"):
        assert shown in done.stdout
    assert "wrong: expected" in done.stdout
    assert "expectations hold" in done.stdout
    assert "16 model calls" in done.stdout
    assert "cost unknown" in done.stdout


def test_demo_on_a_file(run: Run, tmp_path: Path, provider: ProviderSimulator) -> None:
    """A conversation of one's own is captured; each kind of change has its mark; nothing found is said."""
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps([{"role": "user", "content": "I moved to Porto"}]))
    assert "+ Lives in Porto" in run("demo", "--file", str(path)).stdout
    provider.behaviour = Behaviour(says={"operations": [], "memory_ids": []})
    empty = run("demo", "--file", str(path)).stdout
    assert "no memory answers this" in empty
    assert "expectations" not in empty
    path.write_text(
        json.dumps(
            {
                "turns": [{"content": "I moved to Porto"}, {"content": "Forget that"}],
                "questions": [],
                "expected": [{"what": "all is well"}],
            }
        )
    )
    provider.behaviour = Behaviour(
        says={
            "operations": [
                {"op": "add", "memory": "Lives in Porto", "evidence": "I moved to Porto"},
                {"op": "delete", "memory_id": "1", "evidence": "Forget that"},
            ]
        }
    )
    assert "- Lives in Porto" in run("demo", "--file", str(path)).stdout
    path.write_text(
        json.dumps({"turns": [{"content": "I have a cat"}, {"content": "My cat is Miso"}], "questions": []})
    )
    provider.behaviour = Behaviour(
        says={
            "operations": [
                {"op": "add", "memory": "Has a cat", "evidence": "I have a cat"},
                {"op": "update", "memory_id": "1", "memory": "Has a cat, Miso", "evidence": "My cat is Miso"},
            ]
        }
    )
    assert "~ Has a cat, Miso (was: Has a cat)" in run("demo", "--file", str(path)).stdout


def test_demo_goes_on_after_a_reply_that_cannot_be_read(run: Run, tmp_path: Path, provider: ProviderSimulator) -> None:
    """One turn that fails is shown, and the demo ends well."""
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps({"turns": [{"content": "I moved to Porto"}], "questions": []}))
    provider.behaviour = Behaviour(says="I would rather chat.")
    done = run("demo", "--file", str(path))
    assert done.exit_code == 0, done.output
    assert "failed: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "env", "code", "message"),
    [
        (("search", "x", "--user", "jane"), {"ASYNCMEM_MODEL": ""}, 2, "no model is named"),
        (("list", "--user", " "), {}, 2, "user_id needs"),
        (("search", "x", "--user", "jane", "--method", "fuzzy"), {}, 2, "unknown retrieval method"),
        (("demo", "--file", "nowhere.json"), {}, 2, "can't be read"),
        (("list", "--user", "jane", "--db", "mongodb://localhost"), {}, 2, "names no database"),
        (("list",), {}, 2, "--user"),
    ],
)
def test_errors_are_one_sentence(
    run: Run, arguments: tuple[str, ...], env: dict[str, str], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the caller can mend is exit code 2 and a sentence, never a traceback."""
    for name in list(os.environ):
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    done = run(*arguments, env=env)
    assert done.exit_code == code
    assert message in done.output
    assert "Traceback" not in done.output


def test_a_model_that_refuses_is_exit_code_1(run: Run, provider: ProviderSimulator) -> None:
    """A wrong key is one sentence that names no key."""
    run("add", "Swims", "--user", "jane")
    provider.behaviour = Behaviour(fails=("key_echo",))
    done = run("search", "x", "--user", "jane")
    assert done.exit_code == 1
    assert "key" in done.output
    assert "sk-simulated-provider" not in done.output


def test_an_unreachable_server_is_exit_code_1(run: Run) -> None:
    """Nobody listens: one sentence."""
    done = run("list", "--user", "jane", "--db", f"mongodb://127.0.0.1:{free_port()}/app?serverSelectionTimeoutMS=300")
    assert done.exit_code == 1
    assert "no MongoDB server answers" in done.output


def test_the_installed_command(environment: dict[str, str]) -> None:
    """``asyncmem`` as a process of its own: help, a memory, a list."""
    command = [sys.executable, "-P", "-c", "from asyncmem.interfaces.cli import main; main()"]

    def call(*arguments: str) -> str:
        done = subprocess.run(
            [*command, *arguments], env=os.environ | environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert "demo" in call("--help")
    call("add", "Plays chess", "--user", "jane")
    assert [m["memory"] for m in json.loads(call("list", "--user", "jane", "--json"))] == ["Plays chess"]


def test_a_missing_extra_is_named() -> None:
    """Without typer or rich the command names the extra; another missing module is not hidden."""
    code = "import sys; sys.modules[{!r}] = None\nfrom asyncmem.interfaces.cli import main\nmain()"
    for missing, message in (("typer", "asyncmem[cli]"), ("asyncmem.interfaces.choice", "Traceback")):
        done = subprocess.run(
            [sys.executable, "-P", "-c", code.format(missing)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert message in done.stderr


def test_the_entry_point(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``main`` runs the command of the arguments, and names the extra where it is missing."""
    monkeypatch.setattr(sys, "argv", ["asyncmem", "--help"])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 0
    assert "demo" in capsys.readouterr().out
    monkeypatch.delitem(sys.modules, "asyncmem.interfaces.commands")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "typer", None)
        with pytest.raises(SystemExit, match=r"asyncmem\[cli\]"):
            main()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "asyncmem.interfaces.choice", None)
        with pytest.raises(ModuleNotFoundError):
            main()


def test_an_interrupt_is_exit_code_130() -> None:
    """Ctrl-C ends a command without a traceback."""

    async def action() -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as done:
        execute(action)
    assert done.value.exit_code == 130


def test_a_worker_does_what_is_scheduled_until_it_is_stopped(environment: dict[str, str], run: Run) -> None:
    """SIGTERM ends it with exit code 0, and it says what it did; ``queue`` shows what is there."""

    async def schedule() -> None:
        async with MemoryManager(environment["ASYNCMEM_DB"], settings=Settings(workers=False)) as manager:
            ticket = await manager.schedule("I moved to Porto", user_id="jane", flush=True)
            await ticket.wait(60)

    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from asyncmem.interfaces.cli import main; main()",
            "worker",
            "--concurrency",
            "2",
            "--json",
        ],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        asyncio.run(schedule())
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert json.loads(out) == {"done": 1, "failed": 0, "dead": 0, "handed_back": 0}
    assert [m["memory"] for m in json.loads(run("list", "--user", "jane", "--json").stdout)] == ["Lives in Porto"]


def test_the_queue_is_shown_and_its_dead_are_retried(environment: dict[str, str], run: Run) -> None:
    """How many wait, are in flight and are dead, for people and as JSON."""
    assert json.loads(run("queue", "--json").stdout) == {
        "depth": 0,
        "oldest": None,
        "in_flight": 0,
        "dead": 0,
        "retried": 0,
    }

    async def schedule() -> None:
        async with MemoryManager(environment["ASYNCMEM_DB"], settings=Settings(workers=False)) as manager:
            await manager.schedule("I moved to Porto", user_id="jane")

    asyncio.run(schedule())
    assert run("queue", "--retry").stdout.startswith("1 depth,")


def test_optimize_preview_apply_list_undo(run: Run, provider: ProviderSimulator) -> None:
    """A preview shows what goes and comes and writes nothing; applied, it is listed, and undone by its run id."""
    for text in ("Keeps two parrots", "Works nights", "Parrots are named [Pip] and Bo"):
        run("add", text, "--user", "lin")
    provider.behaviour = Behaviour(says={"memory": "Keeps two parrots named [Pip] and Bo. Works nights."})
    preview = run("optimize", "--user", "lin", "--dry-run")
    assert preview.exit_code == 0
    for line in ("- Works nights", "+ Keeps two parrots named [Pip] and Bo.", "3 to 1 memories", "nothing was written"):
        assert line in preview.stdout
    assert len(json.loads(run("list", "--user", "lin", "--json").stdout)) == 3
    done = json.loads(run("optimize", "--user", "lin", "--json").stdout)
    assert (done["applied"], len(done["memories"]), len(done["retired"])) == (True, 1, 3)
    assert json.loads(run("optimize", "--user", "lin", "--list", "--json").stdout)[0]["run_id"] == done["run_id"]
    assert "1 optimizations" in run("optimize", "--user", "lin", "--list").stdout
    undone = run("optimize", "--user", "lin", "--undo", done["run_id"])
    assert "3 brought back, 1 removed" in undone.stdout
    again = run("optimize", "--user", "lin", "--undo", done["run_id"], "--json")
    assert (again.exit_code, "undone" in again.stderr) == (1, True)
    assert len(json.loads(run("list", "--user", "lin", "--json").stdout)) == 3


def test_optimize_says_what_it_kept(run: Run, provider: ProviderSimulator) -> None:
    """What the summary lacks stays and is shown; the run id for an undo is printed; nothing to do is said."""
    for text in ("Keeps two parrots", "Works nights", "Parrots are named Pip and Bo"):
        run("add", text, "--user", "lin")
    provider.behaviour = Behaviour(says={"memory": "Keeps two parrots named Pip and Bo."})
    done = run("optimize", "--user", "lin")
    assert "1 of the memories stayed, since a fact of theirs was missing" in done.stdout
    assert "to undo it: asyncmem optimize --user lin --undo " in done.stdout
    run_id = done.stdout.split("--undo ")[1].split()[0]
    changed = json.loads(run("list", "--user", "lin", "--json").stdout)[-1]["memory_id"]
    assert run("forget", changed, "--user", "lin").exit_code == 0
    assert json.loads(run("optimize", "--user", "lin", "--undo", run_id, "--json").stdout)["restored"]
    alone = run("optimize", "--user", "omar", "--strategy", "deduplicate", env={"ASYNCMEM_MODEL": ""})
    assert "nothing changed" in alone.stdout
    both = run("optimize", "--user", "lin", "--list", "--undo", run_id)
    assert (both.exit_code, "pass one of them" in both.stderr) == (2, True)
    wrong = run("optimize", "--user", "lin", "--strategy", "shrink")
    assert (wrong.exit_code, "deduplicate" in wrong.stderr) == (2, True)
