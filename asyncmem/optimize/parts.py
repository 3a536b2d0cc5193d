"""Memories that exceed one request, in parts (pure)."""

from collections.abc import Sequence

from ..cleaning import MAX_TEXT
from ..prompts import estimate_tokens
from .separators import split_sentences

PER_MEMORY = 4
"""Tokens that a memory takes in a prompt besides its text: bullet or quotes, line break."""


def cost(text: str) -> int:
    """Estimated tokens of a memory in a request."""
    return estimate_tokens(text) + PER_MEMORY


def parts_of(costs: Sequence[int], budget: int) -> list[list[int]]:
    """The places of the memories in parts of about the same size, none of which exceeds the budget.

    A memory that exceeds it alone is a part of its own.
    """
    parts = max(1, -(-sum(costs) // max(1, budget)))
    fair = -(-sum(costs) // parts)
    filled: list[list[int]] = []
    room = 0
    for place, tokens in enumerate(costs):
        if not filled or tokens > room:
            filled.append([])
            room = max(fair, min(budget, fair + max(costs)))
        filled[-1].append(place)
        room -= tokens
    return filled


def storable(text: str) -> list[str]:
    """The text in pieces that a memory may hold, cut between sentences.

    A single sentence that is too long is a piece of its own.
    """
    pieces: list[str] = []
    for sentence in split_sentences(text) if len(text) > MAX_TEXT else [text]:
        if pieces and len(pieces[-1]) + 1 + len(sentence) <= MAX_TEXT:
            pieces[-1] += f" {sentence}"
        else:
            pieces.append(sentence)
    return pieces
