"""Which memories are too old, or too many (pure)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from ..errors import InvalidQueryError
from ..types import UserMemory


def clean_limits(max_age: object, max_count: object) -> tuple[timedelta | None, int | None]:
    """Checked limits.

    Raises:
        InvalidQueryError: neither is given, or one is no positive time span or no count.
    """
    if max_age is None and max_count is None:
        raise InvalidQueryError("say what is to go: max_age=timedelta(days=365), max_count=500, or both")
    if max_age is not None and (not isinstance(max_age, timedelta) or max_age < timedelta(0)):
        raise InvalidQueryError(f"max_age must be a timedelta that is not negative, not {max_age!r:.50}")
    if max_count is not None and (not isinstance(max_count, int) or isinstance(max_count, bool) or max_count < 0):
        raise InvalidQueryError(f"max_count must be an int that is not negative, not {max_count!r:.50}")
    return max_age, max_count


def clean_flags(**flags: object) -> None:
    """Take True and False only: what decides whether something is removed is not guessed.

    Raises:
        InvalidQueryError: one is something else.
    """
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise InvalidQueryError(f"{name} must be True or False, not {value!r:.50}")


def to_prune(
    memories: Sequence[UserMemory],
    now: datetime,
    max_age: timedelta | None,
    max_count: int | None,
    *,
    keep_pinned: bool,
) -> list[UserMemory]:
    """The memories to go, oldest update first.

    Args:
        memories: all of a user's, oldest update first.
        now: the time that ages are counted from.
        max_age: what was last updated longer ago goes; what has no time stays.
        max_count: so many stay, the newest.
        keep_pinned: pinned ones never go; they count all the same.
    """
    loose = [m for m in memories if not (keep_pinned and m.pinned)]
    old = [m for m in loose if max_age is not None and m.updated_at is not None and now - m.updated_at > max_age]
    if max_count is None:
        return old
    left = len(memories) - len(old)
    aged = {m.memory_id for m in old}
    surplus = [m for m in loose if m.memory_id not in aged][: max(0, left - max_count)]
    going = aged | {m.memory_id for m in surplus}
    return [m for m in loose if m.memory_id in going]
