"""What an optimization wants exchanged, and what came of it (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..runs import OptimizationRun
from ..types import UserMemory

if TYPE_CHECKING:  # it knows BSON, which nothing needs before the store is opened
    from .rows import Vectors


@dataclass(frozen=True, slots=True)
class SwapPlan:
    """What is to change hands together.

    Attributes:
        run_id: names the optimization; a new one each time.
        user_id: whose memories.
        strategy: the strategy's name.
        retire: memories that go, as they were read.
        revise: memories that get other values, each as it was read and as it is to become.
        rest: memories that stay, and say what some of those say that go.
        add: new memories. The store gives them ids of its own.
        cause: what the changes record as their cause.
        erasures: what ``Captures.begun`` said before the memories were read.
        vectors: those of the new texts, as far as they are known.
    """

    run_id: str
    user_id: str
    strategy: str
    retire: Sequence[UserMemory] = ()
    revise: Sequence[tuple[UserMemory, UserMemory]] = ()
    rest: Sequence[UserMemory] = ()
    add: Sequence[UserMemory] = ()
    cause: str = "optimize"
    erasures: int = 0
    vectors: "Vectors" = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True)
class Swapped:
    """What came of a swap.

    Attributes:
        run: by which it is listed and undone.
        added: the new memories; one whose text a living memory says already is not among them.
        revised: the memories with other values, as they are now.
        retired: the memories that are gone, as they were read.
        stayed: memories that were to go or to be revised, but were changed meanwhile, as they are now.
    """

    run: OptimizationRun
    added: list[UserMemory] = field(default_factory=list[UserMemory])
    revised: list[UserMemory] = field(default_factory=list[UserMemory])
    retired: list[UserMemory] = field(default_factory=list[UserMemory])
    stayed: list[UserMemory] = field(default_factory=list[UserMemory])
