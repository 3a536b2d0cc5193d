"""What importing asyncmem costs and does."""

import json
import subprocess
import sys

import asyncmem

HEAVY = {"litellm", "openai", "beanie", "pymongo", "bson", "motor", "numpy", "rich", "typer", "pydantic"}
HEAVY |= {"agents", "langchain_core", "langgraph", "pydantic_ai"}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy() -> None:
    """``import asyncmem`` loads no driver, no model library, and not even pydantic."""
    loaded = set(json.loads(run("import asyncmem, sys, json; print(json.dumps(sorted(sys.modules)))")))
    assert loaded & HEAVY == set()


def test_a_manager_loads_no_driver_and_no_model_library_until_it_is_used() -> None:
    """Making a manager imports neither PyMongo nor litellm."""
    code = (
        "import sys, json; from asyncmem import MemoryManager, UserMemory;"
        "MemoryManager('mongodb://localhost/app', model='openai/gpt-4o'); UserMemory(memory='x');"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert set(json.loads(run(code))) & (HEAVY - {"pydantic"}) == set()


def test_verbs_by_hand_load_no_model_library() -> None:
    """Opening a store loads Beanie and PyMongo, but neither litellm nor openai."""
    code = "import sys, json, asyncmem.store.store, asyncmem.search; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(run(code)))
    assert {"beanie", "pymongo"} <= loaded
    assert loaded & {"litellm", "openai", "numpy"} == set()


def test_import_changes_nothing_of_the_application() -> None:
    """No handler, log level, warning filter or environment variable is touched."""
    code = (
        "import os, logging, warnings; before = (dict(os.environ), list(warnings.filters), logging.root.level);"
        "import asyncmem.manager;"
        "print(before == (dict(os.environ), list(warnings.filters), logging.root.level), logging.root.handlers)"
    )
    assert run(code).strip() == "True []"


def test_all_names_resolve() -> None:
    """Every public name exists, is listed by dir(), and unknown names raise AttributeError."""
    for name in asyncmem.__all__:
        assert getattr(asyncmem, name).__name__ == name
    assert set(asyncmem.__all__) <= set(dir(asyncmem))
    assert not hasattr(asyncmem, "no_such_name")
    assert sorted(asyncmem.__all__) == sorted(set(asyncmem.__all__))
