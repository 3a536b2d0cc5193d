"""Verdicts on calls with tools, and what a retryable error of ours means."""

import pytest

from asyncmem.errors import ModelError, ModelRateLimitError, ModelRequestError
from asyncmem.llm.failures import Failure
from asyncmem.llm.verdicts import Drop, Fatal, NoTools, Retry, judge

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
