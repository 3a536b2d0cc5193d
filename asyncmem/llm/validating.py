"""Checking what was read against the schema, slips of the pen mended. Pure."""

import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

T = TypeVar("T", bound=BaseModel)
_MAX_PROBLEM = 600


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What came of reading one reply.

    Attributes:
        value: the validated value; ``None`` when there was none.
        problem: what was wrong, in words for the model; it quotes no value.
        partial: saved from a reply that was cut: complete items only.
    """

    value: T | None = None
    problem: str = ""
    partial: bool = False


def validate(value: dict[str, Any], schema: type[T]) -> Reading[T]:
    """The value as an instance of the schema, or what is wrong with it."""
    try:
        return Reading(_validated_or_mended(value, schema))
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc'])) or 'object'}: {e['msg']}" for e in _errors(error)[:5]]
        return Reading(problem="; ".join(lines)[:_MAX_PROBLEM])
    except _OwnCheckError as error:
        return Reading(problem=str(error))


def _validated_or_mended(value: dict[str, Any], schema: type[T]) -> T:
    try:
        return _validated(value, schema)
    except ValidationError as error:
        mended = _mend(value, error)
        if mended is None:
            raise
    return _validated(mended, schema)


class _OwnCheckError(Exception):
    """A validator of the schema's own raised what pydantic doesn't take for a refusal."""


def _validated(value: dict[str, Any], schema: type[T]) -> T:
    """The value as an instance.

    Raises:
        ValidationError: it is none.
        _OwnCheckError: a validator failed over it.
    """
    try:
        try:
            return schema.model_validate(value)
        except ValidationError as error:
            refused = error
        try:
            # strict fields take dates, enumerations and tuples as JSON has them, not as Python would
            return schema.model_validate_json(json.dumps(value))
        except ValidationError:
            pass
    except RecursionError:
        raise
    except Exception as error:  # noqa: BLE001  what a validator raises depends on what the model said
        raise _OwnCheckError(f"object: a check of it failed ({type(error).__name__})") from None
    raise refused


def _errors(error: ValidationError) -> list[Any]:
    return error.errors(include_url=False, include_context=False, include_input=False)


_REMOVE = object()


def _mend(value: dict[str, Any], error: ValidationError) -> dict[str, Any] | None:
    """The value with slips of the pen corrected, its meaning left alone; ``None`` if there was none.

    An id as a number or as ``{"id": …}``, a list that is null or one lone item, nulls among strings, extra fields.
    """
    mended = json.loads(json.dumps(value))
    done = False
    # from the last to the first, so that removing an item moves none that is still to be looked at
    for problem in reversed(error.errors(include_url=False, include_context=False)):
        better = _better(problem["type"], problem["input"], problem["loc"])
        if better is not None and _put(mended, problem["loc"], better[0]):
            done = True
    return mended if done else None


def _better(kind: str, given: Any, loc: tuple[int | str, ...]) -> tuple[Any] | None:
    """What to put in the place of a value that was refused, in a tuple of one."""
    match kind, given:
        case "extra_forbidden", _:
            return (_REMOVE,)
        case (("list_type" | "tuple_type" | "set_type"), None):
            return ([],)
        case (("list_type" | "tuple_type" | "set_type"), (str() | int() | dict())) if not isinstance(given, bool):
            return ([given],)
        case "string_type", (None | bool()) if loc and isinstance(loc[-1], int):
            return (_REMOVE,)
        case "string_type", (int() | float()) if not isinstance(given, bool):
            return (str(given),)
        case "string_type", {"id": (str() | int()) as only}:
            return (str(only),)
        case _:
            return None


def _put(root: Any, loc: tuple[int | str, ...], value: Any) -> bool:
    """Whether the value could be put at that place."""
    try:
        for step in loc[:-1]:
            root = root[step]
        if value is _REMOVE:
            del root[loc[-1]]
        else:
            root[loc[-1]] = value
    except (KeyError, IndexError, TypeError):
        return False
    return True
