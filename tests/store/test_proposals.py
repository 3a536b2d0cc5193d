"""Proposals on real servers: what waits is not recalled, and each is decided once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from asyncmem import (
    LearningMachine,
    LearningMode,
    MemoryManager,
    Proposal,
    ProposalDecidedError,
    ProposalError,
    ProposalExpiredError,
    ProposalNotFoundError,
    ProposalOutdatedError,
    Settings,
    UserMemory,
    UserMemoryConfig,
    UserProfile,
    UserProfileConfig,
)
from asyncmem.testing import ScriptedModel

from .conftest import Clock

pytestmark = pytest.mark.anyio
SAID = "I moved to Porto, forget my cat, and I row"
ROWS = {"op": "add", "memory": "Rows", "topics": ["sport"], "evidence": "I row"}
MOVED = {"op": "update", "memory_id": "1", "memory": "Lives in Porto", "evidence": "I moved to Porto"}
NO_CAT = {"op": "delete", "memory_id": "2", "evidence": "forget my cat"}
Maker = Callable[..., LearningMachine]


class Coder(UserProfile):
    """A profile with a field of its own."""

    city: str | None = None


def plan(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"operations": list(operations)}


def fields(**values: str) -> dict[str, Any]:
    """A reply that sets fields on the user's words "my name is Ada and I live in Porto"."""
    words = "my name is Ada and I live in Porto"
    return {"changes": [{"field": n, "action": "set", "value": v, "evidence": words} for n, v in values.items()]}


@pytest.fixture
def model() -> ScriptedModel:
    """A model without steps."""
    return ScriptedModel()


@pytest.fixture
async def manager(uri: str, clock: Clock, model: ScriptedModel) -> AsyncIterator[MemoryManager]:
    """A manager that may delete and clear."""
    settings = Settings(clock=clock, debounce=timedelta(0))
    async with (
        MemoryManager(uri, model=model, settings=settings, delete_memories=True, clear_memories=True) as memory,
        model,
    ):
        yield memory


def machine_of(manager: MemoryManager, mode: str, profile: str | None = None) -> LearningMachine:
    config = False if profile is None else UserProfileConfig(schema=Coder, mode=LearningMode(profile))
    return LearningMachine(manager, user_memory=UserMemoryConfig(mode=LearningMode(mode)), user_profile=config)


async def filled(manager: MemoryManager, user_id: str = "lin") -> list[str]:
    return [
        await manager.add_user_memory(UserMemory(memory=text), user_id=user_id)
        for text in ("Lives in Faro", "Has a cat")
    ]


async def texts(manager: MemoryManager, user_id: str = "lin") -> list[str]:
    return sorted(m.memory for m in await manager.get_user_memories(user_id=user_id))


def kinds(proposals: list[Proposal]) -> list[str]:
    return [p.kind for p in proposals]


async def test_propose_applies_nothing_until_it_is_approved(manager: MemoryManager, model: ScriptedModel) -> None:
    """Everything waits, neither context nor search show it, and approving each applies it with its evidence."""
    machine = machine_of(manager, "propose")
    await filled(manager)
    model.add(plan(MOVED, NO_CAT, ROWS))
    result = await machine.capture(SAID, user_id="lin", agent_id="bot", idempotency_key="k")
    assert result.memory is not None
    assert result.memory.changes == []
    assert await texts(manager) == ["Has a cat", "Lives in Faro"]
    assert "Porto" not in await machine.build_context(user_id="lin")
    assert "Rows" not in [m.memory for m in await machine.user_memory_store.recall("Rows", "lin")]
    waiting = await machine.list_proposals(user_id="lin")
    assert waiting == result.proposals
    assert {(p.kind, p.before, p.after, p.status) for p in waiting} == {
        ("update", "Lives in Faro", "Lives in Porto", "pending"),
        ("delete", "Has a cat", None, "pending"),
        ("add", None, "Rows", "pending"),
    }
    for proposal in waiting:
        decision = await machine.approve(proposal.proposal_id, user_id="lin")
        assert decision.proposal.status == "approved"
        assert decision.proposal.decided_at is not None
        assert [(c.kind, c.cause, c.evidence) for c in decision.changes] == [
            (proposal.kind, "proposal", proposal.evidence if proposal.kind != "delete" else None)
        ]
    assert await texts(manager) == ["Lives in Porto", "Rows"]
    (rows,) = [m for m in await manager.get_user_memories(user_id="lin") if m.memory == "Rows"]
    assert (rows.agent_id, rows.topics, rows.input) == ("bot", ["sport"], "I row")
    assert await machine.list_proposals(user_id="lin") == []
    assert len(await machine.list_proposals(user_id="lin", status="approved", limit=2)) == 2


async def test_hitl_adds_and_lets_the_rest_wait(manager: MemoryManager, model: ScriptedModel) -> None:
    """Additions are there at once; an update and a deletion wait."""
    machine = machine_of(manager, "hitl")
    await filled(manager)
    model.add(plan(MOVED, NO_CAT, ROWS))
    result = await machine.capture(SAID, user_id="lin")
    assert result.memory is not None
    assert [c.kind for c in result.memory.changes] == ["add"]
    assert sorted(kinds(result.proposals)) == ["delete", "update"]
    assert await texts(manager) == ["Has a cat", "Lives in Faro", "Rows"]


async def test_a_clear_waits_and_takes_what_the_model_saw(manager: MemoryManager, model: ScriptedModel) -> None:
    """An approved clear removes the memories that there were, and none that came after."""
    machine = machine_of(manager, "hitl")
    await filled(manager)
    model.add(plan({"op": "clear", "evidence": "forget everything about me"}))
    (proposal,) = (await machine.capture("forget everything about me", user_id="lin")).proposals
    assert (proposal.kind, proposal.count) == ("clear", 2)
    await manager.add_user_memory(UserMemory(memory="Rows"), user_id="lin")
    decision = await machine.approve(proposal.proposal_id, user_id="lin")
    assert len(decision.changes) == 2
    assert await texts(manager) == ["Rows"]


async def test_a_clear_of_what_is_gone_or_changed(manager: MemoryManager, model: ScriptedModel) -> None:
    """With everything gone there is nothing to do; with a memory changed it is refused."""
    machine = machine_of(manager, "propose")
    ids = await filled(manager)
    clear = plan({"op": "clear", "evidence": "forget everything about me"})
    model.add(clear, clear)
    (proposal,) = (await machine.capture("forget everything about me", user_id="lin")).proposals
    await manager.update_user_memory(ids[0], memory="Lives in Porto", user_id="lin")
    with pytest.raises(ProposalOutdatedError):
        await machine.approve(proposal.proposal_id, user_id="lin")
    (proposal,) = (
        await machine.capture("forget everything about me", user_id="lin", idempotency_key="again")
    ).proposals
    await manager.clear_user_memories(user_id="lin")
    decision = await machine.approve(proposal.proposal_id, user_id="lin")
    assert (decision.changes, decision.proposal.status) == ([], "approved")


async def test_the_same_conversation_makes_no_second_proposal(manager: MemoryManager, model: ScriptedModel) -> None:
    """Captured again it does nothing, and another one that says the same finds it proposed."""
    machine = machine_of(manager, "propose")
    model.add(plan(ROWS), plan(ROWS))
    assert len((await machine.capture("I row", user_id="lin")).proposals) == 1
    again = await machine.capture("I row", user_id="lin")
    assert again.memory is not None
    assert again.memory.repeated
    other = await machine.capture("I row", user_id="lin", idempotency_key="other")
    assert other.proposals == []
    assert other.memory is not None
    assert [s.reason for s in other.memory.skipped] == ["it is proposed already"]
    assert len(await machine.list_proposals(user_id="lin")) == 1


async def test_what_changed_or_went_is_not_approved(manager: MemoryManager, model: ScriptedModel) -> None:
    """A memory that says something else, or is gone, makes its proposal outdated, for ever."""
    machine = machine_of(manager, "propose")
    ids = await filled(manager)
    model.add(plan(MOVED, NO_CAT))
    proposals = (await machine.capture(SAID, user_id="lin")).proposals
    await manager.update_user_memory(ids[0], memory="Lives in Braga", user_id="lin")
    await manager.delete_user_memory(ids[1], user_id="lin")
    for proposal in proposals:
        for _ in range(2):
            with pytest.raises(ProposalOutdatedError):
                await machine.approve(proposal.proposal_id, user_id="lin")
    assert await texts(manager) == ["Lives in Braga"]
    assert await machine.list_proposals(user_id="lin") == []
    assert len(await machine.list_proposals(user_id="lin", status="expired")) == 2


async def test_what_exists_by_now_is_approved_without_a_change(manager: MemoryManager, model: ScriptedModel) -> None:
    """A proposed addition that somebody made by hand is settled, and says why nothing was added."""
    machine = machine_of(manager, "propose")
    model.add(plan(ROWS))
    (proposal,) = (await machine.capture("I row", user_id="lin")).proposals
    await manager.add_user_memory(UserMemory(memory="rows"), user_id="lin")
    decision = await machine.approve(proposal.proposal_id, user_id="lin")
    assert (decision.changes, [s.op for s in decision.skipped]) == ([], ["add"])
    assert await texts(manager) == ["rows"]


async def test_what_the_user_wished_to_forget_is_not_approved(manager: MemoryManager, model: ScriptedModel) -> None:
    """A statement that was forgotten after it was proposed does not come by approving it."""
    machine, always = machine_of(manager, "propose"), machine_of(manager, "always")
    model.add(plan(ROWS), plan(ROWS), plan({"op": "delete", "memory_id": "1", "evidence": "forget that I row"}))
    (proposal,) = (await machine.capture("I row", user_id="lin")).proposals
    await always.capture("I row", user_id="lin", idempotency_key="k")
    await always.capture("forget that I row", user_id="lin")
    with pytest.raises(ProposalOutdatedError):
        await machine.approve(proposal.proposal_id, user_id="lin")
    assert await texts(manager) == []


async def test_rejected_is_decided(manager: MemoryManager, model: ScriptedModel) -> None:
    """A rejected proposal can be neither approved nor rejected again, and stays unknown to others."""
    machine = machine_of(manager, "propose")
    model.add(plan(ROWS))
    (proposal,) = (await machine.capture("I row", user_id="lin")).proposals
    for decide in (machine.approve, machine.reject):
        with pytest.raises(ProposalNotFoundError):
            await decide(proposal.proposal_id, user_id="omar")
        with pytest.raises(ProposalNotFoundError):
            await decide("no such proposal", user_id="lin")
    assert (await machine.reject(proposal.proposal_id, user_id="lin")).status == "rejected"
    for decide in (machine.approve, machine.reject):
        with pytest.raises(ProposalDecidedError):
            await decide(proposal.proposal_id, user_id="lin")
    assert await texts(manager) == []
    assert kinds(await machine.list_proposals(user_id="lin", status=None)) == ["add"]


async def test_time_is_over(manager: MemoryManager, model: ScriptedModel, clock: Clock) -> None:
    """After Settings.proposal_memory a proposal is not shown nor decided on, and the same may be proposed anew."""
    machine = machine_of(manager, "propose")
    model.add(plan(ROWS), plan(ROWS))
    (proposal,) = (await machine.capture("I row", user_id="lin")).proposals
    clock.advance(days=7)
    assert await machine.list_proposals(user_id="lin") == []
    (expired,) = await machine.list_proposals(user_id="lin", status="expired")
    assert expired.proposal_id == proposal.proposal_id
    for decide in (machine.approve, machine.reject):
        with pytest.raises(ProposalExpiredError):
            await decide(proposal.proposal_id, user_id="lin")
    assert len((await machine.capture("I row", user_id="lin")).proposals) == 1


async def test_whoever_races_one_wins(manager: MemoryManager, model: ScriptedModel) -> None:
    """Of many approvals and rejections at once one is carried out; the others say that it is decided."""
    machine = machine_of(manager, "propose")
    model.add(plan(ROWS))
    (proposal,) = (await machine.capture("I row", user_id="lin")).proposals
    decisions = [machine.approve, machine.reject] * 4
    outcomes = await asyncio.gather(
        *(decide(proposal.proposal_id, user_id="lin") for decide in decisions), return_exceptions=True
    )
    approved = [o for o, decide in zip(outcomes, decisions, strict=True) if decide == machine.approve]
    (last,) = await machine.list_proposals(user_id="lin", status=None)
    won = [o for o in approved if not isinstance(o, BaseException)]
    assert all(isinstance(o, ProposalError) for o in outcomes if isinstance(o, BaseException)), outcomes
    assert (last.status, await texts(manager), len(won)) in [("approved", ["Rows"], 1), ("rejected", [], 0)]
    rejected = [o for o in outcomes if isinstance(o, Proposal)]
    assert len(won) + len(rejected) == 1


@pytest.mark.parametrize("about", ["memory", "profile"])
async def test_what_is_erased_while_it_is_approved_stays_away(
    manager: MemoryManager, model: ScriptedModel, about: str
) -> None:
    """An approval that read its proposal before the user was erased writes nothing after it, and says it is gone."""
    machine = machine_of(manager, "propose") if about == "memory" else machine_of(manager, "agentic", "propose")
    model.add(plan(ROWS) if about == "memory" else fields(name="Ada"))
    said = SAID if about == "memory" else "my name is Ada and I live in Porto"
    (proposal,) = (await machine.capture(said, user_id="lin")).proposals
    store = await manager.opened()
    row = await store.approvals.pending("lin", proposal.proposal_id)
    await manager.erase_user("lin")
    approving = (
        manager.approve_memory(row)
        if about == "memory"
        else machine._desk._approve_field(store.proposals.value(row), row["begun"])
    )
    with pytest.raises(ProposalNotFoundError):
        await approving
    assert await texts(manager) == []
    assert about == "memory" or await machine.user_profile_store.get("lin") is None


async def test_erasing_a_user_removes_and_counts_proposals(manager: MemoryManager, model: ScriptedModel) -> None:
    """The receipt tells how many there were, whatever became of them, and another user's stay."""
    machine = machine_of(manager, "propose")
    model.add(plan(ROWS), plan(ROWS))
    for user_id in ("lin", "omar"):
        await machine.capture("I row", user_id=user_id)
    assert (await manager.erase_user("lin")).counts["proposals"] == 1
    assert await machine.list_proposals(user_id="lin", status=None) == []
    assert len(await machine.list_proposals(user_id="omar")) == 1


async def test_profile_fields_wait(manager: MemoryManager, model: ScriptedModel) -> None:
    """Under PROPOSE every field waits; approved it is set, with its evidence and cause "proposal"."""
    machine = machine_of(manager, "agentic", "propose")
    model.add(fields(name="Ada"))
    result = await machine.capture("my name is Ada and I live in Porto", user_id="lin")
    (proposal,) = result.proposals
    assert (proposal.about, proposal.kind, proposal.field, proposal.before, proposal.after) == (
        "profile",
        "set",
        "name",
        None,
        "Ada",
    )
    assert await machine.build_context(user_id="lin") == ""
    decision = await machine.approve(proposal.proposal_id, user_id="lin")
    assert [(c.field, c.after, c.cause) for c in decision.fields] == [("name", "Ada", "proposal")]
    assert "Ada" in await machine.build_context(user_id="lin")
    with pytest.raises(ProposalDecidedError):
        await machine.approve(proposal.proposal_id, user_id="lin")


async def test_profile_hitl_sets_what_is_not_set(manager: MemoryManager, model: ScriptedModel) -> None:
    """A field that is not set yet applies; changing one waits, and so does unsetting."""
    machine = machine_of(manager, "agentic", "hitl")
    await machine.user_profile_store.update("lin", city="Faro")
    model.add(fields(name="Ada", city="Porto"))
    result = await machine.capture("my name is Ada and I live in Porto", user_id="lin")
    assert result.profile is not None
    assert [(c.field, c.after) for c in result.profile.changes] == [("name", "Ada")]
    assert [(p.field, p.before, p.after) for p in result.proposals] == [("city", "Faro", "Porto")]
    model.add({"changes": [{"field": "city", "action": "unset", "evidence": "forget my city"}]})
    (unset,) = (await machine.capture("forget my city", user_id="lin")).proposals
    assert (unset.kind, unset.before) == ("unset", "Faro")
    await machine.approve(unset.proposal_id, user_id="lin")
    profile = await machine.user_profile_store.get("lin")
    assert isinstance(profile, Coder)
    assert (profile.name, profile.city) == ("Ada", None)
    with pytest.raises(ProposalOutdatedError):  # it was Faro when the model saw it
        await machine.approve(result.proposals[0].proposal_id, user_id="lin")
