"""Foreign exceptions turned into facts, and facts into errors of ours: scrubbed, with nothing chained."""

import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from asyncmem.errors import (
    ContextTooLongError,
    ModelAuthenticationError,
    ModelError,
    ModelKeyMissingError,
    ModelNotFoundError,
    ModelQuotaError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
    ModelUnreachableError,
)

CLASSES: Mapping[str, type[ModelError]] = {
    "APIConnectionError": ModelUnavailableError,  # litellm's catch-all: whatever broke inside it is one
    "APIError": ModelUnavailableError,
    "APIRemovedInV1": ModelRequestError,
    "APIResponseValidationError": ModelUnavailableError,
    "APIStatusError": ModelUnavailableError,
    "APITimeoutError": ModelTimeoutError,
    "APIUserAbortError": ModelUnavailableError,
    "APIWebSocketConnectionError": ModelUnavailableError,
    "AuthenticationError": ModelAuthenticationError,
    "BadGatewayError": ModelUnavailableError,
    "BadRequestError": ModelRequestError,
    "BaseLLMException": ModelUnavailableError,
    "BlockedPiiEntityError": ModelRefusedError,
    "BudgetExceededError": ModelQuotaError,
    "CallerCredentialAuthenticationError": ModelAuthenticationError,
    "CallerCredentialRateLimitError": ModelRateLimitError,
    "ConflictError": ModelUnavailableError,
    "ConnectionError": ModelUnreachableError,
    "ContentFilterFinishReasonError": ModelRefusedError,
    "ContentPolicyViolationError": ModelRefusedError,
    "ContextWindowExceededError": ContextTooLongError,
    "EndpointNotSupportedByModelError": ModelRequestError,
    "GuardrailInterventionNormalStringError": ModelRefusedError,
    "GuardrailRaisedException": ModelRefusedError,
    "ImageFetchError": ModelRequestError,
    "InternalServerError": ModelUnavailableError,
    "InvalidRequestError": ModelRequestError,
    "InvalidWebhookSignatureError": ModelRequestError,
    "JSONSchemaValidationError": ModelUnavailableError,
    "LengthFinishReasonError": ModelUnavailableError,
    "LiteLLMUnknownProvider": ModelNotFoundError,
    "MalformedRequestFieldError": ModelRequestError,
    "MidStreamFallbackError": ModelUnavailableError,
    "MissingStreamClassError": ModelRequestError,
    "MockException": ModelUnavailableError,
    "ModelNotMappedError": ModelNotFoundError,
    "ModifyResponseException": ModelRefusedError,
    "MutuallyExclusiveAuthError": ModelAuthenticationError,
    "NotFoundError": ModelNotFoundError,
    "OAuthError": ModelAuthenticationError,
    "OpenAIError": ModelUnavailableError,
    "PaymentRequiredError": ModelQuotaError,
    "PermissionDeniedError": ModelAuthenticationError,
    "RateLimitError": ModelRateLimitError,
    "RejectedRequestError": ModelRefusedError,
    "RouterRateLimitError": ModelRateLimitError,
    "RouterRateLimitErrorBasic": ModelRateLimitError,
    "SensitiveDataRouteException": ModelRefusedError,
    "ServiceUnavailableError": ModelUnavailableError,
    "StreamAlreadyConsumed": ModelRequestError,
    "SubjectTokenProviderError": ModelAuthenticationError,
    "Timeout": ModelTimeoutError,
    "TimeoutError": ModelTimeoutError,
    "UnprocessableEntityError": ModelRequestError,
    "UnsupportedEndpointError": ModelRequestError,
    "UnsupportedParamsError": ModelRequestError,
    "VectorStoreSearchError": ModelRequestError,
    "WebSocketConnectionClosedError": ModelUnavailableError,
    "WebSocketQueueFullError": ModelUnavailableError,
    "_AmbiguousModuleClientUsageError": ModelRequestError,
}
"""What each exception of litellm and openai is, where neither status nor text says more."""

_STATUSES: Mapping[int, type[ModelError]] = {
    400: ModelRequestError,
    401: ModelAuthenticationError,
    402: ModelQuotaError,
    403: ModelAuthenticationError,
    404: ModelNotFoundError,
    408: ModelTimeoutError,
    415: ModelRequestError,
    422: ModelRequestError,
    429: ModelRateLimitError,
}

_NO_KEY = re.compile(
    r"missing credentials|no api[_ -]?key|no credentials|unable to locate credentials"
    r"|api[_ -]?key.{0,40}(missing|not set|required|must be set|is none)|missing.{0,20}api[_ -]?key"
    r"|(?:did not|didn't) provide.{0,12}api key",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(
    r"(incorrect|invalid|expired|revoked|bad).{0,12}api[_ -]?key|api[_ -]?key not valid", re.IGNORECASE
)
_NO_CREDIT = re.compile(
    r"insufficient[_ ](quota|balance|credit|funds)|exceeded your current quota|billing|credit balance"
    r"|out of credit|payment required|more credits",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[_ ](length|window|size)|maximum context|too many (input )?tokens|prompt is too long"
    r"|reduce the length|exceeds? the (available|maximum).{0,20}(context|tokens)|input (length|is too long)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"content.{0,14}(policy|filter|management)|safety (system|setting|reason|filter)|responsible ai|guardrail",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"(model|deployment)\b.{0,80}(not exist|not found|no such|unknown|invalid)|(invalid|unknown|no such) model"
    r"|llm provider not provided|model_not_found|decommissioned",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"connection error|connection refused|cannot connect|connect call failed|name or service not known"
    r"|temporary failure in name resolution|nodename nor servname|all connection attempts failed"
    r"|network is unreachable",
    re.IGNORECASE,
)

_ADVICE: Mapping[type[ModelError], str] = {
    ModelKeyMissingError: "No API key is configured: set the provider's environment variable (such as"
    " OPENAI_API_KEY), or pass LLMSettings(api_key=...)",
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
}

_RETRYABLE = (ModelRateLimitError, ModelUnavailableError, ModelTimeoutError)

_SECRETS = re.compile(
    r"(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|key|tok)[-_][-_A-Za-z0-9.*]{6,}|AIza[-_A-Za-z0-9]{8,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{8,}"
    r"|eyJ[-_A-Za-z0-9.]{12,}|(?:bearer|basic)\s+[^\s,;'\"]+"
    r"|(?:authorization|x-api-key|api[_-]key|x-goog-api-key)['\"]?\s*[:=]\s*['\"]?[^\s,;'\"}]+|://[^/\s@]+:[^/\s@]+@",
    re.IGNORECASE,
)
MAX_DETAIL = 300
"""Characters of a provider's own words that an error shows."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known about a call that failed.

    Attributes:
        name: class of the exception.
        kind: what an exception of that class is, where neither status nor text says more.
        status: HTTP status, if there was one.
        text: its words and its body's. They may hold a key or a prompt: never shown unscrubbed.
        retry_after: seconds the provider asked to wait.
        where: file and line that raised it, when it is no error of a provider.
        error: the error itself, when it was one of ours.
    """

    name: str
    status: int | None = None
    kind: type[ModelError] | None = None
    text: str = field(default="", repr=False)
    retry_after: float | None = None
    where: str = ""
    error: ModelError | None = field(default=None, repr=False)

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """The facts of an exception, whoever raised it."""
        if isinstance(error, ModelError):
            own = type(error)
            return cls(own.__name__, error.status, own, str(error), error.retry_after, error=error)
        status, kind = _status(error), _kind(error)
        where = _where(error) if status is None and kind is None else ""
        return cls(type(error).__name__, status, kind, _words(error), _retry_after(error), where)


def _kind(error: BaseException) -> type[ModelError] | None:
    names = (cls.__name__ for cls in type(error).__mro__)
    return next((CLASSES[name] for name in names if name in CLASSES), None)


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and 100 <= status <= 599 else None


def _words(error: BaseException) -> str:
    """Its text and its body: on the openai-SDK path the reason may stand in the body only.

    Source: openai-python, ``_exceptions.APIError.body``.
    """
    body: object = getattr(error, "body", None)
    words = str(error)
    return f"{words} {body}" if isinstance(body, (str, dict, list)) else words


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""


def _retry_after(error: BaseException) -> float | None:
    """Seconds of the ``Retry-After`` header, given as a number or as a date (RFC 9110, 10.2.3)."""
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        if not isinstance(headers, Mapping):
            continue
        value = cast(Mapping[str, Any], headers).get("retry-after")
        if value is not None and (seconds := _seconds(str(value))) is not None:
            return seconds
    return None


def _seconds(value: str) -> float | None:
    try:
        return min(max(0.0, float(value)), 86_400.0)
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def error_class(failure: Failure) -> type[ModelError]:
    """Which error of ours the failure is."""
    named = failure.kind
    if failure.error is not None:
        return type(failure.error)
    if named in (ContextTooLongError, ModelRefusedError, ModelQuotaError):
        return named
    if _NO_KEY.search(failure.text):
        return ModelKeyMissingError
    by_status = _by_status(failure)
    return by_status or named or ModelUnavailableError


def _by_status(failure: Failure) -> type[ModelError] | None:
    text, status = failure.text, failure.status
    if status in (401, 403) or failure.name in ("AuthenticationError", "PermissionDeniedError"):
        return ModelQuotaError if _NO_CREDIT.search(text) else ModelAuthenticationError
    if status in (400, 404, 413, 415, 422):
        return _refusal(text, status)
    if status == 429:
        return ModelQuotaError if _NO_CREDIT.search(text) else ModelRateLimitError
    if _UNREACHABLE.search(text):
        return ModelUnreachableError
    return _STATUSES.get(status) if status is not None else None


def _refusal(text: str, status: int) -> type[ModelError]:
    kinds = (
        (_TOO_LONG, ContextTooLongError),
        (_REFUSED, ModelRefusedError),
        (_BAD_KEY, ModelAuthenticationError),
        (_NO_CREDIT, ModelQuotaError),
        (_NO_MODEL, ModelNotFoundError),
    )
    found = next((kind for pattern, kind in kinds if pattern.search(text)), None)
    return found or (ModelNotFoundError if status == 404 else ModelRequestError)


def scrub(text: str, secrets: Sequence[str] = (), limit: int = MAX_DETAIL) -> str:
    """The text on one line without keys, headers and passwords, cut to ``limit`` characters."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    plain = " ".join(_SECRETS.sub("***", text).split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def without_echo(text: str, prompt: Sequence[str], width: int = 16) -> str:
    """The text without any run of ``width`` characters or more that stands in the prompt too.

    Some servers answer a request that they refuse with the request itself.
    """
    told = " ".join(" ".join(prompt).split())
    kept: list[str] = []
    at = 0
    while at < len(text):
        end = at + width
        if end > len(text) or text[at:end] not in told:
            kept.append(text[at])
            at += 1
            continue
        while end < len(text) and text[at : end + 1] in told:
            end += 1
        kept.append("…")
        at = end
    return "".join(kept)


def to_error(
    failure: Failure,
    model: str,
    *,
    secrets: Sequence[str] = (),
    prompt: Sequence[str] = (),
    kind: type[ModelError] | None = None,
) -> ModelError:
    """The error to raise: what happened, what to do, and the provider's words without keys and prompts."""
    if failure.error is not None and kind is None:
        return failure.error
    cls = kind or error_class(failure)
    where = f" (raised at {failure.where})" if failure.where else ""
    words = without_echo(scrub(failure.text.partition("failed_generation")[0], secrets), prompt)
    message = f"{model}: {_ADVICE[cls]}. [{failure.name}{where}: {words}]"
    return cls(
        message,
        model=model,
        retryable=issubclass(cls, _RETRYABLE),
        retry_after=failure.retry_after,
        status=failure.status,
    )
