"""An agent with a learning machine: its modes decide what is captured and which tools there are."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from asyncmem import (
    Agent,
    ChatRequest,
    LearningMachine,
    LearningMode,
    LearningTickets,
    MemoryManager,
    Message,
    Scope,
    Settings,
    TicketExpiredError,
    UserMemoryConfig,
    UserProfileConfig,
)
from asyncmem.agent.sources import LearningSource
from asyncmem.background import read_turns
from asyncmem.testing import ScriptedModel, tool_reply

from ..servers import with_database
from .conftest import plan, texts
from .test_agent import BOTH, LEARNED, SAID, system_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def keeper() -> AsyncIterator[ScriptedModel]:
    """The manager's model."""
    async with ScriptedModel(name="keeper") as model:
        yield model


@pytest.fixture
async def speaker() -> AsyncIterator[ScriptedModel]:
    """The agent's model."""
    async with ScriptedModel(name="speaker") as model:
        yield model


@pytest.fixture
async def memory(replica_set_uri: str, database_name: str, keeper: ScriptedModel) -> AsyncIterator[MemoryManager]:
    """A manager without debounce."""
    uri, settings = with_database(replica_set_uri, database_name), Settings(debounce=timedelta(0))
    async with MemoryManager(uri, model=keeper, settings=settings, delete_memories=True) as manager:
        yield manager


def machine(memory: MemoryManager, mode: LearningMode, **more: Any) -> LearningMachine:
    """A machine that learns memories in a mode."""
    return LearningMachine(memory, user_memory=UserMemoryConfig(mode=mode), **more)


async def test_always_learns_behind_the_answer(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """In ALWAYS each run is captured, no tool is offered, and the next session's prompt holds both memories."""
    keeper.add(LEARNED)
    speaker.add("Noted.", "async def main(): ...")
    agent = Agent(speaker, learning=machine(memory, LearningMode.ALWAYS), agent_id="coach")
    first = await agent.run(SAID, user_id="lin", session_id="one")
    assert speaker.requests[0].tools is None
    (tickets,) = first.captures
    assert isinstance(tickets, LearningTickets)
    learnt = await tickets.wait(timeout=60)
    assert learnt.memory is not None
    assert len(learnt.memory.changes) == 2
    assert {m.agent_id for m in await memory.get_user_memories(user_id="lin")} == {"coach"}
    keeper.add(plan())
    second = await agent.run("Explain async/await", user_id="lin", session_id="two")
    assert all(line in system_of(speaker.requests[1]) for line in BOTH)
    await second.captures[0].wait(timeout=60)


async def test_agentic_learns_by_the_tool_alone(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """In AGENTIC nothing is captured by itself: the agent has the tool, and what it hands over is remembered."""
    keeper.add(LEARNED)
    speaker.add(tool_reply(("update_user_memory", {"task": SAID})), "I will remember that.", "async def main(): ...")
    agent = Agent(speaker, learning=machine(memory, LearningMode.AGENTIC))
    first = await agent.run(SAID, user_id="lin", session_id="one")
    assert (first.content, first.captures) == ("I will remember that.", [])
    assert [t["function"]["name"] for t in speaker.requests[0].tools or []] == ["update_user_memory"]
    await agent.run("Explain async/await", user_id="lin", session_id="two")
    assert all(line in system_of(speaker.requests[2]) for line in BOTH)
    assert (await memory.queue_status()).depth == 0


@pytest.mark.parametrize("reads_profile", [False, True])
async def test_what_an_agent_decided_on_is_not_captured_later(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel, reads_profile: bool
) -> None:
    """Exchanges of a time in AGENTIC are not captured for memory by a later ALWAYS, with or without a profile."""

    def keep(request: ChatRequest) -> dict[str, Any]:
        if "fields" in str(request.messages[0]["content"]):
            return {"changes": []}
        bees = [{"op": "add", "memory": "Keeps bees", "evidence": "I keep bees"}]
        return plan(*(bees if "I keep bees" in str(request.messages[-1]["content"]) else []))

    keeper.add(*[keep] * 4)
    speaker.add("Since when?", "Noted.")
    agentic = machine(memory, LearningMode.AGENTIC, user_profile=reads_profile)
    always = machine(memory, LearningMode.ALWAYS, user_profile=reads_profile)
    first = await Agent(speaker, learning=agentic).run("I keep bees", user_id="lin", session_id="s")
    assert len(first.captures) == reads_profile
    for ticket in first.captures:
        await ticket.wait(timeout=60)
    second = await Agent(speaker, learning=always).run("For ten years", user_id="lin", session_id="s")
    (tickets,) = second.captures
    await tickets.wait(timeout=60)
    assert await texts(memory, "lin") == []
    assert await (await memory.opened()).sessions.pending("lin", "s") == []
    keeper._steps.clear()  # how many calls a profile takes is not told here


async def test_what_waits_is_captured_in_its_own_mode_or_not_at_all(
    replica_set_uri: str, database_name: str, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """What was to be proposed and could not be scheduled no ALWAYS applies, and the next PROPOSE proposes."""
    uri = with_database(replica_set_uri, database_name)
    full = Settings(workers=False, backlog_per_user=1, debounce=timedelta(0))
    keeper.add(plan(), plan(), plan({"op": "add", "memory": "Rows", "evidence": "I row"}))
    speaker.add("One.", "Two.", "Three.", "Four.")
    async with (
        MemoryManager(uri, model=keeper, settings=full) as web,
        MemoryManager(uri, model=keeper, settings=Settings(debounce=timedelta(0))) as worker,
    ):
        careful = Agent(speaker, learning=machine(web, LearningMode.PROPOSE))
        await careful.run("Hi", user_id="lin", session_id="s")
        assert (await careful.run("I row", user_id="lin", session_id="s")).capture_error is not None
        await worker.drain(timeout=60)
        always = Agent(speaker, learning=machine(web, LearningMode.ALWAYS))
        assert len((await always.run("Hello", user_id="lin", session_id="s")).captures) == 1
        await worker.drain(timeout=60)
        again = Agent(speaker, learning=machine(worker, LearningMode.PROPOSE))
        assert (await again.run("Bye", user_id="lin", session_id="s")).capture_error is None
        await worker.drain(timeout=60)
        assert await texts(worker, "lin") == []
        proposals = await machine(worker, LearningMode.PROPOSE).list_proposals(user_id="lin")
        assert [p.after for p in proposals] == ["Rows"]
    keeper._steps.clear()  # what is left was not asked for


async def test_proposed_memories_wait_for_approval(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """In PROPOSE what a run tells stands in no prompt before it is approved."""
    keeper.add(plan({"op": "add", "memory": "Rows", "evidence": "I row"}), plan(), plan())
    speaker.add("Nice.", "Hello.", "Hello again.")
    learning = machine(memory, LearningMode.PROPOSE)
    agent = Agent(speaker, learning=learning)
    first = await agent.run("I row", user_id="lin")
    await first.captures[0].wait(timeout=60)
    second = await agent.run("Hi", user_id="lin")
    assert (second.context, await texts(memory, "lin")) == ("", [])
    await second.captures[0].wait(timeout=60)
    (proposal,) = await learning.list_proposals(user_id="lin")
    await learning.approve(proposal.proposal_id, user_id="lin")
    third = await agent.run("Hi there", user_id="lin")
    assert third.context == "<user_memory>\n- Rows\n</user_memory>"
    await third.captures[0].wait(timeout=60)


async def test_a_profile_stands_beside_the_memories(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """Memories that are learnt by tools and a profile that is set by hand both stand in the prompt."""
    profile = UserProfileConfig(mode=LearningMode.AGENTIC)
    learning = machine(memory, LearningMode.AGENTIC, user_profile=profile)
    speaker.add(tool_reply(("update_profile", {"preferred_name": "Lin"})), "Hello Lin.", "Hello again.")
    agent = Agent(speaker, learning=learning)
    first = await agent.run("Call me Lin", user_id="lin", session_id="s")
    assert first.tool_failures == []
    second = await agent.run("Hi", user_id="lin", session_id="s")
    assert "<user_profile>" in second.context
    assert "preferred_name: Lin" in second.context


@pytest.mark.parametrize("withdrawn", [True, False])
async def test_a_user_who_is_erased_between_a_run_and_its_capture_stays_unknown(
    uri: str, keeper: ScriptedModel, withdrawn: bool
) -> None:
    """What a run schedules for memories and profile after the erasure stores nothing, be it that a worker takes it."""
    settings = Settings(debounce=timedelta(0))
    async with MemoryManager(uri, model=keeper, settings=settings) as memory:
        learning = LearningMachine(memory, user_memory=True, user_profile=True)
        await memory.erase_user("lin")
        if withdrawn:
            (tickets,) = await LearningSource(learning, None, None).schedule(
                [Message(role="user", content="My name is Lin")], "lin", None, 0
            )
            assert isinstance(tickets, LearningTickets)
            with pytest.raises(TicketExpiredError):
                await tickets.wait(timeout=60)
        else:  # its caller was stopped before it saw that it came too late
            queue = await learning._queue()
            assert queue is not None
            job = queue._job(read_turns("My name is Lin"), Scope("lin"), None, LearningMode.ALWAYS, 0)
            await queue._jobs.enqueue("lin", job, flush=True)
        await learning.drain(60)
        assert await learning.user_profile_store.get("lin") is None
        assert (await memory.erase_user("lin")).counts["jobs"] == 0
