"""What the values must hold to be stored and found again: clean them, or say what is wrong (pure)."""

import inspect
import math
import re
import reprlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from pydantic import JsonValue

from .errors import InvalidIdError, InvalidMemoryError, InvalidQueryError

MAX_TEXT = 8_000
"""Characters that a memory's text may have."""
MAX_TOPICS = 32
"""Topics that a memory may have."""
MAX_TOPIC = 64
"""Characters that a topic may have."""
MAX_ID = 256
"""Characters that an id may have."""
MAX_METADATA_DEPTH = 16
"""How deep objects and arrays in metadata may nest."""

MAX_INPUT = 20_000
"""Characters that ``input`` and ``feedback`` may have."""
MAX_METADATA = 65_536
"""Bytes that metadata may take, counted as UTF-8 text plus 16 a value."""
INT64 = 2**63
"""One more than the largest number that MongoDB holds."""

_HALF = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def clean_text(value: object, what: str = "memory", limit: int = MAX_TEXT) -> str:
    """The text in Unicode NFC, without control characters (newline and tab stay), stripped.

    Raises:
        InvalidMemoryError: it is not text, is blank, or has more than ``limit`` characters.
    """
    if not isinstance(value, str):
        raise InvalidMemoryError(f"{what} must be a str, not {type(value).__name__}")
    text = value.strip()
    if not (text.isascii() and text.isprintable()):
        text = unicodedata.normalize("NFC", _CONTROL.sub("", text.replace("\r\n", "\n"))).strip()
    if not text:
        raise InvalidMemoryError(f"{what} is blank: it needs 1 to {limit:,} characters")
    if len(text) > limit:
        raise InvalidMemoryError(f"{what} has {len(text):,} characters: at most {limit:,} are allowed")
    if not encodable(text):
        raise InvalidMemoryError(f"{what} holds a lone surrogate, which no encoding can store: remove it")
    return text


def clean_id(value: object, what: str) -> str:
    """The id, if it is a usable string: 1 to 256 characters, none of them a control character.

    Raises:
        InvalidIdError: it is anything else, a query operator such as ``{"$ne": None}`` included.
    """
    if not isinstance(value, str):
        raise InvalidIdError(f"{what} must be a str, not {type(value).__name__}")
    if not value.strip() or len(value) > MAX_ID:
        raise InvalidIdError(f"{what} needs 1 to {MAX_ID} characters, not only white space; it has {len(value)}")
    if _CONTROL.search(value) or any(c in "\n\t" or "\ud800" <= c <= "\udfff" for c in value):
        raise InvalidIdError(f"{what} holds a control character or a lone surrogate: remove it")
    return value


def clean_topics(value: object) -> list[str]:
    """The topics in order, cleaned, without duplicates (case apart).

    Raises:
        InvalidMemoryError: not a sequence of text, or more or longer topics than are allowed.
    """
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        raise InvalidMemoryError(f"topics must be a list of str, not {type(value).__name__}")
    items = cast("Iterable[object]", value)
    topics = fold_topics([clean_text(item, "topic", MAX_TOPIC) for item in items])
    if len(topics) > MAX_TOPICS:
        raise InvalidMemoryError(f"{len(topics)} topics: at most {MAX_TOPICS} are allowed")
    return topics


def fold_topics(topics: Sequence[str]) -> list[str]:
    """The topics in order, each once, whatever its case."""
    seen: dict[str, str] = {}
    for topic in topics:
        seen.setdefault(topic.casefold(), topic)
    return list(seen.values())


def clean_metadata(value: object) -> dict[str, JsonValue]:
    """A copy of the metadata, if MongoDB and JSON can both hold it as it is.

    Raises:
        InvalidMemoryError: a key is empty, starts with ``$`` or holds a dot or NUL; a value is not JSON; a number
            is not finite or exceeds 64 bits; it nests deeper than 16; it takes more than 64 KiB.
    """
    if not isinstance(value, Mapping):
        raise InvalidMemoryError(f"metadata must be a dict, not {type(value).__name__}")
    cleaned = _metadata_object(value, 1)  # pyright: ignore[reportUnknownArgumentType]
    if (size := _metadata_size(cleaned)) > MAX_METADATA:
        raise InvalidMemoryError(f"metadata takes {size:,} bytes: at most {MAX_METADATA:,} are allowed")
    return cleaned


def _metadata_size(value: JsonValue) -> int:
    match value:
        case str():
            return 16 + len(value.encode())
        case list():
            return 16 + sum(map(_metadata_size, value))
        case dict():
            return 16 + sum(len(k.encode()) + _metadata_size(v) for k, v in value.items())
        case _:
            return 16


def _metadata_object(value: Mapping[Any, Any], depth: int) -> dict[str, JsonValue]:
    return {_metadata_key(k): _metadata_value(v, depth + 1) for k, v in value.items()}


def _metadata_key(key: object) -> str:
    if not isinstance(key, str):
        raise InvalidMemoryError(f"a metadata key must be a str, not {type(key).__name__}")
    if not key or key.startswith("$") or "." in key or "\0" in key:
        raise InvalidMemoryError("a metadata key must not be empty, start with '$', or hold '.' or NUL: rename it")
    return _encodable(key)


def _encodable(text: str) -> str:
    if not encodable(text):
        raise InvalidMemoryError("metadata holds a lone surrogate, which no encoding can store: remove it")
    return text


def _metadata_value(value: Any, depth: int) -> JsonValue:
    if depth > MAX_METADATA_DEPTH + 1:
        raise InvalidMemoryError(f"metadata nests deeper than {MAX_METADATA_DEPTH}: flatten it")
    match value:
        case None | bool():
            return value
        case str():
            return _encodable(value)
        case int() if -INT64 <= value < INT64:
            return value
        case float() if math.isfinite(value):
            return value
        case int() | float():
            raise InvalidMemoryError("a number in metadata must be finite and fit 64 bits: store it as text")
        case list() | tuple():
            return [_metadata_value(v, depth + 1) for v in value]  # pyright: ignore[reportUnknownVariableType]
        case Mapping():
            return _metadata_object(value, depth)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise InvalidMemoryError(f"metadata can't hold a {type(value).__name__}: use JSON values")


def clean_time(value: object) -> datetime:
    """An aware UTC datetime, cut to the millisecond that MongoDB keeps.

    Takes a datetime (naive is UTC), an ISO 8601 string, or Unix seconds.

    Raises:
        InvalidMemoryError: it is none of these, or outside the years 1 to 9999.
    """
    return clean_local_time(value).astimezone(UTC)


def clean_local_time(value: object) -> datetime:
    """As ``clean_time``, in the time zone that it was given in: which day it was depends on it.

    Raises:
        InvalidMemoryError: it is no time, or outside the years 1 to 9999.
    """
    try:
        match value:
            case datetime():
                moment = value
            case str():
                moment = datetime.fromisoformat(value.strip())
            case int() | float() if not isinstance(value, bool):
                moment = _EPOCH + timedelta(seconds=value)
            case _:
                moment = datetime.fromisoformat("")
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidMemoryError(
            f"a time must be a datetime, an ISO 8601 string or Unix seconds within the years 1 to 9999; "
            f"this {type(value).__name__} is not"
        ) from None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def utc_now() -> datetime:
    """The time now: aware, UTC, to the millisecond. The default clock."""
    return clean_time(datetime.now(UTC))


def clean_limit(limit: object) -> int:
    """The limit as MongoDB takes it: 0 is all, and so are ``None`` and negative numbers.

    Raises:
        InvalidQueryError: it is not a whole number.
    """
    if limit is None:
        return 0
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise InvalidQueryError(f"limit must be an int or None, not {type(limit).__name__}")
    return min(max(limit, 0), 2**31 - 1)


def clean_timeout(timeout: object) -> float | None:
    """The seconds to wait at most; ``None`` is for ever.

    Raises:
        InvalidQueryError: it is no number of seconds.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or math.isnan(timeout) or timeout < 0:
        raise InvalidQueryError(f"timeout must be seconds, or None, not {reprlib.repr(timeout)}")
    return float(timeout)


def clean_revision(value: object, what: str) -> int:
    """The revision.

    Raises:
        InvalidQueryError: it is not a whole number from 1 on.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < INT64:
        raise InvalidQueryError(f"{what} must be an int from 1 on, not {reprlib.repr(value)}")
    return value


def encodable(text: str) -> bool:
    """Whether UTF-8 can hold the text: it has no lone surrogate."""
    return text.isascii() or _HALF.search(text) is None


def no_option(kind: type, unknown: Iterable[str]) -> str:
    """The sentence about options that a class has not, with those it has."""
    parameters = inspect.signature(kind).parameters.values()
    known = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    return f"{kind.__name__} has no option {', '.join(map(repr, unknown))}; its options are {', '.join(known)}"


def sendable(text: str) -> str:
    """The text with a question mark for what UTF-8 can't hold."""
    return text.encode("utf-8", "replace").decode()


def clean_filter_topics(topics: object) -> tuple[str, ...]:
    """The topics to filter by.

    Raises:
        InvalidQueryError: not a sequence of text.
    """
    if topics is None:
        return ()
    if isinstance(topics, str) or not isinstance(topics, Sequence):
        raise InvalidQueryError(f"topics must be a list of str, not {type(topics).__name__}")
    return tuple(clean_filter_text(topic, "a topic") for topic in topics)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def clean_filter_text(value: object, what: str) -> str:
    """Text that is compared with stored text.

    Raises:
        InvalidQueryError: it is not text, or no encoding can hold it.
    """
    if not isinstance(value, str):
        raise InvalidQueryError(f"{what} must be a str, not {type(value).__name__}")
    if not encodable(value):
        raise InvalidQueryError(f"{what} holds a lone surrogate, which no encoding can store: remove it")
    return unicodedata.normalize("NFC", value).strip()
