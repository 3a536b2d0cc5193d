"""What a prompt is given of the user's memories."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ..errors import AsyncMemError, ModelError
from ..search.methods import MAX_QUERY

_OPENING, _CLOSING = "<user_memory>", "</user_memory>"


@dataclass(frozen=True, slots=True)
class Recalled:
    """What stands in a prompt of a user's memories and profile, and why it is not what it should be."""

    text: str = field(default="", repr=False)
    error: AsyncMemError | None = None


async def recalled(
    build: Callable[[str | None], Awaitable[str]], count: Callable[[], Awaitable[int]], message: str
) -> Recalled:
    """The user's memories as a block: all of them where they fit, else those that the message is about.

    As long as all fit the block is the same at every turn, and a provider's prompt cache stays warm.

    Args:
        build: makes the block, for a query or for none.
        count: how many memories there are.
        message: what the user says now.

    Raises:
        StoreError: they can't be read.
    """
    block = await build(None)
    if _OPENING not in block or await count() <= bullets(block):
        return Recalled(block)
    try:
        relevant = await build(message[-MAX_QUERY:])
    except ModelError as error:  # the message could not be embedded: the newest are better than none
        return Recalled(block, error)
    return Recalled(relevant if _OPENING in relevant else block)


def bullets(block: str) -> int:
    """How many memories a block shows."""
    inside = block.partition(_OPENING)[2].partition(_CLOSING)[0]
    return sum(line.startswith("- ") for line in inside.splitlines())
