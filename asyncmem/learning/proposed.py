"""Deciding on proposals: those of memories by the store, those of profiles by their schema."""

from typing import Any

from ..cleaning import clean_id, clean_limit
from ..errors import ConfigurationError, InvalidProfileError, InvalidQueryError
from ..manager import MemoryManager
from ..profile_values import ProfileRecord, Values
from ..proposal_values import Proposal, ProposalStatus
from .config import UserProfileConfig
from .merging import revised, with_json, without
from .profile import UserProfileStore
from .results import ProposalDecision

PROPOSAL = "proposal"
_STATES = (None, "pending", "approved", "rejected", "expired")


class ProposalDesk:
    """Lists one manager's proposals, and carries out what is approved.

    Args:
        manager: keeps them.
        profiles: the profiles that they may be about.
        config: those profiles' fields.
    """

    def __init__(
        self, manager: MemoryManager, profiles: UserProfileStore[Any] | None, config: UserProfileConfig[Any] | None
    ) -> None:
        self._manager = manager
        self._profiles = profiles
        self._config = config

    async def listed(self, user_id: str, status: ProposalStatus | None, limit: int | None) -> list[Proposal]:
        """A user's proposals of a status, or all, oldest first.

        Raises:
            InvalidQueryError: there is no such status, or the limit can't be used.
        """
        if status not in _STATES:
            raise InvalidQueryError("status must be 'pending', 'approved', 'rejected', 'expired' or None for all")
        return await (await self._manager.opened()).proposals.listed(user_id, status, clean_limit(limit))

    async def approve(self, proposal_id: str, user_id: str) -> ProposalDecision:
        """Carry a pending proposal out, once."""
        store = await self._manager.opened()
        row = await store.approvals.pending(user_id, clean_id(proposal_id, "proposal_id"))
        if row["about"] == "memory":
            proposal, applied = await self._manager.approve_memory(row)
            return ProposalDecision(proposal, applied.changes, skipped=applied.skipped)
        return await self._approve_field(store.proposals.value(row), row["begun"])

    async def reject(self, proposal_id: str, user_id: str) -> Proposal:
        """See to it that a pending proposal is never carried out."""
        store = await self._manager.opened()
        row = await store.approvals.pending(user_id, clean_id(proposal_id, "proposal_id"))
        return await store.approvals.reject(row)

    async def _approve_field(self, proposal: Proposal, erasures: int) -> ProposalDecision:
        profiles, config = self._profiles, self._config
        if profiles is None or config is None or config.stored_as != proposal.profile:
            raise ConfigurationError(
                f"the proposal is about a profile {proposal.profile!r}, which this machine has not"
            )
        store, owner = await self._manager.opened(), proposal.user_id
        await store.approvals.begin(proposal)
        step = _Step(config, proposal, self._manager)
        async with profiles.lock(owner):
            made = await store.profiles.change(owner, config.stored_as, step.take, erasures)
        if step.is_outdated:
            raise await store.approvals.outdated(proposal)
        if not await store.approvals.settle(proposal) and made is None:
            raise await store.approvals.overtaken(proposal)
        record = made or await store.profiles.read(owner, config.stored_as) or ProfileRecord()
        fields = [c for c in record.history if (c.field, c.cause) == (proposal.field, PROPOSAL)][-1:]
        return ProposalDecision(await store.approvals.now(proposal), fields=fields)


class _Step:
    """Changes the one field of a proposal, if it is as the model saw it."""

    def __init__(self, config: UserProfileConfig[Any], proposal: Proposal, manager: MemoryManager) -> None:
        self._schema = config.schema
        self._proposal = proposal
        self._now = manager.settings.clock()
        self.is_outdated = False

    def take(self, record: ProfileRecord) -> ProfileRecord | None:
        """The record after it; ``None`` where it was done before, or must not be done."""
        guard = f"{self._proposal.proposal_id}:{self._proposal.at.timestamp()}".encode()
        if guard in record.guards:
            return None
        values = self._changed(record.values)
        self.is_outdated = values is None
        if values is None:
            return None
        words = {str(self._proposal.field): self._proposal.evidence}
        return revised(self._schema, record, values, cause=PROPOSAL, now=self._now, evidence=words, guard=guard)

    def _changed(self, values: Values) -> Values | None:
        """The values with the field changed; ``None`` if it is another by now, or the value does not fit."""
        field, proposal = str(self._proposal.field), self._proposal
        if field not in self._schema.model_fields or values.get(field) != proposal.before:
            return None
        try:
            if proposal.kind == "unset":
                return without(self._schema, values, field)
            return with_json(self._schema, values, field, proposal.after)
        except InvalidProfileError:
            return None
