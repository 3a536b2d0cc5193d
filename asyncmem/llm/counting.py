"""How many tokens texts have: by the model's own tokenizer where it is at hand, else estimated."""

import importlib
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread

from asyncmem.prompts import estimate_tokens

from .loading import environment

_VARIABLE = "TIKTOKEN_CACHE_DIR"
_FILES = {
    # SHA-1 of the address that tiktoken would download it from; litellm brings the files under these names
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "o200k_harmony": "fb374d419588a4632f3f557e76b4b70aebbca790",
}


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How many tokens some texts have.

    Attributes:
        tokens: of all texts together.
        exact: counted by the model's own tokenizer; else estimated, rather too high than too low.
    """

    tokens: int
    exact: bool


async def count_tokens(model: str | None, texts: Sequence[str]) -> TokenCount:
    """Count the texts' tokens, in a worker thread and without any network.

    Args:
        model: the model's name at litellm; ``None`` where nobody knows the tokenizer.
        texts: counted one by one.

    Source: tiktoken's ``model.py`` says which model has which tokenizer; ``litellm/litellm_core_utils/tokenizers``
    holds those of OpenAI's.
    """
    return await anyio.to_thread.run_sync(_count, model, list(texts), abandon_on_cancel=True)


def _count(model: str | None, texts: Sequence[str]) -> TokenCount:
    encoding = _encoding(model.rpartition("/")[2]) if model else None
    if encoding is None:
        return TokenCount(sum(estimate_tokens(text) for text in texts if text), exact=False)
    return TokenCount(sum(len(encoding.encode_ordinary(text)) for text in texts), exact=True)


def _encoding(name: str) -> Any | None:
    """The model's own tokenizer, if it is on disk: one that is not would be downloaded."""
    tiktoken: Any = importlib.import_module("tiktoken")
    try:
        encoding: str = tiktoken.encoding_name_for_model(name)
    except KeyError:
        return None
    folder = os.environ.get(_VARIABLE) or _litellm_folder()
    if encoding not in _FILES or not (Path(folder) / _FILES[encoding]).is_file():
        return None
    with environment({_VARIABLE: folder}):
        return tiktoken.get_encoding(encoding)


def _litellm_folder() -> str:
    """Where litellm keeps them; finding it imports nothing, which would take seconds."""
    found = importlib.util.find_spec("litellm")
    places = (found.submodule_search_locations if found is not None else None) or [""]
    return str(Path(places[0]) / "litellm_core_utils" / "tokenizers")
