"""An optimization from a user's memories to the safe swap: one strategy, the check of its result, one plan."""

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio.to_thread

from ..errors import AsyncMemError, OptimizationError
from ..llm import LLM
from ..search import SearchEngine
from ..types import UserMemory
from .model import OptimizationModel
from .parts import PER_MEMORY
from .preserving import PreservationReport
from .results import OptimizationResult
from .settling import Settled, settle
from .strategy import MemoryOptimizationStrategy

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from ..store.rows import Vectors
    from ..store.store import MemoryStore
    from ..store.swaps import Swapped

TOO_FEW = "there are fewer than two memories to fold (pinned ones stay as they are)"


class Optimizer:
    """Makes fewer memories of one user's many.

    Args:
        llm: the manager's model.
        search: embeds what is new.
    """

    def __init__(self, llm: LLM, search: SearchEngine) -> None:
        self._llm = llm
        self._search = search

    async def optimize(
        self, store: "MemoryStore", user_id: str, strategy: MemoryOptimizationStrategy, *, apply: bool
    ) -> OptimizationResult:
        """Run a strategy over a user's memories, and swap what it made for what it replaces.

        Args:
            store: where the memories are.
            user_id: whose.
            strategy: what makes fewer of many.
            apply: write it; else it is a preview.
        """
        began = time.monotonic()
        only: AbstractAsyncContextManager[object] = store.swaps.reserving(user_id) if apply else nullcontext()
        async with only:
            erasures = await store.captures.begun(user_id)
            everything = await store.swaps.snapshot(user_id)
            # text that was stored as suspect is not shown to a model
            sources = [m for m in everything if not m.pinned and not m.metadata.get("suspect")]
            model = OptimizationModel(self._llm)
            settled = await _settled(sources, strategy, model)
            swapped = None
            if apply and not settled.reason:
                texts = [m.memory for m in (*settled.new, *(after for _, after in settled.revised))]
                vectors, embedding = await self._search.embedded(texts)
                model.usage += embedding
                swapped = await _swap(store, user_id, strategy.name, settled, erasures, vectors)
            return await _result(everything, settled, swapped, model, strategy.name, began)


async def _swap(
    store: "MemoryStore", user_id: str, strategy: str, settled: Settled, erasures: int, vectors: "Vectors"
) -> "Swapped":
    from ..store.swaps import SwapPlan  # it imports PyMongo, which is there by now

    plan = SwapPlan(
        run_id=uuid4().hex,
        user_id=user_id,
        strategy=strategy,
        retire=settled.retired,
        revise=settled.revised,
        rest=settled.resting,
        add=settled.new,
        cause="optimize",
        erasures=erasures,
        vectors=vectors,
    )
    return await store.swaps.swap(plan)


async def _settled(
    sources: Sequence[UserMemory], strategy: MemoryOptimizationStrategy, model: OptimizationModel
) -> Settled:
    if len(sources) < 2:
        return Settled(kept=list(sources), reason=TOO_FEW)
    try:
        # copies: whatever a strategy does to them, the check compares with what was read
        given = await anyio.to_thread.run_sync(lambda: [m.model_copy(deep=True) for m in sources])
        returned = await strategy.optimize(given, model)
    except AsyncMemError:
        raise
    except Exception as error:
        # a strategy may be the caller's own code: its error is kept, as what caused ours
        what = f"the strategy {strategy.name!r} failed with {type(error).__name__}: nothing was touched"
        raise OptimizationError(what) from error
    return await anyio.to_thread.run_sync(settle, sources, returned, strategy.name)


async def _result(
    everything: Sequence[UserMemory],
    settled: Settled,
    swapped: "Swapped | None",
    model: OptimizationModel,
    strategy: str,
    began: float,
) -> OptimizationResult:
    made = [*settled.new, *(after for _, after in settled.revised)]
    made = made if swapped is None else [*swapped.added, *swapped.revised]
    gone = {m.memory_id for m in (settled.retired if swapped is None else swapped.retired)}
    touched = gone | {m.memory_id for m in made}
    kept = [m for m in everything if m.memory_id not in touched]
    before, after = list(everything), [*kept, *made]
    counts = [await model.counted([m.memory for m in each]) for each in (before, after)]
    missing = (*model.missing, *(each for each in settled.missing if each not in model.missing))
    left = {each.memory_id for each in missing}
    report = PreservationReport(
        settled.checked, missing, model.asked_again, tuple(str(m.memory_id) for m in kept if m.memory_id in left)
    )
    return OptimizationResult(
        memories=made,
        strategy=strategy,
        applied=swapped is not None,
        run_id=None if swapped is None else swapped.run.run_id,
        reason=settled.reason,
        retired=settled.retired if swapped is None else swapped.retired,
        kept=kept,
        stayed=[] if swapped is None else swapped.stayed,
        report=report,
        tokens_before=counts[0].tokens + PER_MEMORY * len(before),
        tokens_after=counts[1].tokens + PER_MEMORY * len(after),
        tokens_exact=counts[0].exact and counts[1].exact,
        usage=model.usage,
        duration=timedelta(seconds=time.monotonic() - began),
    )
