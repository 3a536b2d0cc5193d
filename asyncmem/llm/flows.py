"""What all conversations with a model share: requests as values, parameters, retries. Pure: nothing is awaited."""

import logging
import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from asyncmem.errors import ModelError
from asyncmem.settings import LLMSettings
from asyncmem.usage import Usage

from .abilities import Abilities
from .chat import ChatReply, ChatRequest, WireMessage
from .failures import Failure, to_error
from .keys import known_keys

log: logging.Logger = logging.getLogger("asyncmem.llm")
Q = TypeVar("Q")
R = TypeVar("R")

MAX_PAUSE = 8.0
"""Seconds between two tries, unless the provider asks for more."""
_TOKENS = LLMSettings().max_tokens


@dataclass(frozen=True, slots=True)
class Send(Generic[Q]):
    """Send this request, after so many seconds."""

    request: Q
    after: float = 0.0


Flow = Generator[Send[ChatRequest], ChatReply | Failure, R]
"""A conversation with a model as a generator: it yields requests, is sent what came, and returns its result."""


@dataclass(slots=True)
class Context:
    """What the flows of one operation need to know, and what they took so far.

    Attributes:
        name: the model's name.
        key: name and address, under which its abilities are kept.
        settings: how models are called.
        abilities: what was learned.
        left: seconds until the deadline.
        jitter: a random number from 0 to 1.
        source: what was passed as the model: it may hold keys.
        usage: all calls of the operation so far.
    """

    name: str
    key: tuple[str, str]
    settings: LLMSettings
    abilities: Abilities
    left: Callable[[], float]
    jitter: Callable[[], float] = random.random
    source: object = field(default=None, repr=False)
    usage: Usage = field(default_factory=Usage)

    def learn(self, why: str, /, **found: Any) -> None:
        """Remember it, and say so once."""
        if self.abilities.learn(self.key, **found):
            log.info("%s: %s (%s)", self.name, ", ".join(f"{k}={v!r}" for k, v in found.items()), why)

    def secrets(self) -> list[str]:
        """The keys that no text of ours may show."""
        return known_keys(self.settings, self.source)

    def error(self, failure: Failure, prompt: Sequence[str], kind: type[ModelError], hint: str = "") -> ModelError:
        """The error to raise, without keys and without the prompt."""
        return to_error(failure, self.name, secrets=self.secrets(), prompt=prompt, kind=kind, hint=hint)

    def request(
        self, messages: list[WireMessage], max_tokens: int, *, stream: bool = False, **more: Any
    ) -> ChatRequest:
        """A request with the settings' parameters, those left out that the model refuses."""
        ability = self.abilities.get(self.key)
        given: dict[str, Any] = {
            "temperature": self.settings.temperature,
            "seed": self.settings.seed,
            "max_tokens": max_tokens,
        }
        extra = dict(self.settings.extra)
        if stream:
            extra["stream_options"] = {"include_usage": True, **(extra.get("stream_options") or {})}
        for old, new in ability.renamed:
            if old in given and new not in ability.dropped:
                extra[new] = given[old]
        gone = {*ability.dropped, *(old for old, _ in ability.renamed)}
        return ChatRequest(
            messages=messages,
            timeout=max(0.01, min(self.settings.timeout, self.left())),
            stream=stream and "stream" not in gone,
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


def is_bounded_by_default(request: ChatRequest) -> bool:
    """The reply may be no longer than it may be by default: a model that gives less is no mistake of the caller's."""
    limit = request.extra.get("max_completion_tokens", request.max_tokens)
    return not isinstance(limit, int) or limit <= _TOKENS


def sent_parameters(request: ChatRequest) -> set[str]:
    """Names of the parameters that go with a request."""
    given = {n for n in ("max_tokens", "temperature", "seed") if getattr(request, n) is not None}
    given |= {"stream"} if request.stream else set()
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
