"""How much a function does: in calls, which a busy machine doesn't change."""

import sys
from collections.abc import Callable


def work(function: Callable[[], object]) -> int:
    """The calls that a function makes, of Python's functions and of C's."""
    count = 0

    def watch(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count
