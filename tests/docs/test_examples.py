"""Every Python example of the README and the docs runs, in order, page by page."""

import ast
import asyncio
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from asyncmem.testing import Behaviour, ProviderSimulator

from ..servers import with_database
from .examples import EXAMPLE, PAGES, ROOT


@pytest.fixture
def provider() -> Iterator[ProviderSimulator]:
    """A provider on loopback."""
    with ProviderSimulator() as simulator:
        yield simulator


def compiled(page: Path, match: re.Match[str]) -> CodeType:
    """An example as code that may await at its top level, with the page's own line numbers."""
    lines = page.read_text()[: match.start("code")].count("\n")
    return compile("\n" * lines + match["code"], str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(
    page: Path,
    provider: ProviderSimulator,
    replica_set_uri: str,
    database_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The examples of a page run one after the other in one namespace, with the model simulated."""
    monkeypatch.setenv("ASYNCMEM_DB", with_database(replica_set_uri, database_name))
    monkeypatch.setenv("ASYNCMEM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ASYNCMEM_MODEL", "openai/gpt-4o-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-simulated-provider")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for match in EXAMPLE.finditer(page.read_text()):
            if match["says"]:
                provider.behaviour = Behaviour(says=match["says"])
            code = compiled(page, match)
            if code.co_flags & inspect.CO_COROUTINE:
                runner.run(eval(code, namespace))
            else:
                exec(code, namespace)


def test_pages_link_to_what_exists() -> None:
    """Every relative link of README and docs leads to a file, and a named heading or test exists in it."""
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            assert linked.exists(), f"{page.name}: {target}"
            if anchor and linked.suffix == ".md":
                headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
                slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
                assert anchor in slugs, f"{page.name}: {target}"


def test_named_tests_exist() -> None:
    """Every test that README and docs name is there."""
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for name in re.findall(r"`(test_\w+)`", page.read_text()):
            assert f"def {name}(" in tests, f"{page.name}: {name}"
