"""Plays the ladder's flow without a model and without an event loop."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from asyncmem.errors import AsyncMemError
from asyncmem.llm.abilities import Abilities
from asyncmem.llm.chat import ChatReply, ChatRequest, ToolCall
from asyncmem.llm.failures import Failure
from asyncmem.llm.flows import Context
from asyncmem.llm.ladder import Climb, Structured
from asyncmem.settings import LLMSettings

from .schemas import Ids

KEY = ("m", "")
GOOD = '{"memory_ids": ["1"]}'


def context(
    abilities: Abilities | None = None,
    settings: LLMSettings | None = None,
    *,
    name: str = "m",
    left: float = 100.0,
) -> Context:
    """A context without randomness and with a clock that stands."""
    return Context(
        name, (name, ""), settings or LLMSettings(), abilities or Abilities(), lambda: left, jitter=lambda: 0.5
    )


def failure(status: int | None = 400, text: str = "", name: str = "BadRequestError", **more: Any) -> Failure:
    """The facts of an exception of litellm."""
    made = type(name, (Exception,), {"status_code": status, "body": None})(text)
    for attribute, value in more.items():
        setattr(made, attribute, value)
    return Failure.of(made)


def reply(content: str | None = GOOD, finish_reason: str = "stop", **more: Any) -> ChatReply:
    """A reply of the model."""
    return ChatReply(content=content, finish_reason=finish_reason, **more)


def call(arguments: str) -> tuple[ToolCall, ...]:
    """One tool call."""
    return (ToolCall("c", "Ids", arguments),)


@dataclass
class Played:
    """What came of it."""

    value: Structured[Any] | None = None
    error: AsyncMemError | None = None
    requests: list[ChatRequest] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    left: int = 0

    @property
    def tiers(self) -> list[str]:
        """The step that each request was made on."""
        return [tier_of(request) for request in self.requests]


def tier_of(request: ChatRequest) -> str:
    """The step of the ladder that a request is made on."""
    match request.response_format:
        case None:
            return "text"
        case dict() as given:
            return str(given["type"])
        case _:
            return "native"


def play(
    outcomes: Iterable[ChatReply | Failure],
    using: Context | None = None,
    schema: Any = Ids,
    messages: list[dict[str, Any]] | None = None,
    max_tokens: int = 100,
) -> Played:
    """Run the flow against these outcomes; every request takes the next one."""
    waiting = list(outcomes)
    played = Played()
    try:
        flow = Climb(using or context(), messages or [{"role": "user", "content": "hi"}], schema, max_tokens).run()
        step = next(flow)
        while True:
            played.requests.append(step.request)
            played.pauses.append(step.after)
            step = flow.send(waiting.pop(0))
    except StopIteration as stop:
        played.value = stop.value
    except AsyncMemError as error:
        played.error = error
    played.left = len(waiting)
    return played
