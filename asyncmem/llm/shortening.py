"""Cutting a text that is too long for an embedding model."""

import importlib
import sys
from typing import Any

import anyio.to_thread


async def shorten(model: str, text: str) -> str:
    """A beginning of the text: what fits the model, or else half of it.

    Where the model's tokenizer is at hand, the cut is between two tokens, after as many as the model takes; else it is
    between words. Nothing is downloaded; tokenizing takes a worker thread, not the event loop.

    Args:
        model: the model's name.
        text: two characters or more.
    """
    return await anyio.to_thread.run_sync(_shorten, model, text, abandon_on_cancel=True)


def halve(text: str) -> str:
    """The first half of the text, cut between words where there are any."""
    half = text[: max(1, len(text) // 2)]
    words = half.rsplit(None, 1)
    return words[0] if len(words) == 2 and len(words[0]) > len(half) // 2 else half


def _shorten(model: str, text: str) -> str:
    name = model.rpartition("/")[2]
    # an embedder of the application's own is no reason to spend seconds on importing litellm
    litellm: Any = sys.modules.get("litellm")
    if litellm is None or not _has_tokenizer(name):
        return halve(text)
    tokens: list[int] = litellm.encode(model=name, text=text)
    most = litellm.model_cost.get(name, {}).get("max_input_tokens")
    keep = most if isinstance(most, int) and most < len(tokens) else len(tokens) // 2
    cut = str(litellm.decode(model=name, tokens=tokens[:keep]))
    # a character may be made of several tokens: of one that the cut goes through, nothing is kept
    while not text.startswith(cut):
        cut = cut[:-1]
    return cut or halve(text)


def _has_tokenizer(name: str) -> bool:
    """litellm has the model's own tokenizer on disk.

    For all others it would take one that is not the model's, or download one.

    Source: ``litellm/litellm_core_utils/tokenizers``; tiktoken's ``model.py`` says which model has which.
    """
    try:
        encoding: object = importlib.import_module("tiktoken").encoding_name_for_model(name)
    except KeyError:
        return False
    return encoding == "cl100k_base"
