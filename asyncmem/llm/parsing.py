"""Reading a value out of what a model said. Pure: text in, a value or the reason out; bounded in time."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import AliasChoices, AliasPath, BaseModel

from .halves import mended
from .lenient import Broken, Budget, Cut, LenientReader, is_array, is_object
from .validating import Reading, validate

T = TypeVar("T", bound=BaseModel)

MAX_TEXT = 200_000
"""Characters of a reply that are read."""
_MAX_STARTS = 256
_MAX_WORK = 2_000_000
_MAX_UNWRAP = 3

_THOUGHT = r"(?:think|thinking|thought|reasoning|reflection)"
_THOUGHT_END = re.compile(rf"</{_THOUGHT}>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_THOUGHT_START = re.compile(rf"\s*(?:<{_THOUGHT}>|\[THINK\]|◁think▷)", re.IGNORECASE)
_START = re.compile(r"[{\[]")
_FENCE = re.compile(r"\A```[\w-]*+\s*+")
_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
_JSON = json.JSONDecoder(strict=False)
_SCHEMA_WORDS = frozenset({"type", "items", "anyOf", "$ref", "enum", "properties", "description", "title", "allOf"})
_NEVER_UNWRAPPED = frozenset({"$defs", "definitions", "schema", "json_schema", "example", "examples", "default"})
_ARGUMENTS = ("arguments", "parameters", "input")
_NO_ARGUMENTS = ("", "null", '""')


def read_arguments(text: str, schema: type[T]) -> Reading[T]:
    """The arguments of a call: as ``read_value``, but nothing at all, or nothing that is known, is an object too."""
    if text.strip() in _NO_ARGUMENTS:
        text = "{}"
    reading = read_value(text, schema)
    if reading.value is None and is_object(given := _decode(text)) and _names(schema).isdisjoint(given):
        return validate({}, schema)
    return reading


def read_value(text: str, schema: type[T], *, salvage: bool = False) -> Reading[T]:
    """The last object in the text that the schema accepts.

    Text around it, code fences, reasoning before it, and almost-JSON are all read. A model that echoes the schema,
    or an example, does so before it answers: so the last object wins, and an echo of the schema never does.

    Args:
        text: the reply.
        schema: what it must be.
        salvage: the reply was cut: keep the complete items of an unfinished list.
    """
    try:
        return _read(text[:MAX_TEXT].replace("\ufeff", "").strip(), schema, salvage=salvage)
    except RecursionError:  # how deep is too deep depends on how deep the caller's own stack is
        return Reading(problem="the reply nests too deep")


def _read(plain: str, schema: type[T], *, salvage: bool) -> Reading[T]:
    whole = _decode(_unfenced(plain))
    if isinstance(whole, str):
        plain = whole.strip()
        whole = _decode(plain)
    clean = mended if _SURROGATE.search(plain) else _same
    if isinstance(whole, (dict, list)):
        return _first([clean(whole)], schema, alone=True)
    answer = _after_thoughts(plain)
    if answer is None:
        return Reading(problem="the reply ended before it came to an answer")
    found, cut = _values(answer)
    reading = _first([clean(value) for value in reversed(found)], schema, alone=_is_alone(answer))
    if reading.value is None and salvage and isinstance(cut, (dict, list)) and cut:
        rest = _first([clean(cut)], schema, alone=True)
        return Reading(rest.value, rest.problem, rest.value is not None)
    return reading


def _same(value: Any) -> Any:
    return value


def _decode(text: str) -> Any:
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        return None


def _after_thoughts(text: str) -> str | None:
    ends = list(_THOUGHT_END.finditer(text))
    if ends:
        return text[ends[-1].end() :].strip()
    return None if _THOUGHT_START.match(text) else text


def _unfenced(text: str) -> str:
    """The text without a code fence around it."""
    fence = _FENCE.match(text)
    return text[fence.end() :].removesuffix("```").rstrip() if fence else text


def _is_alone(text: str) -> bool:
    return _unfenced(text)[:1] in ("[", "{")


def _values(text: str) -> tuple[list[Any], Any]:
    """Every object and array in the text, outermost ones only, in order; and the one that the text's end cuts."""
    found: list[Any] = []
    budget, work, at = Budget(), _MAX_WORK, 0
    for _ in range(_MAX_STARTS):
        start = _START.search(text, at)
        if start is None or work <= 0:
            break
        try:
            value, end = _JSON.raw_decode(text, start.start())
        except (ValueError, RecursionError) as error:
            work -= getattr(error, "pos", start.start() + 20_000) - start.start() + 1
            reader = LenientReader(text, start.start(), budget)
            try:
                value, end = reader.value(), reader.at
            except Broken:
                work -= reader.at - start.start()
                at = start.end()
                continue
            except Cut as cut:
                # all that follows stands inside the unfinished value: an object in there is data, not an answer
                return found, cut.value
        work -= end - start.start()
        found.append(value)
        at = end
    return found, None


def _first(values: list[Any], schema: type[T], *, alone: bool) -> Reading[T]:
    """The first of the values that fits: objects before bare lists."""
    problem = ""
    for value in values:
        if is_object(value):
            reading = _fit(value, schema, alone=alone)
            if reading.value is not None:
                return reading
            problem = problem or reading.problem
    for value in values:
        if is_array(value) and (alone or _is_telling(value)):
            reading = _fit_list(value, schema)
            if reading.value is not None:
                return reading
            problem = problem or reading.problem
    return Reading(problem=problem or "there was no JSON object of the required form in the reply")


def _is_telling(value: list[Any]) -> bool:
    """A list in the middle of prose that is an answer, not a citation such as [1]."""
    return bool(value) and all(isinstance(item, (str, dict)) for item in value)


def _fit_list(value: list[Any], schema: type[T]) -> Reading[T]:
    """A bare list, where the schema has one list field; or a list of nothing but the object."""
    if len(value) == 1 and is_object(value[0]) and (reading := _fit(value[0], schema)).value is not None:
        return reading
    names = [n for n, f in schema.model_json_schema().get("properties", {}).items() if f.get("type") == "array"]
    if len(schema.model_fields) != 1 or len(names) != 1:
        return Reading()
    return validate({names[0]: value}, schema)


def _fit(value: dict[str, Any], schema: type[T], depth: int = 0, *, alone: bool = False) -> Reading[T]:
    names = _names(schema)
    if _is_schema_echo(value, names):
        return Reading(problem="the reply repeated the schema: give values")
    if names & value.keys() or (alone and not value and not depth):
        return validate(value, schema)
    if depth < _MAX_UNWRAP:
        for inner in _inner(value):
            reading = _fit(inner, schema, depth + 1)
            if reading.value is not None:
                return reading
    return Reading(problem=f"the object has none of the fields {', '.join(sorted(names))}")


@lru_cache(maxsize=256)
def _names(schema: type[BaseModel]) -> frozenset[str]:
    """What its fields may be called in JSON: their names and aliases."""
    found = set(schema.model_fields)
    for field in schema.model_fields.values():
        alias = field.validation_alias
        for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            first = choice.path[0] if isinstance(choice, AliasPath) else choice
            found |= {first} if isinstance(first, str) else set()
    return frozenset(found)


def _is_schema_echo(value: Mapping[str, Any], names: frozenset[str]) -> bool:
    fields = value.get("properties")
    if "properties" in names or not is_object(fields):
        return False
    return all(is_object(field) and not _SCHEMA_WORDS.isdisjoint(field) for field in fields.values())


def _inner(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Objects that the value may be a mere wrapping of: a class name, ``properties``, a tool call."""
    for key, inner in value.items():
        if key in _NEVER_UNWRAPPED or (len(value) > 1 and key not in (*_ARGUMENTS, "properties")):
            continue
        unpacked = _decode(inner) if isinstance(inner, str) and key in _ARGUMENTS else inner
        if is_object(unpacked):
            yield unpacked
