"""Counting tokens: exact where the model's own tokenizer is on disk, estimated elsewhere, never by network."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asyncmem.llm import LLM, TokenCount, counting
from asyncmem.prompts import estimate_tokens
from asyncmem.testing import ScriptedModel

pytestmark = pytest.mark.anyio

TEXTS = ["Lives in Porto", "下个月要搬到苏州"]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection fails the test."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("openai/gpt-4o-mini", 10), ("gpt-4", 15), ("azure/gpt-35-turbo", 15), ("openrouter/openai/gpt-oss-20b", 10)],
)
async def test_known_models_are_counted_exactly(model: str, tokens: int) -> None:
    """OpenAI's models are counted by their own tokenizers, each of which gives another number."""
    assert await LLM(model).count_tokens(TEXTS) == TokenCount(tokens, exact=True)
    assert await LLM(model).count_tokens([]) == TokenCount(0, exact=True)


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4", "openai/local", "mistral/x", "davinci"])
async def test_other_models_are_estimated(model: str) -> None:
    """Where the tokenizer is not known, or not on disk, the number is an estimate and says so."""
    expected = sum(map(estimate_tokens, TEXTS))
    assert await LLM(model).count_tokens([*TEXTS, ""]) == TokenCount(expected, exact=False)


async def test_a_model_that_is_no_string_is_estimated() -> None:
    """Whatever a model of one's own is called, its tokenizer is not known, and it is not asked."""
    async with ScriptedModel(name="gpt-4o") as model:
        assert (await LLM(model).count_tokens(TEXTS)).exact is False


async def test_a_missing_file_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the application keeps tokenizers elsewhere, and this one isn't there, the number is an estimate."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert (await LLM("gpt-4o").count_tokens(TEXTS)).exact is False
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setattr(counting.importlib.util, "find_spec", lambda name: None)
    assert (await LLM("gpt-4o").count_tokens(TEXTS)).exact is False


def test_counting_does_not_import_litellm() -> None:
    """Importing litellm takes seconds, which counting does without."""
    code = (
        "import asyncio, sys; from asyncmem.llm import LLM;"
        " print(asyncio.run(LLM('gpt-4o').count_tokens(['a b'])).exact,"
        " 'litellm' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "False"]
