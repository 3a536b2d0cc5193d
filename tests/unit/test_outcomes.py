"""What the queue keeps of outcomes: errors come back as their own class, and no text is kept."""

import inspect
from datetime import UTC, datetime, timedelta

import pytest

from asyncmem import AsyncMemError, CaptureResult, Change, ModelError, Skipped, StoreError, Usage, errors
from asyncmem.outcomes import is_passing, pack_error, pack_result, unpack_error, unpack_result

EVERY = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, AsyncMemError)]


@pytest.mark.parametrize("kind", EVERY)
def test_every_error_comes_back_as_its_own_class(kind: type[AsyncMemError]) -> None:
    """With its sentence, and what there is to know about a model's or a store's."""
    error = kind.__new__(kind, "what happened")
    AsyncMemError.__init__(error, "what happened")
    for name in ("model", "retryable", "retry_after", "status", "code"):
        setattr(error, name, name)
    back = unpack_error(pack_error(error))
    assert (type(back), str(back)) == (kind, "what happened")
    if isinstance(back, ModelError):
        assert (back.model, back.retryable, back.retry_after, back.status) == (
            "model",
            "retryable",
            "retry_after",
            "status",
        )
        assert back.usage == Usage()
    if isinstance(back, StoreError):
        assert (back.retryable, back.code) == ("retryable", "code")
    if isinstance(back, errors.StructuredOutputError):
        assert back.raw == ""


def test_an_error_of_others_keeps_its_class_alone() -> None:
    """Its text may hold anything; a class of that name among ours is not mistaken for it."""
    row = pack_error(ValueError("Plays chess"))
    assert "chess" not in str(row)
    assert (type(unpack_error(row)), str(unpack_error(row))) == (AsyncMemError, "the capture ended with ValueError")
    assert type(unpack_error({"class": "Mapping", "message": "odd"})) is AsyncMemError


def test_a_result_keeps_everything_but_text() -> None:
    """Reasons, counts and marks come back; the text that was skipped does not."""
    result = CaptureResult(
        skipped=[Skipped("add", "it says nothing new", "Plays chess", "7")],
        usage=Usage(2, 30, 4, None),
        tier="text",
        duration=timedelta(seconds=1.5),
        tools=True,
        windows=3,
        ended="rounds",
        repeated=True,
    )
    row = pack_result(result, [])
    assert "chess" not in str(row)
    change = Change("delete", "7", None, None, "capture", datetime.now(UTC))
    back = unpack_result(row, [change])
    assert back.skipped == [Skipped("add", "it says nothing new", None, "7")]
    assert (back.changes, back.usage, back.tier, back.duration) == ([change], result.usage, "text", result.duration)
    assert (back.tools, back.windows, back.ended, back.repeated) == (True, 3, "rounds", True)


def test_what_may_pass() -> None:
    """Only an error of a model or a store that says so."""
    assert is_passing(ModelError("x", retryable=True))
    assert is_passing(StoreError("x", retryable=True))
    assert not is_passing(ModelError("x"))
    assert not is_passing(ValueError())
