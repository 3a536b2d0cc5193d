"""The scripted model is strict, and the hashing embedder is fair."""

import pytest
from pydantic import BaseModel

from asyncmem.llm import ChatReply, ChatRequest, Embedder
from asyncmem.testing import HashEmbedder, ScriptedModel, ScriptError, tool_reply

pytestmark = pytest.mark.anyio

REQUEST = ChatRequest([{"role": "user", "content": "hi"}])


class Value(BaseModel):
    """A value."""

    a: int


async def test_steps_of_every_kind() -> None:
    """Text, values, dicts, replies, functions and exceptions are played in order."""
    model = ScriptedModel(["text", Value(a=1), {"b": "é"}, ChatReply(content="whole"), lambda request: Value(a=2)])
    said = [(await model.complete(REQUEST)).content for _ in range(5)]
    assert said == ["text", '{"a":1}', '{"b": "é"}', "whole", '{"a":2}']
    assert model.requests == [REQUEST] * 5
    model.add(KeyError("x"))
    assert model.left == 1
    with pytest.raises(KeyError):
        await model.complete(REQUEST)
    model.assert_done()


async def test_a_call_too_many_fails() -> None:
    """A call for which no step is left is an assertion's failure."""
    with pytest.raises(ScriptError, match="unexpected call 1 of the model 'scripted'"):
        await ScriptedModel([]).complete(REQUEST)


async def test_a_call_too_few_fails() -> None:
    """Steps that are left fail at the end of the block, unless something else failed there."""
    with pytest.raises(AssertionError, match="1 steps of the model 'x' are left after 0 calls"):
        async with ScriptedModel(["never"], name="x"):
            pass
    with pytest.raises(KeyError):
        async with ScriptedModel(["never"]):
            raise KeyError


async def test_tool_reply() -> None:
    """Tool calls are numbered; arguments given as text are sent as they are."""
    reply = tool_reply(("add", {"a": 1}), ("broken", '{"a'), content="so")
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [
        ("call_1", "add", '{"a": 1}'),
        ("call_2", "broken", '{"a'),
    ]
    assert reply.turn() == {
        "role": "assistant",
        "content": "so",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
            {"id": "call_2", "type": "function", "function": {"name": "broken", "arguments": '{"a'}},
        ],
    }


async def test_hash_embedder_is_deterministic_and_near_where_words_are_shared() -> None:
    """The same text has the same vector of length one; shared words bring texts nearer."""
    embedder = HashEmbedder(256)
    done = await embedder.embed(["plays chess every week", "chess is what she plays", "owns a red kayak", "", "…"])
    assert isinstance(embedder, Embedder)
    again = await HashEmbedder(256).embed(["plays chess every week"])
    assert (done.vectors[0] == again.vectors[0]).all()
    assert embedder.texts[2] == "owns a red kayak"
    assert embedder.name == "hash-256"
    near, far = done.vectors[0] @ done.vectors[1], done.vectors[0] @ done.vectors[2]
    assert near > far + 0.2
    assert [round(float(v @ v), 3) for v in done.vectors] == [1.0] * 5
    assert done.usage.calls == 1
