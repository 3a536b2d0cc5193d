"""Optimizations that were applied, and what undoing one did: frozen values."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from .values import UserMemory

RunStatus = Literal["applied", "undone"]


@dataclass(frozen=True, slots=True)
class OptimizationRun:
    """One applied optimization of one user's memories.

    Attributes:
        run_id: names it, for ``undo_optimization``.
        user_id: whose memories.
        strategy: the name of the strategy.
        at: when it was applied.
        status: ``"applied"``, or ``"undone"``.
        retired: how many memories went to the archive.
        revised: how many got another text or other topics.
        added: how many are new.
        undo_until: until when it can be undone: the old memories' retention ends then.
    """

    run_id: str
    user_id: str
    strategy: str
    at: datetime
    status: RunStatus
    retired: int
    revised: int
    added: int
    undo_until: datetime


@dataclass(frozen=True, slots=True)
class OptimizationUndo:
    """What undoing an optimization did.

    Attributes:
        run: the optimization, which is undone now.
        restored: memories that came back as they were: retired ones, and revised ones with their old values.
        removed: how many of the memories that it had added are gone again.
        stayed: living memories that were left as they are: those of the run that were changed after it, and those
            that say the same as a memory that would have come back.
    """

    run: OptimizationRun
    restored: list[UserMemory] = field(default_factory=list[UserMemory])
    removed: int = 0
    stayed: list[UserMemory] = field(default_factory=list[UserMemory])
