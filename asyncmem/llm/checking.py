"""What callers of ``LLM`` pass, checked (pure)."""

from collections.abc import Mapping, Sequence
from typing import Any

from asyncmem.errors import InvalidInputError

from .chat import WireMessage


def clean_turns(messages: Sequence[Mapping[str, Any]]) -> list[WireMessage]:
    """A copy of the messages.

    Raises:
        InvalidInputError: there are none.
    """
    if not messages:
        raise InvalidInputError("messages is empty: a model needs at least one")
    return [dict(message) for message in messages]


def check_positive(**given: object) -> None:
    """Each value is ``None`` or a whole number from 1 on.

    Raises:
        InvalidInputError: one is not.
    """
    for name, value in given.items():
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise InvalidInputError(f"{name} must be a whole number from 1 on")
