"""The decision table, row by row: what came back, which steps are taken, what is learned, what is raised."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

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
    StructuredOutputError,
)
from asyncmem.llm.abilities import Abilities
from asyncmem.llm.chat import ChatReply
from asyncmem.llm.failures import Failure
from asyncmem.settings import LLMSettings
from asyncmem.testing import FORMAT_REFUSALS

from .play import GOOD, KEY, call, context, failure, play, reply

BARE = failure(400, "litellm.BadRequestError: Invalid request.")
FORMAT = "response_format of type 'json_schema' is not supported"


@dataclass(frozen=True)
class Row:
    """One way through the table."""

    claim: str
    outcomes: Sequence[ChatReply | Failure]
    tiers: Sequence[str]
    learned: str | None = None
    error: type[ModelError] | None = None
    proven: tuple[str, ...] = ()
    pauses: Sequence[float] = field(default_factory=list)
    refused: tuple[str, ...] = ()


ROWS = [
    Row(
        "1: litellm knows that the model takes no response_format: plain text, and nothing was sent",
        [failure(400, "does not support parameters: ['response_format']", "UnsupportedParamsError"), reply()],
        ["native", "text"],
        learned="text",
    ),
    Row(
        "2: litellm knows that the model takes no temperature: dropped, same step",
        [failure(400, "gpt-5 models don't support temperature=0.0", "UnsupportedParamsError"), reply()],
        ["native", "native"],
        refused=("temperature",),
    ),
    Row(
        "2: several parameters at once",
        [failure(400, "does not support parameters: ['seed', 'temperature']", "UnsupportedParamsError"), reply()],
        ["native", "native"],
        refused=("seed", "temperature"),
    ),
    Row(
        "3: too long a prompt is fatal",
        [failure(400, "maximum context length", "ContextWindowExceededError")],
        ["native"],
        error=ContextTooLongError,
    ),
    Row(
        "4: refused content is fatal",
        [failure(400, "no", "ContentPolicyViolationError")],
        ["native"],
        error=ModelRefusedError,
    ),
    Row(
        "4: refused content in words only is fatal",
        [failure(400, "triggering Azure OpenAI's content management policy")],
        ["native"],
        error=ModelRefusedError,
    ),
    Row(
        "5: a wrong key is fatal",
        [failure(401, "bad", "AuthenticationError")],
        ["native"],
        error=ModelAuthenticationError,
    ),
    Row(
        "5: 403 that comes as a bad request",
        [failure(403, "no access")],
        ["native"],
        error=ModelAuthenticationError,
    ),
    Row("5: no credit", [failure(402, "Insufficient Balance", "APIError")], ["native"], error=ModelQuotaError),
    Row(
        "5: no key, which litellm calls a server error",
        [failure(500, "Missing credentials. Please pass an `api_key`", "InternalServerError")],
        ["native"],
        error=ModelKeyMissingError,
    ),
    Row(
        "5: a budget",
        [failure(None, "Budget has been exceeded", "BudgetExceededError")],
        ["native"],
        error=ModelQuotaError,
    ),
    Row(
        "6: the type of format is refused: JSON mode, learned at once",
        [failure(400, FORMAT), reply()],
        ["native", "json_object"],
        learned="json_object",
    ),
    Row(
        "6: a keyword of the schema is refused: the plain schema",
        [failure(400, "invalid schema for response format: minItems is not supported"), reply()],
        ["native", "json_schema"],
        learned="json_schema",
    ),
    Row(
        "6: all the way down",
        [
            failure(400, "additionalProperties in response_format"),
            failure(422, FORMAT),
            failure(404, "requested parameters"),
            reply(),
        ],
        ["native", "json_schema", "json_object", "text"],
        learned="text",
    ),
    Row(
        "6: llama.cpp refuses with 500",
        [
            failure(500, 'response_format type must be one of "text" or "json_object"', "InternalServerError"),
            reply(),
        ],
        ["native", "json_object"],
        learned="json_object",
    ),
    Row(
        "6: the reason stands in the body only",
        [
            failure(400, "Error code: 400", body={"error": "'response_format.type' must be 'json_schema' or 'text'"}),
            reply(),
        ],
        ["native", "json_object"],
        learned="json_object",
    ),
    Row(
        "7: another 404 is fatal",
        [failure(404, "nothing here", "NotFoundError")],
        ["native"],
        error=ModelNotFoundError,
    ),
    Row(
        "8: another cause that can be told",
        [failure(400, "API key not valid")],
        ["native"],
        error=ModelAuthenticationError,
    ),
    Row("8: an unknown model", [failure(400, "The model `x` does not exist")], ["native"], error=ModelNotFoundError),
    Row("8: billing", [failure(400, "Your credit balance is too low")], ["native"], error=ModelQuotaError),
    Row("8: context", [failure(400, "prompt is too long: 9 tokens")], ["native"], error=ContextTooLongError),
    Row(
        "9: max_tokens is sent again under its newer name",
        [failure(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."), reply()],
        ["native", "native"],
        refused=("max_tokens",),
    ),
    Row(
        "9: temperature is dropped",
        [failure(400, "'temperature' does not support 0.0"), reply()],
        ["native", "native"],
        refused=("temperature",),
    ),
    Row(
        "10: a refusal that says nothing: the next step, learned since it worked",
        [BARE, reply()],
        ["native", "json_object"],
        learned="json_object",
    ),
    Row(
        "10: text too",
        [BARE, BARE, reply()],
        ["native", "json_object", "text"],
        learned="text",
    ),
    Row(
        "10: nothing works: the first error, nothing learned",
        [BARE] * 3,
        ["native", "json_object", "text"],
        error=ModelRequestError,
    ),
    Row(
        "11: the same on a step that worked before is fatal",
        [BARE],
        ["native"],
        error=ModelRequestError,
        proven=("native",),
    ),
    Row(
        "12: no quota comes as 429",
        [failure(429, "insufficient_quota", "RateLimitError")],
        ["native"],
        error=ModelQuotaError,
    ),
    Row(
        "13: rate limit: twice more, then raised",
        [failure(429, "slow down", "RateLimitError")] * 3,
        ["native"] * 3,
        error=ModelRateLimitError,
        pauses=[0, 0.5, 1.0],
    ),
    Row(
        "13: server error, then an answer",
        [failure(500, "oops", "InternalServerError"), reply()],
        ["native"] * 2,
        pauses=[0, 0.5],
    ),
    Row(
        "13: time-out",
        [failure(408, "timed out", "Timeout")] * 3,
        ["native"] * 3,
        error=ModelTimeoutError,
    ),
    Row(
        "13: no connection",
        [failure(500, "Connection error.", "InternalServerError")] * 3,
        ["native"] * 3,
        error=ModelUnreachableError,
    ),
    Row(
        "13: whatever is not a provider's error",
        [failure(None, "'ModelResponse' object has no attribute 'x'", "AttributeError")] * 3,
        ["native"] * 3,
        error=ModelUnavailableError,
    ),
    Row(
        "13: a 200 that is no JSON",
        [failure(200, "Expecting value", "APIError"), reply()],
        ["native"] * 2,
    ),
    Row("13: 425", [failure(425, "Too Early", "APIError"), reply()], ["native"] * 2),
    Row("13: 409", [failure(409, "Conflict", "APIError"), reply()], ["native"] * 2),
    Row("13: 529", [failure(529, "Overloaded", "APIError"), reply()], ["native"] * 2),
    Row("14: a refusal", [reply(None, refusal="I can't")], ["native"], error=ModelRefusedError),
    Row("14: a content filter", [reply(None, "content_filter")], ["native"], error=ModelRefusedError),
    Row("15: the value in the content", [reply()], ["native"]),
    Row("15: in a tool call", [reply(None, "tool_calls", tool_calls=call(GOOD))], ["native"]),
    Row("15: in the reasoning", [reply(None, reasoning=GOOD)], ["native"]),
    Row("16: cut: once more with four times the tokens", [reply('{"mem', "length"), reply()], ["native"] * 2),
    Row(
        "17: unreadable: once more, then as text",
        [reply("no"), reply("no"), reply()],
        ["native", "native", "text"],
    ),
    Row("17: never readable", [reply("no")] * 3, ["native", "native", "text"], error=StructuredOutputError),
    Row("18: no choices: once more", [reply(None, ""), reply()], ["native"] * 2),
    Row("18: no choices, twice", [reply(None, "")] * 2, ["native"] * 2, error=ModelUnavailableError),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.claim for row in ROWS])
def test_decision_table(row: Row) -> None:
    """Each row of the table: the steps taken, the pauses, what is learned, and the error."""
    abilities = Abilities()
    if row.proven:
        abilities.learn(KEY, proven=row.proven)
    played = play(row.outcomes, context(abilities, LLMSettings(seed=1)))
    assert played.tiers == list(row.tiers)
    assert type(played.error) is (row.error or type(None))
    assert abilities.get(KEY).tier == row.learned
    assert played.left == 0
    if row.pauses:
        assert played.pauses == list(row.pauses)
    last = played.requests[-1]
    for name in row.refused:
        assert getattr(last, name) is None
    if row.error is None:
        assert played.value is not None
        assert played.value.tier == row.tiers[-1]
        assert played.value.value.memory_ids == ["1"]


@pytest.mark.parametrize(("style", "answer"), FORMAT_REFUSALS.items(), ids=FORMAT_REFUSALS.keys())
def test_every_known_wording_steps_down(style: str, answer: object) -> None:
    """However a provider words its refusal of a format, the next step is taken; only bare ones are tentative."""
    status, body = FORMAT_REFUSALS[style].status, FORMAT_REFUSALS[style].body
    abilities = Abilities()
    played = play([failure(status, f"Error code: {status}", body=body), reply("no"), *[reply()]], context(abilities))
    assert played.tiers[1] in ("json_schema", "json_object")
    certain = style not in ("plain", "bare", "html", "empty")
    assert abilities.get(KEY).proven == (played.tiers[1],)
    assert abilities.get(KEY).tier == played.tiers[1]
    only = Abilities()
    play([failure(status, "Error code", body=body), failure(401, "", "AuthenticationError")], context(only))
    assert (only.get(KEY).tier is not None) == certain
