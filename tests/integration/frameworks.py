"""What the tests of the adapters share: a provider on loopback that plays a model, and a manager."""

import json
from collections.abc import Mapping
from typing import Any

from asyncmem.llm import ChatReply
from asyncmem.testing import Behaviour, ProviderSimulator, tool_reply

USER = "ana"
OTHER = "bob"
KNOWN = "Plays go in Porto"


def calling(name: str, arguments: Mapping[str, Any], answer: str) -> Behaviour:
    """A model that calls a tool once, and then answers."""
    replies: tuple[ChatReply | str, ...] = (tool_reply((name, dict(arguments))), answer)
    return Behaviour(says=replies)


ADDING = calling("add_memory", {"memory": KNOWN, "topics": ["games"]}, "Noted.")
SEARCHING = calling("search_memories", {"query": "which game, go?"}, "Let me see.")
SENSELESS = calling("update_memory", {"memory_id": "nothing", "memory": "x", "more": 1}, "Sorry.")


def tool_answer(provider: ProviderSimulator) -> dict[str, Any]:
    """What the model was told of its last call."""
    told = [message for message in provider.received[-1].body["messages"] if message["role"] == "tool"]
    answer: dict[str, Any] = json.loads(told[-1]["content"])
    return answer


def found(provider: ProviderSimulator) -> list[str]:
    """The memories that the model was shown by its last call."""
    answer = tool_answer(provider)
    assert answer["ok"] is True
    return [memory["memory"] for memory in answer.get("memories", [])]


def system_text(provider: ProviderSimulator) -> str:
    """What the last request tells the model before the conversation."""
    roles = ("system", "developer")
    return "\n".join(str(m["content"]) for m in provider.received[-1].body["messages"] if m["role"] in roles)
