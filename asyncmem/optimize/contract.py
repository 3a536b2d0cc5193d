"""What an optimization strategy is, and what it may return."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum

from ..errors import OptimizationError
from ..types import UserMemory
from .model import OptimizationModel


class MemoryOptimizationStrategyType(StrEnum):
    """The strategies that asyncmem brings."""

    SUMMARIZE = "summarize"
    TIME_WINDOW = "time_window"
    TOPICS = "topics"
    DEDUPLICATE = "deduplicate"


class MemoryOptimizationStrategy(ABC):
    """Makes fewer memories of many. Derive from it to bring your own.

    Storage is not its business: memories go in, memories come out. Whatever it returns, the engine looks for every
    fact of the sources in it, and keeps the sources whose facts are missing.
    """

    @property
    def name(self) -> str:
        """What results and logs call it."""
        return type(self).__name__

    @abstractmethod
    async def optimize(self, memories: Sequence[UserMemory], model: OptimizationModel) -> list[UserMemory]:
        """The memories that are to be there instead.

        A memory with the id of a source means that this source lives on, with a new text or new topics if they
        differ. One without an id is new. Sources that are not returned retire.

        Args:
            memories: of one user, without pinned ones.
            model: to be asked if the strategy needs to; it costs nothing before that.

        Raises:
            OptimizationError: what the model gave can't be used.
            ModelError: the model could not be asked.
        """


def check_results(sources: Sequence[UserMemory], results: object) -> list[UserMemory]:
    """What a strategy returned, if it may be used.

    Raises:
        OptimizationError: it is no list of memories, is empty, names a memory that was not passed in, names one twice,
            or is of another user.
    """
    if not isinstance(results, list | tuple) or not all(isinstance(each, UserMemory) for each in results):  # pyright: ignore[reportUnknownVariableType]
        raise OptimizationError(f"the strategy must return a list of UserMemory, not {type(results).__name__}")  # pyright: ignore[reportUnknownArgumentType]
    returned: list[UserMemory] = list(results)  # pyright: ignore[reportUnknownArgumentType]
    if sources and not returned:
        raise OptimizationError("the strategy returned no memories at all")
    known = {source.memory_id for source in sources}
    ids = [memory.memory_id for memory in returned if memory.memory_id is not None]
    if not known.issuperset(ids):
        raise OptimizationError("the strategy returned a memory_id that is none of the memories it was given")
    if len(set(ids)) < len(ids):
        raise OptimizationError("the strategy returned the same memory_id twice")
    users = {memory.user_id for memory in returned if memory.user_id is not None}
    if not {source.user_id for source in sources}.issuperset(users):
        raise OptimizationError("the strategy returned a memory of another user")
    return returned
