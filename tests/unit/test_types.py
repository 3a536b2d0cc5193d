"""The values: what they take, keep and refuse."""

import json
import os
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from asyncmem import (
    CaptureResult,
    Change,
    InvalidIdError,
    InvalidMemoryError,
    InvalidMessageError,
    MemorySearchResult,
    Message,
    Usage,
    UserMemory,
)

MOMENT = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


def test_text_is_normalised() -> None:
    """Unicode NFC, control characters but newline and tab removed, stripped."""
    memory = UserMemory(memory=" \x00Cafe\u0301\x07\tin\r\nPorto\x85 \n")
    assert memory.memory == "Café\tin\nPorto"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "blank"),
        (" \n\t\x00 ", "blank"),
        ("x" * 8_001, "8,001 characters: at most 8,000"),
        ("\ud800", "surrogate"),
    ],
)
def test_unusable_text_is_refused(text: str, message: str) -> None:
    """Blank, too long or unencodable text raises an error that says the limit and not the text."""
    with pytest.raises(InvalidMemoryError, match=message):
        UserMemory(memory=text)


def test_longest_text_is_kept() -> None:
    """8,000 characters of any width fit."""
    assert UserMemory(memory="𝕏" * 8_000).memory == "𝕏" * 8_000


@pytest.mark.parametrize("value", [None, 5, b"x", ["x"], {"$ne": 1}])
def test_text_of_another_type_is_refused(value: Any) -> None:
    """Only str is text."""
    with pytest.raises(InvalidMemoryError, match="must be a str"):
        UserMemory(memory=value)


def test_topics_are_folded_in_order() -> None:
    """Order is kept, duplicates go whatever their case, None is none."""
    assert UserMemory(memory="x", topics=["Food", " food ", "pets", "FOOD"]).topics == ["Food", "pets"]
    assert UserMemory(memory="x", topics=None).topics == []  # type: ignore[arg-type]
    assert UserMemory(memory="x", topics=("b", "a")).topics == ["b", "a"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ([f"t{n}" for n in range(33)], "33 topics: at most 32"),
        (["x" * 65], "65 characters: at most 64"),
        ([""], "topic is blank"),
        (["a", 3], "topic must be a str"),
        ("food", "list of str"),
        ({"$in": []}, "list of str"),
    ],
)
def test_unusable_topics_are_refused(topics: Any, message: str) -> None:
    """Too many, too long, blank, or not a list of text."""
    with pytest.raises(InvalidMemoryError, match=message):
        UserMemory(memory="x", topics=topics)


@pytest.mark.parametrize("field", ["memory_id", "user_id", "agent_id", "team_id"])
@pytest.mark.parametrize("value", ["", "  ", "x" * 257, "a\0b", "a\nb", "\ud800", 5, {"$gt": ""}])
def test_unusable_ids_are_refused(field: str, value: Any) -> None:
    """An id is 1 to 256 characters, none of them a control character."""
    with pytest.raises(InvalidIdError, match=field):
        UserMemory(memory="x", **{field: value})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (MOMENT, MOMENT),
        (datetime(2026, 1, 5, 8, 0), MOMENT),
        (datetime(2026, 1, 5, 13, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))), MOMENT),
        ("2026-01-05T08:00Z", MOMENT),
        ("2026-01-05T03:00:00-05:00", MOMENT),
        ("2026-01-05", datetime(2026, 1, 5, tzinfo=UTC)),
        (MOMENT.timestamp(), MOMENT),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-0.0015, datetime(1969, 12, 31, 23, 59, 59, 998000, tzinfo=UTC)),
        (1.2345, datetime(1970, 1, 1, 0, 0, 1, 234000, tzinfo=UTC)),
    ],
)
def test_times_become_aware_utc_milliseconds(value: Any, expected: datetime) -> None:
    """Datetimes, ISO 8601 text and Unix seconds give one kind of time."""
    moment = UserMemory(memory="x", created_at=value).created_at
    assert moment == expected
    assert moment is not None
    assert moment.tzinfo is UTC


@pytest.mark.parametrize("value", ["yesterday", "", True, float("nan"), float("inf"), 1e300, -1e15, [], b"2026"])
def test_unusable_times_are_refused(value: Any) -> None:
    """Anything else, and what no datetime can hold."""
    with pytest.raises(InvalidMemoryError, match="a time must be"):
        UserMemory(memory="x", updated_at=value)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/Lima"])
def test_json_round_trip_gives_the_same_instant_in_any_zone(zone: str) -> None:
    """A memory read back from JSON is the same value, whatever TZ says (case 3)."""
    memory = UserMemory(memory="x", created_at="2026-01-05T08:00Z", updated_at=1767600000.123)
    code = (
        "import sys; from asyncmem import UserMemory;"
        "print(UserMemory.model_validate_json(sys.stdin.read()).model_dump_json())"
    )
    out = subprocess.run(
        [sys.executable, "-P", "-c", code],
        input=memory.model_dump_json(),
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert UserMemory.model_validate_json(out) == memory
    assert json.loads(out)["created_at"] == "2026-01-05T08:00:00Z"


def test_values_are_frozen_and_copies_are_validated() -> None:
    """A field can't be set; a copy is checked like a new value and shares no list with the original."""
    memory = UserMemory(memory="x", topics=["a"])
    with pytest.raises(ValidationError, match="frozen"):
        memory.memory = "y"  # type: ignore[misc]
    with pytest.raises(InvalidMemoryError, match="blank"):
        memory.model_copy(update={"memory": " "})
    copy = memory.model_copy()
    assert copy == memory
    assert copy.topics is not memory.topics
    assert pickle.loads(pickle.dumps(memory)) == memory


def test_unknown_fields_are_named() -> None:
    """An unknown field is an error that names it and shows no value."""
    with pytest.raises(InvalidMemoryError, match="colour") as caught:
        UserMemory(memory="a secret", colour="red")  # type: ignore[call-arg]
    assert "secret" not in str(caught.value)
    assert "red" not in str(caught.value).replace("required", "")


def test_errors_come_through_models_that_hold_memories() -> None:
    """Our error, not pydantic's, also where a memory is a field of another model."""

    class Holder(BaseModel):
        memory: UserMemory

    with pytest.raises(InvalidMemoryError):
        Holder.model_validate({"memory": {"memory": ""}})


def test_input_and_feedback_are_text_or_nothing() -> None:
    """Blank is nothing; 20,000 characters are the limit."""
    assert UserMemory(memory="x", input=" ", feedback="").input is None
    with pytest.raises(InvalidMemoryError, match="input has 20,001"):
        UserMemory(memory="x", input="x" * 20_001)
    with pytest.raises(InvalidMemoryError, match="feedback must be a str"):
        UserMemory(memory="x", feedback=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"$set": 1}, "start with"),
        ({"a.b": 1}, "start with"),
        ({"": 1}, "empty"),
        ({"a\0": 1}, "NUL"),
        ({1: 1}, "must be a str"),
        ({"a": {"b": [{"$c": 1}]}}, "start with"),
        ({"a": 2**63}, "64 bits"),
        ({"a": -(2**63) - 1}, "64 bits"),
        ({"a": float("nan")}, "finite"),
        ({"a": float("inf")}, "finite"),
        ({"a": {1, 2}}, "can't hold a set"),
        ({"a": MOMENT}, "can't hold a datetime"),
        ({"a": "\ud800"}, "surrogate"),
        ({"\ud800": 1}, "surrogate"),
        ({"a": "x" * 65_536}, "at most 65,536"),
        ({"a": [1] * 5_000}, "at most 65,536"),
        ([("a", 1)], "must be a dict"),
    ],
)
def test_unusable_metadata_is_refused(metadata: Any, message: str) -> None:
    """What MongoDB or JSON could not hold as it is."""
    with pytest.raises(InvalidMemoryError, match=message):
        UserMemory(memory="x", metadata=metadata)


def test_metadata_nests_sixteen_deep() -> None:
    """Sixteen levels are kept, seventeen are refused."""
    value: Any = "bottom"
    for _ in range(16):
        value = {"k": value}
    assert UserMemory(memory="x", metadata=value).metadata == value
    with pytest.raises(InvalidMemoryError, match="nests deeper than 16"):
        UserMemory(memory="x", metadata={"k": value})


def test_metadata_is_a_copy() -> None:
    """Changing the caller's object later changes no memory."""
    mine: dict[str, Any] = {"list": [1]}
    memory = UserMemory(memory="x", metadata=mine)
    mine["list"].append(2)
    assert memory.metadata == {"list": [1]}
    assert UserMemory(memory="x", metadata=None).metadata == {}  # type: ignore[arg-type]
    assert UserMemory(memory="x", metadata={"t": (1, 2)}).metadata == {"t": [1, 2]}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text("abc_-$", min_size=1, max_size=4).filter(lambda k: not k.startswith("$")), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abcXYZ", min_size=1, max_size=5), json_values, max_size=4))
def test_any_json_metadata_survives_json(metadata: dict[str, Any]) -> None:
    """Metadata is the same after a round trip through JSON."""
    memory = UserMemory(memory="x", metadata=metadata)
    assert UserMemory.model_validate_json(memory.model_dump_json()) == memory


@given(st.text(max_size=200))
def test_any_text_is_kept_or_refused(text: str) -> None:
    """Cleaning text twice is cleaning it once; what can't be kept raises our error."""
    try:
        memory = UserMemory(memory=text)
    except InvalidMemoryError:
        return
    assert UserMemory(memory=memory.memory) == memory
    assert memory.memory.encode().decode() == memory.memory


def test_message_takes_role_text_and_time() -> None:
    """A message is frozen; what can't be read raises InvalidMessageError."""
    assert Message(content="hi", at=0).at == datetime(1970, 1, 1, tzinfo=UTC)  # type: ignore[arg-type]
    assert Message(content="hi").role == "user"
    for bad in ({"content": 3}, {"content": "x", "at": "noon"}, {"content": "x", "who": 1}, {}):
        with pytest.raises(InvalidMessageError):
            Message(**bad)  # type: ignore[arg-type]


def test_usage_adds_up_and_unknown_cost_stays_unknown() -> None:
    """Calls and tokens add; one unknown price makes the sum unknown, and nothing called costs nothing."""
    known = Usage(1, 10, 5, 0.25)
    assert Usage() + known + known == Usage(2, 20, 10, 0.5)
    assert (known + Usage(1, 1, 1, None)).cost is None
    assert Usage().cost == 0


def test_capture_result_reads_as_one_line() -> None:
    """Its text counts changes, skips, calls, tier and time."""
    memory = UserMemory(memory="a secret")
    change = Change("add", "m", None, memory, "capture", MOMENT)
    result = CaptureResult([change, change], [], Usage(1, 2, 3, None), "json_schema", timedelta(seconds=1.5))
    assert str(result) == "2 add, 0 skipped, 1 model calls (json_schema), 1.50 s"
    bounded = CaptureResult(usage=Usage(4), tools=True, windows=2, ended="rounds")
    assert (
        str(bounded) == "no change, 0 skipped, 4 model calls (tools), 2 windows, stopped at the limit of rounds, 0.00 s"
    )
    assert str(CaptureResult(repeated=True)) == "no change, 0 skipped, 0 model calls (none), captured before, 0.00 s"
    assert str(CaptureResult()) == "no change, 0 skipped, 0 model calls (none), 0.00 s"


def test_search_result_is_a_sequence() -> None:
    """It has length, items, slices and order of its memories."""
    one, two = UserMemory(memory="one"), UserMemory(memory="two")
    result = MemorySearchResult([one, two])
    assert list(result) == [one, two]
    assert (len(result), result[0], result[1:], list(reversed(result))) == (2, one, [two], [two, one])
