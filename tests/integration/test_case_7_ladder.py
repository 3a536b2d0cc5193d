"""Reference case 7, over HTTP: the ladder below an agentic search, on a real server and a real litellm."""

import json
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from asyncmem import LLMSettings, MemoryManager, ModelAuthenticationError, ModelError, ModelRateLimitError, UserMemory
from asyncmem.llm.abilities import SHARED
from asyncmem.testing import Behaviour, ProviderSimulator

from ..servers import with_database

pytestmark = pytest.mark.anyio

MODEL = "openai/case-7"
ROWS = ["Plays chess", "Lives in Porto", "Vegetarian since 2019", "Works nights", "Keeps two parrots"]
SAID = '<think>Row 3, and row 1.</think>\n```json\n{"memory_ids": ["3", "3", 1, "42"]}\n```'


@pytest.fixture
async def provider() -> AsyncIterator[ProviderSimulator]:
    """A provider that takes JSON mode and nothing better, and of which nothing is known."""
    async with ProviderSimulator(Behaviour(says=SAID, accepts=("json_object",))) as simulator:
        yield simulator
    SHARED.clear()


@pytest.fixture
async def manager(
    provider: ProviderSimulator, replica_set_uri: str, database_name: str
) -> AsyncIterator[MemoryManager]:
    """A manager whose model is that provider's; lin has five memories."""
    llm = LLMSettings(api_base=provider.url, api_key=SecretStr("sk-test"), retries=0)
    async with MemoryManager(with_database(replica_set_uri, database_name), model=MODEL, llm=llm) as opened:
        await opened.add_user_memories([UserMemory(memory=text) for text in ROWS], user_id="lin")
        yield opened


def formats(provider: ProviderSimulator) -> list[str | None]:
    """The format that each request asked for."""
    return [request.wanted.format for request in provider.received]


async def found(manager: MemoryManager) -> tuple[list[str], str | None, int]:
    """Texts, tier and calls of a search."""
    result = await manager.search_user_memories("What matters?", user_id="lin", retrieval_method="agentic", limit=5)
    return [memory.memory for memory in result], result.tier, result.usage.calls


async def test_case_7_ladder(manager: MemoryManager, provider: ProviderSimulator) -> None:
    """Schemas are refused, JSON mode answers in a fence after reasoning: rows 3 and 1, and so at once from then on."""
    shown = [memory.memory for memory in await manager.get_user_memories(user_id="lin")]
    assert sorted(shown) == sorted(ROWS)
    assert await found(manager) == ([shown[2], shown[0]], "json_object", 2)
    assert formats(provider) == ["json_schema", "json_object"]
    provider.forget()
    assert await found(manager) == ([shown[2], shown[0]], "json_object", 1)
    assert formats(provider) == ["json_object"]


@pytest.mark.parametrize(
    ("kind", "error"), [("wrong_key", ModelAuthenticationError), ("rate_limit", ModelRateLimitError)]
)
async def test_case_7_a_401_or_429_never_steps_down(
    manager: MemoryManager, provider: ProviderSimulator, kind: str, error: type[ModelError]
) -> None:
    """It is raised as what it is after one call, the next search still begins at the top, and its usage is told."""
    provider.behaviour = Behaviour(says=json.dumps({"memory_ids": ["1"]}), fails=(kind,))
    with pytest.raises(error) as caught:
        await found(manager)
    assert formats(provider) == ["json_schema"]
    assert caught.value.usage.calls == 1
    _, tier, calls = await found(manager)
    assert (tier, calls) == ("native", 1)
