"""What an optimization or a curation did, or would do."""

from dataclasses import dataclass, field
from datetime import timedelta

from ..types import MemorySequence, Usage, UserMemory
from .preserving import PreservationReport


@dataclass(frozen=True, slots=True)
class OptimizationResult(MemorySequence):
    """A sequence of the memories that an optimization made, which also says what became of the others.

    Attributes:
        memories: what was made: new ones, and such as live on with other words or topics.
        strategy: the strategy's name.
        applied: whether it was written. A preview was not, nor what changes nothing.
        run_id: by which ``undo_optimization`` takes it back; ``None`` when nothing was written.
        reason: why nothing is changed; "" when something is.
        retired: the memories that the new ones replace.
        kept: the memories that stay as they are: pinned, left alone by the strategy, or with facts that the new ones
            lack.
        stayed: memories that somebody changed while the strategy worked, and that therefore stay too.
        report: which facts were checked, and which were missing.
        tokens_before: what the user's memories take in a prompt: their texts, and a line's frame for each.
        tokens_after: the same afterwards.
        tokens_exact: whether the model's own tokenizer counted; else it is an estimate.
        usage: model calls, tokens and cost.
        duration: wall-clock time of the whole.
    """

    strategy: str = ""
    applied: bool = False
    run_id: str | None = None
    reason: str = ""
    retired: list[UserMemory] = field(default_factory=list[UserMemory])
    kept: list[UserMemory] = field(default_factory=list[UserMemory])
    stayed: list[UserMemory] = field(default_factory=list[UserMemory])
    report: PreservationReport = field(default_factory=PreservationReport)
    tokens_before: int = 0
    tokens_after: int = 0
    tokens_exact: bool = False
    usage: Usage = field(default_factory=Usage)
    duration: timedelta = timedelta()

    def __str__(self) -> str:
        if self.reason:
            return f"{self.strategy}: nothing changed, {self.reason}"
        before, after = len(self.retired) + len(self.kept), len(self.memories) + len(self.kept)
        done = "applied" if self.applied else "preview"
        tokens = f"{self.tokens_before} to {self.tokens_after} tokens"
        return f"{self.strategy}: {before} to {after} memories, {tokens}, {self.usage.calls} model calls ({done})"


@dataclass(frozen=True, slots=True)
class CurationResult(MemorySequence):
    """A sequence of the memories that a curation removed.

    Attributes:
        memories: what was removed; ``revert`` brings it back while the archive keeps it.
        user_id: whose.
        dry_run: nothing was removed: it is what would have been.
        kept: how many memories the user has left of those that were looked at.
        run_id: by which ``undo_optimization`` takes a deduplication back.
    """

    user_id: str = ""
    dry_run: bool = False
    kept: int = 0
    run_id: str | None = None

    @property
    def removed(self) -> int:
        """How many memories were removed."""
        return len(self.memories)
