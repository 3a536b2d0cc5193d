"""How much a function does: in calls, which a busy machine doesn't change."""

import signal
import sys
from collections.abc import Callable
from types import FrameType

HANGING = 60
"""Seconds of CPU after which a function is taken for one that does not end: calls of C, such as a regular expression's,
are counted only once they return."""


class HangingError(Exception):
    """A function did not end."""


def work(function: Callable[[], object]) -> int:
    """The calls that a function makes, of Python's functions and of C's."""
    count = 0

    def watch(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise HangingError

    before, handler = sys.getprofile(), signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANGING)
    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(before)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
    return count
