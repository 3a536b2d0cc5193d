"""Every call of a manager's and an agent's models is told to observers, and counts in results."""

import pytest

from asyncmem import Agent, LLMSettings, MemoryManager
from asyncmem.llm import Abilities, CallReport
from asyncmem.testing import Behaviour, ProviderSimulator

from ..servers import with_database

pytestmark = pytest.mark.anyio

PLAN = {"operations": [{"op": "add", "memory": "Lives in Porto", "topics": [], "evidence": "I live in Porto"}]}


class Meter:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.reports: list[CallReport] = []

    def on_call(self, report: CallReport) -> None:
        self.reports.append(report)

    @property
    def kinds(self) -> list[str]:
        return sorted(report.kind for report in self.reports)


@pytest.fixture
def uri(replica_set_uri: str, database_name: str) -> str:
    """A fresh database on a mongod."""
    return with_database(replica_set_uri, database_name)


async def test_a_manager_tells_of_both_of_its_models(uri: str) -> None:
    """A capture's calls, its embedding's, those in the background: each is told, and both count in the result."""
    meter, abilities = Meter(), Abilities()
    with ProviderSimulator(Behaviour(says=PLAN)) as provider:
        settings = LLMSettings(api_base=provider.url, api_key="sk-x", tools=False)
        async with MemoryManager(
            uri,
            model="openai/foo",
            embedding_model="openai/text-embedding-3-small",
            llm=settings,
            observers=[meter],
            abilities=abilities,
        ) as manager:
            done = await manager.create_user_memories("I live in Porto", user_id="jane")
            assert [change.after and change.after.memory for change in done.changes] == ["Lives in Porto"]
            assert (done.usage.calls, meter.kinds) == (2, ["chat", "embed"])
            ticket = await manager.schedule("I live in Porto", user_id="omar", flush=True)
            await ticket.wait(60)
    assert meter.kinds == ["chat", "chat", "embed", "embed"]
    assert {row["model"] for row in abilities.dump()} == {"openai/foo", "openai/text-embedding-3-small"}


async def test_an_agent_tells_of_its_own_model() -> None:
    """Its answers are told to the agent's observers, and what is learned is kept where it is told to be."""
    meter, abilities = Meter(), Abilities()
    with ProviderSimulator(Behaviour(says="Hello.")) as provider:
        settings = LLMSettings(api_base=provider.url, api_key="sk-x")
        agent = Agent("openai/foo", llm=settings, observers=[meter], abilities=abilities)
        assert (await agent.run("Hi", user_id="jane")).content == "Hello."
    assert meter.kinds == ["chat"]
    assert agent._llm.abilities is abilities
