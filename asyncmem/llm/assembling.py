"""A reply put together from the pieces that litellm streams. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from asyncmem.usage import Usage

from .chat import ChatReply, ToolCall, WireMessage
from .lenient import is_array, is_object

_TEXTS = ("reasoning_content", "reasoning", "refusal")
"""Fields of a message, besides its content, whose pieces are put together."""


class Assembly:
    """What came of one reply so far.

    Attributes:
        usage: as told last: some providers tell it with every piece.
    """

    def __init__(self) -> None:
        self.usage: Usage = Usage(calls=1)
        self._finish = ""
        self._texts: list[str] = []
        self._message: WireMessage = {"role": "assistant"}
        self._calls: list[dict[str, Any]] = []
        self._open: dict[int, dict[str, Any]] = {}

    @property
    def is_empty(self) -> bool:
        """Nothing was said, and nothing called."""
        return not (self._texts or self._calls or len(self._message) > 1)

    def add(self, chunk: Any) -> str:
        """Take one chunk; the text that it adds."""
        if getattr(chunk, "usage", None) is not None:
            self.usage = to_usage(chunk)
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        self._finish = str(choice.finish_reason or self._finish)
        delta: dict[str, Any] = choice.delta.model_dump(exclude_none=True) if choice.delta is not None else {}
        text = delta.pop("content", None)
        for call in delta.pop("tool_calls", ()):
            self._add_call(call)
        for name, value in delta.items():
            if name != "role" and value:
                self._message[name] = _grown(self._message.get(name), value, name)
        if not isinstance(text, str) or not text:
            return ""
        self._texts.append(text)
        return text

    def _add_call(self, piece: dict[str, Any]) -> None:
        """Calls are told apart by their index; by their ids, and by being complete, where all have the same index."""
        index = piece.pop("index", None) or 0
        function: dict[str, Any] = piece.pop("function", None) or {}
        call = self._open.get(index)
        if call is None or _is_another(call, piece, function):
            call = self._open[index] = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self._calls.append(call)
        whole: dict[str, Any] = call["function"]
        whole["name"] = whole["name"] or str(function.pop("name", None) or "")
        whole["arguments"] += str(function.pop("arguments", None) or "")
        for name, value in function.items():
            whole[name] = _grown(whole.get(name), value, name)
        for name, value in piece.items():
            call[name] = _grown(call.get(name), value, name)

    def reply(self, *, finished: bool = True) -> ChatReply:
        """The reply; one that never ``finished`` and holds nothing is one without a choice."""
        content = "".join(self._texts) or None
        message = {**self._message}
        if blocks := [block for block in message.pop("thinking_blocks", ()) if _is_signed(block)]:
            message["thinking_blocks"] = blocks
        legacy: Any = message.get("function_call")
        calls = [(call["id"], call["function"]) for call in self._calls] or ([("", legacy)] if legacy else [])
        if content is not None or not calls:
            message["content"] = content or ""
        if self._calls:
            message["tool_calls"] = self._calls
        fields: Mapping[str, Any] = message.get("provider_specific_fields") or {}
        return ChatReply(
            content=content,
            tool_calls=tuple(
                ToolCall(str(i or ""), str(function.get("name", "")), str(function.get("arguments", "")))
                for i, function in calls
            ),
            finish_reason=(self._finish or "stop") if finished else "",
            refusal=message.get("refusal") or fields.get("refusal"),
            reasoning=message.get("reasoning_content"),
            usage=self.usage,
            message=message,
        )


def _is_another(call: Mapping[str, Any], piece: Mapping[str, Any], function: Mapping[str, Any]) -> bool:
    if piece.get("id") and call["id"]:
        return bool(piece["id"] != call["id"])
    return bool(function.get("name")) and _is_complete(call["function"]["arguments"])


def _is_complete(arguments: str) -> bool:
    try:
        return is_object(json.loads(arguments))
    except ValueError:
        return False


def _grown(before: Any, more: Any, name: str) -> Any:
    """A field with one more piece: texts and lists grow, of anything else the last counts."""
    if name == "thinking_blocks" and is_array(more):
        return _thought(before or [], more)
    if name in _TEXTS and isinstance(before, str):
        return before + str(more)
    if name == "arguments" and isinstance(before, str):
        return before + str(more)
    if is_array(before) and is_array(more):
        return [*before, *more]
    if is_object(before) and is_object(more):
        return before | {key: _grown(before.get(key), value, key) for key, value in more.items()}
    return more


def _thought(blocks: list[Any], more: list[Any]) -> list[Any]:
    """Blocks of thought; the pieces of one are put together until its signature comes."""
    blocks = [*blocks]
    for piece in more:
        last: Mapping[str, Any] = blocks[-1] if blocks else {}
        if piece.get("type") == last.get("type") == "thinking" and not last.get("signature"):
            thinking = f"{last.get('thinking') or ''}{piece.get('thinking') or ''}"
            blocks[-1] = {**last, **piece, "thinking": thinking}
        else:
            blocks.append(piece)
    return blocks


def _is_signed(block: Mapping[str, Any]) -> bool:
    """No provider takes a thought back without its signature."""
    return block.get("type") != "thinking" or bool(block.get("signature"))


def to_usage(response: Any) -> Usage:
    """What litellm tells of tokens and cost; a cost that it doesn't know is ``None``."""
    told = getattr(response, "usage", None)
    hidden: Mapping[str, Any] = getattr(response, "_hidden_params", None) or {}
    cost = hidden.get("response_cost")
    return Usage(
        calls=1,
        prompt_tokens=int(getattr(told, "prompt_tokens", 0) or 0),
        completion_tokens=int(getattr(told, "completion_tokens", 0) or 0),
        cost=float(cost) if isinstance(cost, (int, float)) else None,
    )
