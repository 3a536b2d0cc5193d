"""Which memory a model means by what it writes (pure)."""

import re
from collections.abc import Sequence

from .operations import fold
from .types import UserMemory

_ALIAS = re.compile(
    r"\s*(?:memory_id|memory|id|m|#)?\s*[:#]?\s*(\d{1,6})\s*(?:[:.)\-]\s*(.*))?\s*", re.DOTALL | re.IGNORECASE
)
_ENOUGH = 8
"""Characters of a memory's beginning that tell it from the others."""


def resolve_alias(alias: str, memories: Sequence[UserMemory]) -> UserMemory | None:
    """The memory that a model means, or ``None`` when there is none, or when number and text contradict each other.

    Taken are ``2``, ``"2"``, ``"id: 2"``, ``"m2"``, ``"2: its text"`` and the text alone. Models, small ones above
    all, mix up numbers but not meaning: so the text decides where it is given.

    Args:
        alias: what the model wrote.
        memories: what it was shown, in order: the first is 1.
    """
    match = _ALIAS.fullmatch(alias)
    number, text = (int(match[1]), fold(match[2] or "")) if match else (0, fold(alias))
    numbered = memories[number - 1] if 0 < number <= len(memories) else None
    if not text:
        return numbered
    same = [memory for memory in memories if fold(memory.memory) == text]
    if same:
        return numbered if numbered in same else same[0]
    begins = [m for m in memories if len(text) >= _ENOUGH and _either_begins(fold(m.memory), text)]
    if numbered is not None and (numbered in begins or (not begins and _share_words(numbered.memory, text))):
        return numbered
    return begins[0] if len(begins) == 1 else None


def _either_begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _share_words(one: str, other: str) -> bool:
    """Whether half of the copied words stand in the memory: an inexact copy, rather than another memory."""
    words, known = set(fold(other).split()), set(fold(one).split())
    return 2 * len(words & known) >= len(words)
