"""The ladder, from messages and a schema to a validated value. Pure policy: it yields requests, others send."""

from collections.abc import Mapping, Sequence
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
from asyncmem.types import Tier
from asyncmem.usage import Usage

from .abilities import TIERS, lower
from .chat import ChatReply, ChatRequest, WireMessage
from .failures import Failure
from .flows import Context, Flow, Patience, Send, is_bounded_by_default, sent_parameters
from .halves import mended
from .parsing import read_value
from .schemas import check_schema, plain_schema, safe_name, safely_named, texts, with_schema
from .validating import Reading
from .verdicts import Drop, Retry, StepDown, TooLarge, judge

T = TypeVar("T", bound=BaseModel)

_MORE_TOKENS = 4
_MAX_QUOTED = 4_000


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """A validated value, and how it was had. Its ``repr`` shows the latter only.

    Attributes:
        value: the value.
        tier: the step of the ladder that gave it.
        usage: all calls, refused ones included.
        repairs: how often the model was asked again because its reply could not be read.
        partial: saved from a reply that was cut: complete items only.
    """

    value: T = field(repr=False)
    tier: Tier
    usage: Usage
    repairs: int = 0
    partial: bool = False


@dataclass(slots=True)
class Climb(Generic[T]):
    """One way up and down the ladder."""

    context: Context
    messages: Sequence[Mapping[str, Any]]
    schema: type[T]
    max_tokens: int
    tier: Tier = field(init=False)
    loose: bool = field(init=False)
    patience: Patience = field(init=False)
    pause: float = 0.0
    repairs: int = 0
    empties: int = 0
    longer: bool = False
    cut: ChatReply | None = None
    tentative: bool = False
    first: Failure | None = None
    more: list[WireMessage] = field(default_factory=list[WireMessage])

    def __post_init__(self) -> None:
        check_schema(self.schema)
        self.patience = Patience(self.context)
        self.loose = plain_schema(self.schema) is None
        self.tier = self._start()

    def _start(self) -> Tier:
        """Pinned, or learned, or the best; a schema that plain JSON schema can't say starts at JSON mode."""
        pinned = self.context.settings.tier
        if pinned is not None:
            if self.loose and TIERS.index(pinned) < 2:
                raise ConfigurationError(
                    f"{self.schema.__name__} refers to itself, has a union of objects or free keys: the tier"
                    f" {pinned!r} can't express it. Use LLMSettings(tier='json_object') or None"
                )
            return pinned
        # litellm's own list says that DeepSeek takes a JSON schema; its API answers with a 400
        best: Tier = "json_object" if self.loose or self.context.name.startswith("deepseek/") else "native"
        if self.loose and self._learned() is None:
            self.context.learn(f"plain JSON schema can't say {self.schema.__name__}", loose=best)
        return self._learned() or best

    def _learned(self) -> Tier | None:
        ability = self.context.abilities.get(self.context.key)
        return ability.loose if self.loose else ability.tier

    def _learn(self, why: str, tier: Tier) -> None:
        """Remember a step for schemas of this kind, unless a lower one was learned meanwhile."""
        known = self._learned()
        if known is None or TIERS.index(known) < TIERS.index(tier):
            self.context.learn(why, **{"loose" if self.loose else "tier": tier})

    def run(self) -> Flow[Structured[T]]:
        """The flow.

        Raises:
            ModelError: the call failed.
            StructuredOutputError: no reply could be read.
        """
        while True:
            request = self._request()
            outcome = yield Send(request, self.pause)
            self.context.usage += outcome.usage
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
                return safely_named(self.schema)
            case "json_schema":
                plain = plain_schema(self.schema)
                return {"type": "json_schema", "json_schema": {"name": safe_name(self.schema), "schema": plain}}
            case "json_object":
                return {"type": "json_object"}
            case _:
                return None

    # -- a call that failed

    def _failed(self, failure: Failure, request: ChatRequest) -> None:
        ability = self.context.abilities.get(self.context.key)
        verdict = judge(failure, self.tier, proven=self.tier in ability.proven, sent=sent_parameters(request))
        match verdict:
            case StepDown():
                self._step_down(verdict, failure)
            case TooLarge() | Drop() if self.longer and self.cut is not None and "tokens" in str(verdict):
                self._raise_unreadable(self.cut, "its reply was cut, and it takes no greater max_tokens")
            case TooLarge() if is_bounded_by_default(request):
                self.context.drop((verdict.name,))
            case TooLarge():
                raise self._error(failure, ModelRequestError, verdict.hint)
            case Drop():
                self.context.drop(verdict.names)
            case Retry() if (pause := self.patience.pause(failure)) is not None:
                self.pause = pause
            case _:
                raise self._error(failure, failure.cause)

    def _step_down(self, verdict: StepDown, failure: Failure) -> None:
        if self.context.settings.tier is not None:
            raise self._error(failure, ModelRequestError, f"LLMSettings(tier={self.tier!r}) pins what it refuses")
        self.first = self.first or (None if failure.fault else failure)
        if verdict.certain:
            self._learn(f"it refused {self.tier}", verdict.to)
        self.tentative = self.tentative or not verdict.certain
        self.tier = lower(verdict.to, self._learned() or verdict.to)

    def _error(self, failure: Failure, kind: type[ModelError], hint: str = "") -> ModelError:
        """The error; of a chain that began with a refusal, the first one says more than the last."""
        told = failure
        if self.first is not None and kind is ModelRequestError:
            told = self.first
        return self.context.error(told, texts(self.messages), kind, hint)

    # -- a call that was answered

    def _replied(self, reply: ChatReply) -> Structured[T] | None:
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
        if self.context.settings.tier is None:
            if self.tentative and self.repairs < 2:  # by the second repair the tier is ours, not the model's
                self._learn("it worked", self.tier)
            ability = self.context.abilities.get(self.context.key)
            proven = tuple(tier for tier in TIERS if tier in {*ability.proven, self.tier})
            self.context.abilities.learn(self.context.key, proven=proven)
        return Structured(value, self.tier, self.context.usage, self.repairs, reading.partial)

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
        said = mended((reply.content or "")[:_MAX_QUOTED])
        ask = mended(f"That can't be used: {problem}. Answer again with only the JSON object.")
        self.more = [{"role": "assistant", "content": said}] if said.strip() else []
        self.more.append({"role": "user", "content": ask})

    def _raise_unreadable(self, reply: ChatReply, problem: str) -> None:
        # the problem may name fields of the reply's own making: it is for the model, not for the error's text
        del problem
        raise StructuredOutputError(
            f"{self.context.name}: no reply in {self.context.usage.calls} calls could be read as"
            f" {self.schema.__name__}; the last is in .raw",
            model=self.context.name,
            raw=reply.content or reply.reasoning or "",
        )
