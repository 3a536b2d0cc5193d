"""Work on long texts in a worker thread, so that the event loop goes on meanwhile."""

from collections.abc import Callable, Sequence
from typing import TypeVar, TypeVarTuple, Unpack

import anyio.to_thread

from .failures import Failure

R = TypeVar("R")
Ts = TypeVarTuple("Ts")
LONG = 4_000
"""Characters that are worked on at once: more would hold the loop for longer than 20 ms."""


async def aside(size: int, work: Callable[[Unpack[Ts]], R], *arguments: *Ts) -> R:
    """What the work gives, which goes through so many characters; it is waited for also by who is cancelled."""
    return await anyio.to_thread.run_sync(work, *arguments) if size > LONG else work(*arguments)


def size_of(failure: Failure, told: Sequence[str]) -> int:
    """Characters that are gone through to tell a failure's own words from those that the model was told."""
    return len(failure.text) + sum(map(len, told))
