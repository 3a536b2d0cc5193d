"""What was learned, kept and handed on."""

import json
from typing import Any

import pytest

from asyncmem.errors import InvalidInputError
from asyncmem.llm import Abilities, Ability

KEY = ("m", "http://x")


def test_learning_says_whether_it_is_news() -> None:
    """The first time is news, the second is not."""
    abilities = Abilities()
    assert abilities.learn(KEY, tools=True)
    assert not abilities.learn(KEY, tools=True)


def test_dump_and_load_carry_everything_as_json() -> None:
    """What is dumped survives JSON and is the same when loaded elsewhere."""
    abilities = Abilities(clock=lambda: 5.0)
    abilities.learn(
        KEY,
        tier="json_object",
        loose="text",
        proven=("json_object",),
        tools=False,
        dropped=("seed",),
        renamed=(("max_tokens", "max_completion_tokens"),),
        dimensions=8,
    )
    other = Abilities(clock=lambda: 6.0)
    other.load(json.loads(json.dumps(abilities.dump())))
    assert other.get(KEY) == abilities.get(KEY)
    assert other.get(KEY).renamed == (("max_tokens", "max_completion_tokens"),)
    other.clear()
    assert other.get(KEY) == Ability()


def test_length_of_vectors_never_expires() -> None:
    """After an hour only the embedding's length is still known."""
    now = [0.0]
    abilities = Abilities(clock=lambda: now[0])
    abilities.learn(KEY, tier="text", dimensions=8)
    now[0] = 3_600.0
    assert abilities.get(KEY) == Ability(dimensions=8)


GOOD = Abilities(clock=lambda: 5.0)
GOOD.learn(KEY, tier="text", dimensions=8)
(ROW,) = GOOD.dump()


@pytest.mark.parametrize(
    "row",
    [
        5,
        None,
        "native",
        {},
        {name: value for name, value in ROW.items() if name != "proven"},
        {**ROW, "model": 5},
        {**ROW, "tier": "nonsense"},
        {**ROW, "proven": ["nonsense"]},
        {**ROW, "tools": "yes"},
        {**ROW, "renamed": [["one"]]},
        {**ROW, "dimensions": 0},
        {**ROW, "at": float("nan")},
    ],
)
def test_rows_that_can_not_be_read_are_left_out(row: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The others are taken over; how many were is returned and logged."""
    abilities = Abilities(clock=lambda: 6.0)
    assert abilities.load([row, {**ROW, "later": "unknown"}]) == 1
    assert abilities.dump() == [ROW]
    assert [record.getMessage() for record in caplog.records] == [
        "abilities: 1 of 2 rows can't be read and were left out"
    ]


@pytest.mark.parametrize("rows", [ROW, "[]", b"[]", None, 5])
def test_what_is_no_list_of_rows_is_refused(rows: Any) -> None:
    """It is no file of ours: nothing is taken over."""
    with pytest.raises(InvalidInputError, match=r"the list that dump\(\) gave"):
        Abilities().load(rows)


def test_what_was_learned_by_a_clock_that_was_ahead_expires_too() -> None:
    """A time to come counts as now."""
    now = [100.0]
    abilities = Abilities(clock=lambda: now[0])
    assert abilities.load([{**ROW, "at": 1e12}]) == 1
    now[0] += 3_600.0
    assert abilities.get(KEY).tier is None
