"""The plan that a model writes: read tolerantly, asked for strictly."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from asyncmem.llm.schemas import full_schema, plain_schema
from asyncmem.plan import MAX_PLANNED, OPERATION_NAMES, Plan, PlannedOperation, plan_model


def read(value: object) -> list[PlannedOperation]:
    """The operations of a plan."""
    return Plan.model_validate({"operations": value}).operations


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], []),
        (None, []),
        ({"op": "add"}, [PlannedOperation(op="add")]),
        ([{"op": "clear", "memory_id": None, "memory": None, "topics": None, "evidence": None}, "x", 3, None],
         [PlannedOperation(op="clear")]),
        ([{"op": "delete", "memory_id": 3}], [PlannedOperation(op="delete", memory_id="3")]),
        ([{"evidence": ["one", None, "two"]}], [PlannedOperation(evidence="one … two")]),
        ([{"topics": "food,drinks"}], [PlannedOperation(topics=["food", "drinks"])]),
        ([{"topics": ["food", 3, None]}], [PlannedOperation(topics=["food", "3", ""])]),
        ([{"op": "add", "confidence": 0.9}], [PlannedOperation(op="add")]),
    ],
)  # fmt: skip
def test_plans_are_read_tolerantly(value: object, expected: list[PlannedOperation]) -> None:
    """Missing, null and oddly typed fields that an operation doesn't need do no harm."""
    assert read(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"foo": 1},
        {"operations": "add"},
        {"operations": 3},
        {"operations": [{"op": {}}]},
        {"operations": [{"topics": 3}]},
    ],
)
def test_what_is_no_plan_is_an_error(value: object) -> None:
    """An answer without operations is a failure, never "nothing to remember"."""
    with pytest.raises(ValidationError):
        Plan.model_validate(value)


@pytest.mark.parametrize("enabled", [("add",), ("add", "update"), OPERATION_NAMES])
def test_the_schema_names_only_what_is_enabled(enabled: tuple[str, ...]) -> None:
    """The schema that stands in the prompt offers the enabled operations and no other."""
    text = full_schema(plan_model(enabled))
    assert [f'"{name}"' in text for name in OPERATION_NAMES] == [name in enabled for name in OPERATION_NAMES]


def test_the_schema_is_one_that_strict_providers_take() -> None:
    """Every field is required and has no default; lists are bounded; the plain form says the same."""
    schema: dict[str, Any] = json.loads(full_schema(plan_model(OPERATION_NAMES)))
    one = schema["$defs"]["PlannedOperation"]
    assert schema["properties"]["operations"]["maxItems"] == MAX_PLANNED
    assert one["required"] == list(one["properties"]) == ["evidence", "memory_id", "op", "memory", "topics"]
    assert "default" not in str(plan_model(OPERATION_NAMES).model_json_schema())
    plain = plain_schema(plan_model(OPERATION_NAMES))
    assert plain is not None
    assert plain["properties"]["operations"]["items"]["required"] == one["required"]


def test_one_set_of_operations_is_one_model() -> None:
    """The schema is the same object each time, in whatever order it is asked for: providers cache grammars."""
    assert plan_model({"update", "add"}) is plan_model(["add", "update"])
    assert plan_model(("add",)).__name__ == "Plan"


def test_an_answer_beyond_the_schema_is_still_read() -> None:
    """Bounds are for providers that enforce them; an answer that exceeds them is for the guards to judge."""
    answer = {"operations": [{"op": "none"}] * (MAX_PLANNED + 1)}
    assert len(plan_model(("add",)).model_validate(answer).operations) == MAX_PLANNED + 1
