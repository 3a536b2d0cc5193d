"""Facts of foreign exceptions, and what our errors show of them."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from asyncmem.errors import (
    ModelAuthenticationError,
    ModelError,
    ModelPackageMissingError,
    ModelRefusedError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from asyncmem.llm.failures import Failure, to_error
from asyncmem.llm.scrubbing import scrub, shown, without_output

from .play import failure


def test_facts_of_an_exception_of_another_kind_name_its_place() -> None:
    """For an exception that is no provider's, the error says where it was raised."""
    try:
        {}["missing"]  # type: ignore[var-annotated]
    except KeyError as error:
        facts = Failure.of(error)
    assert facts.name == "KeyError"
    assert facts.where.startswith("test_failures.py:")
    assert f"(raised at {facts.where}): " in str(to_error(facts, "m"))


def test_exception_that_was_never_raised_has_no_place() -> None:
    """An exception without a traceback is told without a place."""
    assert Failure.of(ValueError("x")).where == ""


def test_exception_whose_text_is_broken() -> None:
    """A foreign exception whose own ``str`` fails is still an error of ours."""

    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert Failure.of(BrokenError()).cause is ModelUnavailableError


@pytest.mark.parametrize(
    ("value", "seconds"), [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("1e9", 86_400.0), ("soon", None), (None, None)]
)
def test_retry_after_in_seconds(value: str | None, seconds: float | None) -> None:
    """The header is read as seconds, never negative, never over a day; nonsense is none."""
    headers = {} if value is None else {"retry-after": value}
    assert failure(429, litellm_response_headers=headers).retry_after == seconds


def test_retry_after_as_a_date() -> None:
    """The header may be a date; one that has passed is now."""
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    seconds = failure(429, litellm_response_headers={"retry-after": soon}).retry_after
    assert seconds is not None
    assert 50 < seconds <= 60
    assert failure(429, litellm_response_headers={"retry-after": "Fri, 01 Jan 2021 00:00:00 GMT"}).retry_after == 0.0


def test_retry_after_of_the_response() -> None:
    """Where only the response carries headers, these are read."""
    response = type("Response", (), {"headers": {"retry-after": "2"}})()
    assert failure(429, response=response).retry_after == 2.0


@pytest.mark.parametrize("status", [0, 99, 600, "400", None])
def test_status_that_is_none(status: object) -> None:
    """What is no HTTP status is not taken for one."""
    assert Failure.of(type("E", (Exception,), {"status_code": status})()).status is None


def test_errors_of_ours_are_raised_as_they_are() -> None:
    """A ModelError that a model of one's own raises is not made anew."""
    error = ModelRefusedError("mine", model="x")
    facts = Failure.of(error)
    assert facts.cause is ModelRefusedError
    assert to_error(facts, "m") is error
    again = to_error(facts, "m", kind=ModelRequestError)
    assert type(again) is ModelRequestError


def test_error_says_what_to_do_and_what_was_answered() -> None:
    """The message has the model, the advice, the class and the provider's words."""
    error = to_error(failure(402, "Insufficient Balance", "APIError"), "openai/x", hint="by the way")
    assert str(error) == (
        "openai/x: The account has no credit left: add credit with the provider, or use another key: by the way."
        " [APIError: Insufficient Balance]"
    )
    assert (error.model, error.status, error.retryable) == ("openai/x", 402, False)
    assert isinstance(error, ModelError)


@pytest.mark.parametrize(
    "text",
    [
        "key sk-abcdefgh12345678 is bad",
        "Bearer abc.def.ghi",
        "AIzaSyA1234567890abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "gsk_abcdefgh12345",
        "Authorization: 'Token abc'",
        "x-api-key: abcdef",
        '{"api_key": "whatever-it-is"}',
        "https://user:pass@host/path",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0",
    ],
)
def test_keys_are_taken_out(text: str) -> None:
    """Whatever looks like a key, a header or a password is replaced."""
    scrubbed = scrub(text)
    assert "***" in scrubbed
    for part in ("abcdefgh", "abc.def", "SyA123", "IOSFODNN", "Token", "abcdef", "whatever", "pass@", "eyJzdWI"):
        assert part not in scrubbed


def test_configured_secrets_are_taken_out_whatever_they_look_like() -> None:
    """The settings' own key is replaced, though no pattern knows it; one of three letters is not."""
    assert scrub("my tea pot and abc", ["tea pot", "abc"]) == "my *** and abc"


def test_text_is_one_line_and_short() -> None:
    """Line breaks go, and the text is cut."""
    assert scrub("a\n  b") == "a b"
    assert len(shown("x y " * 500)) == 300
    assert shown("x y") == "x y"


def test_model_output_is_taken_out() -> None:
    """What a provider quotes of the model's words is cut off."""
    assert without_output("no JSON. failed_generation: I think") == "no JSON. "
    assert without_output("bad. Original Response: secret") == "bad. "


def below(status: int, module: str = "litellm.llms.ollama.common_utils", name: str = "APIConnectionError") -> Failure:
    """The facts of an exception that was raised while another one, of that module and status, was handled."""
    inner = type("OllamaError", (Exception,), {"status_code": status, "__module__": module})("inner")
    outer = type(name, (Exception,), {"status_code": 500})("outer")
    outer.__context__ = inner
    return Failure.of(outer)


def test_status_below_the_catch_all() -> None:
    """litellm gives some errors a status of its own: the provider's is that of the error right below it."""
    assert (below(401).status, below(401).cause) == (401, ModelAuthenticationError)
    assert below(408).cause is ModelTimeoutError
    assert below(503).status == 503
    assert below(500, name="ServiceUnavailableError").status == 500


def test_only_litellm_is_believed_about_the_status() -> None:
    """What the application was handling, and what stands below a precise error, says nothing of the call."""
    assert below(401, module="requests.exceptions").status == 500
    assert below(401, name="InternalServerError").status == 500
    assert failure(500, name="APIConnectionError").status == 500


def test_missing_package_is_named() -> None:
    """A package that litellm lacks is no fault of the provider's, and not retried; one that a server lacks is."""
    words = "litellm.APIConnectionError: No module named 'boto3' Traceback (most recent call last): File \"/x/y.py\""
    error = to_error(failure(500, words, "APIConnectionError"), "bedrock/x")
    assert isinstance(error, ModelPackageMissingError)
    assert not error.retryable
    assert str(error) == (
        "bedrock/x: litellm needs a package for this provider, which is not installed: boto3."
        " [APIConnectionError: litellm.APIConnectionError: No module named 'boto3']"
    )
    assert Failure.of(ModuleNotFoundError("No module named 'google.auth'")).cause is ModelPackageMissingError
    assert failure(500, "please run `pip install google-auth`", "APIConnectionError").cause is ModelPackageMissingError
    assert failure(500, "No module named 'torch'", "InternalServerError").cause is ModelUnavailableError


class Broken(Exception):  # noqa: N818  as foreign ones are named
    """An exception of somebody else's, whose properties fail."""

    @property
    def status_code(self) -> int:
        """Fails."""
        raise KeyError("status")

    @property
    def body(self) -> str:
        """Fails."""
        raise KeyError("body")

    @property
    def response(self) -> object:
        """Fails."""
        raise KeyError("response")


def test_exception_with_broken_properties_is_one_as_others() -> None:
    """What a property breaks with does not hide what happened."""
    facts = Failure.of(Broken("it went wrong"))
    assert (facts.name, facts.status, facts.text, facts.retry_after) == ("Broken", None, "it went wrong", None)


def test_wait_is_a_day_at_most_however_it_is_given() -> None:
    """A date far away counts as a day, as a number does."""
    for value in ("999999999", "Fri, 31 Dec 2100 23:59:59 GMT"):
        assert failure(429, litellm_response_headers={"retry-after": value}).retry_after == 86_400.0
