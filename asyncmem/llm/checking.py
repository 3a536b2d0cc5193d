"""What callers of ``LLM`` pass, checked (pure)."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, cast

from asyncmem.cleaning import encodable
from asyncmem.errors import AsyncMemError, ConfigurationError, InvalidInputError

from .chat import WireMessage
from .schemas import texts

_SHAPE = "a list of dicts in OpenAI's shape, such as [{'role': 'user', 'content': 'Hi'}]"
NESTED = (
    "model is an LLM already: pass the model that it was made of, such as 'openai/gpt-4o-mini', and the settings beside"
    " it: LLM(model, LLMSettings(...)), or llm=LLMSettings(...) of MemoryManager and Agent"
)
"""What is said of an ``LLM`` in the place of a model."""
_OBSERVER = "objects with a method on_call(report)"


def listed(given: object, rule: str, error: type[AsyncMemError] = InvalidInputError) -> Sequence[object]:
    """What was given, which is a list or the like, and no text.

    Raises:
        InvalidInputError: it is not; or an error of another class.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise error(f"{rule}, not a {type(given).__name__}")
    return cast("Sequence[object]", given)


def clean_turns(messages: Sequence[Mapping[str, Any]]) -> list[WireMessage]:
    """A copy of the messages.

    Raises:
        InvalidInputError: there are none, they are no list of messages, or a text of theirs can't be sent.
    """
    for place, message in enumerate(listed(messages, f"messages must be {_SHAPE}")):
        if not isinstance(message, Mapping):
            raise InvalidInputError(f"messages must be {_SHAPE}: number {place} is a {type(message).__name__}")
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
        if isinstance(cast("object", text), str) and not encodable(text):
            raise InvalidInputError(
                f"text {place} holds half of a surrogate pair, which can't be sent: remove it, or read the text anew"
                " with the right encoding"
            )


def clean_texts(texts: Sequence[str], *, blank: bool = False) -> list[str]:
    """A copy of the texts; those that may be ``blank`` may be such as can't be sent, too.

    Raises:
        InvalidInputError: they are no list of texts, or one is blank or can't be sent.
    """
    for place, text in enumerate(listed(texts, "texts must be a list of texts, [text] for one")):
        if not isinstance(text, str):
            raise InvalidInputError(f"texts must be a list of str: number {place} is a {type(text).__name__}")
        if not blank and not text.strip():
            raise InvalidInputError(f"texts has a blank text at number {place}: leave it out")
    if not blank:
        check_texts(texts)
    return list(texts)


def clean_ranking(query: str, texts: Sequence[str]) -> list[str]:
    """A copy of the texts that are to be ranked.

    Raises:
        InvalidInputError: they are no list of texts, the query is no text, or one of them can't be sent.
    """
    given = cast("object", query)
    if not isinstance(given, str):
        raise InvalidInputError(f"query must be a str, not a {type(given).__name__}")
    ranked = clean_texts(texts, blank=True)
    check_texts(ranked)
    if not encodable(query):
        raise InvalidInputError("the query holds half of a surrogate pair, which can't be sent: remove it")
    return ranked


def check_kind(name: str, given: object, kind: type, *, optional: bool = False) -> None:
    """It is of that class, or ``None`` where it is optional.

    Raises:
        ConfigurationError: it is not.
    """
    if not isinstance(given, kind) and not (optional and given is None):
        raise ConfigurationError(f"{name} must be {kind.__name__}(...), not a {type(given).__name__}")


def check_observers(given: object) -> None:
    """They are a list of objects that can be told of calls.

    Raises:
        ConfigurationError: they are not.
    """
    for observer in listed(given, f"observers must be a list of {_OBSERVER}", ConfigurationError):
        told: object = getattr(observer, "on_call", None)
        if isinstance(observer, type) or not callable(told):
            wrong = f"the class {observer.__name__}" if isinstance(observer, type) else f"a {type(observer).__name__}"
            raise ConfigurationError(f"observers must be a list of {_OBSERVER}, not {wrong}")
        if inspect.iscoroutinefunction(told):
            raise ConfigurationError(
                f"the on_call of {type(observer).__name__} must be a plain method ('def'): an async one would never run"
            )


def check_positive(**given: object) -> None:
    """Each value is ``None`` or a whole number from 1 on.

    Raises:
        InvalidInputError: one is not.
    """
    for name, value in given.items():
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise InvalidInputError(f"{name} must be a whole number from 1 on")
