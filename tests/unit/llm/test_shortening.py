"""Cutting texts that are too long."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from asyncmem.llm.shortening import halve, shorten

pytestmark = pytest.mark.anyio

KNOWN = "openai/text-embedding-3-small"


def litellm(most: Any) -> Any:
    """A litellm whose tokens are bytes, two of them where there are two."""

    def encode(model: str, text: str) -> list[bytes]:
        raw = text.encode()
        return [raw[i : i + 2] for i in range(0, len(raw), 2)]

    def decode(model: str, tokens: list[bytes]) -> str:
        return b"".join(tokens).decode(errors="replace")

    return SimpleNamespace(
        encode=encode, decode=decode, model_cost={"text-embedding-3-small": {"max_input_tokens": most}}
    )


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        ("abcdefgh", 3, "abcdef"),
        ("abcdefgh", 4, "abcd"),
        ("abcdefgh", None, "abcd"),
        ("a日本", 2, "a日"),
        ("日本語ab", 1, "日本"),
        ("ab", 9, "a"),
    ],
    ids=["to the limit", "at the limit", "limit unknown", "whole character", "nothing whole", "one token"],
)
async def test_cut_between_tokens(text: str, most: Any, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A known model's text is cut to as many tokens as it takes, else to half of them; no character is broken."""
    monkeypatch.setitem(sys.modules, "litellm", litellm(most))
    assert await shorten(KNOWN, text) == cut


async def test_unknown_models_are_cut_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tokenizer is not at hand, or litellm is not loaded, the cut is between words."""
    monkeypatch.setitem(sys.modules, "litellm", litellm(1))
    for model in ("mistral/mistral-embed", "openai/gpt-4o", "fast"):
        assert await shorten(model, "seven words that are far too long") == "seven words"
    monkeypatch.delitem(sys.modules, "litellm")
    assert await shorten(KNOWN, "seven words that are far too long") == "seven words"
    assert "litellm" not in sys.modules


@pytest.mark.parametrize("text", ["ab", "a b", "abcdef ghi", " " * 9, "日本", "x" * 101, "ab cdefghijklmnopq"])
def test_half_is_shorter_and_never_empty(text: str) -> None:
    """Whatever the text, its half is a beginning of it, shorter, and not empty."""
    half = halve(text)
    assert text.startswith(half)
    assert 0 < len(half) < len(text)
