"""Memories in LangGraph: tools in a graph's tool node and a store, with a provider on loopback."""

import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.base import BaseStore
from pydantic import SecretStr

from asyncmem import (
    ConfigurationError,
    InvalidIdError,
    InvalidInputError,
    InvalidMemoryError,
    MemoryConflictError,
    MemoryManager,
    UserMemory,
)
from asyncmem.interfaces.langgraph import MemoryStore, memory_langchain_tools, memory_message
from asyncmem.testing import Behaviour, ProviderSimulator

from ..servers import with_database
from .frameworks import ADDING, KNOWN, OTHER, SEARCHING, SENSELESS, USER, found, system_text, tool_answer

pytestmark = pytest.mark.anyio
ANA, BOB = ("memories", USER), ("memories", OTHER)


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangSmith is told nothing."""
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "false")


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


def config_of(user_id: str) -> RunnableConfig:
    """A run's config."""
    return {"configurable": {"user_id": user_id}}


@pytest.fixture
def graph(provider: ProviderSimulator, memory: MemoryManager) -> Any:
    """A graph with a model, its tools and a store."""
    tools = memory_langchain_tools(memory, user_id=lambda config: config["user_id"])
    opening = memory_message(memory, "You keep notes.", user_id=lambda config: config["user_id"])
    chat = ChatOpenAI(model="gpt-4o-mini", base_url=provider.url, api_key=SecretStr("sk-simulated"), max_retries=0)
    model = chat.bind_tools(tools)

    async def speak(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [await model.ainvoke([await opening(config), *state["messages"]], config)]}

    async def count(state: MessagesState, config: RunnableConfig, store: BaseStore) -> dict[str, Any]:
        found = await store.asearch(("memories", config["configurable"]["user_id"]))
        return {"messages": [AIMessage(f"{len(found)} memories")]}

    builder = StateGraph(MessagesState)
    builder.add_node("speak", speak)
    builder.add_node("tools", ToolNode(tools))
    builder.add_node("count", count)
    builder.add_edge(START, "speak")
    builder.add_conditional_edges("speak", tools_condition, {"tools": "tools", "__end__": "count"})
    builder.add_edge("tools", "speak")
    return builder.compile(store=MemoryStore(memory))


async def test_a_graph_remembers(graph: Any, provider: ProviderSimulator, memory: MemoryManager) -> None:
    """What the model adds in one run is found in the next, by tool and by store; another user sees nothing."""

    async def run(behaviour: Behaviour, user_id: str) -> str:
        provider.behaviour = behaviour
        done = await graph.ainvoke({"messages": [("user", "I play go in Porto")]}, config_of(user_id))
        return str(done["messages"][-1].content)

    assert await run(ADDING, USER) == "1 memories"
    assert [m.memory for m in await memory.get_user_memories(user_id=USER)] == [KNOWN]
    await run(SEARCHING, USER)
    assert found(provider) == [KNOWN]
    assert system_text(provider).startswith("You keep notes.\n\n<user_memory>")
    assert await run(SEARCHING, OTHER) == "0 memories"
    assert found(provider) == []
    assert system_text(provider) == "You keep notes."
    await run(SENSELESS, USER)
    assert tool_answer(provider)["ok"] is False


async def test_a_run_that_names_nobody_fails(graph: Any, provider: ProviderSimulator) -> None:
    """Without a user nothing is sent and nothing stored."""
    with pytest.raises(InvalidIdError):
        await graph.ainvoke({"messages": [("user", "Hello")]})
    assert provider.received == []


async def test_a_prompt_for_nobody_shows_nobody(memory: MemoryManager) -> None:
    """A user that is None is an error, and never the manager's default user."""
    await memory.add_user_memory(UserMemory(memory="Plays go"))
    message = memory_message(memory, user_id=lambda config: config.get("configurable", {}).get("user_id"))
    with pytest.raises(InvalidIdError, match="NoneType"):
        await message({"configurable": {}})
    with pytest.raises(InvalidIdError):
        await memory_message(memory, user_id=None)({"configurable": {}})  # type: ignore[arg-type]


async def test_tools_of_one_user(memory: MemoryManager) -> None:
    """A fixed user needs no config; the tools can only be awaited."""
    add, *_ = memory_langchain_tools(memory, user_id=USER)
    assert '"ok": true' in await add.ainvoke({"memory": KNOWN})
    with pytest.raises(NotImplementedError):
        add.invoke({"memory": KNOWN})


async def test_items(memory: MemoryManager) -> None:
    """An item is one memory: its text, topics and metadata, under the key that it was given."""
    store = MemoryStore(memory)
    await store.aput(ANA, "k1", {"memory": KNOWN, "topics": ["games"], "kind": "fact"})
    item = await store.aget(ANA, "k1")
    assert item is not None
    assert (item.key, item.namespace) == ("k1", ANA)
    assert item.value == {"memory": KNOWN, "topics": ["games"], "kind": "fact"}
    assert item.created_at.tzinfo is not None
    await store.aput(ANA, "k1", {"memory": "Plays chess"})
    stored = await memory.get_user_memory("k1", user_id=USER)
    assert stored is not None
    assert (stored.memory, stored.topics, stored.metadata, stored.revision) == ("Plays chess", [], {}, 2)
    assert {change.cause for change in await memory.history("k1", user_id=USER)} == {"langgraph"}
    assert await store.aget(BOB, "k1") is None
    await store.adelete(BOB, "k1")
    assert await store.aget(ANA, "k1") is not None
    await store.adelete(ANA, "k1")
    assert await store.aget(ANA, "k1") is None


async def test_searching(memory: MemoryManager) -> None:
    """A search has one user's items: without a query the newest first, with one the most relevant and their scores."""
    store = MemoryStore(memory)
    texts = ["Plays go", "Rows at dawn", "Keeps bees"]
    for i, text in enumerate(texts):
        await store.aput(ANA, f"k{i}", {"memory": text, "topics": ["all", f"t{i}"], "place": i, "even": i % 2 == 0})
    assert [item.key for item in await store.asearch(ANA, limit=2)] == ["k2", "k1"]
    assert [item.key for item in await store.asearch(ANA, limit=2, offset=2)] == ["k0"]
    (first,) = await store.asearch(ANA, query="who rows?")
    assert (first.key, (first.score or 0) > 0) == ("k1", True)
    assert await store.asearch(BOB) == []

    async def keys(**filters: Any) -> list[str]:
        return [item.key for item in await store.asearch(ANA, filter=filters)]

    assert await keys(even=True) == ["k2", "k0"]
    assert await keys(topics="t1") == ["k1"]
    assert await keys(topics=["all", "t0"], place={"$eq": 0}) == ["k0"]
    assert await keys(place={"$gte": 1, "$lt": 2}) == ["k1"]


async def test_what_the_store_refuses(memory: MemoryManager) -> None:
    """What would reach other users, or can't be kept, is refused with what to do."""
    store = MemoryStore(memory, prefix=("app", "memories"))
    home = ("app", "memories", USER)
    await store.aput(home, "k1", {"memory": KNOWN})
    for namespace in (("app", "memories"), ("app",), ANA, (*home, "more")):
        with pytest.raises(InvalidInputError):
            await store.asearch(namespace)
    with pytest.raises(InvalidInputError, match="get_users"):
        await store.alist_namespaces()
    for filters in ({"place": {"$ne": 1}}, {"memory": KNOWN}, {"place": {}}):
        with pytest.raises(InvalidInputError):
            await store.asearch(home, filter=filters)
    with pytest.raises(InvalidInputError):
        await store.aput(home, "k2", {"text": "x"})
    with pytest.raises(InvalidInputError):
        await store.aput(home, "k2", {"memory": "x"}, index=False)
    with pytest.raises(InvalidMemoryError):
        await store.aput(home, "k2", {"memory": ""})
    with pytest.raises(MemoryConflictError, match="k1"):
        await store.aput(home, "k2", {"memory": KNOWN})
    with pytest.raises(NotImplementedError):
        await store.aput(home, "k2", {"memory": "x"}, ttl=1.0)
    with pytest.raises(ConfigurationError, match="asynchronous"):
        store.get(home, "k1")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the adapter says how to install what it needs."""
    monkeypatch.setitem(sys.modules, "langgraph.store.base", None)
    monkeypatch.delitem(sys.modules, "asyncmem.interfaces.langgraph")
    with pytest.raises(ConfigurationError, match=r"asyncmem\[langgraph\]"):
        import asyncmem.interfaces.langgraph  # noqa: F401
