"""The small contract between asyncmem and whatever answers: a request, a reply, and the model in between."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, runtime_checkable

from pydantic import BaseModel

from asyncmem.usage import Usage

from .faults import AnswerError
from .halves import mended

_ONE_CALL = Usage(calls=1)
WireMessage = dict[str, Any]
"""One message in OpenAI's shape."""


class ScriptError(AssertionError):
    """A test double was called more or less often than its script says: passed on as it is."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for.

    Attributes:
        id: what the answer must refer to.
        name: which tool.
        arguments: a JSON object as text, as the model wrote it: it may be malformed or empty.
    """

    id: str
    name: str
    arguments: str = field(repr=False)

    def __post_init__(self) -> None:
        parts: list[object] = [self.id, self.name, self.arguments]
        if any(not isinstance(part, str) for part in parts):
            raise AnswerError("a ToolCall has id, name and arguments as str")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a model, in OpenAI's terms. Its ``repr`` shows no prompt.

    Attributes:
        messages: the conversation; the schema asked for, if any, already stands in it.
        response_format: a pydantic model, ``{"type": "json_schema", …}``, ``{"type": "json_object"}`` or ``None``.
            A model that can't do it may ignore it.
        tools: the tools offered, in OpenAI's shape.
        tool_choice: ``"auto"``, ``"none"``, ``"required"``, one named tool, or ``None``.
        max_tokens: tokens the reply may have.
        temperature: ``None`` leaves it to the provider.
        seed: for providers that have one.
        timeout: seconds this request may take.
        stream: the reply is wanted in pieces.
        extra: further keyword arguments, from ``LLMSettings.extra``.
    """

    messages: list[WireMessage] = field(repr=False)
    response_format: type[BaseModel] | dict[str, Any] | None = field(default=None, repr=False)
    tools: list[dict[str, Any]] | None = field(default=None, repr=False)
    tool_choice: str | dict[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    timeout: float | None = None
    stream: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One reply of a model. Its ``repr`` shows nothing that the model said.

    Attributes:
        content: the text; ``None`` when there is none.
        tool_calls: the calls it asks for, in order.
        finish_reason: why it ended: ``"stop"``, ``"length"``, ``"tool_calls"``, ``"content_filter"``; empty when
            the provider gave no choice at all.
        refusal: the provider's words when the model refused.
        reasoning: what it thought aloud, where the provider keeps that apart.
        usage: this one call.
        message: the assistant's turn as it must be appended to the conversation, provider-specific fields kept.
    """

    content: str | None = field(default=None, repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    refusal: str | None = field(default=None, repr=False)
    reasoning: str | None = field(default=None, repr=False)
    usage: Usage = _ONE_CALL
    message: WireMessage = field(default_factory=dict[str, Any], repr=False)

    def __post_init__(self) -> None:
        kinds: dict[str, Any] = {"content": str | None, "tool_calls": tuple, "finish_reason": str, "usage": Usage}
        kinds |= {"refusal": str | None, "reasoning": str | None, "message": dict}
        wrong = [name for name, kind in kinds.items() if not isinstance(getattr(self, name), kind)]
        calls = cast("object", self.tool_calls)
        if isinstance(calls, tuple) and not all(isinstance(call, ToolCall) for call in cast("Any", calls)):
            wrong.append("tool_calls")
        if wrong:
            raise AnswerError(f"a ChatReply has {', '.join(wrong)} of another type than its docstring says")

    def turn(self) -> WireMessage:
        """The assistant's turn to append: ``message``, or one made from the reply's parts; such that it can be sent."""
        turn: WireMessage = self.message
        if not turn:
            turn = {"role": "assistant", "content": self.content}
            if self.tool_calls:
                turn["tool_calls"] = [
                    {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                    for call in self.tool_calls
                ]
        return mended(turn)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of a reply that comes in pieces. Its ``repr`` shows nothing that the model said.

    Attributes:
        text: what the reply's text goes on with; may be empty.
        reply: the whole reply, which ends the stream: with its tool calls, its usage and why it ended. A stream that
            ends without one was the reply that its texts make.
    """

    text: str = field(default="", repr=False)
    reply: ChatReply | None = None

    def __post_init__(self) -> None:
        kinds: dict[str, Any] = {"text": str, "reply": ChatReply | None}
        wrong = [name for name, kind in kinds.items() if not isinstance(getattr(self, name), kind)]
        if wrong:
            raise AnswerError(f"a ChatDelta has {', '.join(wrong)} of another type than its docstring says")


@runtime_checkable
class ChatModel(Protocol):
    """What a model of your own must be: a name, and one method.

    An error it raises is retried, steps the ladder down or is raised as a ``ModelError``, by its ``status_code``
    and text, as a provider's own would be. Raise a ``ModelError`` to decide that yourself. A fault of code, such as a
    ``TypeError``, is a ``ModelCodeError`` at once.
    """

    @property
    def name(self) -> str:
        """What errors and logs call it."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request."""
        ...


@runtime_checkable
class StreamingModel(ChatModel, Protocol):
    """A model of your own that can give its reply in pieces. One that can't gives the whole reply as one piece."""

    def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """Answer one request in pieces; what it returns is closed by its ``aclose``, if it has one."""
        ...
