"""Pieces of a reply put together."""

import json
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from asyncmem.llm import ChatReply, ToolCall
from asyncmem.llm.assembling import Assembly


def chunk(finish: str | None = None, usage: Any = None, **delta: Any) -> Any:
    """A chunk as litellm gives it."""
    made = SimpleNamespace(model_dump=lambda exclude_none: json.loads(json.dumps(delta)))
    return SimpleNamespace(choices=[SimpleNamespace(delta=made, finish_reason=finish)], usage=usage)


def call(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: str = ""
) -> dict[str, Any]:
    """A piece of a tool call."""
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {"index": index, "type": "function", "function": function} | ({"id": call_id} if call_id else {})


def put_together(*chunks: Any) -> ChatReply:
    """The reply."""
    assembly = Assembly()
    for each in chunks:
        assembly.add(each)
    return assembly.reply()


@given(st.lists(st.text()))
def test_texts(pieces: list[str]) -> None:
    """Texts put together are the content; each chunk tells what it adds."""
    assembly = Assembly()
    assert [assembly.add(chunk(content=piece)) for piece in pieces] == pieces
    reply = assembly.reply()
    assert reply.content == ("".join(pieces) or None)
    assert reply.message == {"role": "assistant", "content": "".join(pieces)}
    assert assembly.is_empty == (reply.content is None)


def test_calls_side_by_side() -> None:
    """Calls are told apart by their index, however their pieces are mixed."""
    reply = put_together(
        chunk(tool_calls=[call(0, "a", "add"), call(1, "b", "drop")]),
        chunk(tool_calls=[call(1, arguments='{"x"'), call(0, arguments="{")]),
        chunk(tool_calls=[call(0, arguments="}")]),
        chunk("tool_calls", tool_calls=[call(1, arguments=": 1}")]),
    )
    assert reply.tool_calls == (ToolCall("a", "add", "{}"), ToolCall("b", "drop", '{"x": 1}'))
    assert (reply.finish_reason, reply.content) == ("tool_calls", None)
    assert [made["function"]["arguments"] for made in reply.message["tool_calls"]] == ["{}", '{"x": 1}']


def test_calls_that_share_an_index() -> None:
    """Calls of one index are told apart by their ids, or by the first being complete; repeated ids begin none."""
    by_id = put_together(
        chunk(tool_calls=[call(None, "a", "add", "{")]),
        chunk(tool_calls=[call(None, "a", "add", "}")]),
        chunk(tool_calls=[call(None, "b", "add", "{}")]),
    )
    assert by_id.tool_calls == (ToolCall("a", "add", "{}"), ToolCall("b", "add", "{}"))
    bare = put_together(
        chunk(tool_calls=[call(0, "", "add", '{"a":')]),
        chunk(tool_calls=[call(0, "", "add", " 1}")]),
        chunk(tool_calls=[call(0, "", "add", "{}")]),
    )
    assert bare.tool_calls == (ToolCall("", "add", '{"a": 1}'), ToolCall("", "add", "{}"))


def test_fields_of_the_provider_are_kept() -> None:
    """Signatures of thoughts and of calls are sent back as they came; a thought without one is not."""
    first = call(0, "a", "add", "{}")
    first["provider_specific_fields"] = {"thought_signature": "s1"}
    first["function"]["provider_specific_fields"] = {"thought_signature": "s2"}
    reply = put_together(
        chunk(thinking_blocks=[{"type": "thinking", "thinking": "hm "}], reasoning_content="hm "),
        chunk(thinking_blocks=[{"type": "thinking", "thinking": "so"}], reasoning_content="so"),
        chunk(thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "sig"}]),
        chunk(thinking_blocks=[{"type": "redacted_thinking", "data": "x"}]),
        chunk(thinking_blocks=[{"type": "thinking", "thinking": "lost"}]),
        chunk(tool_calls=[first], provider_specific_fields={"a": [1], "b": {"c": 1}}),
        chunk(provider_specific_fields={"a": [2], "b": {"d": 2}, "e": None}),
    )
    assert reply.reasoning == "hm so"
    assert reply.message["thinking_blocks"] == [
        {"type": "thinking", "thinking": "hm so", "signature": "sig"},
        {"type": "redacted_thinking", "data": "x"},
    ]
    made = reply.message["tool_calls"][0]
    assert made["provider_specific_fields"] == {"thought_signature": "s1"}
    assert made["function"]["provider_specific_fields"] == {"thought_signature": "s2"}
    assert reply.message["provider_specific_fields"] == {"a": [1, 2], "b": {"c": 1, "d": 2}, "e": None}


def test_refusals_and_older_calls() -> None:
    """A refusal in pieces is one; so is a call in the form that OpenAI had before tools."""
    assert put_together(chunk(refusal="I "), chunk(refusal="can't.")).refusal == "I can't."
    assert put_together(chunk(provider_specific_fields={"refusal": "No."})).refusal == "No."
    reply = put_together(
        chunk(role="assistant", function_call={"name": "add", "arguments": "{"}),
        chunk(function_call={"arguments": "}"}),
    )
    assert reply.tool_calls == (ToolCall("", "add", "{}"),)


def test_ends() -> None:
    """The last usage counts, chunks without choice or delta add nothing, and an unfinished reply has no reason."""
    assembly = Assembly()
    told = SimpleNamespace(prompt_tokens=5, completion_tokens=2)
    assembly.add(chunk("length", SimpleNamespace(prompt_tokens=5, completion_tokens=1)))
    assembly.add(SimpleNamespace(choices=[], usage=told, _hidden_params={"response_cost": 0.5}))
    assembly.add(SimpleNamespace(choices=[SimpleNamespace(delta=None, finish_reason=None)]))
    assert assembly.is_empty
    reply = assembly.reply()
    assert (reply.finish_reason, reply.usage.completion_tokens, reply.usage.cost) == ("length", 2, 0.5)
    assert assembly.reply(finished=False).finish_reason == ""
    assert Assembly().reply().finish_reason == "stop"
