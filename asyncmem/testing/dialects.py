"""The wire formats that the simulator speaks: what a request asks for, and how a reply looks."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asyncmem.llm.chat import ChatReply
from asyncmem.llm.lenient import is_array, is_object


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks for, whatever the dialect.

    Attributes:
        format: ``"json_schema"``, ``"json_object"`` or ``None``.
        strict: the schema is to be enforced strictly.
        tools: names of the tools offered.
        tool_choice: ``"auto"``, ``"none"``, ``"required"``, ``"named"`` or ``None``.
        forced: the tool that litellm makes of a schema where a provider has no ``response_format``.
    """

    format: str | None = None
    strict: bool = False
    tools: tuple[str, ...] = ()
    tool_choice: str | None = None
    forced: str | None = None


Json = Mapping[str, Any]
_FORCED = "json_tool_call"


class OpenAI:
    """``/chat/completions`` of OpenAI and of all that copied it."""

    style = "openai"

    def wanted(self, body: Json) -> Wanted:
        """What the request asks for."""
        form = inner(body, "response_format")
        kind = form.get("type")
        choice = body.get("tool_choice")
        names = tuple(str(tool["function"]["name"]) for tool in body.get("tools") or ())
        forced = _FORCED if _FORCED in names else None
        return Wanted(
            "json_schema" if forced else kind if kind != "text" else None,
            bool(inner(form, "json_schema").get("strict")),
            tuple(name for name in names if name != forced),
            None if forced else "named" if isinstance(choice, dict) else choice,
            forced,
        )

    def render(self, reply: ChatReply, wanted: Wanted, model: str) -> dict[str, Any]:
        """The reply as this dialect's body."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.content}
        if reply.refusal is not None:
            message["refusal"] = reply.refusal
        if reply.reasoning is not None:
            message["reasoning_content"] = reply.reasoning
        calls = [(call.id, call.name, call.arguments) for call in reply.tool_calls]
        if wanted.forced and reply.content is not None and not calls:
            calls = [("call_1", wanted.forced, reply.content)]
            message["content"] = None
        if calls:
            message["tool_calls"] = [
                {"id": i or None, "type": "function", "function": {"name": name, "arguments": arguments}}
                for i, name, arguments in calls
            ]
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
            "service_tier": "default",
        }


class Anthropic:
    """``/v1/messages``."""

    style = "anthropic"

    def wanted(self, body: Json) -> Wanted:
        """What the request asks for."""
        native = inner(body, "output_format") or inner(inner(body, "output_config"), "format")
        names = tuple(str(tool["name"]) for tool in body.get("tools") or ())
        forced = _FORCED if _FORCED in names else None
        choice = inner(body, "tool_choice").get("type")
        return Wanted(
            "json_schema" if native or forced else None,
            bool(native),
            tuple(name for name in names if name != forced),
            None if forced else {"any": "required", "tool": "named"}.get(str(choice), choice),
            forced,
        )

    def render(self, reply: ChatReply, wanted: Wanted, model: str) -> dict[str, Any]:
        """The reply as this dialect's body."""
        content: list[dict[str, Any]] = []
        given = as_object(reply.content)
        calls = [(call.id, call.name, as_object(call.arguments) or {}) for call in reply.tool_calls]
        if wanted.forced and given is not None and not calls:
            calls = [("toolu_1", wanted.forced, given)]
        elif reply.content:
            content.append({"type": "text", "text": reply.content})
        content += [{"type": "tool_use", "id": i, "name": name, "input": given} for i, name, given in calls]
        stop = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": "tool_use" if calls else stop.get(reply.finish_reason, "end_turn"),
            "stop_sequence": None,
            "usage": {"input_tokens": 11, "output_tokens": 7},
        }


class Gemini:
    """``:generateContent``."""

    style = "gemini"

    def wanted(self, body: Json) -> Wanted:
        """What the request asks for."""
        config = inner(body, "generationConfig") or inner(body, "generation_config")
        plain = {re.sub("_", "", key).lower(): value for key, value in config.items()}
        schema = plain.get("responsejsonschema") or plain.get("responseschema")
        mime = plain.get("responsemimetype") == "application/json"
        names = tuple(
            str(declared["name"])
            for tool in body.get("tools") or ()
            for declared in tool.get("functionDeclarations") or tool.get("function_declarations") or ()
        )
        return Wanted("json_schema" if schema else "json_object" if mime else None, bool(schema), names)

    def render(self, reply: ChatReply, wanted: Wanted, model: str) -> dict[str, Any]:  # noqa: ARG002  one signature for all
        """The reply as this dialect's body."""
        parts: list[dict[str, Any]] = [{"text": reply.content}] if reply.content else []
        parts += [
            {"functionCall": {"name": call.name, "args": as_object(call.arguments) or {}}} for call in reply.tool_calls
        ]
        reason = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}.get(reply.finish_reason, "STOP")
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}],
            "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18},
            "modelVersion": model,
        }


class Ollama:
    """``/api/chat``."""

    style = "ollama"

    def wanted(self, body: Json) -> Wanted:
        """What the request asks for."""
        given = body.get("format")
        kind = "json_object" if given == "json" else "json_schema" if isinstance(given, dict) else None
        return Wanted(kind, False, tuple(str(tool["function"]["name"]) for tool in body.get("tools") or ()))

    def render(self, reply: ChatReply, wanted: Wanted, model: str) -> dict[str, Any]:  # noqa: ARG002  one signature for all
        """The reply as this dialect's body."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.content or ""}
        if reply.tool_calls:
            message["tool_calls"] = [
                {"function": {"name": call.name, "arguments": as_object(call.arguments) or {}}}
                for call in reply.tool_calls
            ]
        return {
            "model": model,
            "created_at": "2025-01-01T00:00:00Z",
            "message": message,
            "done": True,
            "done_reason": "length" if reply.finish_reason == "length" else "stop",
            "prompt_eval_count": 11,
            "eval_count": 7,
        }


class Bedrock:
    """``/model/…/converse``."""

    style = "bedrock"

    def wanted(self, body: Json) -> Wanted:
        """What the request asks for."""
        config = inner(body, "toolConfig")
        names = tuple(str(tool["toolSpec"]["name"]) for tool in config.get("tools") or () if "toolSpec" in tool)
        forced = _FORCED if _FORCED in names else None
        native = "outputConfig" in body
        choice = next(iter(inner(config, "toolChoice")), None)
        return Wanted(
            "json_schema" if native or forced else None,
            native,
            tuple(name for name in names if name != forced),
            None if forced else {"any": "required", "tool": "named"}.get(str(choice), choice),
            forced,
        )

    def render(self, reply: ChatReply, wanted: Wanted, model: str) -> dict[str, Any]:  # noqa: ARG002  one signature for all
        """The reply as this dialect's body."""
        content: list[dict[str, Any]] = []
        given = as_object(reply.content)
        calls = [(call.id, call.name, as_object(call.arguments) or {}) for call in reply.tool_calls]
        if wanted.forced and given is not None and not calls:
            calls = [("tooluse_1", wanted.forced, given)]
        elif reply.content:
            content.append({"text": reply.content})
        content += [{"toolUse": {"toolUseId": i, "name": name, "input": given}} for i, name, given in calls]
        stop = {"length": "max_tokens", "content_filter": "content_filtered"}
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": "tool_use" if calls else stop.get(reply.finish_reason, "end_turn"),
            "usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18},
            "metrics": {"latencyMs": 1},
        }


Dialect = OpenAI | Anthropic | Gemini | Ollama | Bedrock

_PATHS: tuple[tuple[str, Dialect], ...] = (
    (r"/v1/messages$", Anthropic()),
    (r":(?:g|streamG)enerateContent$", Gemini()),
    (r"/api/chat$", Ollama()),
    (r"/converse$", Bedrock()),
    (r"/completions$", OpenAI()),
)


def dialect_of(path: str) -> Dialect | None:
    """The dialect that is spoken at a path."""
    return next((dialect for pattern, dialect in _PATHS if re.search(pattern, path)), None)


def model_of(path: str, body: Json) -> str:
    """The model that a request is for: it stands in the body, or in the path."""
    named = re.search(r"/models?/([^/:]+)", path)
    return str(body.get("model") or (named[1] if named else ""))


def inner(body: Json, name: str) -> dict[str, Any]:
    """The object of that name, or an empty one."""
    value = body.get(name)
    return value if is_object(value) else {}


def as_object(text: str | None) -> dict[str, Any] | None:
    """The JSON object in the text, if it is one."""
    try:
        value = json.loads(text or "")
    except ValueError:
        return None
    return value if is_object(value) else None


def reranked(body: Mapping[str, Any]) -> dict[str, Any]:
    """Documents by the share of the query's words that stand in them, as Cohere and Jina answer."""
    words = set(str(body["query"]).casefold().split())

    def score(document: object) -> float:
        return len(words & set(str(document).casefold().split())) / max(1, len(words))

    found = [{"index": i, "relevance_score": score(text)} for i, text in enumerate(body["documents"])]
    return {"id": "rerank-1", "results": sorted(found, key=lambda each: -each["relevance_score"]), "meta": {}}


def embeddings(body: Json, dimensions: int) -> dict[str, Any]:
    """Vectors that depend on the text alone."""
    given = body.get("input")
    inputs = given if is_array(given) else [given]
    size = int(body.get("dimensions") or dimensions)
    rows = [{"object": "embedding", "index": i, "embedding": _vector(str(text), size)} for i, text in enumerate(inputs)]
    tokens = 5 * len(rows)
    return {
        "object": "list",
        "data": rows,
        "model": str(body.get("model")),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _vector(text: str, size: int) -> list[float]:
    digest = hashlib.sha256(text.encode()).digest()
    return [(digest[i % 32] - 127.5) / 127.5 for i in range(size)]
