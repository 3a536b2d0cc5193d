"""Replies sent piece by piece, as each wire format streams them; and the ways in which a stream goes wrong. Pure."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from asyncmem.llm.chat import ChatReply

from .dialects import Anthropic, Dialect, Gemini, Json, Ollama, OpenAI, Wanted, inner

_PIECE = re.compile(r"\s*\S+|\s+")
BREAKS = ("cut", "ended", "garbled", "failed", "stalled", "empty")
"""How a streamed reply may break: its connection is closed, it ends too early, it holds what is no JSON, it says that
the provider failed, it goes on no more, or nothing comes at all."""

_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def pieces(text: str | None) -> list[str]:
    """The text word by word; put together they are the text."""
    return _PIECE.findall(text or "")


@dataclass(frozen=True, slots=True)
class Stream:
    """A reply in parts.

    Attributes:
        kind: its content type.
        parts: what is sent, one after the other.
        stalls: after them nothing comes, and the connection stays open.
        cut: after them the connection is closed before the body's end.
    """

    kind: str
    parts: tuple[bytes, ...]
    stalls: bool = False
    cut: bool = False


def is_streamed(path: str, body: Json) -> bool:
    """Whether a request asks for a reply in parts."""
    return bool(body.get("stream")) or ":streamGenerateContent" in path


def stream(dialect: Dialect, reply: ChatReply, wanted: Wanted, model: str, body: Json) -> Stream | None:
    """The reply in parts; ``None`` where the simulator speaks no such format."""
    match dialect:
        case OpenAI():
            usage = bool(inner(body, "stream_options").get("include_usage"))
            return Stream("text/event-stream", (*map(_event, _openai(dialect, reply, wanted, model, usage)), _DONE))
        case Anthropic():
            events = _anthropic(dialect.render(reply, wanted, model))
            return Stream("text/event-stream", tuple(_event(each, each["type"]) for each in events))
        case Gemini():
            whole = dialect.render(reply, wanted, model)
            return Stream("text/event-stream", tuple(map(_event, _gemini(whole))))
        case Ollama():
            whole = dialect.render(reply, wanted, model)
            return Stream("application/x-ndjson", tuple(_line(each) for each in _ollama(whole)))
        case _:
            return None


def broken(whole: Stream, how: str, prompt: str) -> Stream:
    """The same, broken in the middle."""
    half = whole.parts[: len(whole.parts) // 2]
    match how:
        case "empty":
            return Stream(whole.kind, ())
        case "ended":
            return Stream(whole.kind, half)
        case "garbled":
            return Stream(whole.kind, (*half, b'data: {"id": "x", "choices": [{\n\n', *whole.parts[len(half) :]))
        case "failed":
            error = {"type": "server_error", "code": "server_error", "message": f"The server had an error. {prompt}"}
            return Stream(whole.kind, (*half, _event({"type": "error", "error": error}, "error")))
        case "stalled":
            return Stream(whole.kind, half, stalls=True)
        case _:
            return Stream(whole.kind, half, cut=True)


_DONE = b"data: [DONE]\n\n"


def _event(value: Json, name: str = "") -> bytes:
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {json.dumps(value)}\n\n".encode("utf-8", "surrogatepass")


def _line(value: Json) -> bytes:
    return f"{json.dumps(value)}\n".encode("utf-8", "surrogatepass")


def _openai(dialect: OpenAI, reply: ChatReply, wanted: Wanted, model: str, usage: bool) -> Iterator[dict[str, Any]]:
    whole = dialect.render(reply, wanted, model)
    choice = whole["choices"][0]
    message = choice["message"]
    head = {"id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"], "model": model}

    def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk(role="assistant", content="")
    for name in ("reasoning_content", "content", "refusal"):
        for piece in pieces(message.get(name)):
            yield chunk(**{name: piece})
    for i, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        yield chunk(tool_calls=[{**call, "index": i, "function": {"name": function["name"], "arguments": ""}}])
        for piece in pieces(function["arguments"]):
            yield chunk(tool_calls=[{"index": i, "function": {"arguments": piece}}])
    yield chunk(choice["finish_reason"])
    if usage:
        yield {**head, "choices": [], "usage": _USAGE}


def _anthropic(whole: Json) -> Iterator[dict[str, Any]]:
    opening: Json = {**whole, "content": (), "stop_reason": None, "usage": {"input_tokens": 11, "output_tokens": 1}}
    yield {"type": "message_start", "message": opening}
    for i, block in enumerate(whole["content"]):
        begin, deltas = _block(block)
        yield {"type": "content_block_start", "index": i, "content_block": begin}
        yield from ({"type": "content_block_delta", "index": i, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": i}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def _block(block: Json) -> tuple[dict[str, Any], Iterable[dict[str, Any]]]:
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    written = pieces(json.dumps(block["input"]))
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in written]


def _gemini(whole: Json) -> Iterator[dict[str, Any]]:
    candidate = whole["candidates"][0]
    for part in candidate["content"]["parts"]:
        for piece in [{"text": text} for text in pieces(part["text"])] if "text" in part else [part]:
            content = {"role": "model", "parts": [piece]}
            yield {"candidates": [{"content": content, "index": 0}], "modelVersion": whole["modelVersion"]}
    last = {**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}
    yield {**whole, "candidates": [last]}


def _ollama(whole: Json) -> Iterator[dict[str, Any]]:
    head = {"model": whole["model"], "created_at": whole["created_at"], "done": False}
    message = whole["message"]
    for piece in pieces(message["content"]):
        yield {**head, "message": {"role": "assistant", "content": piece}}
    if "tool_calls" in message:
        yield {**head, "message": {"role": "assistant", "content": "", "tool_calls": message["tool_calls"]}}
    yield {**whole, "message": {"role": "assistant", "content": ""}}
