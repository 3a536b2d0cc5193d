"""Looking for a request's words in what its failure says: where both are long, in a worker thread."""

from collections.abc import Sequence

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from .failures import Failure

_LONG_FAILURE = 2_000
_LONG_PROMPT = 100_000
"""Characters; what goes beyond holds the event loop for longer than 10 ms."""
_limiter: RunVar[CapacityLimiter] = RunVar("asyncmem.llm.aside")


async def heard(failure: Failure, told: Sequence[str]) -> Failure:
    """The failure of a request that told the model this, in the provider's own words: without what they repeat."""
    if len(failure.text) > _LONG_FAILURE or (failure.text and sum(map(len, told)) > _LONG_PROMPT):
        # the usual threads may all be waiting for this very call
        return await anyio.to_thread.run_sync(failure.heard, told, abandon_on_cancel=True, limiter=_own())
    return failure.heard(told)


def _own() -> CapacityLimiter:
    """This loop's limiter of threads that do nothing else."""
    found = _limiter.get(None)
    if found is None:
        found = CapacityLimiter(2)
        _limiter.set(found)
    return found
