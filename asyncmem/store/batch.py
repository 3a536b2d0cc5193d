"""What is to be applied together, and what came of it (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..operations import Grounded
from ..proposal_values import Proposal
from ..types import Change, Scope, Skipped, UserMemory

if TYPE_CHECKING:  # it knows BSON, which nothing needs before the store is opened
    from .rows import Vectors


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be applied together.

    Attributes:
        scope: whose memories; agent and team are recorded on what is added.
        operations: what was decided, with the memories' real ids.
        seen: the memories that it was decided on.
        cause: what the changes record as their cause.
        words: what was said, recorded as ``input`` where an operation brings no evidence of its own.
        prints: fingerprints by which the capture is known later; none remembers nothing.
        guards: fingerprints of the scheduled captures that are carried out: each is applied once, whatever happens.
        erasures: what ``Captures.begun`` said when the capture began.
        vectors: those of the operations' texts, as far as they are known.
        strict: memories that say something else by now leave everything undone, to be decided anew.
        proposed: what was decided and waits for approval.
        decides: the proposal that is approved by this.
    """

    scope: Scope
    operations: Sequence[Grounded]
    seen: Mapping[str, UserMemory] = field(default_factory=dict[str, UserMemory])
    cause: str = "capture"
    words: str | None = None
    prints: Sequence[bytes] = ()
    guards: Sequence[bytes] = ()
    erasures: int = 0
    vectors: "Vectors" = field(default_factory=dict[str, Any], repr=False)
    strict: bool = False
    proposed: Sequence[Grounded] = ()
    decides: str | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of a batch.

    Attributes:
        changes: what was changed, in order.
        skipped: what was not, each with its reason.
        repeated: the same capture was applied before: nothing was done.
        stale: a memory says something else than when the decision was made: nothing was done.
        proposals: what waits for approval.
    """

    changes: list[Change] = field(default_factory=list[Change])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    repeated: bool = False
    stale: bool = False
    proposals: list[Proposal] = field(default_factory=list[Proposal])
