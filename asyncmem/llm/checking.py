"""What callers of ``LLM`` pass, checked (pure)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from asyncmem.errors import InvalidInputError

from .chat import WireMessage
from .schemas import texts

_HALF = re.compile("[\ud800-\udfff]")


def clean_turns(messages: Sequence[Mapping[str, Any]]) -> list[WireMessage]:
    """A copy of the messages.

    Raises:
        InvalidInputError: there are none, or a text of theirs can't be sent.
    """
    if not messages:
        raise InvalidInputError("messages is empty: a model needs at least one")
    turns = [dict(message) for message in messages]
    check_texts(texts(turns))
    return turns


def check_texts(given: Sequence[str]) -> None:
    """Each text can be sent.

    Raises:
        InvalidInputError: one holds half of a surrogate pair, which is no character.
    """
    for place, text in enumerate(given):
        if isinstance(cast("object", text), str) and not text.isascii() and _HALF.search(text):
            raise InvalidInputError(
                f"text {place} holds half of a surrogate pair, which can't be sent: remove it, or read the text anew"
                " with the right encoding"
            )


def check_positive(**given: object) -> None:
    """Each value is ``None`` or a whole number from 1 on.

    Raises:
        InvalidInputError: one is not.
    """
    for name, value in given.items():
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise InvalidInputError(f"{name} must be a whole number from 1 on")
