"""The values that go in and come out: frozen, and usable with no database and no event loop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, overload

from .proposal_values import Proposal
from .usage import Usage as Usage  # these names are public here too
from .values import Message as Message
from .values import Scope as Scope
from .values import UserMemory as UserMemory
from .values import clean_scope as clean_scope

ChangeKind = Literal["add", "update", "delete"]
Tier = Literal["native", "json_schema", "json_object", "text"]


@dataclass(frozen=True, slots=True)
class Change:
    """One applied change of one memory.

    Attributes:
        kind: what happened.
        memory_id: to which memory.
        before: the memory as it was; ``None`` for an add.
        after: the memory as it became; ``None`` for a delete.
        cause: who or what caused it: ``"manual"``, ``"capture"``, ``"revert"`` …
        at: when.
        evidence: the user's words that a capture rests it on.
        sources: indexes of the messages in which those words stand, as they were passed in.
    """

    kind: ChangeKind
    memory_id: str
    before: UserMemory | None
    after: UserMemory | None
    cause: str
    at: datetime
    evidence: str | None = None
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """One decided operation that was not applied.

    Attributes:
        op: which operation.
        reason: why, in a sentence without the memory's text.
        memory: the text that was not written, if there was one.
        memory_id: which memory it was for, if that is known.
    """

    op: str
    reason: str
    memory: str | None = None
    memory_id: str | None = None


CaptureEnd = Literal["done", "rounds", "operations"]


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """What a capture decided and what came of it.

    Attributes:
        changes: what was applied (for a preview: what would be), in order.
        skipped: what was decided and not applied, each with its reason.
        usage: model calls, tokens and cost.
        tier: which step of the ladder gave the plan; ``None`` when tools were called, or no model was asked.
        duration: wall-clock time of the whole capture.
        tools: the model decided by tool calls rather than by a plan.
        windows: parts that the conversation was read in; 0 when no model was asked.
        ended: ``"done"``, or the limit that stopped the model: ``"rounds"`` of calls, or ``"operations"``.
        repeated: these messages, or this idempotency key, were captured before: nothing was done.
        proposals: what waits for approval, where a ``LearningMachine`` captures in such a mode.
    """

    changes: list[Change] = field(default_factory=list[Change])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    usage: Usage = field(default_factory=Usage)
    tier: Tier | None = None
    duration: timedelta = timedelta()
    tools: bool = False
    windows: int = 0
    ended: CaptureEnd = "done"
    repeated: bool = False
    proposals: list[Proposal] = field(default_factory=list[Proposal])

    def __str__(self) -> str:
        kinds = [change.kind for change in self.changes]
        counts = ", ".join(f"{kinds.count(k)} {k}" for k in ("add", "update", "delete") if k in kinds)
        how = "tools" if self.tools else self.tier or "none"
        marks = [f"{self.windows} windows"] if self.windows > 1 else []
        marks += [f"stopped at the limit of {self.ended}"] if self.ended != "done" else []
        marks += ["captured before"] if self.repeated else []
        waiting = [f"{len(self.proposals)} proposed"] if self.proposals else []
        return ", ".join(
            [
                counts or "no change",
                *waiting,
                f"{len(self.skipped)} skipped",
                f"{self.usage.calls} model calls ({how})",
                *marks,
                f"{self.duration.total_seconds():.2f} s",
            ]
        )


@dataclass(frozen=True, slots=True)
class MemorySequence(Sequence[UserMemory]):
    """Memories in order, to which a result adds what it says beside.

    Attributes:
        memories: the memories.
    """

    memories: list[UserMemory] = field(default_factory=list[UserMemory])

    @overload
    def __getitem__(self, index: int) -> UserMemory: ...
    @overload
    def __getitem__(self, index: slice) -> list[UserMemory]: ...
    def __getitem__(self, index: int | slice) -> UserMemory | list[UserMemory]:
        return self.memories[index]

    def __len__(self) -> int:
        return len(self.memories)

    def __iter__(self) -> Iterator[UserMemory]:
        return iter(self.memories)


@dataclass(frozen=True, slots=True)
class MemorySearchResult(MemorySequence):
    """An ordered sequence of memories that says how they were found.

    Attributes:
        memories: the memories, in the order that the method promises.
        scores: one a memory where the method ranks by a score, else empty.
        tier: which step of the ladder answered; ``None`` when no model was asked.
        degraded: the method failed and another one answered, as the caller allowed.
        usage: model calls, tokens and cost.
        method: the retrieval method that answered.
        not_embedded: memories that have no vector yet, so that meaning alone could not find them.
    """

    scores: list[float] = field(default_factory=list[float])
    tier: Tier | None = None
    degraded: bool = False
    usage: Usage = field(default_factory=Usage)
    method: str = ""
    not_embedded: int = 0


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What was erased of one user.

    Attributes:
        user_id: whose data it was.
        counts: what was removed, by kind: ``"memories"``, ``"archive"``, ``"captures"``,
            ``"optimizations"``, ``"jobs"``, ``"profiles"``, ``"sessions"`` (one an exchange), ``"proposals"``.
        at: when.
    """

    user_id: str
    counts: dict[str, int]
    at: datetime

    @property
    def total(self) -> int:
        """Rows that were removed in all."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """What the queue of scheduled captures looks like, over all processes.

    Attributes:
        depth: captures that wait for a worker.
        oldest: how long the oldest capture that is not done has been in the queue, by the server's clock; ``None``
            when there is none.
        in_flight: captures that a worker has taken.
        dead: captures that were set aside as dead letters.
    """

    depth: int = 0
    oldest: timedelta | None = None
    in_flight: int = 0
    dead: int = 0


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What the workers of one manager did.

    Attributes:
        done: scheduled captures that are done.
        failed: attempts that failed and are made again.
        dead: captures that were set aside as dead letters.
        handed_back: captures that closing interrupted; others take them at once.
    """

    done: int = 0
    failed: int = 0
    dead: int = 0
    handed_back: int = 0
