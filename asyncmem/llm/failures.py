"""Foreign exceptions turned into facts, and facts into errors of ours: scrubbed, with nothing chained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from asyncmem.errors import (
    ContextTooLongError,
    ModelAuthenticationError,
    ModelCodeError,
    ModelError,
    ModelKeyMissingError,
    ModelNotFoundError,
    ModelPackageMissingError,
    ModelQuotaError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
    ModelUnreachableError,
    ToolsRefusedError,
)
from asyncmem.usage import Usage

from .causes import CLASSES, cause, missing_package
from .echoes import own_words
from .faults import AnswerError, fault, place
from .scrubbing import shown

_ADVICE: Mapping[type[ModelError], str] = {
    ModelKeyMissingError: "No API key is configured: set the provider's environment variable (such as"
    " OPENAI_API_KEY), or pass LLMSettings(api_key=...)",
    ModelPackageMissingError: "litellm needs a package for this provider, which is not installed",
    ModelAuthenticationError: "The provider refused the API key or what it may do: check the key, its project and"
    " its permissions",
    ModelQuotaError: "The account has no credit left: add credit with the provider, or use another key",
    ModelRateLimitError: "Too many requests: try again later, or lower LLMSettings(concurrency=...)",
    ModelNotFoundError: "The provider doesn't know this model: check the name, which is 'provider/model', and"
    " LLMSettings(api_base=...)",
    ModelUnreachableError: "No connection to the provider: check LLMSettings(api_base=...), the network, and that"
    " the server runs",
    ModelUnavailableError: "The provider failed: try again later",
    ModelTimeoutError: "No answer came in time: try again, or raise LLMSettings(timeout=..., deadline=...)",
    ModelRefusedError: "The provider refused the content",
    ContextTooLongError: "The prompt exceeds the model's context: send less, or use a model with a longer one",
    ModelRequestError: "The provider refused the request",
    ToolsRefusedError: "The model takes no tools: leave LLMSettings(tools=None), and it is asked for a plan instead",
}

_RETRYABLE = (ModelRateLimitError, ModelUnavailableError, ModelTimeoutError)
_LONGEST_WAIT = 86_400.0
_TURNED_AWAY = (502, 503, 529)
_RENUMBERED = ("APIConnectionError", "ServiceUnavailableError")


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known about a call that failed.

    Attributes:
        name: class of the exception.
        known: the nearest class of it that ``CLASSES`` knows; empty when it knows none.
        status: HTTP status, if there was one.
        text: its words and its body's. They may hold a key or a prompt: never shown unscrubbed.
        retry_after: seconds the provider asked to wait.
        sent: whether a request went out: litellm refuses some parameters by itself.
        where: file and line that raised it, when it is no error of a provider.
        error: the error itself, when it was one of ours.
        begun: a part of the reply had come.
        fault: the sentence that says so, when code of the application's own is what failed.
    """

    name: str
    status: int | None = None
    known: str = ""
    text: str = field(default="", repr=False)
    retry_after: float | None = None
    sent: bool = True
    where: str = ""
    error: ModelError | None = field(default=None, repr=False)
    begun: bool = False
    fault: str = ""

    @classmethod
    def of(cls, error: BaseException, own: str = "") -> "Failure":
        """The facts of an exception, whoever raised it.

        Args:
            error: the exception.
            own: the code of the application's own that was called; empty when it was litellm alone.
        """
        if isinstance(error, ModelError):
            kind = type(error)
            return cls(kind.__name__, error.status, "", str(error), error.retry_after, error=error)
        status = _inner_status(error) or _status(error)
        known = next((c.__name__ for c in type(error).__mro__ if c.__name__ in CLASSES), "")
        foreign = not known and status is None
        wrong = fault(error, own) if foreign else ""
        sent = known != "UnsupportedParamsError" or _attribute(error, "litellm_response_headers") is not None
        return cls(
            "TypeError" if isinstance(error, AnswerError) else type(error).__name__,
            status,
            known,
            _words(error),
            _retry_after(error),
            sent,
            place(error) if foreign else "",
            fault=wrong,
        )

    def heard(self, told: Sequence[str]) -> "Failure":
        """The failure of a request that told the model this, in the provider's own words: without what they repeat."""
        if self.error is not None or not self.sent or not self.text:
            return self
        return replace(self, text=own_words(self.text, told))

    @property
    def cause(self) -> type[ModelError]:
        """Which error of ours it is."""
        if self.error is not None:
            return type(self.error)
        if self.fault:
            return ModelCodeError
        found = cause(self.known, self.status, self.text)
        # whoever sent a part of a reply was there
        return ModelUnavailableError if self.begun and issubclass(found, ModelUnreachableError) else found

    @property
    def usage(self) -> Usage:
        """What it took. A refusal costs nothing; what an answer that never came cost, nobody knows."""
        unclear = ModelTimeoutError | ModelUnavailableError | ModelCodeError
        lost = self.begun or (self.sent and issubclass(self.cause, unclear))
        free = not self.begun and (issubclass(self.cause, ModelUnreachableError) or self.status in _TURNED_AWAY)
        return Usage(calls=int(self.sent), cost=None if lost and not free else 0.0)


def _attribute(error: object, name: str) -> object:
    """The attribute, ``None`` where there is none, or where a foreign class's property breaks."""
    try:
        return cast("object", getattr(error, name, None))
    except Exception:  # noqa: BLE001  what it broke with must not hide what happened
        return None


def _status(error: BaseException | None) -> int | None:
    status = _attribute(error, "status_code")
    return status if isinstance(status, int) and 100 <= status <= 599 else None


def _inner_status(error: BaseException) -> int | None:
    """The provider's status, where litellm gave its error another one.

    Only of the exception right below it, and only litellm's: further down stands what the caller was handling.

    Source: ``litellm_core_utils/exception_mapping_utils.py``: its catch-all calls everything a 500, which at 1.84.0 is
    every error of Ollama's and some of Anthropic's and Gemini's; and every 500 of Bedrock's is a 503.
    """
    below = error.__cause__ or error.__context__
    if type(error).__name__ not in _RENUMBERED or not type(below).__module__.startswith("litellm."):
        return None
    return _status(below)


def _words(error: BaseException) -> str:
    """Its text and its body: on the openai-SDK path the reason may stand in the body only.

    Source: openai-python, ``_exceptions.APIError.body``.
    """
    body = _attribute(error, "body")
    try:
        words = str(error)
    except Exception:  # noqa: BLE001  a foreign class whose own text is broken must not hide what happened
        words = ""
    return f"{words} {body}" if isinstance(body, (str, dict, list)) else words


def _retry_after(error: BaseException) -> float | None:
    """Seconds of the ``Retry-After`` header, given as a number or as a date (RFC 9110, 10.2.3)."""
    response = _attribute(error, "response")
    for headers in (_attribute(error, "litellm_response_headers"), _attribute(response, "headers")):
        if not isinstance(headers, Mapping):
            continue
        value = cast(Mapping[str, Any], headers).get("retry-after")
        if value is not None and (seconds := _seconds(str(value))) is not None:
            return seconds
    return None


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return None
    return min(max(0.0, seconds), _LONGEST_WAIT)


def to_error(
    failure: Failure,
    model: str,
    *,
    secrets: Sequence[str] = (),
    prompt: Sequence[str] = (),
    kind: type[ModelError] | None = None,
    hint: str = "",
) -> ModelError:
    """The error to raise: what happened, what to do, and the provider's words without keys and prompts."""
    cls = failure.cause if failure.fault else kind or failure.cause
    if isinstance(failure.error, cls):
        return failure.error
    hint = hint or missing_package(failure.known, failure.text)
    where = f" (raised at {failure.where})" if failure.where else ""
    if failure.fault:  # its own words may hold anything: a KeyError has the key
        message = f"{model}: {failure.fault}{hint and ': '}{hint}. [{failure.name}{where}]"
    else:
        words = shown(failure.text, secrets, prompt)
        message = f"{model}: {_ADVICE[cls]}{hint and ': '}{hint}. [{failure.name}{where}{words and ': '}{words}]"
    return cls(
        message,
        model=model,
        retryable=issubclass(cls, _RETRYABLE),
        retry_after=failure.retry_after,
        status=failure.status,
    )
