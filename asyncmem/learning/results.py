"""What a learning machine gives: results of captures, tickets of those in the background, decisions on proposals."""

import asyncio
from dataclasses import dataclass, field

from ..profile_values import ProfileChange, ProfileResult
from ..proposal_values import Proposal
from ..tickets import CaptureTicket, ProfileTicket
from ..types import CaptureResult, Change, Skipped


@dataclass(frozen=True, slots=True)
class LearningResult:
    """What came of one conversation.

    Attributes:
        memory: what came of capturing memories; ``None`` if the machine captures none.
        profile: what came of reading it for the profile; ``None`` if the machine reads for none.
    """

    memory: CaptureResult | None = None
    profile: ProfileResult | None = None

    @property
    def proposals(self) -> list[Proposal]:
        """What waits for approval, of memories and of the profile."""
        found = [] if self.memory is None else self.memory.proposals
        return [*found, *(() if self.profile is None else self.profile.proposals)]


@dataclass(frozen=True, slots=True)
class LearningTickets:
    """What was scheduled of one conversation.

    Attributes:
        memory: the capture of memories; ``None`` if nothing was scheduled.
        profile: the reading for the profile; ``None`` if nothing was scheduled.
    """

    memory: CaptureTicket | None = None
    profile: ProfileTicket | None = None

    @property
    def done(self) -> bool:
        """Whether this process knows by now what came of all of it."""
        return all(ticket.done for ticket in (self.memory, self.profile) if ticket is not None)

    async def wait(self, timeout: float | None = None) -> LearningResult:
        """What came of it, as soon as all of it is done.

        Args:
            timeout: seconds to wait at most.

        Raises:
            StoreTimeoutError: it is not done yet. The work goes on, and waiting again is fine.
            TicketExpiredError: nothing is kept of it any more.
            AsyncMemError: what made it a dead letter, as its own class.
        """
        memory, profile = await asyncio.gather(
            _nothing() if self.memory is None else self.memory.wait(timeout),
            _nothing() if self.profile is None else self.profile.wait(timeout),
        )
        return LearningResult(memory, profile)


async def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class ProposalDecision:
    """What deciding on a proposal did.

    Attributes:
        proposal: as it is now.
        changes: of memories.
        fields: changes of the profile.
        skipped: what was not done, each with its reason: an existing memory says the same, for instance.
    """

    proposal: Proposal
    changes: list[Change] = field(default_factory=list[Change])
    fields: list[ProfileChange] = field(default_factory=list[ProfileChange])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
