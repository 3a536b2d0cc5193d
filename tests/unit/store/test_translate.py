"""Every error of MongoDB's driver becomes one of ours."""

import inspect
from collections.abc import Iterator

import bson.errors
import pymongo.errors
import pytest

from asyncmem import (
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
from asyncmem.store.translate import translate, translated

SECRET = "a stored secret"


def classes(module: object) -> Iterator[type[Exception]]:
    for _, value in inspect.getmembers(module, inspect.isclass):
        if issubclass(value, Exception) and value.__module__.startswith(("pymongo", "bson")):
            yield value


def make(kind: type[Exception]) -> Exception:
    """An instance that holds the secret wherever the class keeps anything."""
    if kind is pymongo.errors.BulkWriteError:
        return pymongo.errors.BulkWriteError({"errmsg": SECRET})
    if kind is pymongo.errors.ClientBulkWriteException:
        return pymongo.errors.ClientBulkWriteException({"error": SECRET}, verbose=False)
    if kind is pymongo.errors.EncryptedCollectionError:
        return pymongo.errors.EncryptedCollectionError(ValueError(SECRET), {})
    return kind(SECRET)


EVERY = [c for c in [*classes(pymongo.errors), *classes(bson.errors)] if not issubclass(c, Warning)]


@pytest.mark.parametrize("kind", EVERY, ids=lambda c: c.__name__)
def test_every_exception_of_the_driver_has_a_translation(kind: type[Exception]) -> None:
    """Each class that pymongo and bson have comes out as ours, without the text that it held."""
    error = make(kind)
    with pytest.raises(AsyncMemError) as caught, translated():
        raise error
    if not isinstance(caught.value, ConfigurationError):
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "expected", "retryable"),
    [
        (pymongo.errors.ServerSelectionTimeoutError("x"), StoreUnavailableError, True),
        (pymongo.errors.AutoReconnect("x"), StoreUnavailableError, True),
        (pymongo.errors.NetworkTimeout("x"), StoreTimeoutError, True),
        (pymongo.errors.WaitQueueTimeoutError("x"), StoreTimeoutError, True),
        (pymongo.errors.WTimeoutError("x", 64), StoreTimeoutError, True),
        (pymongo.errors.WriteConcernError("x", 100), StoreTimeoutError, True),
        (pymongo.errors.OperationFailure("x", 50), StoreTimeoutError, True),
        (pymongo.errors.OperationFailure("x", 18), StoreAuthenticationError, False),
        (pymongo.errors.OperationFailure("x", 13, {"codeName": "Unauthorized"}), StorePermissionError, False),
        (pymongo.errors.OperationFailure("x", 14031), StoreWriteError, False),
        (
            pymongo.errors.OperationFailure("x", 112, {"errorLabels": ["TransientTransactionError"]}),
            StoreWriteError,
            True,
        ),
        (pymongo.errors.OperationFailure("x", 17419), InvalidMemoryError, None),
        (pymongo.errors.OperationFailure("x", 999), StoreWriteError, False),
        (pymongo.errors.BulkWriteError({"writeErrors": []}), StoreWriteError, False),
        (pymongo.errors.DocumentTooLarge("x"), InvalidMemoryError, None),
        (pymongo.errors.InvalidURI("port must be an integer"), ConfigurationError, None),
        (
            pymongo.errors.InvalidOperation("Cannot use AsyncMongoClient after close: closed"),
            StoreUnavailableError,
            False,
        ),
        (pymongo.errors.InvalidOperation("x"), StoreError, False),
        (bson.errors.InvalidDocument("x"), InvalidMemoryError, None),
        (OverflowError("x"), InvalidMemoryError, None),
    ],
)
def test_causes_are_told_apart(error: Exception, expected: type[AsyncMemError], retryable: bool | None) -> None:
    """Unreachable, too slow, not allowed, too large and wrong set-up are different errors."""
    ours = translate(error)
    assert type(ours) is expected
    assert getattr(ours, "retryable", None) is retryable


def test_configuration_errors_show_no_uri() -> None:
    """A reason that may hold a URI with a password is not repeated."""
    error = pymongo.errors.InvalidURI("bad mongodb://joe:hunter2@host")
    assert "hunter2" not in str(translate(error))
    assert "port must be an integer" in str(translate(pymongo.errors.InvalidURI("port must be an integer")))


@pytest.mark.parametrize("error", [pymongo.errors.BulkWriteError({"op": SECRET}), bson.errors.InvalidDocument(SECRET)])
def test_causes_that_hold_values_are_not_chained(error: Exception) -> None:
    """No traceback shows a document that was refused."""
    with pytest.raises(AsyncMemError) as caught, translated():
        raise error
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_causes_that_hold_none_are_kept() -> None:
    """A broken connection stays visible as the cause."""
    cause = pymongo.errors.AutoReconnect("connection closed")
    with pytest.raises(StoreUnavailableError) as caught, translated():
        raise cause
    assert caught.value.__cause__ is cause


def test_foreign_loops_are_told_apart_from_other_runtime_errors() -> None:
    """PyMongo's word that its client belongs to another loop becomes EventLoopError; other RuntimeErrors pass."""
    with pytest.raises(EventLoopError, match="another event loop"), translated():
        raise RuntimeError("Cannot use AsyncMongoClient in different event loop. AsyncMongoClient uses low-level …")
    with pytest.raises(RuntimeError, match="dictionary changed"), translated():
        raise RuntimeError("dictionary changed size during iteration")
