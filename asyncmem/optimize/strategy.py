"""The strategies that asyncmem brings."""

import asyncio
import reprlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

import anyio.to_thread

from ..cleaning import utc_now
from ..errors import ConfigurationError
from ..types import UserMemory
from .contract import MemoryOptimizationStrategy as MemoryOptimizationStrategy  # these names are public here too
from .contract import MemoryOptimizationStrategyType as MemoryOptimizationStrategyType
from .merging import check_one_user, merged
from .model import OptimizationModel
from .near import duplicate_groups
from .summarizing import first_error, stays, summarize

KEEP = timedelta(days=30)
"""How old memories may be that ``TimeWindowStrategy`` leaves as they are, unless it is told otherwise."""


class SummarizeStrategy(MemoryOptimizationStrategy):
    """Many memories into one comprehensive one, or several where one would be too long.

    What exceeds the model's budget is summarised in parts, and then the parts. Memories that the model fails to say
    stay as they are, as do those that expire and those suspected of instructing a model.
    """

    name: str = MemoryOptimizationStrategyType.SUMMARIZE.value

    async def optimize(self, memories: Sequence[UserMemory], model: OptimizationModel) -> list[UserMemory]:
        """The memories as few as the model manages.

        Raises:
            OptimizationError: the model's text can't be used.
            ModelError: the model could not be asked.
            MixedUsersError: the memories are of several users.
        """
        check_one_user(memories)
        return await summarize(memories, model)


class TimeWindowStrategy(MemoryOptimizationStrategy):
    """The newest memories stay as they are, what is older is summarised.

    Args:
        keep: how long ago a memory that stays was last changed, at most; by default 30 days.
        keep_count: how many stay instead.
        clock: gives the time now.

    Raises:
        ConfigurationError: both are given, or one is negative.
    """

    name: str = MemoryOptimizationStrategyType.TIME_WINDOW.value

    def __init__(
        self, keep: timedelta | None = None, *, keep_count: int | None = None, clock: Callable[[], datetime] = utc_now
    ) -> None:
        if keep is not None and keep_count is not None:
            raise ConfigurationError("pass keep or keep_count, not both")
        age, count = cast("object", keep), cast("object", keep_count)
        if not (age is None or (isinstance(age, timedelta) and age >= timedelta(0))):
            raise ConfigurationError("keep must be a timedelta that is not negative, such as timedelta(days=30)")
        if not (count is None or (type(count) is int and count >= 0)):
            raise ConfigurationError("keep_count must be an int that is not negative")
        self._keep = KEEP if keep is None else keep
        self._count = keep_count
        self._clock = clock

    async def optimize(self, memories: Sequence[UserMemory], model: OptimizationModel) -> list[UserMemory]:
        """What is older as few memories as the model manages, then the newest as they are.

        Raises:
            OptimizationError: the model's text can't be used.
            ModelError: the model could not be asked.
            MixedUsersError: the memories are of several users.
        """
        check_one_user(memories)
        older = self._older(memories)
        known = set(map(id, older))
        newest = [memory for memory in memories if id(memory) not in known]
        return [*await summarize(older, model), *newest]

    def _older(self, memories: Sequence[UserMemory]) -> list[UserMemory]:
        ordered = sorted(memories, key=_changed)
        if self._count is not None:
            return ordered[: max(0, len(ordered) - self._count)]
        since = self._clock() - self._keep
        return [memory for memory in ordered if _changed(memory) < since]


class TopicsStrategy(MemoryOptimizationStrategy):
    """Summarises cluster by cluster: memories of a topic together, those without topics by the words they share."""

    name: str = MemoryOptimizationStrategyType.TOPICS.value

    async def optimize(self, memories: Sequence[UserMemory], model: OptimizationModel) -> list[UserMemory]:
        """One memory a cluster, or as few as the model manages.

        Raises:
            OptimizationError: the model's text can't be used.
            ModelError: the model could not be asked.
            MixedUsersError: the memories are of several users.
        """
        check_one_user(memories)
        kept = [memory for memory in memories if stays(memory)]
        clusters = await anyio.to_thread.run_sync(_clusters_of, [m for m in memories if not stays(m)])
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(summarize(cluster, model)) for cluster in clusters]
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        return [memory for task in tasks for memory in task.result()] + kept


class DeduplicateStrategy(MemoryOptimizationStrategy):
    """Folds exact and near duplicates into the one that says most. No model is asked."""

    name: str = MemoryOptimizationStrategyType.DEDUPLICATE.value

    async def optimize(self, memories: Sequence[UserMemory], model: OptimizationModel) -> list[UserMemory]:  # noqa: ARG002  none is asked
        """The memories without duplicates; a survivor keeps its id and text, and gets the topics of all.

        Raises:
            MixedUsersError: the memories are of several users.
        """
        check_one_user(memories)
        return await anyio.to_thread.run_sync(_folded, list(memories))


def to_strategy(value: object, clock: Callable[[], datetime] = utc_now) -> MemoryOptimizationStrategy:
    """The strategy: one of ours by its enum or that's string, in any case, or an instance of your own.

    Args:
        value: says which.
        clock: gives the time now, to one of ours that asks for it.

    Raises:
        ConfigurationError: it is neither.
    """
    if isinstance(value, MemoryOptimizationStrategy):
        return value
    if isinstance(value, str):
        made = _OURS.get(value.strip().casefold())
        if made is not None:
            return made(clock=clock) if made is TimeWindowStrategy else made()
    what = f"the class {value.__name__}: pass an instance" if isinstance(value, type) else reprlib.repr(value)
    names = ", ".join(f"{name!r}" for name in _OURS)
    raise ConfigurationError(f"strategy must be one of {names}, or a MemoryOptimizationStrategy, not {what}")


_OURS: dict[str, type[MemoryOptimizationStrategy]] = {
    MemoryOptimizationStrategyType.SUMMARIZE.value: SummarizeStrategy,
    MemoryOptimizationStrategyType.TIME_WINDOW.value: TimeWindowStrategy,
    MemoryOptimizationStrategyType.TOPICS.value: TopicsStrategy,
    MemoryOptimizationStrategyType.DEDUPLICATE.value: DeduplicateStrategy,
}
_NEVER = datetime.min.replace(tzinfo=UTC)


def _clusters_of(memories: Sequence[UserMemory]) -> list[list[UserMemory]]:
    from .clustering import clusters_of  # it needs numpy, which is imported in this worker thread

    return clusters_of(memories)


def _changed(memory: UserMemory) -> datetime:
    return memory.updated_at or _NEVER


def _folded(memories: list[UserMemory]) -> list[UserMemory]:
    survivors: dict[int, UserMemory] = {}
    gone: set[int] = set()
    for group in duplicate_groups(memories):
        survivors[id(group[0])] = merged(group).onto(group[0])
        gone |= {id(memory) for memory in group[1:]}
    return [survivors.get(id(memory), memory) for memory in memories if id(memory) not in gone]
