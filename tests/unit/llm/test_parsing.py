"""What is read out of a reply, and what never is."""

import json
import sys
from datetime import date
from enum import Enum
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, field_validator

from asyncmem.llm.parsing import read_arguments, read_value
from asyncmem.llm.validating import Reading

from ..work import work
from .schemas import Ids, Node, Plan, Profile

GOOD = '{"memory_ids": ["1", "2"]}'
RECOVERED = {
    "plain": GOOD,
    "pretty": json.dumps({"memory_ids": ["1", "2"]}, indent=2),
    "byte order mark": "\ufeff" + GOOD,
    "fenced": f"```json\n{GOOD}\n```",
    "fenced without a language": f"```\n{GOOD}\n```",
    "fence that never ends": f"```json\n{GOOD}",
    "prose around a fence": f"Sure! Here it is:\n\n```json\n{GOOD}\n```\n\nLet me know if you need more {{details}}.",
    "prose around": f"The relevant memories are {GOOD} and that is all.",
    "a citation after it": f"{GOOD} (see [1])",
    "a decoy before": 'I was given {"query": "x"} and {"type":"object","properties":{"memory_ids":{"type":"array"}}}. '
    + GOOD,
    "an example of the same shape before": f'For example {{"memory_ids": ["9"]}}. Here: {GOOD}',
    "a fenced example before": f'```json\n{{"memory_ids": ["9"]}}\n```\nSo the answer is {GOOD}',
    "thoughts": f'<think>The user wants {{"memory_ids": ["9"]}} hmm, no.</think>\n\n{GOOD}',
    "thoughts that were opened by the template": f'Maybe {{"memory_ids": ["9"]}}? No.\n</think>\n\n{GOOD}',
    "thoughts in another tag": f"<reasoning>hm</reasoning>{GOOD}",
    "thoughts of Magistral": f'[THINK]{{"memory_ids": ["9"]}}[/THINK]{GOOD}',
    "encoded twice": json.dumps(GOOD),
    "a bare list": '["1", "2"]',
    "a fenced bare list": '```json\n["1", "2"]\n```',
    "a bare list in prose": 'They are ["1", "2"], I think.',
    "a bare list of numbers": "[1, 2]",
    "wrapped in its class name": json.dumps({"Ids": {"memory_ids": ["1", "2"]}}),
    "wrapped twice": json.dumps({"response": {"Ids": {"memory_ids": ["1", "2"]}}}),
    "wrapped in properties": json.dumps({"properties": {"memory_ids": ["1", "2"]}}),
    "properties filled in beside the type": json.dumps({"type": "object", "properties": {"memory_ids": ["1", "2"]}}),
    "a tool call in text": '<tool_call>\n{"name": "Ids", "arguments": ' + GOOD + "}\n</tool_call>",
    "a tool call with encoded arguments": json.dumps({"name": "Ids", "arguments": GOOD}),
    "single quotes": "{'memory_ids': ['1', '2']}",
    "trailing commas": '{"memory_ids": ["1", "2",],}',
    "comments": '{\n  // the best ones\n  "memory_ids": ["1", /* and */ "2"] # done\n}',
    "smart quotes": "{“memory_ids”: [“1”, “2”]}",
    "bare keys": '{memory_ids: ["1", "2"]}',
    "Python literals among strings": "{'memory_ids': ['1', None, True, '2']}",
    "ids as numbers": '{"memory_ids": [1, 2]}',
    "ids as objects": '{"memory_ids": [{"id": "1"}, {"id": 2}]}',
    "extra keys": '{"memory_ids": ["1", "2"], "reason": "because"}',
    "a list of nothing but the object": f"[{GOOD}]",
    "the end of a thought inside a fenced value": '```json\n{"memory_ids": ["1", "2"], "why": "</think>"}\n```',
}


@pytest.mark.parametrize("text", RECOVERED.values(), ids=RECOVERED.keys())
def test_reads_what_models_write(text: str) -> None:
    """Every way of writing the value that models are known for is read at once."""
    assert read_value(text, Ids).value == Ids(memory_ids=["1", "2"])


@pytest.mark.parametrize(
    ("text", "ids"),
    [('{"memory_ids": null}', []), ('{"memory_ids": "1"}', ["1"]), ('{"memory_ids": []}', []), ("[]", [])],
)
def test_null_one_and_nothing_are_lists(text: str, ids: list[str]) -> None:
    """A list that is null is empty, and one lone item is a list of one."""
    assert read_value(text, Ids).value == Ids(memory_ids=ids)


REJECTED = {
    "nothing": "",
    "blanks": " \n ",
    "prose": "I'm sorry, but I can't help with that request.",
    "a numbered list": "1. m1\n2. m2",
    "a citation": "As memory [1] says, nothing is relevant.",
    "the schema": json.dumps(Ids.model_json_schema()),
    "the schema in prose": f"The schema is {json.dumps(Ids.model_json_schema())}.",
    "another key": '{"ids": ["1"]}',
    "an example under its name": '{"example": {"memory_ids": ["9"]}}',
    "the value beside others": '{"query": "x", "answer": {"memory_ids": ["9"]}}',
    "thoughts that never end": '<think>The user wants {"memory_ids": ["9"]} and I will keep thinking',
    "cut": '{"memory_ids": ["1", "2"',
    "cut inside a string that holds an object": "{\"memory_ids\": [\"he said {'memory_ids': ['9']} and",
    "an empty object": "{}",
    "a number": "42",
    "null": "null",
    "a word": "undefined",
    "too deep": "[" * 20_000,
    "too deep for almost-JSON": "{'memory_ids': ['1'], 'x': " + "[" * 70 + "]" * 70 + "}",
    "a comma too few": "{'memory_ids': ['1' '2']}",
    "wrapped too often": '{"a": {"b": {"c": {"d": {"memory_ids": ["9"]}}}}}',
    "wrapped, but something else": '{"a": {"b": 1}}',
    "two faults, one of them a slip": '{"memory_ids": [1, [2]]}',
    "a broken number": '{"memory_ids": [1.2.3]}',
}


@pytest.mark.parametrize("text", REJECTED.values(), ids=REJECTED.keys())
def test_takes_nothing_else_for_an_answer(text: str) -> None:
    """An echo of the schema, a decoy, an example or a cut reply is never an answer, and the reason is told."""
    reading = read_value(text, Ids)
    assert reading.value is None
    assert reading.problem


def test_last_object_that_validates_wins() -> None:
    """Of several objects that fit, the last is the answer."""
    text = '{"memory_ids": ["7"]}\n{"memory_ids": ["8"]}\n{"memory_ids": "no", "x": [}'
    assert read_value(text, Ids).value == Ids(memory_ids=["8"])


def test_object_wins_over_bare_list() -> None:
    """A list in prose counts only where no object fits."""
    assert read_value('{"memory_ids": ["1"]} from ["a", "b"]', Ids).value == Ids(memory_ids=["1"])


def test_json_inside_strings_is_data() -> None:
    """An object quoted in a string of the answer is never taken for the answer."""
    text = json.dumps({"operations": [{"op": "add", "memory": 'Said {"operations": []} </think> {"operations": []}'}]})
    value = read_value(text, Plan).value
    assert value is not None
    assert [step.op for step in value.operations] == ["add"]


def test_whole_reply_is_read_before_thoughts_are_looked_for() -> None:
    """A reply that is JSON as a whole is not cut at a thinking tag inside one of its strings."""
    assert read_value('{"memory_ids": ["</think>"]}', Ids).value == Ids(memory_ids=["</think>"])


def test_bare_list_of_objects() -> None:
    """A bare list of operations is a plan."""
    value = read_value('Here:\n[{"op": "delete"}]', Plan).value
    assert value is not None
    assert value.operations[0].op == "delete"


def test_bare_list_fits_no_model_of_several_fields() -> None:
    """A list is no answer where the model has more than one field."""
    assert read_value('["a"]', Profile).value is None


def test_empty_object_is_an_answer_where_nothing_is_required() -> None:
    """``{}`` as the whole reply is a value of a model without required fields; in prose it is none."""
    assert read_value("{}", Profile).value == Profile()
    assert read_value("```json\n{}\n```", Profile).value == Profile()
    assert read_value("I used {} as the format.", Profile).value is None


def test_fields_too_many_are_dropped_where_the_model_forbids_them() -> None:
    """An extra key doesn't cost the reply, even where the model forbids it."""
    assert read_value('{"name": "Lin", "mood": "good"}', Profile).value == Profile(name="Lin")


def test_half_a_surrogate_pair_is_replaced() -> None:
    """Half of a surrogate pair, which no store can hold, becomes the replacement character."""
    assert read_value('{"memory_ids": ["\\ud83d"]}', Ids).value == Ids(memory_ids=["\ufffd"])


def test_escapes_of_almost_json() -> None:
    """Escapes of JSON and of Python are read in strings of either quote; a character too high is the highest."""
    text = r"{'memory_ids': ['a\n\'b\u00e9\x41\U0001F600', '\U99999999']}"
    assert read_value(text, Ids).value == Ids(memory_ids=["a\n'bé" + "A😀", "\U0010ffff"])


def test_aliases_are_names_too() -> None:
    """A field is recognised by its alias."""

    class Aliased(BaseModel):
        words: list[str] = Field(alias="theWords")

    value = read_value('{"theWords": ["a"]}', Aliased).value
    assert value is not None
    assert value.words == ["a"]


@pytest.mark.parametrize("key", ["cityName", "town", "city"])
def test_aliases_of_reading_are_names_too(key: str) -> None:
    """``validation_alias``, each of ``AliasChoices``, and the first step of an ``AliasPath``."""

    class Home(BaseModel):
        city: str = Field(validation_alias=AliasChoices("cityName", "town", AliasPath("city", 0)))

    reading = read_value(json.dumps({key: ["Porto"] if key == "city" else "Porto"}), Home)
    assert reading.value is not None
    assert reading.value.city == "Porto"


def test_strict_fields_take_what_json_can_say() -> None:
    """A date, an enumeration and a tuple of a strict model are read as pydantic reads them from JSON."""

    class Colour(Enum):
        RED = "red"

    class Visit(BaseModel):
        model_config = ConfigDict(strict=True)
        day: date
        colour: Colour
        pair: tuple[int, int]

    reading = read_value('{"day": "2021-01-02", "colour": "red", "pair": [1, 2]}', Visit)
    assert reading.value == Visit(day=date(2021, 1, 2), colour=Colour.RED, pair=(1, 2))
    assert read_value('{"day": "2021-01-02", "colour": "red", "pair": ["1", 2]}', Visit).value is None


def test_a_validator_that_fails_over_the_reply_refuses_it() -> None:
    """Whatever a check of the schema's own raises, the reply is refused, in words that quote nothing."""

    class Home(BaseModel):
        city: str
        rooms: list[int] = Field(default_factory=list)

        @field_validator("city", mode="before")
        @classmethod
        def shorten(cls, given: Any) -> Any:
            return given.strip()

    assert read_value('{"city": 5}', Home).problem == "object: a check of it failed (AttributeError)"
    assert read_value('{"city": " Porto "}', Home).value == Home(city="Porto")

    class Count(BaseModel):
        rooms: list[int]

        @field_validator("rooms")
        @classmethod
        def share(cls, rooms: list[int]) -> list[int]:
            return [12 // room for room in rooms]

    assert read_value('{"rooms": 0}', Count).problem == "object: a check of it failed (ZeroDivisionError)"


def test_arguments_may_be_nothing_at_all() -> None:
    """Of a call, nothing, and nothing that is known, are no arguments; what is required is asked for."""

    class Nothing(BaseModel):
        pass

    class Some(BaseModel):
        limit: int = 10

    for text in ("", " ", "null", '""', "{}", '{"confirm": true}'):
        assert read_arguments(text, Nothing).value == Nothing()
        assert read_arguments(text, Some).value == Some()
        assert read_arguments(text, Ids).value is None
    assert read_arguments('{"limit": 3, "confirm": true}', Some).value == Some(limit=3)
    assert read_arguments('{"memory_id": "1"}', Ids).problem == "memory_ids: Field required"


def test_problem_names_fields_and_quotes_no_value() -> None:
    """What the model is told names the field and what was expected, not what it wrote."""
    reading = read_value('{"operations": [{"op": "secretly"}]}', Plan)
    assert reading.problem == "operations.0.op: Input should be 'add', 'update' or 'delete'"


def test_problem_lists_fields_when_none_was_there() -> None:
    """An object of another shape is answered with the fields it lacks."""
    assert read_value('{"x": 1}', Profile).problem == "the object has none of the fields age, name"


def test_schema_echo_is_named_in_the_problem() -> None:
    """A model that repeats the schema is told so."""
    assert read_value(json.dumps(Ids.model_json_schema()), Ids).problem == (
        "the reply repeated the schema: give values"
    )


def test_model_with_a_field_properties_is_no_echo() -> None:
    """A model of one's own may have a field that is called ``properties``."""

    class House(BaseModel):
        properties: dict[str, dict[str, str]]

    value = read_value('{"properties": {"roof": {"type": "slate"}}}', House).value
    assert value is not None
    assert value.properties == {"roof": {"type": "slate"}}


SALVAGED = {
    '{"memory_ids": ["1", "2", "3': ["1", "2"],
    '{"memory_ids": ["1", "2"': ["1", "2"],
    '```json\n{"memory_ids": ["1",': ["1"],
    '["1", "2", "': ["1", "2"],
}


@pytest.mark.parametrize(("text", "ids"), SALVAGED.items())
def test_salvages_complete_items_of_a_cut_list(text: str, ids: list[str]) -> None:
    """Of a list that was cut, the complete items are kept, and the result says that it is partial."""
    assert read_value(text, Ids, salvage=True) == Reading(Ids(memory_ids=ids), "", partial=True)


def test_salvage_drops_an_unfinished_object() -> None:
    """An operation that was cut is not carried out in part."""
    text = '{"operations": [{"op": "add", "memory": "Plays go"}, {"op": "add", "memory": "Lives in Por'
    value = read_value(text, Plan, salvage=True).value
    assert value is not None
    assert [step.memory for step in value.operations] == ["Plays go"]


@pytest.mark.parametrize("text", ['{"memory_ids": [', '{"memory_ids": ["1', "{" + "\n" * 200, '{"x": ["1"'])
def test_salvage_makes_nothing_of_nothing(text: str) -> None:
    """Where no item was complete, nothing is salvaged."""
    assert read_value(text, Ids, salvage=True).value is None


def test_uncut_reply_is_not_partial() -> None:
    """A complete value is not called partial, even when salvaging was allowed."""
    assert read_value(GOOD, Ids, salvage=True) == Reading(Ids(memory_ids=["1", "2"]))


HOSTILE = {
    "open braces": "{" * 200_000,
    "open brackets": "[" * 200_000,
    "nested objects": '{"a":' * 40_000,
    "long unclosed list": '["a",' * 40_000,
    "nested lists, then a long one": "[" * 60 + '"a",' * 50_000,
    "quotes": '{"' * 60_000,
    "backslashes": '{"a": "' + "\\" * 199_000,
    "slashes": "{" + "/" * 199_000,
    "unclosed comments": "{/*" * 60_000,
    "fences": "```json\n" * 20_000,
    "thinking tags": "<think>" * 20_000 + "</think>" * 5_000,
    "broken objects": "{a b}" * 40_000,
    "digits": '{"memory_ids": [' + "9" * 190_000 + "]}",
    "spaces": "{" + " " * 199_000,
    "smart quotes": "{“" * 60_000,
    "blanks in a fence": "```json\n{" + " \n" * 95_000 + '"memory_ids": 1}\n```',
    "comments that end at the end": "[/*" * 66_000 + "*/!",
    "valid decoys": '{"a": 1} ' * 22_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_read_with_bounded_work(text: str) -> None:
    """Text made to be slow costs no more than five calls a character, with salvage as without, and reading it ends."""
    assert work(lambda: read_value(text, Ids)) < 5 * len(text)
    assert work(lambda: read_value(text, Ids, salvage=True)) < 5 * len(text)


def test_too_deep_values_are_refused_from_any_depth_of_the_stack() -> None:
    """How deep the caller's own stack is changes what can be read, and never makes reading raise."""
    text = '{"memory_ids": ["\\ud83d", null, 1], "x": ' + '{"a": ' * 200 + "1" + "}" * 201

    def at(depth: int) -> Reading[Ids]:
        return read_value(text, Ids) if depth == 0 else at(depth - 1)

    readings = [at(depth) for depth in range(100, sys.getrecursionlimit() - 160, 20)]
    assert readings[0].value == Ids(memory_ids=["\ufffd", "1"])
    assert all((reading.value is None) == bool(reading.problem) for reading in readings)


def test_problem_is_short() -> None:
    """However deep the fault lies, the model is told in a few hundred characters."""
    text = '{"name": "x", "children": [' * 200 + "]}" * 200
    assert len(read_value(text, Node).problem) <= 600


def test_mending_reaches_no_place_that_is_not_there() -> None:
    """A fault inside a union, whose place carries a type's name, is told and not mended."""

    class Either(BaseModel):
        value: Ids | Profile

    assert read_value('{"value": {"memory_ids": null}}', Either).problem


_PIECES = '{ } [ ] " \' , : \\ memory_ids "memory_ids" 1 null </think> <think> ``` “ ” // /* properties type é'
_pieces = st.sampled_from([*_PIECES.split(), " ", "\n", "\ud83d"])


@given(st.lists(_pieces, max_size=60).map("".join) | st.text(max_size=200))
@example("[1" + "0" * 5000 + "]")
@settings(max_examples=200, deadline=None)
def test_never_raises(text: str) -> None:
    """Whatever the text, the outcome is a value or a reason."""
    for schema in (Ids, Plan, Profile, Node):
        reading = read_value(text, schema, salvage=True)
        assert (reading.value is None) == bool(reading.problem)


_words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
_prose = st.text("abc ,.:\n", max_size=30)


@given(st.lists(_words, max_size=5), _prose, _prose)
@settings(max_examples=200, deadline=None)
def test_round_trip_in_prose(ids: list[str], before: str, after: str) -> None:
    """Any value comes back out of any prose around it."""
    text = f"{before}{Ids(memory_ids=ids).model_dump_json()}{after}"
    assert read_value(text, Ids).value == Ids(memory_ids=ids)


@given(st.lists(_words.filter(lambda w: "\\" not in w), max_size=5))
@settings(max_examples=200, deadline=None)
def test_round_trip_of_python_notation(ids: list[str]) -> None:
    """A value written as Python would is read as what it is."""
    assert read_value(str({"memory_ids": ids}), Ids).value == Ids(memory_ids=ids)
