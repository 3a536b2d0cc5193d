"""What litellm answers, as values of ours. Pure."""

from collections.abc import Mapping
from typing import Any

from .assembling import to_usage
from .chat import ChatReply, ToolCall
from .embeddings import EmbedReply


def to_reply(response: Any) -> ChatReply:
    """A response of litellm as a reply; one without choices has an empty ``finish_reason``."""
    if isinstance(response, ChatReply):
        return response
    usage = to_usage(response)
    if not response.choices:
        return ChatReply(finish_reason="", usage=usage)
    choice = response.choices[0]
    message = choice.message
    fields: Mapping[str, Any] = getattr(message, "provider_specific_fields", None) or {}
    content = message.content
    return ChatReply(
        content=content if isinstance(content, str) else None,
        tool_calls=_tool_calls(message),
        finish_reason=str(choice.finish_reason or "stop"),
        refusal=getattr(message, "refusal", None) or fields.get("refusal"),
        reasoning=getattr(message, "reasoning_content", None),
        usage=usage,
        message=message.model_dump(exclude_none=True),
    )


def _tool_calls(message: Any) -> tuple[ToolCall, ...]:
    calls = [
        ToolCall(str(call.id or ""), str(call.function.name or ""), str(call.function.arguments or ""))
        for call in getattr(message, "tool_calls", None) or ()
    ]
    legacy = getattr(message, "function_call", None)
    if not calls and legacy is not None:
        calls.append(ToolCall("", str(legacy.name or ""), str(legacy.arguments or "")))
    return tuple(calls)


def to_vectors(response: Any) -> EmbedReply:
    """A response of litellm as rows in the order of the texts: its items are dicts that may carry their place."""
    placed = [(item.get("index"), place, item["embedding"]) for place, item in enumerate(response.data)]
    if all(isinstance(index, int) for index, _, _ in placed):
        placed.sort(key=lambda item: item[:2])
    return EmbedReply([row for _, _, row in placed], to_usage(response))
