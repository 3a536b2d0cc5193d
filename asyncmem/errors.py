"""Every error that asyncmem raises.

    AsyncMemError
    ├── ConfigurationError                a setting is missing, unknown or contradicts another
    │   └── EmbeddedUnavailableError      db="embedded", and no engine is installed
    ├── InvalidInputError                 a value that was passed in can't be used; nothing was done
    │   ├── InvalidIdError                an id of a user, agent, team or memory
    │   ├── InvalidMemoryError            the text, topics, metadata or times of a memory
    │   ├── InvalidMessageError           what was handed to capture
    │   ├── InvalidProfileError           the fields or values of a user profile
    │   └── InvalidQueryError             a query, limit, filter or cursor
    │       └── UnknownRetrievalMethodError
    ├── ManagerClosedError                used after aclose()
    ├── EventLoopError                    used in another event loop than the one it was opened in
    ├── MemoryNotFoundError               this user has no memory of that id
    ├── MemoryConflictError               the id, or the text, is taken
    ├── RevisionConflictError             the memory changed since it was read
    ├── BacklogFullError                  too many captures wait already; nothing was scheduled
    ├── TicketExpiredError                nothing is kept of a scheduled capture any more
    ├── CaptureAbandonedError             the workers that took a scheduled capture ended before it was done
    ├── ToolError                         for tools of your own: an agent's model is told its text
    ├── StoreError                        MongoDB; has .retryable, .code
    │   ├── StoreUnavailableError         no server answers, or it went away; retryable
    │   ├── StoreTimeoutError             it took too long; retryable
    │   │   └── DrainTimeoutError         the queue did not get empty in time; has .left
    │   ├── StoreAuthenticationError      wrong user or password
    │   ├── StorePermissionError          the user may not do this
    │   ├── StoreWriteError               the server refused the write
    │   ├── PartialWriteError             some rows of a batch were not written; has .ids, .failures
    │   └── EmbeddedServerError           the embedded server did not start, or its folder can't be used
    ├── ModelError                        a model call; has .model, .retryable, .retry_after, .status, .usage
    │   ├── ModelKeyMissingError          no API key is configured
    │   ├── ModelPackageMissingError      litellm needs a package for that provider
    │   ├── ModelAuthenticationError      the key, or what it may do, was refused
    │   ├── ModelQuotaError               no credit is left
    │   ├── ModelRateLimitError           too many requests; retryable
    │   ├── ModelNotFoundError            the provider doesn't know that model
    │   ├── ModelUnavailableError         overloaded, broken answer; retryable
    │   │   └── ModelUnreachableError     no connection to the provider; retryable
    │   ├── ModelTimeoutError             no answer within the deadline; retryable
    │   ├── ModelRefusedError             the provider refused the content
    │   ├── ContextTooLongError           the prompt exceeds the model's context
    │   ├── ModelRequestError             the provider refused the request for another reason
    │   │   ├── ModelCodeError            code of your own in a model's place has a fault, or gave the wrong type
    │   │   └── ToolsRefusedError         the model takes no tools
    │   └── StructuredOutputError         no reply could be read as the value asked for; has .raw
    ├── ProposalError
    │   ├── ProposalNotFoundError         this user has no proposal of that id
    │   ├── ProposalDecidedError          it was approved or rejected before
    │   ├── ProposalExpiredError          its time is over
    │   └── ProposalOutdatedError         what it is about was changed or removed since
    └── OptimizationError
        ├── OptimizationConflictError     this user is being optimized already, or it collides with a deletion
        ├── OptimizationNotFoundError     this user has no optimization of that id, or not any more
        └── MixedUsersError               memories of two users in one call

No message holds the text of a memory, a prompt or a key.
"""

from collections.abc import Mapping, Sequence

from .usage import Usage


class AsyncMemError(Exception):
    """Root of every error that asyncmem raises."""


class ConfigurationError(AsyncMemError):
    """A setting is missing, unknown or contradicts another."""


class EmbeddedUnavailableError(ConfigurationError):
    """``db="embedded"`` was asked for, and no engine is installed."""


class InvalidInputError(AsyncMemError):
    """A value that was passed in can't be used. Nothing was done."""


class InvalidIdError(InvalidInputError):
    """The id of a user, agent, team or memory is not a usable string."""


class InvalidMemoryError(InvalidInputError):
    """The text, topics, metadata or times of a memory can't be stored."""


class InvalidMessageError(InvalidInputError):
    """What was handed to capture is not a conversation."""


class InvalidProfileError(InvalidInputError):
    """A user profile has no such field, or its values don't fit its schema."""


class InvalidQueryError(InvalidInputError):
    """A query, limit, filter or cursor can't be used."""


class UnknownRetrievalMethodError(InvalidQueryError):
    """There is no retrieval method of that name."""


class ManagerClosedError(AsyncMemError):
    """The manager was used after ``aclose()``."""


class EventLoopError(AsyncMemError):
    """The manager belongs to another event loop, or to one that has ended."""


class MemoryNotFoundError(AsyncMemError):
    """The user has no memory of that id."""


class MemoryConflictError(AsyncMemError):
    """The id is taken, or another memory of the user says the same."""


class RevisionConflictError(AsyncMemError):
    """The memory changed since it was read."""


class BacklogFullError(AsyncMemError):
    """Too many captures wait already. Nothing was scheduled; schedule it again later."""


class TicketExpiredError(AsyncMemError):
    """Nothing is kept of a scheduled capture any more: what came of it expired, or the user was erased."""


class CaptureAbandonedError(AsyncMemError):
    """Each worker that took a scheduled capture ended before it was done, as often as it is tried."""


class ToolError(AsyncMemError):
    """For tools of your own to raise: the agent's model is told its text, so that it can do better.

    Of any other exception that a tool raises the model is told the class alone.
    """


class StoreError(AsyncMemError):
    """MongoDB could not do what was asked.

    Attributes:
        retryable: whether the same call may succeed later.
        code: MongoDB's error code, if the server gave one.
    """

    def __init__(self, message: str, *, retryable: bool = False, code: int | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.code = code


class StoreUnavailableError(StoreError):
    """No server answers, or the connection broke."""


class StoreTimeoutError(StoreError):
    """The server took too long."""


class DrainTimeoutError(StoreTimeoutError):
    """Scheduled captures were left when the time was over. They stay in the queue.

    Attributes:
        left: how many.
    """

    def __init__(self, message: str, *, left: int = 0) -> None:
        super().__init__(message, retryable=True)
        self.left = left


class StoreAuthenticationError(StoreError):
    """The server refused the user name or the password."""


class StorePermissionError(StoreError):
    """The database user may not do this."""


class StoreWriteError(StoreError):
    """The server refused the write."""


class PartialWriteError(StoreError):
    """Some memories of a batch were not written.

    Attributes:
        ids: one entry a memory, in order: its id, or ``None`` where it was not written.
        failures: position of each memory that was not written, and why.
    """

    def __init__(self, message: str, *, ids: Sequence[str | None], failures: Mapping[int, AsyncMemError]) -> None:
        super().__init__(message)
        self.ids: list[str | None] = list(ids)
        self.failures: dict[int, AsyncMemError] = dict(failures)


class EmbeddedServerError(StoreError):
    """The embedded server did not start, or its folder can't be used."""


class ModelError(AsyncMemError):
    """A model call failed.

    Attributes:
        model: the model's name.
        retryable: whether the same call may succeed later.
        retry_after: seconds the provider asked to wait, if it said so.
        status: HTTP status, if there was one.
        usage: calls, tokens and cost of the whole operation that failed.
    """

    def __init__(
        self,
        message: str,
        *,
        model: str = "",
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        usage: Usage = Usage(),  # noqa: B008  frozen
    ) -> None:
        super().__init__(message)
        self.model = model
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
        self.usage = usage


class ModelKeyMissingError(ModelError):
    """No API key is configured for the provider."""


class ModelPackageMissingError(ModelError):
    """litellm needs a package for the provider that is not installed."""


class ModelAuthenticationError(ModelError):
    """The provider refused the key, or what the key may do."""


class ModelQuotaError(ModelError):
    """The account has no credit left."""


class ModelRateLimitError(ModelError):
    """Too many requests."""


class ModelNotFoundError(ModelError):
    """The provider doesn't know the model."""


class ModelUnavailableError(ModelError):
    """The provider is unreachable or overloaded, or its answer was broken."""


class ModelUnreachableError(ModelUnavailableError):
    """No connection to the provider could be made."""


class ModelTimeoutError(ModelError):
    """No answer came within the deadline."""


class ModelRefusedError(ModelError):
    """The provider refused the content."""


class ContextTooLongError(ModelError):
    """The prompt exceeds the model's context."""


class ModelRequestError(ModelError):
    """The provider refused the request."""


class ModelCodeError(ModelRequestError):
    """Code of your own in a model's place failed: a fault in it, or an answer of the wrong type."""


class ToolsRefusedError(ModelRequestError):
    """The model takes no tools."""


class StructuredOutputError(ModelError):
    """No reply could be read as the value that was asked for.

    Attributes:
        raw: the last reply's text, as the model gave it. It may hold what users said: don't log it.
    """

    def __init__(self, message: str, *, model: str = "", raw: str = "") -> None:
        super().__init__(message, model=model)
        self.raw = raw


class ProposalError(AsyncMemError):
    """A proposal can't be decided on. Nothing was changed."""


class ProposalNotFoundError(ProposalError):
    """The user has no proposal of that id."""


class ProposalDecidedError(ProposalError):
    """The proposal was approved or rejected before."""


class ProposalExpiredError(ProposalError):
    """The proposal's time is over."""


class ProposalOutdatedError(ProposalError):
    """The memory or field that the proposal is about was changed or removed since the model saw it."""


class OptimizationError(AsyncMemError):
    """The optimized memories can't be used. Nothing was changed."""


class OptimizationConflictError(OptimizationError):
    """This user's memories are being optimized already, were deleted meanwhile, or the optimization was undone."""


class OptimizationNotFoundError(OptimizationError):
    """The user has no optimization of that id that can be undone."""


class MixedUsersError(OptimizationError):
    """Memories of two users came together in one call."""
