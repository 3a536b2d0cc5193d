"""What the ladder does besides single decisions: learning, pinning, bounds, repairs, parameters."""

import json
import logging
from typing import Any

import pytest
from pydantic import BaseModel, Field

from asyncmem.errors import (
    ConfigurationError,
    ModelRateLimitError,
    ModelRequestError,
    StructuredOutputError,
)
from asyncmem.llm.abilities import Abilities
from asyncmem.settings import LLMSettings

from .play import GOOD, KEY, call, context, failure, play, reply
from .schemas import Free, Ids, Node, Plan, Shapes

FORMAT = failure(400, "response_format of type 'json_schema' is not supported")
BARE = failure(400, "Invalid request.")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_learned_step_is_where_the_next_call_begins() -> None:
    """What one call learned, the next one uses."""
    abilities = Abilities()
    play([FORMAT, reply()], context(abilities))
    assert play([reply()], context(abilities)).tiers == ["json_object"]


def test_best_step_is_tried_again_after_an_hour() -> None:
    """What was learned counts for an hour; then the top is tried, and learned anew."""
    clock = Clock()
    abilities = Abilities(clock=clock)
    play([FORMAT, reply()], context(abilities))
    clock.now += 3_599
    assert play([reply()], context(abilities)).tiers == ["json_object"]
    clock.now += 1
    assert play([reply()], context(abilities)).tiers == ["native"]
    assert abilities.get(KEY).tier is None
    assert abilities.get(KEY).proven == ("native",)


def test_another_address_is_another_model() -> None:
    """What is learned counts for one model at one address."""
    abilities = Abilities()
    play([FORMAT, reply()], context(abilities))
    assert play([reply()], context(abilities, name="other")).tiers == ["native"]


def test_success_does_not_lift_what_was_learned() -> None:
    """A success on the learned step keeps it learned, and its time."""
    clock = Clock()
    abilities = Abilities(clock=clock)
    play([FORMAT, reply()], context(abilities))
    clock.now += 1_800
    play([reply()], context(abilities))
    assert abilities.get(KEY).at == 1_000.0
    assert abilities.get(KEY).tier == "json_object"


def test_lower_step_learned_meanwhile_is_taken() -> None:
    """A call that steps down goes at once to what another one learned meanwhile."""
    abilities = Abilities()
    using = context(abilities)
    flow_one = play([FORMAT, reply()], using)
    assert flow_one.tiers == ["native", "json_object"]
    from asyncmem.llm.ladder import Climb

    climb = Climb(context(Abilities()), [{"role": "user", "content": "hi"}], Ids, 10)
    flow = climb.run()
    next(flow)
    climb.context.abilities.learn(KEY, tier="text")
    assert flow.send(FORMAT).request.response_format is None
    assert climb.context.abilities.get(KEY).tier == "text"


@pytest.mark.parametrize("tier", ["native", "json_schema", "json_object", "text"])
def test_pinned_step_is_kept(tier: Any) -> None:
    """A pinned step is used whatever was learned, also for repairs, and teaches nothing."""
    abilities = Abilities()
    abilities.learn(KEY, tier="json_object")
    played = play([reply("no"), reply("no"), reply()], context(abilities, LLMSettings(tier=tier)))
    assert played.tiers == [tier] * 3
    assert abilities.get(KEY).proven == ()


def test_refusal_of_a_pinned_step_is_raised() -> None:
    """A pinned step that is refused is an error that names the pin."""
    played = play([FORMAT], context(settings=LLMSettings(tier="native")))
    assert isinstance(played.error, ModelRequestError)
    assert "LLMSettings(tier='native') pins what it refuses" in str(played.error)
    assert played.left == 0


@pytest.mark.parametrize("schema", [Node, Free, Shapes], ids=["recursive", "free keys", "union of objects"])
def test_schemas_that_plain_json_schema_cannot_say_begin_at_json_mode(schema: Any, caplog: Any) -> None:
    """Such a model works from JSON mode on, says so once, and doesn't change the step of other models."""
    caplog.set_level(logging.INFO, "asyncmem.llm")
    abilities = Abilities()
    value = '{"name": "a", "values": {"b": 1}, "children": [{"name": "c"}], "shapes": [{"side": 1}]}'
    for _ in range(2):
        played = play([reply(value)], context(abilities), schema)
        assert played.tiers == ["json_object"]
        assert played.value is not None
        assert played.value.tier == "json_object"
    assert caplog.messages == [f"m: loose='json_object' (plain JSON schema can't say {schema.__name__})"]
    assert play([reply()], context(abilities)).tiers == ["native"]
    refused = play([failure(400, "json_object is not supported"), reply(value)], context(abilities), schema)
    assert refused.tiers == ["json_object", "text"]
    assert play([reply(value)], context(abilities), schema).tiers == ["text"]
    assert play([reply()], context(abilities)).tiers == ["native"]


@pytest.mark.parametrize("tier", ["native", "json_schema"])
def test_pinned_step_that_cannot_express_the_schema_is_refused_by_name(tier: Any) -> None:
    """Nothing is sent where a pinned step can't say the schema; the error names the model."""
    played = play([], context(settings=LLMSettings(tier=tier)), Node)
    assert isinstance(played.error, ConfigurationError)
    assert "Node refers to itself" in str(played.error)
    assert play([reply('{"name": "a"}')], context(settings=LLMSettings(tier="text")), Node).error is None


def test_deepseek_begins_at_json_mode() -> None:
    """DeepSeek's API answers a JSON schema with a 400, whatever litellm's list says."""
    assert play([reply()], context(name="deepseek/deepseek-chat")).tiers == ["json_object"]


def test_schema_stands_in_the_prompt_and_messages_stay() -> None:
    """The schema is added to the system message of a copy, at every step."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    played = play([FORMAT, BARE, reply()], messages=messages)
    for request in played.requests:
        system = request.messages[0]["content"]
        assert system.startswith("Be brief.\n\nAnswer with exactly one JSON object")
        assert '"memory_ids":{"items":{"type":"string"},"type":"array"}' in system
    assert messages == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]


def test_system_message_is_made_where_there_is_none() -> None:
    """Without a system message, or with one in parts, the schema comes in one of its own."""
    parts = [{"role": "system", "content": [{"type": "text", "text": "x"}]}]
    for messages in ([{"role": "user", "content": "hi"}], parts):
        played = play([reply()], messages=messages)
        assert [m["role"] for m in played.requests[0].messages] == ["system", messages[0]["role"]]


def test_plain_schema_goes_with_the_second_step() -> None:
    """At json_schema the schema has no keyword that a provider may refuse."""

    class Bounded(BaseModel):
        names: list[str] = Field(min_length=1, max_length=3, description="who")

    played = play(
        [failure(400, "minItems is not supported in response_format"), reply('{"names": ["a"]}')], schema=Bounded
    )
    assert played.requests[1].response_format == {
        "type": "json_schema",
        "json_schema": {
            "name": "Bounded",
            "schema": {
                "type": "object",
                "properties": {"names": {"type": "array", "items": {"type": "string"}}},
                "required": ["names"],
            },
        },
    }


def test_repair_carries_the_reply_and_what_was_wrong() -> None:
    """The next ask quotes the reply and says which field was wrong; the one after replaces it."""
    bad = '{"operations": [{"op": "sing"}]}'
    played = play([reply(bad), reply(None), reply('{"operations": []}')], schema=Plan)
    assert played.value is not None
    assert played.value.repairs == 2
    first = played.requests[1].messages[-2:]
    assert first[0] == {"role": "assistant", "content": bad}
    assert first[1]["content"].startswith("That can't be used: operations.0.op: Input should be")
    second = played.requests[2].messages
    assert [m["role"] for m in second] == ["system", "user", "user"]
    assert "the reply was empty" in second[-1]["content"]
    assert played.tiers == ["native", "native", "text"]


def test_repair_of_a_reply_that_no_encoding_holds() -> None:
    """Half of a surrogate pair, where a model was cut or wrote nonsense, is not sent back: no request can hold one."""
    played = play([reply('{"ids": "\ud83d"}, \ud83d\ude00'), reply()])
    assert played.requests[1].messages[-2]["content"] == '{"ids": "\ufffd"}, \U0001f600'
    json.dumps(played.requests[1].messages, ensure_ascii=False).encode()


def test_step_of_the_last_repair_is_not_learned() -> None:
    """That plain text worked after two unreadable replies says nothing about the step."""
    abilities = Abilities()
    play([reply("no"), reply("no"), reply()], context(abilities))
    assert abilities.get(KEY).tier is None


def test_tentative_step_is_learned_by_the_step_that_worked() -> None:
    """After bare refusals it is the working step that is learned, though a repair came between."""
    abilities = Abilities()
    play([BARE, reply("no"), reply()], context(abilities))
    assert abilities.get(KEY).tier == "json_object"
    assert abilities.get(KEY).proven == ("json_object",)


def test_content_before_tool_call_before_reasoning() -> None:
    """The content is read first; where it holds no value, the tool call is."""
    other = '{"memory_ids": ["9"]}'
    assert play([reply(GOOD, tool_calls=call(other), reasoning=other)]).value.value == Ids(memory_ids=["1"])  # type: ignore[union-attr]
    assert play([reply("Let me see.", tool_calls=call(GOOD), reasoning=other)]).value.value == Ids(memory_ids=["1"])  # type: ignore[union-attr]


def test_cut_reply_gets_four_times_the_tokens_once() -> None:
    """The second ask has four times the tokens; cut again, the complete items are kept and marked."""
    cut = '{"memory_ids": ["1", "2'
    played = play([reply(cut, "length"), reply(cut, "length")], max_tokens=50)
    assert [request.max_tokens for request in played.requests] == [50, 200]
    assert played.value is not None
    assert (played.value.partial, played.value.value.memory_ids, played.value.repairs) == (True, ["1"], 0)


def test_value_that_is_complete_in_a_cut_reply_is_taken() -> None:
    """A reply that ran on after its value was complete costs no second call."""
    played = play([reply(GOOD + " and then", "length")])
    assert played.value is not None
    assert not played.value.partial


def test_cut_reply_of_a_model_that_takes_no_more_tokens() -> None:
    """A model that refuses the greater max_tokens ends it: dropping the limit is no cure for a cut reply."""
    refused = failure(400, "max_tokens is too large: 400. At most 128 are supported.")
    played = play([reply('{"mem', "length"), refused], max_tokens=100)
    assert isinstance(played.error, StructuredOutputError)
    assert played.error.raw == '{"mem'


def test_cut_again_without_items_is_repaired() -> None:
    """Two cut replies with nothing complete in them lead to the repair."""
    played = play([reply('{"mem', "length"), reply('{"mem', "length"), reply()])
    assert played.value is not None
    assert played.value.repairs == 1


def test_refused_parameters_are_remembered_and_logged_once(caplog: Any) -> None:
    """max_tokens gets its newer name, then none; temperature goes; each is logged once."""
    caplog.set_level(logging.INFO, "asyncmem.llm")
    abilities = Abilities()
    using = context(abilities, LLMSettings(extra={"top_p": 0.5, "x": 1}))
    play([failure(400, "Unsupported parameter: 'max_tokens'"), failure(400, "top_p is not allowed"), reply()], using)
    request = play([reply()], using).requests[0]
    assert dict(request.extra) == {"x": 1, "max_completion_tokens": 100}
    assert request.max_tokens is None
    last = play([failure(400, "max_completion_tokens is not allowed"), reply()], using).requests[1]
    assert dict(last.extra) == {"x": 1}
    assert caplog.messages == [
        "m: dropped=(), renamed=(('max_tokens', 'max_completion_tokens'),) (it refuses max_tokens)",
        "m: dropped=('top_p',), renamed=(('max_tokens', 'max_completion_tokens'),) (it refuses top_p)",
        (
            "m: dropped=('max_completion_tokens', 'top_p'), renamed=(('max_tokens', 'max_completion_tokens'),)"
            " (it refuses max_completion_tokens)"
        ),
    ]


def test_pause_is_kept_and_bounded() -> None:
    """Retry-After is kept where it was given, beyond the deadline nothing is waited for."""
    slow = failure(429, "slow down", "RateLimitError", litellm_response_headers={"retry-after": "7"})
    assert play([slow, reply()]).pauses == [0.0, 7.0]
    played = play([slow], context(left=6.0))
    assert isinstance(played.error, ModelRateLimitError)
    assert (played.error.retry_after, played.error.retryable) == (7.0, True)


def test_retries_are_counted_over_the_whole_operation() -> None:
    """The number of retries is the operation's, not a step's."""
    down = failure(503, "down", "ServiceUnavailableError")
    settings = LLMSettings(retries=1)
    assert play([down, FORMAT, down], context(settings=settings)).error is not None
    assert play([down], context(settings=LLMSettings(retries=0))).error is not None


def test_first_error_of_a_chain_is_raised() -> None:
    """Of several refusals, the first says what is wrong."""
    played = play([failure(400, "first words"), BARE, BARE])
    assert "first words" in str(played.error)


def test_later_error_of_another_kind_is_raised_as_itself() -> None:
    """A rate limit after a refusal is a rate limit."""
    limit = failure(429, "slow down", "RateLimitError")
    assert isinstance(play([BARE, limit], context(settings=LLMSettings(retries=0))).error, ModelRateLimitError)


def test_usage_counts_what_was_sent() -> None:
    """Refused calls count, those that litellm refuses itself don't."""
    local = failure(400, "does not support parameters: ['response_format']", "UnsupportedParamsError")
    played = play([local, reply()])
    assert played.value is not None
    assert played.value.usage.calls == 1
    remote = failure(400, "['response_format']", "UnsupportedParamsError", litellm_response_headers={})
    played = play([remote, reply()])
    assert played.value is not None
    assert played.value.usage.calls == 2


def test_timeout_of_a_request_never_exceeds_what_is_left() -> None:
    """A request may take its own time-out, or what is left until the deadline."""
    assert play([reply()], context(left=5.0)).requests[0].timeout == 5.0
    assert play([reply()], context()).requests[0].timeout == 60.0
