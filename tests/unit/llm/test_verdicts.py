"""Verdicts on calls with tools, and what a retryable error of ours means."""

import pytest

from asyncmem.errors import (
    ContextTooLongError,
    ModelError,
    ModelRateLimitError,
    ModelRequestError,
    ModelUnavailableError,
)
from asyncmem.llm.failures import Failure
from asyncmem.llm.verdicts import Drop, Fatal, NoTools, Retry, StepDown, TooLarge, judge

from .play import failure

REFUSALS = [
    failure(400, "registry.ollama.ai/library/gemma does not support tools"),
    failure(400, '"auto" tool choice requires --enable-auto-tool-choice'),
    failure(404, "No endpoints found that support tool use", "NotFoundError"),
    failure(400, "does not support parameters: ['tools']", "UnsupportedParamsError"),
    failure(400, "This model doesn't support the toolConfig field"),
]


@pytest.mark.parametrize("refused", REFUSALS)
def test_refused_tools_are_recognised(refused: Failure) -> None:
    """A refusal of tools, from litellm or a provider, by 400 or 404, is one."""
    assert judge(refused, "text", proven=True, sent=[], tools=True) == NoTools()


@pytest.mark.parametrize("refused", REFUSALS)
def test_refused_tools_are_recognised_though_they_worked(refused: Failure) -> None:
    """What says in so many words that there are no tools is believed, of a model that used some before too."""
    assert judge(refused, "text", proven=True, sent=[], tools=True, used=True) == NoTools()


UNREADABLE = [
    failure(400, "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."),
    failure(
        400, "Failed to call", body={"error": {"code": "tool_use_failed", "failed_generation": "<tool> no support"}}
    ),
    failure(400, "Tool call validation failed: attempted to call tool 'x' which was not in request.tools"),
    failure(500, "Internal error in the Hermes tool parser: list index out of range", "InternalServerError"),
]


@pytest.mark.parametrize("broken", UNREADABLE)
def test_call_that_nobody_could_read_may_pass(broken: Failure) -> None:
    """A call that the model wrote wrongly says nothing about what it takes: it is asked again."""
    assert judge(broken, "text", proven=True, sent=[], tools=True, used=True) == Retry(ModelUnavailableError)
    assert judge(broken, "text", proven=True, sent=[], tools=True) == Retry(broken.cause)


def test_server_that_broke_over_tools_may_pass() -> None:
    """A 500 that only mentions a tool is one that passes; one that says there are none is believed."""
    broken = failure(500, "Internal error while handling tool choice", "InternalServerError")
    assert judge(broken, "text", proven=True, sent=[], tools=True) == Retry(ModelUnavailableError)
    none = failure(500, "tools param requires --jinja flag", "InternalServerError")
    assert judge(none, "text", proven=True, sent=[], tools=True) == NoTools()
    over = failure(429, "too many tool calls", "RateLimitError")
    assert judge(over, "text", proven=True, sent=[], tools=True) == Retry(ModelRateLimitError)


TURNS = [
    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
    "Not the same number of function calls and responses",
    "tool_use ids were found without tool_result blocks immediately after",
]


@pytest.mark.parametrize("text", TURNS)
@pytest.mark.parametrize("used", [True, False])
def test_conversation_that_does_not_fit_is_no_refusal_of_tools(text: str, used: bool) -> None:
    """Turns in a wrong order are the conversation's fault, whether or not the model used a tool before."""
    assert judge(failure(400, text), "text", proven=True, sent=[], tools=True, used=used) == Fatal(ModelRequestError)


def test_mention_of_tools_counts_only_until_one_was_used() -> None:
    """A 400 that merely names tools refuses them, unless the model used one before."""
    told = failure(400, "tools[0].function: bad value")
    assert judge(told, "text", proven=True, sent=[], tools=True) == NoTools()
    assert judge(told, "text", proven=True, sent=[], tools=True, used=True) == Fatal(ModelRequestError)


TRACE = "Traceback (most recent call last): convert_tool_call_to_json_mode, tools, response_format, not supported"
SHOWN_CODE = [
    failure(500, f"OpenAIException - Invalid response object {TRACE}", "InternalServerError"),
    failure(500, f"litellm.APIConnectionError: 'content' {TRACE}", "APIConnectionError"),
    failure(200, f"Unable to get json response - Original Response: {TRACE}", "APIError"),
    failure(422, f"Error converting to valid response block=json_schema. {TRACE}"),
]


@pytest.mark.parametrize("broken", SHOWN_CODE)
def test_code_that_litellm_shows_is_no_reason(broken: Failure) -> None:
    """Of an answer that it can't read litellm shows its own code: that names everything, and refuses nothing."""
    assert judge(broken, "native", proven=False, sent=["temperature"]) == Retry(ModelUnavailableError)
    assert judge(broken, "text", proven=True, sent=[], tools=True) == Retry(ModelUnavailableError)


def test_server_error_that_refuses_the_format_is_one() -> None:
    """A 500 whose own words name the format steps down, be there code behind them."""
    refused = failure(500, f"response_format type must be one of text. {TRACE}", "InternalServerError")
    assert judge(refused, "native", proven=False, sent=[]) == StepDown("json_object", certain=True)


TOO_LARGE = [
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, and you provided 100000.",
    "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku",
    "`max_tokens` must be less than or equal to `8192`",
    "it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive)",
    "'max_tokens' or 'max_completion_tokens' is too large: 100000. This model's maximum context length is 4096 tokens",
]


@pytest.mark.parametrize("text", TOO_LARGE)
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_limit_that_is_too_large_is_told_from_one_that_is_unknown(text: str, name: str) -> None:
    """A model that names its bound knows the parameter; nothing is dropped, under whichever name it was sent."""
    told = failure(400, text)
    assert judge(told, "native", proven=True, sent=[name, "temperature"]) == TooLarge(name)
    assert not isinstance(judge(told, "native", proven=True, sent=[]), TooLarge | Drop)


UNKNOWN = [
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "max_tokens: Extra inputs are not permitted",
    "Unrecognized request argument supplied: max_tokens. The maximum is something else.",
    "max_tokens is not allowed: set a limit in the model's configuration",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_unknown_limit_is_dropped(text: str) -> None:
    """One that the model doesn't know is sent no more, be there talk of bounds too."""
    assert judge(failure(400, text), "native", proven=True, sent=["max_tokens"]) == Drop(("max_tokens",))


def test_too_long_a_prompt_is_not_too_large_a_limit() -> None:
    """A prompt that exceeds the context stays what it is."""
    told = failure(400, "maximum context length is 10 tokens, you sent 20: lower max_tokens or the prompt")
    assert judge(told, "native", proven=True, sent=["max_tokens"]) == Fatal(ContextTooLongError)


def test_local_refusal_of_something_else_is_fatal() -> None:
    """What litellm refuses for another reason is raised."""
    other = failure(400, "no such thing", "UnsupportedParamsError")
    assert judge(other, "text", proven=True, sent=[], tools=True) == Fatal(ModelRequestError)


def test_parameter_that_was_not_sent_is_not_dropped() -> None:
    """An error that names a parameter which was not sent is about something else."""
    told = failure(400, "max_tokens must be set")
    assert judge(told, "text", proven=True, sent=[]) == Fatal(ModelRequestError)
    assert judge(told, "text", proven=True, sent=["max_tokens"]) == Drop(("max_tokens",))


def test_error_of_ours_decides_for_itself() -> None:
    """A ModelError that is retryable is retried, one that isn't is raised."""
    assert judge(Failure.of(ModelError("x", retryable=True)), "native", proven=False, sent=[]) == Retry(ModelError)
    assert judge(Failure.of(ModelError("x")), "native", proven=False, sent=[]) == Fatal(ModelError)
    limit = ModelRateLimitError("x", retryable=True)
    assert judge(Failure.of(limit), "native", proven=False, sent=[]) == Retry(ModelRateLimitError)
