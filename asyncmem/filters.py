"""What narrows a search to some of a user's memories: typed, checked, and carried out by the server (pure)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from .cleaning import INT64, clean_filter_text, clean_filter_topics, clean_time
from .errors import InvalidMemoryError, InvalidQueryError

Scalar = str | int | float | bool | None
"""What a metadata value is compared with."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of a metadata value; numbers compare with numbers only, text with text by code points.

    Attributes:
        gte: this or more.
        gt: more than this.
        lte: this or less.
        lt: less than this.

    Raises:
        InvalidQueryError: no bound is given, or they are not all numbers, or all text.
    """

    gte: str | float | None = None
    gt: str | float | None = None
    lte: str | float | None = None
    lt: str | float | None = None

    def __post_init__(self) -> None:
        kinds = {isinstance(_scalar(bound, "a Range"), str) for bound in self.bounds.values()}
        if len(kinds) != 1 or any(isinstance(bound, bool) for bound in self.bounds.values()):
            raise InvalidQueryError("a Range needs a bound; its bounds are numbers, or text")

    @property
    def bounds(self) -> dict[str, str | float]:
        """The bounds that are set, by name."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}


@dataclass(frozen=True, slots=True)
class Filters:
    """Which of a user's memories are looked at; those that pass every filter.

    Attributes:
        topics: any of these.
        topics_all: all of these.
        created_after: created at this time or later.
        created_before: created before it.
        updated_after: updated at this time or later.
        updated_before: updated before it.
        metadata: for each key the value that it has (or that a list under it holds), or a ``Range``.
    """

    topics: tuple[str, ...] = ()
    topics_all: tuple[str, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None
    metadata: tuple[tuple[str, "Scalar | Range"], ...] = ()

    def __bool__(self) -> bool:
        return self != NO_FILTERS


NO_FILTERS = Filters()
TIMES = ("created_after", "created_before", "updated_after", "updated_before")
NAMES = ("agent_id", "team_id", "topics", "topics_all", *TIMES, "metadata")
"""What a search can be narrowed by."""


def clean_filters(
    *,
    topics: Sequence[str] | None = None,
    topics_all: Sequence[str] | None = None,
    metadata: "Mapping[str, Scalar | Range] | None" = None,
    **times: datetime | str | float | None,
) -> Filters:
    """The filters, checked.

    Raises:
        InvalidQueryError: one can't be used; query operators are never taken.
    """
    return Filters(
        clean_filter_topics(topics),
        clean_filter_topics(topics_all),
        metadata=_clean_metadata({} if metadata is None else metadata),
        **{name: _time(value, name) for name, value in times.items() if value is not None},
    )


def _time(value: object, name: str) -> datetime:
    try:
        return clean_time(value)
    except InvalidMemoryError as error:
        raise InvalidQueryError(f"{name}: {error}") from None


def _clean_metadata(metadata: object) -> "tuple[tuple[str, Scalar | Range], ...]":
    if not isinstance(metadata, Mapping):
        raise InvalidQueryError(f"metadata must be a dict of values, not {type(metadata).__name__}")
    given: Mapping[Any, Any] = metadata  # pyright: ignore[reportUnknownVariableType]
    return tuple((_key(k), v if isinstance(v, Range) else _scalar(v, "a metadata filter")) for k, v in given.items())


def _key(key: object) -> str:
    text = clean_filter_text(key, "a metadata key")
    if not text or text != key or text.startswith("$") or "." in text or "\0" in text:
        raise InvalidQueryError("a metadata key must not be empty, start with '$', or hold '.', NUL or outer space")
    return text


def _scalar(value: object, what: str) -> Scalar:
    match value:
        case None | bool():
            return value
        case str():
            clean_filter_text(value, what)
            return value
        case int() if -INT64 <= value < INT64:
            return value
        case float() if math.isfinite(value):
            return value
        case int() | float():
            raise InvalidQueryError(f"{what} needs a finite number of 64 bits")
        case _:
            if isinstance(value, Mapping):
                raise InvalidQueryError(f"{what} takes a value, or a Range(gt=, gte=, lt=, lte=), not a dict")
            raise InvalidQueryError(f"{what} takes text, numbers, True, False or None, not a {type(value).__name__}")
