"""How litellm is loaded, each in a fresh interpreter."""

import logging
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest


def run(code: str, cwd: Path, *, env: dict[str, str] | None = None) -> str:
    """What a fresh interpreter prints; nothing may come out on stderr."""
    import os

    prelude = "import asyncio, logging, os, socket, sys, threading, time, warnings\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code)],
        cwd=cwd,
        env={**os.environ, "OPENAI_API_KEY": "", **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_loading_is_quiet_shared_and_leaves_the_application_alone(tmp_path: Path) -> None:
    """One import for many first calls, no network, no .env, no handler, and the environment is as before."""
    (tmp_path / ".env").write_text("CANARY_FROM_DOTENV=1\n")
    out = run(
        """
        from asyncmem.llm.loading import load_litellm

        logging.getLogger("LiteLLM Proxy").setLevel(logging.ERROR)
        before = dict(os.environ)
        root = list(logging.getLogger().handlers)
        opened = []
        imports = []

        def watch(event, args):
            if event in ("socket.connect", "socket.getaddrinfo"):
                opened.append(args)
            elif event == "import" and args[0] == "litellm":
                imports.append(args[0])

        sys.addaudithook(watch)

        async def main():
            lag = [0.0]
            async def watch():
                while True:
                    started = time.perf_counter()
                    await asyncio.sleep(0.005)
                    lag[0] = max(lag[0], time.perf_counter() - started)
            watcher = asyncio.ensure_future(watch())
            started = time.perf_counter()
            loaded = await asyncio.gather(*(load_litellm() for _ in range(20)))
            took = time.perf_counter() - started
            watcher.cancel()
            assert len(set(map(id, loaded))) == 1
            assert lag[0] < took / 2, (lag, took)
            return loaded[0]

        litellm = asyncio.run(main())
        assert imports.count("litellm") <= 1, imports
        assert opened == [], opened
        assert dict(os.environ) == before
        assert logging.getLogger().handlers == root
        assert litellm.suppress_debug_info is True
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logger = logging.getLogger(name)
            assert [type(h).__name__ for h in logger.handlers] == ["NullHandler"], logger.handlers
            assert logger.level == (logging.ERROR if "Proxy" in name else logging.WARNING)
        assert not [t for t in threading.enumerate() if "cost-map" in t.name]
        logging.getLogger("LiteLLM").warning("to nobody")
        import importlib
        manager = importlib.import_module("litellm.anthropic_beta_headers_manager")
        assert manager._BETA_HEADERS_CONFIG
        print("ok")
        """,
        tmp_path,
    )
    assert out == "ok"


def test_the_applications_own_litellm_is_taken_as_it_is(tmp_path: Path) -> None:
    """Settings of a litellm that the application imported and set up are not touched."""
    out = run(
        """
        warnings.simplefilter("ignore")
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        import litellm

        litellm.suppress_debug_info = False
        logger = logging.getLogger("LiteLLM")
        handlers = list(logger.handlers)
        level = logger.level
        from asyncmem.llm.loading import load_litellm

        assert asyncio.run(load_litellm()) is litellm
        assert asyncio.run(load_litellm()) is litellm
        assert litellm.suppress_debug_info is False
        assert (logger.handlers, logger.level) == (handlers, level)
        assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
        print("ok")
        """,
        tmp_path,
    )
    assert out == "ok"


def test_numpy_is_loaded_by_the_first_embedding(tmp_path: Path) -> None:
    """numpy is imported where vectors are asked for, once, and not before."""
    out = run(
        """
        from asyncmem.llm import LLM
        from asyncmem.llm.loading import load_numpy

        assert "numpy" not in sys.modules
        first = asyncio.run(load_numpy())
        assert asyncio.run(load_numpy()) is first is sys.modules["numpy"]
        print("ok")
        """,
        tmp_path,
    )
    assert out == "ok"


def test_making_a_model_loads_nothing(tmp_path: Path) -> None:
    """An LLM is made without litellm, openai, or any I/O."""
    out = run(
        """
        events = []
        from asyncmem.llm import LLM
        sys.addaudithook(lambda event, args: events.append(event) if event.startswith(("socket.", "open")) else None)
        LLM("openai/gpt-4o-mini")
        assert events == [], events
        print(sorted(name for name in sys.modules if name in ("litellm", "openai", "httpx", "beanie", "pymongo")))
        """,
        tmp_path,
    )
    assert out == "[]"


@pytest.mark.anyio
async def test_a_version_without_the_header_list_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm versions that have no list of Anthropic's headers are loaded all the same."""
    from asyncmem.llm import loading

    monkeypatch.setitem(sys.modules, "litellm.anthropic_beta_headers_manager", None)
    loading._load_beta_headers()


def test_who_waited_for_the_import_takes_what_it_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that got the lock after another one had loaded litellm imports nothing."""
    from asyncmem.llm import loading

    loaded = ModuleType("loaded")
    monkeypatch.setattr(loading, "_litellm", loaded)
    assert loading._load() is loaded


def test_levels_that_the_application_set_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loggers of litellm that have a level keep it; the others warn only."""
    from asyncmem.llm import loading

    monkeypatch.setitem(sys.modules, "litellm", ModuleType("litellm"))
    monkeypatch.setitem(sys.modules, "litellm.anthropic_beta_headers_manager", None)
    for name, level in zip(loading._LOGGERS, (logging.ERROR, logging.NOTSET, logging.INFO), strict=True):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "handlers", list(logger.handlers))
        monkeypatch.setattr(logger, "level", level)
    assert loading._import_quietly().suppress_debug_info is True
    levels = [logging.getLogger(name).level for name in loading._LOGGERS]
    assert levels == [logging.ERROR, logging.WARNING, logging.INFO]
