"""A model that plays a script: strict, so that a test notices every call too many and too few."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from pydantic import BaseModel

from asyncmem.llm.chat import ChatDelta, ChatReply, ChatRequest, ScriptError, ToolCall

from .streams import pieces

Said = str | BaseModel | Mapping[str, Any] | ChatReply | BaseException
"""What a step may answer."""
Step = Said | Callable[[ChatRequest], Said]
"""An answer, or a function that gives one."""


class ScriptedModel:
    """A ``ChatModel`` whose answers are written down beforehand.

    Each call takes the next step: a ``str`` is the reply's text; a pydantic value or a ``dict`` is sent as JSON; a
    ``ChatReply`` is sent as it is; an exception is raised; a function gets the request and returns one of these. A
    reply that is streamed comes word by word.

    Use it as an async context manager, or call ``assert_done()``, so that steps that are left fail the test.

    Args:
        steps: what to answer, in order.
        name: the model's name in errors.

    Attributes:
        requests: every ``ChatRequest`` so far. ``structured()`` puts its schema into their messages.

    Raises:
        ScriptError: from ``complete``, when no step is left. It passes through ``LLM`` untranslated.
    """

    def __init__(self, steps: Iterable[Step] = (), *, name: str = "scripted") -> None:
        self._steps = list(steps)
        self._name = name
        self.requests: list[ChatRequest] = []

    @property
    def name(self) -> str:
        """The model's name in errors."""
        return self._name

    @property
    def left(self) -> int:
        """Steps that were not played yet."""
        return len(self._steps)

    def add(self, *steps: Step) -> None:
        """Write more steps at the script's end."""
        self._steps += steps

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Play the next step.

        Raises:
            ScriptError: none is left.
        """
        self.requests.append(request)
        if not self._steps:
            raise ScriptError(f"unexpected call {len(self.requests)} of the model {self._name!r}: no step is left")
        step = self._steps.pop(0)
        return _reply(step(request) if callable(step) else step)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta]:
        """Play the next step word by word.

        Raises:
            ScriptError: none is left.
        """
        reply = await self.complete(request)
        for piece in pieces(reply.content):
            yield ChatDelta(piece)
        yield ChatDelta(reply=reply)

    def assert_done(self) -> None:
        """Check that the script was played to its end.

        Raises:
            ScriptError: steps are left.
        """
        if self._steps:
            raise ScriptError(
                f"{len(self._steps)} steps of the model {self._name!r} are left after {len(self.requests)} calls"
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.assert_done()


def _reply(said: Said) -> ChatReply:
    match said:
        case BaseException():
            raise said
        case ChatReply():
            return said
        case str():
            return ChatReply(content=said)
        case BaseModel():
            return ChatReply(content=said.model_dump_json())
        case _:
            return ChatReply(content=json.dumps(dict(said), ensure_ascii=False))


def tool_reply(*calls: tuple[str, dict[str, Any] | str], content: str | None = None) -> ChatReply:
    """A reply that calls tools.

    Args:
        calls: name and arguments of each call; arguments as ``str`` are sent as they are, malformed or not.
        content: text beside the calls.
    """
    made = tuple(
        ToolCall(f"call_{i}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for i, (name, arguments) in enumerate(calls, 1)
    )
    return ChatReply(content=content, tool_calls=made, finish_reason="tool_calls")
