"""The decision table: what a failed call means for the step of the ladder it was made on. Pure.

Source: the errors that providers and gateways send when they refuse a ``response_format``, kept in
``asyncmem.testing``.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from asyncmem.errors import (
    ContextTooLongError,
    ModelError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from asyncmem.types import Tier

from .abilities import TIERS
from .failures import Failure

PARAMETERS = (
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "seed",
    "parallel_tool_calls",
    "reasoning_effort",
    "top_p",
    "stream_options",
    "stream",
)
"""Parameters that a model may refuse, and that it answers without."""

PASSING = (ModelRateLimitError, ModelUnavailableError, ModelTimeoutError)
"""Errors that may pass: the same request is sent again."""

# "stream" is a word that errors use for other things too
_NAMES = {name: re.compile(rf"\b{name}\b") for name in PARAMETERS} | {
    "stream": re.compile(r"['\"`]stream['\"`]|\bstream(?:ing)?\b.{0,40}(?:not|un)[ -]?supported", re.IGNORECASE)
}
_FORMAT = re.compile(
    r"response[_ .-]?format|response_?(?:json_?)?schema|responsejsonschema|response_?mime|json[_ -]?schema"
    r"|json[_ -]?object|json[_ -]?mode|structured[_ -]?output|output_?(?:format|config)|guided_|grammar"
    r"|json_tool_call|tool_?choice|tool_?config|tool use|support tools|requested parameters|generate json"
    r"|invalid schema|invalid format|\bstrict\b|word 'json'",
    re.IGNORECASE,
)
_KEYWORDS = re.compile(
    r"\bstrict\b|additionalproperties|(?:min|max)(?:items|length|imum)|features not supported|invalid schema"
    r"|grammar|unknown name|\$ref|\$defs",
    re.IGNORECASE,
)
_TYPE = re.compile(
    r"of type|type must|\.type|type is unavailable|response format `|unknown variant|one of|enabled only for",
    re.IGNORECASE,
)
_TOOLS = re.compile(
    r"\btools?\b|tool[_ ]?(?:choice|use|call|config)|function[_ ]?call|requested parameters|endpoints found",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StepDown:
    """Try that tier; ``certain`` refusals are remembered at once, others only once the lower tier worked."""

    to: Tier
    certain: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """Send these parameters no more."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retry:
    """It may pass: send the same again, later."""

    kind: type[ModelError]


@dataclass(frozen=True, slots=True)
class Fatal:
    """Raise it."""

    kind: type[ModelError]


@dataclass(frozen=True, slots=True)
class NoTools:
    """The model takes no tools."""


Verdict = StepDown | Drop | Retry | Fatal | NoTools


def below(tier: Tier) -> Tier:
    """The tier to try when nothing says which: JSON mode under both schema tiers, then plain text."""
    return "json_object" if TIERS.index(tier) < 2 else "text"


def judge(failure: Failure, tier: Tier, *, proven: bool, sent: Collection[str], tools: bool = False) -> Verdict:
    """What to do about a failed call.

    Args:
        failure: what is known about it.
        tier: the step of the ladder the call was made on.
        proven: that step gave a value before.
        sent: names of the parameters that went with the call.
        tools: the call offered tools.
    """
    kind = failure.cause
    if failure.error is not None and failure.error.retryable:
        return Retry(kind)
    if failure.name == "UnsupportedParamsError" and (local := _unsupported(failure, tier, sent, tools=tools)):
        return local
    if _is_plain(kind):
        return Fatal(kind)
    if failure.status in (400, 404, 415, 422, 500, 501):
        return _refused(failure, kind, tier, proven=proven, sent=sent, tools=tools)
    return Retry(kind) if issubclass(kind, PASSING) else Fatal(kind)


def _is_plain(kind: type[ModelError]) -> bool:
    """A failure that says what it is, and is neither a refusal of the request nor passing."""
    return not issubclass(kind, (*PASSING, ModelRequestError, ModelNotFoundError))


def _unsupported(failure: Failure, tier: Tier, sent: Collection[str], *, tools: bool) -> Verdict | None:
    """litellm knows itself that the model doesn't take a parameter, and sent nothing."""
    if "response_format" in failure.text and tier != "text":
        return StepDown("text", certain=True)
    if names := _named(failure, sent):
        return Drop(names)
    return NoTools() if tools and _TOOLS.search(failure.text) else None


def _lists_all(text: str, sent: Collection[str]) -> bool:
    """It names all that a request may hold, so it says of no parameter that this one was refused."""
    known = [name for name in PARAMETERS if name in sent]
    return len(known) > 1 and all(re.search(rf"\b{name}\b", text) for name in (*known, "messages"))


def _named(failure: Failure, sent: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in PARAMETERS if name in sent and _NAMES[name].search(failure.text))


def _refused(
    failure: Failure,
    kind: type[ModelError],
    tier: Tier,
    *,
    proven: bool,
    sent: Collection[str],
    tools: bool,
) -> Verdict:
    if _lists_all(failure.text, sent):
        return _unexplained(kind, tier, proven=proven)
    if tools and _TOOLS.search(failure.text):
        return NoTools()
    if tier != "text" and _FORMAT.search(failure.text) and kind is not ContextTooLongError:
        return StepDown(_next(failure.text, tier), certain=True)
    if issubclass(kind, PASSING):
        return Retry(kind)
    if kind is not ModelRequestError:
        return Fatal(kind)
    if names := _named(failure, sent):
        return Drop(names)
    return _unexplained(kind, tier, proven=proven)


def _unexplained(kind: type[ModelError], tier: Tier, *, proven: bool) -> Verdict:
    """It may be the format: a lower tier is tried, and learned only if it works."""
    if tier != "text" and not proven and kind is ModelRequestError:
        return StepDown(below(tier), certain=False)
    return Retry(kind) if issubclass(kind, PASSING) else Fatal(kind)


def _next(text: str, tier: Tier) -> Tier:
    """From native, the plain schema if a keyword was refused; JSON mode if the type of format was."""
    if tier == "native" and _KEYWORDS.search(text) and not _TYPE.search(text):
        return "json_schema"
    return below(tier)
