"""The simulator speaks what providers speak, over plain sockets."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import anyio.to_thread
import pytest

from asyncmem.llm import ChatReply, ToolCall
from asyncmem.testing import BREAKS, FAILURES, FORMAT_REFUSALS, TOOL_REFUSALS, Behaviour, ProviderSimulator

SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {}}}
TOOL = {"type": "function", "function": {"name": "add"}}
CALLED = ChatReply(tool_calls=(ToolCall("c1", "add", '{"a": 1}'),), finish_reason="tool_calls")


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderSimulator]:
    """One simulator."""
    with ProviderSimulator() as simulator:
        yield simulator


@pytest.fixture
def provider(server: ProviderSimulator) -> ProviderSimulator:
    """It, as new."""
    server.forget()
    server.behaviour = Behaviour(says="hello")
    return server


def post(provider: ProviderSimulator, path: str, body: dict[str, Any], **headers: str) -> tuple[int, Any, Any]:
    """Status, body and headers of the answer."""
    connection = http.client.HTTPConnection(provider.root.removeprefix("http://"), timeout=5)
    try:
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    try:
        return answer.status, json.loads(text), answer.headers
    except ValueError:
        return answer.status, text, answer.headers


def test_openai(provider: ProviderSimulator) -> None:
    """A chat completion is answered in OpenAI's shape, and recorded."""
    status, body, _ = post(provider, "/v1/chat/completions", {"model": "m", "messages": []}, Authorization="Bearer k")
    assert (status, body["choices"][0]["message"]["content"], body["model"]) == (200, "hello", "m")
    received = provider.received[0]
    assert (received.path, received.headers["authorization"], received.body["model"]) == (
        "/v1/chat/completions",
        "Bearer k",
        "m",
    )


CHAT, CLAUDE, GEMINI, OLLAMA, BEDROCK = (
    "/v1/chat/completions",
    "/v1/messages",
    "/v1beta/models/g:generateContent",
    "/api/chat",
    "/model/b/converse",
)
CONVERSE_TOOL = {"tools": [{"toolSpec": {"name": "add"}}], "toolChoice": {"tool": {}}}
WANTED: list[tuple[str, dict[str, Any], Any]] = [
    (CHAT, {"response_format": SCHEMA}, ("json_schema", True, (), None)),
    (CHAT, {"response_format": {"type": "text"}}, (None, False, (), None)),
    (CHAT, {"tools": [TOOL], "tool_choice": "auto"}, (None, False, ("add",), "auto")),
    (CHAT, {"tools": [TOOL], "tool_choice": {"type": "f"}}, (None, False, ("add",), "named")),
    (CLAUDE, {"output_format": {"type": "json_schema"}}, ("json_schema", True, (), None)),
    (CLAUDE, {"tools": [{"name": "add"}], "tool_choice": {"type": "any"}}, (None, False, ("add",), "required")),
    (CLAUDE, {"tools": [{"name": "json_tool_call"}]}, ("json_schema", False, (), None)),
    (GEMINI, {"generationConfig": {"responseMimeType": "application/json"}}, ("json_object", False, (), None)),
    (GEMINI, {"generation_config": {"response_schema": {"a": 1}}}, ("json_schema", True, (), None)),
    (GEMINI, {"tools": [{"functionDeclarations": [{"name": "add"}]}]}, (None, False, ("add",), None)),
    (OLLAMA, {"format": "json"}, ("json_object", False, (), None)),
    (OLLAMA, {"format": {}, "tools": [TOOL]}, ("json_schema", False, ("add",), None)),
    (BEDROCK, {"toolConfig": CONVERSE_TOOL}, (None, False, ("add",), "named")),
    (BEDROCK, {"outputConfig": {}}, ("json_schema", True, (), None)),
]


@pytest.mark.parametrize(("path", "body", "wanted"), WANTED)
def test_what_is_asked_for_is_understood(
    provider: ProviderSimulator, path: str, body: dict[str, Any], wanted: Any
) -> None:
    """Format, strictness, tools and tool choice are read from every dialect."""
    post(provider, path, body)
    got = provider.received[0].wanted
    assert (got.format, got.strict, got.tools, got.tool_choice) == wanted


def test_replies_in_every_dialect(provider: ProviderSimulator) -> None:
    """Text, tool calls, a cut and a refusal look as each provider writes them."""
    provider.behaviour = Behaviour(says=ChatReply(content="hi", finish_reason="length", refusal="no", reasoning="hm"))
    openai = post(provider, "/v1/chat/completions", {})[1]["choices"][0]
    assert openai["finish_reason"] == "length"
    assert (openai["message"]["refusal"], openai["message"]["reasoning_content"]) == ("no", "hm")
    assert post(provider, "/v1/messages", {})[1]["stop_reason"] == "max_tokens"
    assert post(provider, "/models/g:generateContent", {})[1]["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert post(provider, "/api/chat", {})[1]["done_reason"] == "length"
    assert post(provider, "/model/b/converse", {})[1]["stopReason"] == "max_tokens"
    provider.behaviour = Behaviour(says=CALLED)
    assert post(provider, "/v1/chat/completions", {})[1]["choices"][0]["message"]["tool_calls"][0]["id"] == "c1"
    tool_use = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    assert post(provider, "/v1/messages", {})[1]["content"] == [tool_use]
    parts = post(provider, "/models/g:generateContent", {})[1]["candidates"][0]["content"]["parts"]
    assert parts == [{"functionCall": {"name": "add", "args": {"a": 1}}}]
    call = {"function": {"name": "add", "arguments": {"a": 1}}}
    assert post(provider, "/api/chat", {})[1]["message"]["tool_calls"] == [call]
    assert post(provider, "/model/b/converse", {})[1]["output"]["message"]["content"] == [
        {"toolUse": {"toolUseId": "c1", "name": "add", "input": {"a": 1}}}
    ]


def test_forced_tool_carries_the_text_if_it_is_an_object(provider: ProviderSimulator) -> None:
    """Where litellm makes a tool of the schema, the reply's JSON comes as its call; other text stays text."""
    provider.behaviour = Behaviour(says={"a": 1})
    forced = {"tools": [{"type": "function", "function": {"name": "json_tool_call"}}]}
    message = post(provider, "/v1/chat/completions", forced)[1]["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {"name": "json_tool_call", "arguments": '{"a": 1}'}
    assert post(provider, "/v1/messages", {"tools": [{"name": "json_tool_call"}]})[1]["content"][0]["input"] == {"a": 1}
    converse = {"toolConfig": {"tools": [{"toolSpec": {"name": "json_tool_call"}}]}}
    assert "toolUse" in post(provider, "/model/b/converse", converse)[1]["output"]["message"]["content"][0]
    provider.behaviour = Behaviour(says="[1]")
    assert post(provider, "/v1/messages", {"tools": [{"name": "json_tool_call"}]})[1]["content"][0]["text"] == "[1]"


@pytest.mark.parametrize("style", FORMAT_REFUSALS)
def test_formats_are_refused_in_every_wording(provider: ProviderSimulator, style: str) -> None:
    """A format that is not taken is refused with the status and the words of that provider."""
    provider.behaviour = Behaviour(accepts=("json_object",), style=style)
    status, body, _ = post(provider, "/v1/chat/completions", {"response_format": SCHEMA})
    assert status == FORMAT_REFUSALS[style].status
    assert "{type}" not in str(body)
    assert post(provider, "/v1/chat/completions", {"response_format": {"type": "json_object"}})[0] == 200


def test_strictness_tools_and_choices_are_refused(provider: ProviderSimulator) -> None:
    """Strict schemas, tools and kinds of tool choice can be refused each."""
    provider.behaviour = Behaviour(strict=False)
    assert post(provider, "/v1/chat/completions", {"response_format": SCHEMA})[0] == 400
    provider.behaviour = Behaviour(tools=False, style="ollama")
    refused = post(provider, "/v1/chat/completions", {"tools": [TOOL]})
    assert "does not support tools" in refused[1]["error"]["message"]
    provider.behaviour = Behaviour(tool_choices=("auto",), style="plain")
    assert post(provider, "/v1/chat/completions", {"tools": [TOOL], "tool_choice": "required"})[0] == 400
    assert post(provider, "/v1/chat/completions", {"tools": [TOOL], "tool_choice": "auto"})[0] == 200
    assert post(provider, "/v1/chat/completions", {"tools": [TOOL]})[0] == 200
    assert {answer.status for answer in TOOL_REFUSALS.values()} == {400, 404}


@pytest.mark.parametrize("kind", FAILURES)
def test_failures_come_first_and_pass(provider: ProviderSimulator, kind: str) -> None:
    """The first request fails as told, the next is answered."""
    provider.behaviour = Behaviour(says="hello", fails=(kind,), retry_after="3")
    status, body, headers = post(provider, "/v1/chat/completions", {"x": 'a"b'}, **{"x-api-key": "k-123"})
    assert status == FAILURES[kind].status
    assert ("retry-after" in headers) == ("retry-after" in FAILURES[kind].headers)
    if kind == "key_echo":
        assert body["error"]["message"] == "Invalid API key: k-123"
    if kind == "prompt_echo":
        assert body["error"]["message"] == 'Your request could not be processed: {"x": "a\\"b"}'
    assert post(provider, "/v1/chat/completions", {})[0] == 200


def test_retry_after_is_left_out_when_empty(provider: ProviderSimulator) -> None:
    """Without a value there is no header."""
    provider.behaviour = Behaviour(fails=("rate_limit",))
    assert "retry-after" not in post(provider, "/v1/chat/completions", {})[2]


@pytest.mark.parametrize("kind", ["drop", "half"])
def test_broken_connections(provider: ProviderSimulator, kind: str) -> None:
    """A dropped socket and half an answer are what a client sees of them."""
    provider.behaviour = Behaviour(fails=(kind,))
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        post(provider, "/v1/chat/completions", {})


def test_slow_answer_ends_with_the_simulator() -> None:
    """A request that is never answered doesn't keep the simulator from closing."""
    with ProviderSimulator(Behaviour(fails=("slow",))) as provider:
        connection = http.client.HTTPConnection(provider.root.removeprefix("http://"), timeout=5)
        connection.request("POST", "/v1/chat/completions", "{}")
        while not provider.received:
            pass
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        connection.getresponse()
    connection.close()


STREAMS = [
    (CHAT, {"stream": True, "stream_options": {"include_usage": True}}),
    (CHAT, {"stream": True}),
    (CLAUDE, {"stream": True}),
    ("/v1beta/models/g:streamGenerateContent", {}),
    (OLLAMA, {"stream": True}),
]


@pytest.mark.parametrize(("path", "body"), STREAMS)
def test_replies_in_parts(provider: ProviderSimulator, path: str, body: dict[str, Any]) -> None:
    """A reply that is wanted in parts comes word by word, its calls too, and ends as the dialect's do."""
    provider.behaviour = Behaviour(says=ChatReply("one two", reasoning="hm", tool_calls=CALLED.tool_calls))
    status, text, headers = post(provider, path, body)
    assert (status, "one two" in text) == (200, False)
    assert all(part in text for part in ("one", " two", '"name": "add"'))
    assert headers["content-type"] == ("application/x-ndjson" if path == OLLAMA else "text/event-stream")
    ends = {CHAT: "[DONE]", CLAUDE: "message_stop", OLLAMA: '"done": true'}
    assert ends.get(path, "finishReason") in text[-300:]
    assert ("completion_tokens" in text) == (path == CHAT and "stream_options" in body)


def test_bedrock_sends_no_parts(provider: ProviderSimulator) -> None:
    """A dialect that the simulator can't stream is answered whole."""
    assert post(provider, BEDROCK, {"stream": True})[1]["stopReason"] == "end_turn"


@pytest.mark.parametrize("kind", BREAKS)
def test_parts_that_break(kind: str) -> None:
    """Each way in which a stream breaks is what a client sees of it; a whole reply breaks off instead."""
    behaviour = Behaviour(says="one two three four", fails=(kind, kind))
    with ProviderSimulator(behaviour) as provider:
        connection = http.client.HTTPConnection(provider.root.removeprefix("http://"), timeout=5)
        connection.request("POST", CHAT, '{"stream": true}')
        answer = connection.getresponse()
        text = b"" if kind == "stalled" else _all_of(answer)
        while kind == "stalled" and b"one" not in text:
            text += answer.read1(10_000)
        connection.close()
        assert (b"one" in text) == (kind != "empty")
        assert (b"four" in text) == (kind == "garbled")
        assert (b"server_error" in text) == (kind == "failed")
        while kind == "stalled" and not provider.left:
            pass
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            post(provider, CHAT, {})


def _all_of(answer: http.client.HTTPResponse) -> bytes:
    """What came of the body."""
    try:
        return answer.read()
    except http.client.IncompleteRead as broken:
        return bytes(broken.partial)


def test_embeddings_models_and_unknown_paths(provider: ProviderSimulator) -> None:
    """Vectors depend on the text alone; other paths are not found."""
    status, body, _ = post(provider, "/v1/embeddings", {"input": ["a", "b", "a"], "model": "e"})
    rows = [row["embedding"] for row in body["data"]]
    assert (status, len(rows[0]), rows[0] == rows[2], rows[0] == rows[1]) == (200, 8, True, False)
    assert len(post(provider, "/v1/embeddings", {"input": "a", "dimensions": 3})[1]["data"][0]["embedding"]) == 3
    assert post(provider, "/v1/models", {})[1]["data"][0]["id"] == "simulated"
    assert post(provider, "/nothing", {})[0] == 404


def test_chunked_bodies_and_kept_connections(provider: ProviderSimulator) -> None:
    """A chunked request is read, and one connection carries several requests."""
    connection = http.client.HTTPConnection(provider.root.removeprefix("http://"), timeout=5)
    for _ in range(2):
        pieces, chunked = iter([b'{"model"', b': "m"}']), {"transfer-encoding": "chunked"}
        connection.request("POST", "/v1/chat/completions", pieces, chunked, encode_chunked=True)
        assert json.loads(connection.getresponse().read())["model"] == "m"
    connection.close()


@pytest.mark.anyio
async def test_async_context_manager() -> None:
    """Inside an event loop the simulator starts and ends without blocking it."""
    async with ProviderSimulator(Behaviour(says={"memory_ids": ["1"]})) as provider:
        answer = await anyio.to_thread.run_sync(post, provider, "/v1/chat/completions", {})
    assert answer[0] == 200


def test_delay(provider: ProviderSimulator) -> None:
    """An answer comes after the delay."""
    import time

    provider.behaviour = Behaviour(delay=0.1)
    assert provider.behaviour.delay == 0.1
    started = time.monotonic()
    post(provider, "/v1/chat/completions", {})
    assert time.monotonic() - started >= 0.1
