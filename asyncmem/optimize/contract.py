"""What an optimization strategy is, and what it may return."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import cast

from ..types import UserMemory
from .model import OptimizationModel


class MemoryOptimizationStrategyType(StrEnum):
    """The strategies that asyncmem brings."""

    SUMMARIZE = "summarize"
    TIME_WINDOW = "time_window"
    TOPICS = "topics"
    DEDUPLICATE = "deduplicate"


class _ClassName:
    """An attribute that is its class's name until somebody sets it."""

    def __get__(self, instance: object, owner: type) -> str:
        return owner.__name__


class MemoryOptimizationStrategy(ABC):
    """Makes fewer memories of many. Derive from it to bring your own.

    Storage is not its business: memories go in, memories come out. Whatever it returns, the engine looks for every
    fact of the sources in it, and keeps the sources whose facts are missing.

    Attributes:
        name: what results and logs call it; the class's name unless you set another.
    """

    name: str = cast("str", _ClassName())

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
