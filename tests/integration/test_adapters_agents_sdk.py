"""Memories in OpenAI's Agents SDK, by its own runner, with a provider on loopback."""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner
from openai import AsyncOpenAI

from asyncmem import ConfigurationError, InvalidIdError, MemoryManager
from asyncmem.interfaces.agents_sdk import memory_function_tools, memory_instructions
from asyncmem.testing import Behaviour, ProviderSimulator

from ..servers import with_database
from .frameworks import ADDING, KNOWN, OTHER, SEARCHING, SENSELESS, USER, found, system_text, tool_answer

pytestmark = pytest.mark.anyio
OFF = RunConfig(tracing_disabled=True)


@dataclass
class Caller:
    """What the application gives a run."""

    user_id: str


@pytest.fixture
async def provider() -> AsyncIterator[ProviderSimulator]:
    """A provider."""
    async with ProviderSimulator() as simulator:
        yield simulator


@pytest.fixture
async def memory(replica_set_uri: str, database_name: str) -> AsyncIterator[MemoryManager]:
    """A manager."""
    async with MemoryManager(with_database(replica_set_uri, database_name)) as manager:
        yield manager


@pytest.fixture
async def agent(provider: ProviderSimulator, memory: MemoryManager) -> AsyncIterator[Agent[Caller]]:
    """An agent with memory for whoever the run is about."""
    async with AsyncOpenAI(base_url=provider.url, api_key="sk-simulated", max_retries=0) as client:
        yield Agent[Caller](
            name="memo",
            instructions=memory_instructions(memory, "You keep notes.", user_id=lambda caller: caller.user_id),
            tools=[*memory_function_tools(memory, user_id=lambda caller: caller.user_id, max_tokens=200)],
            model=OpenAIChatCompletionsModel("gpt-4o-mini", client),
        )


async def test_a_run_remembers(agent: Agent[Caller], provider: ProviderSimulator, memory: MemoryManager) -> None:
    """What the model adds in one run is found in the next and stands in the instructions; another user sees nothing."""
    provider.behaviour = ADDING
    done = await Runner.run(agent, "I play go in Porto", context=Caller(USER), run_config=OFF)
    assert (done.final_output, tool_answer(provider)["ok"]) == ("Noted.", True)
    assert [m.memory for m in await memory.get_user_memories(user_id=USER)] == [KNOWN]
    provider.behaviour = SEARCHING
    await Runner.run(agent, "What do I play?", context=Caller(USER), run_config=OFF)
    assert found(provider) == [KNOWN]
    assert system_text(provider).startswith("You keep notes.\n\n<user_memory>")
    assert KNOWN in system_text(provider)
    provider.behaviour = SEARCHING
    await Runner.run(agent, "What do I play?", context=Caller(OTHER), run_config=OFF)
    assert found(provider) == []
    assert system_text(provider) == "You keep notes."


async def test_senseless_calls_are_answered(agent: Agent[Caller], provider: ProviderSimulator) -> None:
    """What the model got wrong is told to it, and the run goes on."""
    provider.behaviour = SENSELESS
    done = await Runner.run(agent, "Change it", context=Caller(USER), run_config=OFF)
    assert (done.final_output, tool_answer(provider)["ok"]) == ("Sorry.", False)


async def test_a_run_that_names_nobody_fails(agent: Agent[Caller], provider: ProviderSimulator) -> None:
    """Without a user nothing is sent and nothing stored."""
    provider.behaviour = Behaviour(says="Hi")
    with pytest.raises(InvalidIdError):
        await Runner.run(agent, "Hello", run_config=OFF)
    assert provider.received == []


async def test_options_are_checked_at_once(memory: MemoryManager) -> None:
    """A wrong option is told when the tools are made; a fixed user is one."""
    with pytest.raises(ConfigurationError):
        memory_function_tools(memory, user_id=USER, add="yes")  # type: ignore[arg-type]
    with pytest.raises(InvalidIdError):
        memory_function_tools(memory, user_id=" ")
    assert [tool.name for tool in memory_function_tools(memory, user_id=USER, search=False, list=False)] == [
        "add_memory",
        "update_memory",
        "delete_memory",
    ]


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the adapter says how to install what it needs."""
    monkeypatch.setitem(sys.modules, "agents", None)
    monkeypatch.delitem(sys.modules, "asyncmem.interfaces.agents_sdk")
    with pytest.raises(ConfigurationError, match=r"asyncmem\[openai-agents\]"):
        import asyncmem.interfaces.agents_sdk  # noqa: F401
