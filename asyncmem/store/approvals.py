"""Deciding on proposals: approved or rejected, once, by whoever comes first."""

from dataclasses import replace

from ..errors import (
    ProposalDecidedError,
    ProposalError,
    ProposalExpiredError,
    ProposalNotFoundError,
    ProposalOutdatedError,
)
from ..proposal_values import Proposal
from .apply import ERASED, FORGOTTEN, Applier, found_changed
from .batch import Applied
from .captures import Captures
from .documents import Row
from .proposal_rows import is_outdated, to_batch
from .proposals import Proposals
from .rows import Vectors


class Approvals:
    """Decides on one database's proposals."""

    def __init__(self, proposals: Proposals, captures: Captures, applier: Applier) -> None:
        self._proposals = proposals
        self._captures = captures
        self._applier = applier

    async def pending(self, user_id: str, proposal_id: str) -> Row:
        """A proposal that may be decided on, and under ``begun`` how often the user was erased before it was read.

        Raises:
            ProposalNotFoundError: this user has no such proposal.
            ProposalDecidedError: it was approved or rejected before.
            ProposalExpiredError: its time is over.
            ProposalOutdatedError: what it is about is another by now.
        """
        await self._applier.recover(user_id)  # an approval that was left half-way is one
        begun = await self._captures.begun(user_id)
        row = await self._proposals.row(user_id, proposal_id)
        if row is None:
            raise unknown()
        proposal = self._proposals.value(row)
        if proposal.status in ("approved", "rejected"):
            raise decided(proposal)
        if row["status"] == "expired":
            raise outdated()
        if proposal.status == "expired":
            raise ProposalExpiredError("the proposal's time is over, and nothing was changed: capture it again")
        return {**row, "begun": begun}

    async def approve(self, row: Row, vectors: Vectors) -> tuple[Proposal, Applied]:
        """Carry out what a pending proposal of a memory proposes; the proposal then, and what was done.

        Args:
            row: the proposal.
            vectors: that of the text, if it is known.

        Raises:
            ProposalOutdatedError: the memory is another by now.
            ProposalDecidedError: somebody else decided at this moment.
        """
        proposal = self._proposals.value(row)
        memories = await self._proposals.targets(row)
        batch = to_batch(row, memories, row["begun"])
        if is_outdated(row, memories):
            raise await self.outdated(proposal)
        if not batch.operations:  # everything that a clear would have removed is gone
            await self.begin(proposal)
            await self.settle(proposal)
            return await self.now(proposal), Applied()
        applied = await self._applier.apply(replace(batch, vectors=vectors))
        if applied.repeated:
            raise await self.overtaken(proposal)
        if applied.stale or _is_forgotten(applied):
            raise await self.outdated(proposal)
        if found_changed(applied):
            raise await self.outdated(proposal, noted=True)
        return await self.now(proposal), applied

    async def begin(self, proposal: Proposal) -> None:
        """Decide that a proposal is to be carried out.

        Raises:
            ProposalDecidedError: it was rejected.
        """
        if not await self._proposals.begin(proposal):
            raise await self.overtaken(proposal)

    async def settle(self, proposal: Proposal) -> bool:
        """Note that a proposal was carried out; whether nobody had."""
        return await self._proposals.settle(proposal.user_id, proposal.proposal_id, "approved")

    async def reject(self, row: Row) -> Proposal:
        """See to it that a pending proposal is never carried out; the proposal then.

        Raises:
            ProposalDecidedError: somebody else decided at this moment.
        """
        proposal = self._proposals.value(row)
        if not await self._proposals.close(proposal):
            raise await self.overtaken(proposal)
        if not await self._proposals.settle(proposal.user_id, proposal.proposal_id, "rejected"):
            raise await self.overtaken(proposal)
        return await self.now(proposal)

    async def overtaken(self, proposal: Proposal) -> ProposalError:
        """Somebody else decided; what only was not noted yet is noted."""
        user_id, name = proposal.user_id, proposal.proposal_id
        if await self._proposals.is_closed(proposal):
            await self._proposals.settle(user_id, name, "rejected")
        return decided(await self.now(proposal))

    async def outdated(self, proposal: Proposal, *, noted: bool = False) -> ProposalError:
        """What a proposal is about is another by now: it is never shown again.

        Args:
            proposal: which.
            noted: it was noted as approved, and then came too late.
        """
        if noted:
            await self._proposals.outdate(proposal.user_id, proposal.proposal_id)
        elif not await self._proposals.settle(proposal.user_id, proposal.proposal_id, "expired"):
            return await self.overtaken(proposal)
        return outdated()

    async def now(self, proposal: Proposal) -> Proposal:
        """A proposal as it is now.

        Raises:
            ProposalNotFoundError: the user was erased at this moment.
        """
        found = await self._proposals.row(proposal.user_id, proposal.proposal_id)
        if found is None:
            raise unknown()
        return self._proposals.value(found)


def _is_forgotten(applied: Applied) -> bool:
    """Whether nothing was done because the user was erased, or wished since to forget what it says."""
    return any(skipped.reason in (ERASED, FORGOTTEN) for skipped in applied.skipped)


def unknown() -> ProposalNotFoundError:
    """The error for a proposal that is not there, or not this user's."""
    return ProposalNotFoundError("this user has no proposal of that id: it never was, is gone, or is another user's")


def decided(proposal: Proposal) -> ProposalError:
    """The error for a proposal that is not pending any more."""
    if proposal.status == "expired":
        return outdated()
    done = "is being approved" if proposal.status == "pending" else f"was {proposal.status} before"
    return ProposalDecidedError(f"the proposal {done}: nothing was changed by this call")


def outdated() -> ProposalOutdatedError:
    """The error for a proposal whose memory or field is another by now."""
    return ProposalOutdatedError(
        "what the proposal is about was changed or removed after it was made, and nothing was changed: capture it again"
    )
