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
from .causes import BROKEN
from .failures import Failure
from .scrubbing import without_quotes

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

_REFUSING = (400, 404, 415, 422, 500, 501)
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
_NO_TOOLS = re.compile(
    r"(?:\bnot|n't|\bno|\bun)[ -]?(?:support|available|allow|permitted|enabled|implemented|recogni[sz]ed)"
    r"|(?:not|n't) (?:yet )?(?:take|accept|have|be used)|endpoints found|requires? \W?--"
    r"|unknown (?:field|param|arg|name)|extra (?:inputs|fields)|\bdisabled",
    re.IGNORECASE,
)
"""It says that there are no tools, not only that something went wrong with them."""
_FAILED_CALL = re.compile(
    r"failed to call a function|tool_use_failed|tool call validation|tool[ _-]?(?:call )?pars|pars\w* tool"
    r"|malformed[ _]function|failed_generation",
    re.IGNORECASE,
)
"""The model wrote a call that nobody could read: another time it may write a better one."""
_TURNS = re.compile(
    r"role\W{1,4}tool\b|tool_?call_?ids?\b|tool call ids?\b|tool_?use_?ids?\b|tool_?results?\b|tool messages?\b"
    r"|preceding|function calls and responses|must alternate",
    re.IGNORECASE,
)
"""It is the conversation that doesn't fit, not the tools."""
_LIMITS = ("max_tokens", "max_completion_tokens")
_LIMIT = re.compile(r"max_?(?:completion_?|output_?|new_?)?tokens", re.IGNORECASE)
_RANGE = re.compile(
    r"too (?:large|high|big|many)|(?:valid|allowed|supported|out of)[ -]range|range of|at most|up to|between"
    r"|(?:less|smaller|lower|greater|larger|higher|more) than|maxim|exceed|above|limit|[<>]=?\s*\d",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"unsupported|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|use .{0,3}max_completion_tokens"
    r"|(?:\bnot|n't) (?:a |an )?(?:support|permitted|allowed|valid (?:param|arg)|recogni[sz]ed|accept|take)",
    re.IGNORECASE,
)
_CLASS = re.compile(r"\bBaseModel\b|\bModelMetaclass\b")
"""A pydantic class that was handed to what takes none: openai's SDK, or ``json.dumps``. Nothing was sent.

Source: openai-python, ``resources/chat/completions``, ``validate_response_format``.
"""


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
class TooLarge:
    """The model takes this parameter, and not so great a value: the caller's to mend, and nothing to be learned."""

    name: str

    @property
    def hint(self) -> str:
        """What an error says of it."""
        return "max_tokens is too large for this model, ask for fewer: max_tokens=... or LLMSettings(max_tokens=...)"


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


Verdict = StepDown | Drop | TooLarge | Retry | Fatal | NoTools


def below(tier: Tier) -> Tier:
    """The tier to try when nothing says which: JSON mode under both schema tiers, then plain text."""
    return "json_object" if TIERS.index(tier) < 2 else "text"


def judge(
    failure: Failure, tier: Tier, *, proven: bool, sent: Collection[str], tools: bool = False, used: bool = False
) -> Verdict:
    """What to do about a failed call.

    Args:
        failure: what is known about it.
        tier: the step of the ladder the call was made on.
        proven: that step gave a value before.
        sent: names of the parameters that went with the call.
        tools: the call offered tools.
        used: the model called one before.
    """
    kind, text = failure.cause, without_quotes(failure.text)
    if failure.error is not None and failure.error.retryable:
        return Retry(kind)
    if failure.fault:
        takes_none = tier == "native" and failure.name == "TypeError" and _CLASS.search(failure.text)
        return StepDown("json_schema", certain=True) if takes_none else Fatal(kind)
    if failure.name == "UnsupportedParamsError" and (local := _unsupported(text, tier, sent, tools=tools)):
        return local
    if found := _too_large(kind, text, sent):
        return found
    if _is_plain(kind):
        return Fatal(kind)
    if tools and not _lists_all(text, sent) and (about := _about_tools(failure, kind, text, used=used)):
        return about
    if failure.status in _REFUSING and not (issubclass(kind, PASSING) and BROKEN.search(failure.text)):
        return _refused(kind, text, tier, proven=proven, sent=sent)
    return Retry(kind) if issubclass(kind, PASSING) else Fatal(kind)


def _is_plain(kind: type[ModelError]) -> bool:
    """A failure that says what it is, and is neither a refusal of the request nor passing."""
    return not issubclass(kind, (*PASSING, ModelRequestError, ModelNotFoundError))


def _unsupported(text: str, tier: Tier, sent: Collection[str], *, tools: bool) -> Verdict | None:
    """litellm knows itself that the model doesn't take a parameter, and sent nothing."""
    if "response_format" in text and tier != "text":
        return StepDown("text", certain=True)
    if names := _named(text, sent):
        return Drop(names)
    return NoTools() if tools and _TOOLS.search(text) else None


def _too_large(kind: type[ModelError], text: str, sent: Collection[str]) -> TooLarge | None:
    """More tokens were asked for than the model gives: that it knows the parameter is what its answer shows.

    Source: vLLM tells it as a context that is exceeded, since there both share one.
    """
    if kind is ContextTooLongError and not re.search(r"tokens\W.{0,40}too large", text):
        return None
    if kind not in (ModelRequestError, ContextTooLongError) or _lists_all(text, sent) or _UNKNOWN.search(text):
        return None
    name = next((name for name in _LIMITS if name in sent), "")
    return TooLarge(name) if name and _LIMIT.search(text) and _RANGE.search(text) else None


def _about_tools(failure: Failure, kind: type[ModelError], text: str, *, used: bool) -> Verdict | None:
    """Whether it says that there are no tools; a call that went wrong is none, nor is a server that broke."""
    if failure.status not in _REFUSING or not (_TOOLS.search(text) or _FAILED_CALL.search(text)):
        return None
    if _FAILED_CALL.search(text):
        return Retry(ModelUnavailableError if used else kind)
    if BROKEN.search(failure.text):
        return None
    if _NO_TOOLS.search(text):
        return NoTools()
    return None if used or issubclass(kind, PASSING) or _TURNS.search(text) else NoTools()


def _lists_all(text: str, sent: Collection[str]) -> bool:
    """It names all that a request may hold, so it says of no parameter that this one was refused."""
    known = [name for name in PARAMETERS if name in sent]
    return len(known) > 1 and all(re.search(rf"\b{name}\b", text) for name in (*known, "messages"))


def _named(text: str, sent: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in PARAMETERS if name in sent and _NAMES[name].search(text))


def _refused(kind: type[ModelError], text: str, tier: Tier, *, proven: bool, sent: Collection[str]) -> Verdict:
    if _lists_all(text, sent):
        return _unexplained(kind, tier, proven=proven)
    if tier != "text" and _FORMAT.search(text) and kind is not ContextTooLongError:
        return StepDown(_next(text, tier), certain=True)
    if issubclass(kind, PASSING):
        return Retry(kind)
    if kind is not ModelRequestError:
        return Fatal(kind)
    if names := _named(text, sent):
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
