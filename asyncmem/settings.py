"""Settings: frozen, checked when made, each with its default documented."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from .cleaning import utc_now
from .errors import ConfigurationError
from .types import Tier
from .values import reject

if TYPE_CHECKING:

    class Secret:
        """A field that takes text or a ``SecretStr``, and is read as a ``SecretStr``: as type checkers see it."""

        def __get__(self, instance: object, owner: type | None = None) -> SecretStr | None: ...
        def __set__(self, instance: object, value: str | SecretStr | None) -> None: ...
else:
    Secret = SecretStr | None


class _Frozen(BaseModel):
    # strict: "no" is no way to switch something off, nor True a number
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, strict=True, allow_inf_nan=False
    )

    @model_validator(mode="wrap")
    @classmethod
    def _typed_errors(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise reject(ConfigurationError, error, cls.__name__) from None


class Settings(_Frozen):
    """How a manager stores and shows memories.

    Attributes:
        clock: gives the time now, as an aware datetime. Tests pass their own.
        collection_prefix: our collections' names begin with it.
        retention: how long deleted and replaced memories stay in the archive.
        capture_memory: how long a capture is remembered, so that the same messages, or the same idempotency key, do
            nothing twice.
        history_limit: earlier revisions kept inside a memory's own document; older ones go to the archive.
        open_timeout: how long opening waits for a server; less where the URI, or a client of one's own, says so by a
            shorter ``serverSelectionTimeoutMS``.
        close_timeout: how long closing waits for calls under way; those that take longer get a ``StoreTimeoutError``.
        concurrency: database calls of one manager at once; more wait in line.
        workers: carry out scheduled captures in this process. Without, ``asyncmem worker`` or ``run_worker`` does.
        worker_concurrency: captures that one manager's workers carry out at once, each of another user.
        debounce: how long a scheduled conversation waits for the user's next one, to be folded into one capture.
        backlog: scheduled captures that may wait in all. It is counted now and then, so it may be exceeded a little.
        backlog_per_user: scheduled captures of one user that may wait, dead letters included.
        lease: how long a worker that is not heard of keeps a user's captures from others.
        job_attempts: how often a capture is tried before it is set aside as a dead letter.
        job_backoff: the pause after the first failed attempt; it doubles with each, up to a quarter of an hour.
        proposal_memory: how long a proposal can be approved; after that it is kept, as expired, for ``retention``.
        result_memory: how long what came of a scheduled capture is kept for ``CaptureTicket.wait``.
        create_indexes: make our indexes when opening. Switch it off where a database user may not.
        search_cache: bytes that search may keep in memory: words, times and vectors of the users searched last.
        context_similarity: the cosine from which a memory counts as relevant to ``build_context(query=...)``. It
            depends on the embedding model: unrelated sentences have 0.1 to 0.2 with many, 0.7 with some (e5).

    Raises:
        ConfigurationError: a setting is unknown or out of range.
    """

    clock: Callable[[], datetime] = utc_now
    collection_prefix: str = Field(default="asyncmem_", pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")
    retention: timedelta = Field(default=timedelta(days=30), ge=timedelta(0), le=timedelta(days=36_500))
    capture_memory: timedelta = Field(default=timedelta(days=1), ge=timedelta(0), le=timedelta(days=36_500))
    history_limit: int = Field(default=20, ge=1, le=50)
    open_timeout: timedelta = Field(default=timedelta(seconds=10), gt=timedelta(0))
    close_timeout: timedelta = Field(default=timedelta(seconds=30), ge=timedelta(0))
    concurrency: int = Field(default=32, ge=1, le=1000)
    workers: bool = True
    worker_concurrency: int = Field(default=8, ge=1, le=1000)
    debounce: timedelta = Field(default=timedelta(seconds=1), ge=timedelta(0), le=timedelta(hours=1))
    backlog: int = Field(default=100_000, ge=1)
    backlog_per_user: int = Field(default=1_000, ge=1, le=10_000)
    lease: timedelta = Field(default=timedelta(seconds=30), ge=timedelta(milliseconds=100), le=timedelta(hours=1))
    job_attempts: int = Field(default=8, ge=1, le=100)
    job_backoff: timedelta = Field(default=timedelta(seconds=2), ge=timedelta(0), le=timedelta(hours=1))
    proposal_memory: timedelta = Field(default=timedelta(days=7), gt=timedelta(0), le=timedelta(days=30))
    result_memory: timedelta = Field(default=timedelta(hours=1), ge=timedelta(0), le=timedelta(days=30))
    create_indexes: bool = True
    search_cache: int = Field(default=256 * 2**20, ge=0)
    context_similarity: float = Field(default=0.25, ge=-1, le=1)


class LLMSettings(_Frozen):
    """How models are called.

    Attributes:
        api_base: address of the provider's API, when it is not the provider's own. Never take it from a message.
        api_key: the key, as text or a ``SecretStr``; by default litellm reads the provider's own environment variable.
        temperature: 0 by default; dropped for models that refuse it.
        seed: for providers that have one.
        max_tokens: tokens a reply may have.
        timeout: seconds one request may take.
        deadline: seconds one operation may take, all retries and steps of the ladder included.
        retries: how often a request that failed for a passing reason is sent again.
        concurrency: requests of one event loop at once; more wait in line. Up to 16 begin one after another, which
            keeps the loop responsive; a higher number begins all at once, which takes less CPU.
        tier: pin a step of the ladder; ``None`` lets answers teach it.
        tools: offer tools (``True``), never (``False``), or let answers teach it (``None``).
        extra: further keyword arguments of ``litellm.acompletion``, such as ``extra_headers``; none that asyncmem
            passes itself. ``model`` names a router's model group.

    Raises:
        ConfigurationError: a setting is unknown or out of range.
    """

    api_base: str | None = None
    api_key: Secret = Field(default=cast("Any", None), strict=False)
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    seed: int | None = None
    max_tokens: int = Field(default=2048, ge=1)
    timeout: float = Field(default=60.0, gt=0)
    deadline: float = Field(default=180.0, gt=0)
    retries: int = Field(default=2, ge=0, le=20)
    concurrency: int = Field(default=16, ge=1, le=1000)
    tier: Tier | None = None
    tools: bool | None = None
    extra: Mapping[str, Any] = Field(default_factory=dict[str, Any], repr=False)

    @field_validator("extra")
    @classmethod
    def _no_argument_of_ours(cls, extra: Mapping[str, Any]) -> Mapping[str, Any]:
        for name, instead in _OURS.items():
            if name in extra:
                raise PydanticCustomError(
                    "ours", "{name} can't be passed here: {instead}", {"name": name, "instead": instead}
                )
        return extra


_PASSED = "it is passed with each request, by asyncmem"
_RETRIES = "retries are made by asyncmem: use LLMSettings(retries=...)"
_OURS: Mapping[str, str] = {
    **{name: f"use LLMSettings({name}=...)" for name in ("api_base", "api_key", "temperature", "seed", "timeout")},
    "base_url": "use LLMSettings(api_base=...)",
    "request_timeout": "use LLMSettings(timeout=...)",
    "max_tokens": "use LLMSettings(max_tokens=...)",
    "max_completion_tokens": "use LLMSettings(max_tokens=...), which is renamed for models that want that",
    "num_retries": _RETRIES,
    "max_retries": _RETRIES,
    "n": "one reply is read",
    "stream": "it is asked for by stream_tools() and Agent.stream()",
    "response_format": "the ladder chooses it: LLMSettings(tier=...) pins a step",
    "enable_json_schema_validation": "replies are validated by asyncmem",
    "tools": "pass them to run_tools() or Agent(tools=...); LLMSettings(tools=...) says whether the model takes any",
    "tool_choice": "asyncmem decides it; LLMSettings(tools=False) offers no tools",
    **dict.fromkeys(("messages", "input", "query", "documents", "return_documents"), _PASSED),
}
"""Arguments of litellm's that asyncmem passes itself: a second value would silently win, or fail every call."""
