"""The ladder, from messages and a schema to a validated value. Pure policy: it yields requests, others send."""

import logging
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from asyncmem.errors import (
    ConfigurationError,
    ModelError,
    ModelRefusedError,
    ModelRequestError,
    ModelUnavailableError,
    StructuredOutputError,
)
from asyncmem.settings import LLMSettings
from asyncmem.types import Tier, Usage

from .abilities import TIERS, Abilities
from .chat import ChatReply, ChatRequest, WireMessage
from .failures import Failure, to_error
from .parsing import Reading, read_value
from .schemas import plain_schema, texts, with_schema
from .verdicts import Drop, Fatal, NoTools, Retry, StepDown, judge

log = logging.getLogger("asyncmem.llm")
T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

MAX_PAUSE = 8.0
"""Seconds between two tries, unless the provider asks for more."""
_MORE_TOKENS = 4
_MAX_QUOTED = 4_000


@dataclass(frozen=True, slots=True)
class Send:
    """Send this request, after so many seconds."""

    request: ChatRequest
    after: float = 0.0


Flow = Generator[Send, ChatReply | Failure, R]
"""A conversation with a model as a generator: it yields requests, is sent what came, and returns its result."""


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """A validated value, and how it was had.

    Attributes:
        value: the value.
        tier: the step of the ladder that gave it.
        usage: all calls, refused ones included.
        repairs: how often the model was asked again because its reply could not be read.
        partial: saved from a reply that was cut: complete items only.
    """

    value: T
    tier: Tier
    usage: Usage
    repairs: int = 0
    partial: bool = False


@dataclass(slots=True)
class Context:
    """What every flow of one model needs to know.

    Attributes:
        name: the model's name.
        key: name and address, under which its abilities are kept.
        settings: how models are called.
        abilities: what was learned.
        left: seconds until the deadline.
        jitter: a random number from 0 to 1.
    """

    name: str
    key: tuple[str, str]
    settings: LLMSettings
    abilities: Abilities
    left: Callable[[], float]
    jitter: Callable[[], float] = random.random

    def learn(self, why: str, /, **found: Any) -> None:
        """Remember it, and say so once."""
        if self.abilities.learn(self.key, **found):
            log.info("%s: %s (%s)", self.name, ", ".join(f"{k}={v!r}" for k, v in found.items()), why)

    def secrets(self) -> list[str]:
        """The keys that no text of ours may show."""
        key = self.settings.api_key
        headers: Any = self.settings.extra.get("extra_headers") or {}
        named = [str(v) for k, v in self.settings.extra.items() if "key" in k or "secret" in k or "token" in k]
        return [*([key.get_secret_value()] if key else []), *map(str, dict(headers).values()), *named]

    def request(self, messages: list[WireMessage], max_tokens: int, **more: Any) -> ChatRequest:
        """A request with the settings' parameters, those left out that the model refuses."""
        ability = self.abilities.get(self.key)
        given: dict[str, Any] = {
            "temperature": self.settings.temperature,
            "seed": self.settings.seed,
            "max_tokens": max_tokens,
        }
        extra = dict(self.settings.extra)
        for old, new in ability.renamed:
            if old in given and new not in ability.dropped:
                extra[new] = given[old]
        gone = {*ability.dropped, *(old for old, _ in ability.renamed)}
        return ChatRequest(
            messages=messages,
            timeout=max(0.01, min(self.settings.timeout, self.left())),
            extra={name: value for name, value in extra.items() if name not in gone},
            **{name: value for name, value in given.items() if name not in gone},
            **more,
        )

    def drop(self, names: Sequence[str]) -> None:
        """Remember that the model refuses these parameters: ``max_tokens`` first under its newer name."""
        ability = self.abilities.get(self.key)
        dropped, renamed = set(ability.dropped), dict(ability.renamed)
        for name in names:
            if name == "max_tokens" and name not in renamed:
                renamed[name] = "max_completion_tokens"
            else:
                dropped.add(name)
        self.learn(
            f"it refuses {', '.join(names)}",
            dropped=tuple(sorted(dropped)),
            renamed=tuple(sorted(renamed.items())),
        )


def sent_parameters(request: ChatRequest) -> set[str]:
    """Names of the parameters that go with a request."""
    given = {n for n in ("max_tokens", "temperature", "seed") if getattr(request, n) is not None}
    return given | set(request.extra)


@dataclass(slots=True)
class Patience:
    """Retries of one operation: how many are left, and how long to wait."""

    context: Context
    tries: int = 0

    def pause(self, failure: Failure) -> float | None:
        """Seconds to wait before the next try; ``None`` when there is to be none.

        ``Retry-After`` where the provider gave it, else 0.5, 1, 2 … seconds, a quarter more or less, so that many
        callers don't come back at once; never past the deadline.
        """
        if self.tries >= self.context.settings.retries:
            return None
        grown = min(MAX_PAUSE, 0.5 * 2**self.tries) * (0.75 + self.context.jitter() / 2)
        pause = grown if failure.retry_after is None else failure.retry_after
        if pause >= self.context.left():
            return None
        self.tries += 1
        return pause


@dataclass(slots=True)
class Climb(Generic[T]):
    """One way up and down the ladder."""

    context: Context
    messages: Sequence[Mapping[str, Any]]
    schema: type[T]
    max_tokens: int
    tier: Tier = field(init=False)
    patience: Patience = field(init=False)
    usage: Usage = field(default_factory=Usage)
    pause: float = 0.0
    repairs: int = 0
    empties: int = 0
    longer: bool = False
    cut: ChatReply | None = None
    tentative: bool = False
    first: Failure | None = None
    more: list[WireMessage] = field(default_factory=list[WireMessage])

    def __post_init__(self) -> None:
        self.patience = Patience(self.context)
        self.tier = self._start()

    def _start(self) -> Tier:
        """Pinned, or learned, or the best; a schema that plain JSON schema can't say starts at JSON mode."""
        pinned = self.context.settings.tier
        strict = plain_schema(self.schema) is None
        if pinned is not None:
            if strict and TIERS.index(pinned) < 2:
                raise ConfigurationError(
                    f"{self.schema.__name__} refers to itself, has a union of objects or free keys: the tier"
                    f" {pinned!r} can't express it. Use LLMSettings(tier='json_object') or None"
                )
            return pinned
        learned = self.context.abilities.get(self.context.key).tier
        start: Tier = learned or ("json_object" if self.context.name.startswith("deepseek/") else "native")
        return "json_object" if strict and TIERS.index(start) < 2 else start

    def run(self) -> Flow[Structured[T]]:
        """The flow.

        Raises:
            ModelError: the call failed.
            StructuredOutputError: no reply could be read.
        """
        while True:
            request = self._request()
            outcome = yield Send(request, self.pause)
            self.pause = 0.0
            if isinstance(outcome, Failure):
                self._failed(outcome, request)
                continue
            done = self._replied(outcome)
            if done is not None:
                return done

    def _request(self) -> ChatRequest:
        turns = [*with_schema(self.messages, self.schema), *self.more]
        return self.context.request(turns, self.max_tokens, response_format=self._format())

    def _format(self) -> type[BaseModel] | dict[str, Any] | None:
        match self.tier:
            case "native":
                return self.schema
            case "json_schema":
                plain = plain_schema(self.schema)
                return {"type": "json_schema", "json_schema": {"name": self.schema.__name__, "schema": plain}}
            case "json_object":
                return {"type": "json_object"}
            case "text":
                return None

    # -- a call that failed

    def _failed(self, failure: Failure, request: ChatRequest) -> None:
        if failure.name != "UnsupportedParamsError":  # that one litellm raises itself: nothing was sent
            self.usage += Usage(calls=1)
        ability = self.context.abilities.get(self.context.key)
        verdict = judge(failure, self.tier, proven=self.tier in ability.proven, sent=sent_parameters(request))
        match verdict:
            case StepDown():
                self._step_down(verdict, failure)
            case Drop() if self.longer and self.cut is not None and "max_tokens" in str(verdict.names):
                self._raise_unreadable(self.cut, "its reply was cut, and it takes no greater max_tokens")
            case Drop():
                self.context.drop(verdict.names)
            case Retry() if (pause := self.patience.pause(failure)) is not None:
                self.pause = pause
            case Retry() | Fatal():
                raise self._error(failure, verdict.kind)
            case NoTools():
                raise self._error(failure, ModelRequestError)

    def _step_down(self, verdict: StepDown, failure: Failure) -> None:
        if self.context.settings.tier is not None:
            raise self._error(failure, ModelRequestError)
        self.first = self.first or failure
        if verdict.certain:
            learned = self.context.abilities.get(self.context.key).tier
            if learned is None or TIERS.index(learned) < TIERS.index(verdict.to):
                self.context.learn(f"it refused {self.tier}", tier=verdict.to)
        else:
            self.tentative = True
        self.tier = verdict.to

    def _error(self, failure: Failure, kind: type[ModelError]) -> ModelError:
        """The error; of a chain that began with a refusal, the first one says more than the last."""
        told = failure
        if self.first is not None and kind is ModelRequestError:
            told = self.first
        return to_error(
            told, self.context.name, secrets=self.context.secrets(), prompt=texts(self.messages), kind=kind
        )

    # -- a call that was answered

    def _replied(self, reply: ChatReply) -> Structured[T] | None:
        self.usage += reply.usage
        if reply.refusal or reply.finish_reason == "content_filter":
            raise ModelRefusedError(f"{self.context.name}: the model refused the content", model=self.context.name)
        if not reply.finish_reason:
            self._empty()
            return None
        is_cut = reply.finish_reason == "length"
        reading = self._read(reply, salvage=is_cut and self.longer)
        if reading.value is not None:
            return self._done(reading, reading.value)
        if is_cut and not self.longer:
            self.longer, self.cut = True, reply
            self.max_tokens *= _MORE_TOKENS
            return None
        self._repair(reply, reading.problem)
        return None

    def _read(self, reply: ChatReply, *, salvage: bool) -> Reading[T]:
        """The value in the content, else in a tool call (some models answer by one), else in the reasoning."""
        calls = [call.arguments for call in reply.tool_calls]
        first: Reading[T] | None = None
        for text in (reply.content, *calls, reply.reasoning):
            if not text:
                continue
            reading = read_value(text, self.schema, salvage=salvage)
            if reading.value is not None:
                return reading
            first = first or reading
        return first or Reading(problem="the reply was empty")

    def _done(self, reading: Reading[T], value: T) -> Structured[T]:
        ability = self.context.abilities.get(self.context.key)
        pinned = self.context.settings.tier is not None
        if not pinned:
            learned = self.tier if self.tentative else ability.tier
            self.context.learn("it worked", tier=learned, proven=tuple({*ability.proven, self.tier}))
        return Structured(value, self.tier, self.usage, self.repairs, reading.partial)

    def _empty(self) -> None:
        self.empties += 1
        if self.empties > 1:
            raise ModelUnavailableError(
                f"{self.context.name}: the provider answered without a choice, twice",
                model=self.context.name,
                retryable=True,
            )

    def _repair(self, reply: ChatReply, problem: str) -> None:
        """Ask again with what was wrong, then once as plain text: constrained decoding may be what breaks it."""
        self.repairs += 1
        if self.repairs > 2:
            self._raise_unreadable(reply, problem)
        if self.repairs == 2 and self.context.settings.tier is None:
            self.tier = "text"
        said = (reply.content or "")[:_MAX_QUOTED]
        ask = f"That can't be used: {problem}. Answer again with only the JSON object."
        self.more = [{"role": "assistant", "content": said}] if said.strip() else []
        self.more.append({"role": "user", "content": ask})

    def _raise_unreadable(self, reply: ChatReply, problem: str) -> None:
        # the problem may name fields of the reply's own making: it is for the model, not for the error's text
        del problem
        raise StructuredOutputError(
            f"{self.context.name}: no reply in {self.usage.calls} calls could be read as {self.schema.__name__};"
            f" the last is in .raw",
            model=self.context.name,
            raw=reply.content or reply.reasoning or "",
        )
