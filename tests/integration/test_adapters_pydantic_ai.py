"""Memories in Pydantic AI, by its own agent, with a provider on loopback."""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from asyncmem import ConfigurationError, InvalidIdError, MemoryManager
from asyncmem.interfaces.pydantic_ai import memory_instructions, memory_toolset
from asyncmem.testing import Behaviour, ProviderSimulator

from ..servers import with_database
from .frameworks import ADDING, KNOWN, OTHER, SEARCHING, SENSELESS, USER, found, system_text, tool_answer

pytestmark = pytest.mark.anyio


@dataclass
class Deps:
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
async def agent(provider: ProviderSimulator, memory: MemoryManager) -> AsyncIterator[Agent[Deps, str]]:
    """An agent with memory for whoever the run is about."""
    async with AsyncOpenAI(base_url=provider.url, api_key="sk-simulated", max_retries=0) as client:
        yield Agent(
            OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(openai_client=client)),
            deps_type=Deps,
            instructions=memory_instructions(memory, "You keep notes.", user_id=lambda deps: deps.user_id),
            toolsets=[memory_toolset(memory, user_id=lambda deps: deps.user_id)],
        )


async def test_a_run_remembers(agent: Agent[Deps, str], provider: ProviderSimulator, memory: MemoryManager) -> None:
    """What the model adds in one run is found in the next and stands in the instructions; another user sees nothing."""
    provider.behaviour = ADDING
    done = await agent.run("I play go in Porto", deps=Deps(USER))
    assert (done.output, tool_answer(provider)["ok"]) == ("Noted.", True)
    assert [m.memory for m in await memory.get_user_memories(user_id=USER)] == [KNOWN]
    provider.behaviour = SEARCHING
    await agent.run("What do I play?", deps=Deps(USER))
    assert found(provider) == [KNOWN]
    assert system_text(provider).startswith("You keep notes.\n\n<user_memory>")
    assert KNOWN in system_text(provider)
    provider.behaviour = SEARCHING
    await agent.run("What do I play?", deps=Deps(OTHER))
    assert found(provider) == []
    assert system_text(provider) == "You keep notes."


async def test_senseless_calls_are_answered(agent: Agent[Deps, str], provider: ProviderSimulator) -> None:
    """What the model got wrong is told to it, and the run goes on."""
    provider.behaviour = SENSELESS
    done = await agent.run("Change it", deps=Deps(USER))
    assert (done.output, tool_answer(provider)["ok"]) == ("Sorry.", False)


async def test_a_run_that_names_nobody_fails(agent: Agent[Deps, str], provider: ProviderSimulator) -> None:
    """Without a user nothing is sent and nothing stored."""
    provider.behaviour = Behaviour(says="Hi")
    with pytest.raises(InvalidIdError):
        await agent.run("Hello", deps=None)  # type: ignore[arg-type]
    assert provider.received == []


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the adapter says how to install what it needs."""
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "asyncmem.interfaces.pydantic_ai")
    with pytest.raises(ConfigurationError, match=r"asyncmem\[pydantic-ai\]"):
        import asyncmem.interfaces.pydantic_ai  # noqa: F401
