"""Pydantic models as the plain JSON schemas that providers take, and as words in a prompt."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, RootModel, create_model
from pydantic.errors import PydanticUserError

from asyncmem.errors import InvalidInputError

from .chat import WireMessage
from .lenient import is_array, is_object

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_MAX_NAME = 64
_DROPPED = ("title", "default", "examples")
_RULE = (
    "Answer with exactly one JSON object that matches the JSON schema below, and nothing else: no Markdown, no"
    " comments, no explanation. Give values, do not repeat the schema.\nJSON schema: "
)


class Inexpressible(Exception):  # noqa: N818  raised and caught in this module only
    """The schema needs more than the plain keywords."""


def check_schema(schema: object) -> None:
    """Check that a model can be asked for it.

    Raises:
        InvalidInputError: it is no pydantic model, not one of fields, or has no JSON schema.
    """
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        given = schema.__name__ if isinstance(schema, type) else f"a {type(schema).__name__}"
        raise InvalidInputError(f"expected a pydantic model class, not {given}")
    if schema is BaseModel:
        raise InvalidInputError("expected a pydantic model class with fields, not BaseModel itself")
    if issubclass(schema, RootModel):
        raise InvalidInputError(f"{schema.__name__} is a RootModel: providers give objects, so use one with fields")
    full_schema(schema)


@lru_cache(maxsize=256)
def full_schema(schema: type[BaseModel]) -> str:
    """The schema as JSON text for the prompt.

    Raises:
        InvalidInputError: pydantic knows no JSON schema for it.
    """
    try:
        whole = schema.model_json_schema()
    except PydanticUserError as error:
        raise InvalidInputError(f"{schema.__name__} has no JSON schema: {error.message}") from None
    return json.dumps(_without_titles(whole), separators=(",", ":"), ensure_ascii=False)


def safe_name(schema: type[BaseModel]) -> str:
    """The class's name in the letters that providers take in a format: ``Box[int]`` has others."""
    return _UNSAFE.sub("_", schema.__name__).strip("_")[:_MAX_NAME] or "Schema"


@lru_cache(maxsize=256)
def safely_named(schema: type[BaseModel]) -> type[BaseModel]:
    """The class under a name that providers take: litellm sends a class's own one."""
    name = safe_name(schema)
    if name == schema.__name__:
        return schema
    try:
        return create_model(name, __base__=schema, __doc__=schema.__doc__, __module__=schema.__module__)
    except TypeError:
        return schema  # its __init_subclass__ wants arguments that nobody knows


def _without_titles(node: Any, *, names: bool = False) -> Any:
    if is_object(node):
        return {
            key: _without_titles(value, names=not names and key in ("properties", "$defs"))
            for key, value in node.items()
            if names or key not in _DROPPED
        }
    if is_array(node):
        return [_without_titles(item) for item in node]
    return node


@lru_cache(maxsize=256)
def plain_schema(schema: type[BaseModel]) -> dict[str, Any] | None:
    """The schema in ``type``, ``properties``, ``required``, ``items`` and ``enum`` alone.

    ``None`` when it can't be said in these: it refers to itself, has a union of objects, or free keys.
    """
    whole = schema.model_json_schema()
    try:
        return _plain(whole, whole.get("$defs", {}), ())
    except Inexpressible:
        return None


def _plain(node: Mapping[str, Any], defs: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        if name in inside:
            raise Inexpressible(name)
        return _plain(defs[name], defs, (*inside, name))
    if "anyOf" in node:
        return _union(node["anyOf"], defs, inside)
    if "enum" in node or "const" in node:
        return _enum(node)
    match node.get("type"):
        case "object" if "properties" in node and not isinstance(node.get("additionalProperties"), dict):
            fields = {name: _plain(field, defs, inside) for name, field in node["properties"].items()}
            return {"type": "object", "properties": fields, "required": list(node.get("required", []))}
        case "array" if "items" in node:
            return {"type": "array", "items": _plain(node["items"], defs, inside)}
        case "string" | "integer" | "number" | "boolean" | "null" as kind:
            return {"type": kind}
        case _:
            raise Inexpressible(str(node.get("type")))


def _enum(node: Mapping[str, Any]) -> dict[str, Any]:
    values = node.get("enum", [node.get("const")])
    return {"type": node["type"], "enum": values} if "type" in node else {"enum": values}


def _union(options: Sequence[Mapping[str, Any]], defs: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    """``T | None`` as a list of types; other unions can't be said."""
    some = [option for option in options if option.get("type") != "null"]
    if len(some) != 1:
        raise Inexpressible("anyOf")
    only = _plain(some[0], defs, inside)
    if "enum" in only:
        only = {**only, "enum": [*only["enum"], None]}
    return {**only, "type": [only["type"], "null"]} if isinstance(only.get("type"), str) else only


def with_schema(messages: Sequence[Mapping[str, Any]], schema: type[BaseModel]) -> list[WireMessage]:
    """A copy of the messages, the schema put into the system message.

    It stands there at every tier: some providers ignore a ``response_format`` silently, and some demand the word
    JSON. It comes at the end of the first message, so that a prompt's fixed part stays a cacheable prefix.
    """
    rule = _RULE + full_schema(schema)
    turns = [dict(message) for message in messages]
    if turns and turns[0].get("role") == "system" and isinstance(turns[0].get("content"), str):
        turns[0]["content"] = f"{turns[0]['content']}\n\n{rule}"
        return turns
    return [{"role": "system", "content": rule}, *turns]


def texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every piece of text in the messages, the arguments of tool calls included."""
    found: list[str] = []
    for message in messages:
        for call in message.get("tool_calls") or ():
            told: Mapping[str, Any] = call.get("function") or call.get("custom") or {}
            found.append(str(told.get("arguments") or told.get("input") or ""))
        content = message.get("content")
        if isinstance(content, str):
            found.append(content)
        elif is_array(content):
            found += [str(part.get("text", "")) for part in content if is_object(part)]
    return found
