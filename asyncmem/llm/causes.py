"""What went wrong, told from an exception's class, its HTTP status and its words. Pure tables."""

import re
from collections.abc import Mapping

from asyncmem.errors import (
    ContextTooLongError,
    ModelAuthenticationError,
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
_NO_PACKAGE = re.compile(r"no module named '?([\w.]+)|pip install (?:-U )?\"?([\w.-]+)", re.IGNORECASE)
"""litellm does not install what some providers need, and says so in its catch-all error."""
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
    r"(?:model|deployment)\b.{0,80}(?:not exist|not found|not be found|no such|is not (?:a )?valid|is invalid)"
    r"|(?:invalid|unknown|no such) model|llm provider not provided|model_not_found|decommissioned",
    re.IGNORECASE,
)
BROKEN: re.Pattern[str] = re.compile(
    r"expecting value: line|if litellm error|invalid response object|unable to (?:get|parse) json response"
    r"|error (?:parsing|converting).{0,40}response|provider returned (?:'choices'|a response)"
    r"|invalid response from llm",
    re.IGNORECASE,
)
"""A 200 whose body litellm could not make sense of; on some ways it calls that a bad request."""
_UNREACHABLE = re.compile(
    r"connection error|connection refused|cannot connect|connect call failed|name or service not known"
    r"|temporary failure in name resolution|nodename nor servname|all connection attempts failed"
    r"|network is unreachable",
    re.IGNORECASE,
)
_STALLED = re.compile(r"timeout on reading data from socket", re.IGNORECASE)
"""A read that timed out in the middle of a stream; older versions of litellm call it a broken connection."""


def cause(name: str, status: int | None, text: str) -> type[ModelError]:
    """Which error of ours it is.

    Args:
        name: the nearest class of the exception that ``CLASSES`` knows; empty when it knows none.
        status: HTTP status, if there was one.
        text: the provider's words.
    """
    named = CLASSES.get(name)
    if named in (ContextTooLongError, ModelRefusedError, ModelQuotaError):
        return named
    if missing_package(name, text):
        return ModelPackageMissingError
    if _NO_KEY.search(text):
        return ModelKeyMissingError
    return _by_status(named, status, text) or named or ModelUnavailableError


def missing_package(name: str, text: str) -> str:
    """The package that litellm itself lacked; empty when it lacked none. A server may lack one too: not our affair."""
    found = _NO_PACKAGE.search(text) if name in ("", "APIConnectionError") else None
    return (found[1] or found[2]).partition(".")[0] if found else ""


def _by_status(named: type[ModelError] | None, status: int | None, text: str) -> type[ModelError] | None:
    if status in (401, 403) or named is ModelAuthenticationError:
        return ModelQuotaError if _NO_CREDIT.search(text) else ModelAuthenticationError
    if status in (400, 404, 413, 415, 422):
        return _refusal(text, status)
    if status == 429:
        return ModelQuotaError if _NO_CREDIT.search(text) else ModelRateLimitError
    if _STALLED.search(text):
        return ModelTimeoutError
    if _UNREACHABLE.search(text):
        return ModelUnreachableError
    return _STATUSES.get(status) if status is not None else None


def _refusal(text: str, status: int) -> type[ModelError]:
    kinds = (
        (BROKEN, ModelUnavailableError),
        (_TOO_LONG, ContextTooLongError),
        (_REFUSED, ModelRefusedError),
        (_BAD_KEY, ModelAuthenticationError),
        (_NO_CREDIT, ModelQuotaError),
        (_NO_MODEL, ModelNotFoundError),
    )
    found = next((kind for pattern, kind in kinds if pattern.search(text)), None)
    return found or (ModelNotFoundError if status == 404 else ModelRequestError)
