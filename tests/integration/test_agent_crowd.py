"""Many users who chat with one agent at once, over real HTTP."""

import asyncio
import json
import re
from datetime import timedelta
from typing import Any

import pytest

from asyncmem import Agent, ChatReply, LLMSettings, MemoryManager, RunResult, Settings
from asyncmem.testing import Behaviour, ProviderSimulator

from ..servers import with_database

pytestmark = pytest.mark.anyio
USERS = 50
SAID = re.compile(r"I live in (Town\d+)|My dog is called (Rex\d+)")


class Chat(Behaviour):
    """Answers as ``speaker``; as ``keeper`` plans to remember what was said last."""

    provider: ProviderSimulator

    def reply(self, number: int = 0) -> ChatReply:
        """By the model that is asked and by what it is asked."""
        body = self.provider.received[-1].body
        if body["model"] == "speaker":
            return ChatReply("Noted.")
        said = list(SAID.finditer(str(body["messages"][-1]["content"])))[-1]
        memory = f"Lives in {said[1]}" if said[1] else f"Has a dog called {said[2]}"
        add = {"op": "add", "memory": memory, "evidence": said[0]}
        return ChatReply(json.dumps({"operations": [add]}))


async def test_fifty_users_chat_at_once(replica_set_uri: str, database_name: str) -> None:
    """One process, one agent, fifty users: every memory and every prompt is of its own user, and none is missing."""
    async with ProviderSimulator() as provider:
        chat = type("ThisChat", (Chat,), {"provider": provider})
        provider.behaviour = chat()
        llm = LLMSettings(api_base=provider.url, api_key="sk-simulated")
        settings = Settings(debounce=timedelta(0))
        uri = with_database(replica_set_uri, database_name)
        async with MemoryManager(
            uri, model="openai/keeper", llm=llm, settings=settings, default_user_id=None
        ) as manager:
            agent = Agent("openai/speaker", llm=llm, memory_manager=manager, update_memory_on_run=True)

            async def talk(n: int) -> RunResult:
                user = f"user {n}"
                first = await agent.run(f"I live in Town{n}", user_id=user, session_id="chat")
                for ticket in first.captures:
                    await ticket.wait(timeout=120)
                return await agent.run(f"My dog is called Rex{n}", user_id=user, session_id="chat")

            results = await asyncio.gather(*map(talk, range(USERS)))
            await manager.drain(timeout=120)
            for n, result in enumerate(results):
                wanted = [f"Lives in Town{n}", f"Has a dog called Rex{n}"]
                assert [m.memory for m in await manager.get_user_memories(user_id=f"user {n}")] == wanted
                assert result.context == f"<user_memory>\n- {wanted[0]}\n</user_memory>"
                assert (result.context_error, result.capture_error, result.session_error) == (None, None, None)
                assert len(await agent.get_messages("chat", user_id=f"user {n}")) == 4
        prompts: list[Any] = [r.body for r in provider.received if r.body["model"] == "speaker"]
    assert len(prompts) == 2 * USERS
    for body in prompts:
        assert len(set(re.findall(r"(?:Town|Rex)(\d+)", json.dumps(body["messages"])))) == 1
