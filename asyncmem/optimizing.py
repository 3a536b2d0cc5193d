"""The manager's verbs that make fewer memories of many. Wiring only."""

from abc import ABC, abstractmethod
from functools import cached_property

from .cleaning import clean_id
from .llm import LLM
from .optimize.curator import Curation, Curator
from .optimize.optimizer import Optimizer
from .optimize.pruning import clean_flags
from .optimize.results import OptimizationResult
from .optimize.strategy import MemoryOptimizationStrategy, MemoryOptimizationStrategyType, to_strategy
from .runs import OptimizationRun, OptimizationUndo
from .search import SearchEngine
from .settings import Settings
from .store.opening import Opening
from .tasks import Tasks


class OptimizationVerbs(ABC):
    """What ``MemoryManager`` does to keep memories few and tidy."""

    _opening: Opening
    _search: SearchEngine
    _settings: Settings
    _tasks: Tasks
    _llm: LLM

    @abstractmethod
    def _user(self, user_id: str | None) -> str: ...

    @cached_property
    def _optimizer(self) -> Optimizer:
        return Optimizer(self._llm, self._search)

    @property
    def curation(self) -> Curation:
        """What this manager's curators work with."""
        return Curation(self._opening.store, self._user, self._optimizer, self._settings, self._tasks)

    @property
    def curator(self) -> Curator:
        """Prunes and deduplicates this manager's memories."""
        return Curator(self)

    async def optimize_memories(
        self,
        *,
        user_id: str | None = None,
        strategy: MemoryOptimizationStrategyType | MemoryOptimizationStrategy | str = (
            MemoryOptimizationStrategyType.SUMMARIZE
        ),
        apply: bool = True,
    ) -> OptimizationResult:
        """Make fewer memories of a user's many; a sequence of the new ones that tells what became of the others.

        Numbers, dates, names, negations, quotations and telling words of what retires are looked for in what stays;
        a memory of which something is missing stays as it is. Pinned memories are left out. What others add or change
        meanwhile survives. ``undo_optimization`` takes it back.

        Args:
            user_id: whose.
            strategy: ``"summarize"`` (all into one), ``"time_window"`` (what is older than the newest), ``"topics"``
                (topic by topic), ``"deduplicate"`` (no model), or a ``MemoryOptimizationStrategy`` of your own.
            apply: write the result; ``False`` gives a preview.

        Raises:
            ConfigurationError: there is no such strategy.
            OptimizationError: the strategy, or the model's reply, can't be used. Nothing was touched.
            OptimizationConflictError: this user's memories are being optimized already, or one that the result rests
                on was deleted meanwhile. Nothing was touched.
            ModelError: the model could not be asked. Nothing was touched.
        """
        owner, chosen = self._user(user_id), to_strategy(strategy, self._settings.clock)
        clean_flags(apply=apply)
        return await self._optimizer.optimize(await self._opening.store(), owner, chosen, apply=apply)

    async def list_optimizations(self, *, user_id: str | None = None) -> list[OptimizationRun]:
        """A user's optimizations that can still be undone, or were, newest first."""
        owner = self._user(user_id)
        return await (await self._opening.store()).swaps.runs(owner)

    async def undo_optimization(self, run_id: str, *, user_id: str | None = None) -> OptimizationUndo:
        """Bring back what an optimization retired, as it was, and remove what it made; what came of it.

        A memory of the run that was changed since stays, and the result names it.

        Raises:
            OptimizationNotFoundError: this user has no such run, or its retention has ended.
            OptimizationConflictError: it was undone already, or this user's memories are being optimized.
        """
        owner, run_id = self._user(user_id), clean_id(run_id, "run_id")
        return await (await self._opening.store()).swaps.undo(owner, run_id)
