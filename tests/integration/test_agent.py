"""The agent on a real server: what it remembers, what its prompt holds, what it captures, what can't cost an answer."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from asyncmem import (
    Agent,
    ChatRequest,
    MemoryManager,
    RunResult,
    Settings,
)
from asyncmem.testing import ScriptedModel, tool_reply

from .conftest import plan

pytestmark = pytest.mark.anyio

SAID = "I prefer code examples over explanations. I'm working on a machine learning project."
LEARNED = plan(
    {
        "op": "add",
        "memory": "Prefers code examples over explanations",
        "topics": ["preferences"],
        "evidence": "I prefer code examples over explanations",
    },
    {
        "op": "add",
        "memory": "Is working on a machine learning project",
        "topics": ["work"],
        "evidence": "I'm working on a machine learning project",
    },
)
BOTH = ("- Prefers code examples over explanations", "- Is working on a machine learning project")


def system_of(request: ChatRequest) -> str:
    """The system message of a prompt; "" for none."""
    first = request.messages[0]
    return str(first["content"]) if first["role"] == "system" else ""


def turns_of(request: ChatRequest) -> list[tuple[str, str]]:
    """What a prompt holds behind the system message."""
    return [(m["role"], str(m["content"])) for m in request.messages if m["role"] != "system"]


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
async def memory(uri: str, keeper: ScriptedModel) -> AsyncIterator[MemoryManager]:
    """A manager without debounce, on each kind of server."""
    async with MemoryManager(uri, model=keeper, settings=Settings(debounce=timedelta(0))) as manager:
        yield manager


async def captured(result: RunResult) -> None:
    """Wait until what a run scheduled is done."""
    assert result.captures
    for ticket in result.captures:
        await ticket.wait(timeout=60)


async def test_two_sessions_with_capture(memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel) -> None:
    """What a user says in one session is captured behind the answer and stands in the prompt of the next one."""
    keeper.add(LEARNED)
    speaker.add("Noted.", "async def main(): ...")
    agent = Agent(speaker, memory_manager=memory, update_memory_on_run=True, instructions="You help with Python.")
    first = await agent.run(SAID, user_id="lin", session_id="one")
    assert (first.content, first.capture_error, first.session_error) == ("Noted.", None, None)
    await captured(first)
    keeper.add(plan())
    second = await agent.run("Explain async/await", user_id="lin", session_id="two")
    system = system_of(speaker.requests[1])
    assert system.startswith("You help with Python.\n\n")
    assert all(line in system for line in BOTH)
    assert all(line in second.context for line in BOTH)
    assert turns_of(speaker.requests[1]) == [("user", "Explain async/await")]
    await captured(second)


async def test_two_sessions_with_the_task_tool(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """An agentic agent hands over what to remember by its tool, and nothing is captured by itself."""
    keeper.add(LEARNED)
    speaker.add(tool_reply(("update_user_memory", {"task": SAID})), "I will remember that.", "async def main(): ...")
    agent = Agent(speaker, memory_manager=memory, enable_agentic_memory=True)
    first = await agent.run(SAID, user_id="lin", session_id="one")
    assert (first.content, first.captures, first.rounds) == ("I will remember that.", [], 2)
    assert [r.name for r in first.tool_results] == ["update_user_memory"]
    assert "2 added" in first.tool_results[0].answer
    await agent.run("Explain async/await", user_id="lin", session_id="two")
    assert all(line in system_of(speaker.requests[2]) for line in BOTH)


async def test_a_session_goes_on(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """The exchanges of a session stand before the message, and those of another user's session of that name do not."""
    speaker.add("Hello Lin.", "You are Lin.", "I don't know.")
    agent = Agent(speaker, memory_manager=memory)
    await agent.run("I am Lin", user_id="lin", session_id="s")
    await agent.run("Who am I?", user_id="lin", session_id="s")
    assert turns_of(speaker.requests[1]) == [("user", "I am Lin"), ("assistant", "Hello Lin."), ("user", "Who am I?")]
    await agent.run("Who am I?", user_id="omar", session_id="s")
    assert turns_of(speaker.requests[2]) == [("user", "Who am I?")]
