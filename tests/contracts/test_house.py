"""Rules of the house that a tool does not check."""

import ast
from pathlib import Path

import asyncmem

PACKAGE = Path(asyncmem.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LONG = {
    "manager.py": "one class of public verbs, most of it their docstrings",
    "types.py": "every public value",
    "errors.py": "every error, most of it the drawing and docstrings",
}


def test_modules_are_short() -> None:
    """A module has at most 300 lines, or a reason here, and never over 500."""
    for path in MODULES:
        lines = len(path.read_text().splitlines())
        assert lines <= (500 if path.name in LONG else 300), f"{path.name}: {lines} lines"


def test_functions_are_short() -> None:
    """A function's code, docstring and signature apart, has at most 30 lines."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                length = (node.end_lineno or 0) - first.lineno + 1
                assert length <= 30, f"{path.name}:{node.lineno} {node.name}: {length} lines"


def test_nothing_is_printed_outside_the_interfaces() -> None:
    """Library code prints nothing."""
    for path in MODULES:
        if "interfaces" in path.parts or path.name in ("supervisor.py", "simulator.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            printed = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            assert not printed, f"{path.name}:{node.lineno}"  # type: ignore[attr-defined]


def test_tests_leave_the_import_of_litellm_to_asyncmem() -> None:
    """One that imports it first makes it the application's own, which is not silenced, for all that come after."""
    for path in Path(__file__).parents[1].rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.partition(".")[0] == "litellm" for name in names), path.name
