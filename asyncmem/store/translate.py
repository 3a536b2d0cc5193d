"""MongoDB's errors as ours, in one place.

The cause is kept where it holds no stored values; where it may (a refused document, a failed batch), it is not.
"""

from collections.abc import Generator
from contextlib import contextmanager

from bson.errors import BSONError
from pymongo import errors as mongo

from ..errors import (
    AsyncMemError,
    ConfigurationError,
    EventLoopError,
    InvalidMemoryError,
    StoreAuthenticationError,
    StoreError,
    StorePermissionError,
    StoreTimeoutError,
    StoreUnavailableError,
    StoreWriteError,
)

_AUTHENTICATION = {18, 8000}
_PERMISSION = {13, 31}
_TIME = {50, 89, 202, 262}
_TOO_LARGE = {10334, 17419, 17420}
_DISK = {14031}
_HOLDS_VALUES = (mongo.WriteError, mongo.BulkWriteError, mongo.DocumentTooLarge, mongo.InvalidOperation, BSONError)

UNREACHABLE = (
    "no MongoDB server answers. Start one, or check host, port, TLS and firewall in db=; "
    'to try asyncmem without a server, use db="embedded"'
)
TOO_LARGE = "the memory and its history exceed MongoDB's 16 MB: shorten metadata or input"


def _operation_failure(error: mongo.OperationFailure) -> AsyncMemError:
    code = error.code
    name = (error.details or {}).get("codeName") or type(error).__name__
    if code in _AUTHENTICATION:
        return StoreAuthenticationError(
            "MongoDB refused the user name or the password: check them, and authSource, in db=", code=code
        )
    if code in _PERMISSION:
        return StorePermissionError(
            f"the database user may not do this ({name}): grant readWrite on the database; "
            "where it may not make indexes, use Settings(create_indexes=False)",
            code=code,
        )
    if code in _TIME:
        return StoreTimeoutError(f"MongoDB took too long ({name}): try again", retryable=True, code=code)
    if code in _TOO_LARGE:
        return InvalidMemoryError(TOO_LARGE)
    if code in _DISK:
        return StoreWriteError("MongoDB has no disk space left: free some and try again", code=code)
    retryable = error.has_error_label("RetryableWriteError") or error.has_error_label("TransientTransactionError")
    return StoreWriteError(f"MongoDB refused the operation ({name}, code {code})", retryable=retryable, code=code)


def translate(error: BaseException) -> AsyncMemError:
    """Our error for one of PyMongo's or BSON's."""
    match error:
        case (
            mongo.WriteConcernError()
            | mongo.ExecutionTimeout()
            | mongo.NetworkTimeout()
            | mongo.WaitQueueTimeoutError()
        ):
            words = f"MongoDB took too long ({type(error).__name__}): a write may have happened; try again"
            return StoreTimeoutError(words, retryable=True)
        case mongo.ServerSelectionTimeoutError() | mongo.ConnectionFailure():
            return StoreUnavailableError(f"{UNREACHABLE} ({type(error).__name__})", retryable=True)
        case mongo.DocumentTooLarge():
            return InvalidMemoryError("the memory and its history exceed MongoDB's 16 MB: shorten metadata or input")
        case mongo.BulkWriteError():
            return StoreWriteError("MongoDB refused part of a batch", code=error.code)
        case mongo.OperationFailure():
            return _operation_failure(error)
        case mongo.ConfigurationError() | mongo.InvalidURI() | mongo.InvalidName():
            return ConfigurationError(f"db= can't be used ({type(error).__name__}): {_reason(error)}")
        case BSONError() | OverflowError():
            return InvalidMemoryError(f"MongoDB can't hold a value of this memory ({type(error).__name__})")
        case mongo.InvalidOperation() if "closed" in str(error):
            return StoreUnavailableError("the MongoDB client that was handed in is closed: hand in an open one")
        case _:
            return StoreError(f"MongoDB's driver failed ({type(error).__name__})")


def _reason(error: BaseException) -> str:
    text = str(error)
    return "check the URI" if "@" in text or "://" in text else text


def foreign_loop(error: RuntimeError) -> bool:
    """Whether PyMongo says that its client belongs to another event loop."""
    return "different event loop" in str(error) or "Event loop is closed" in str(error)


@contextmanager
def translated() -> Generator[None, None, None]:
    """Raise our errors for MongoDB's."""
    try:
        yield
    except (mongo.PyMongoError, BSONError, OverflowError) as error:
        cause = None if isinstance(error, _HOLDS_VALUES) else error
        raise translate(error) from cause
    except RuntimeError as error:
        if not foreign_loop(error):
            raise
        raise EventLoopError(
            "the MongoDB client was first used in another event loop, which may have ended: "
            "make the client and the manager in the loop that uses them"
        ) from error
