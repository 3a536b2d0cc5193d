"""From one state of a profile to the next (pure): every state is validated as a whole."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from ..errors import InvalidProfileError
from ..profile_values import ProfileChange, ProfileField, ProfileRecord, UserProfile, Values
from ..prompts import escape, estimate_tokens
from ..values import reject

MAX_PROFILE = 65_536
"""Characters of a profile as JSON: with its history it stays far below MongoDB's 16 MB."""
HISTORY = 64
"""Changes that are kept."""
P = TypeVar("P", bound=UserProfile)
OPENING, CLOSING = "<user_profile>", "</user_profile>"


def read(schema: type[P], values: Values) -> P:
    """The profile of stored values. Fields that the schema has no more are left out.

    Raises:
        InvalidProfileError: they don't fit the schema.
    """
    known = {name: value for name, value in values.items() if name in schema.model_fields}
    try:
        return schema.model_validate_json(json.dumps(known))
    except ValidationError as error:
        raise reject(InvalidProfileError, error, "profile") from None


def written(profile: UserProfile) -> Values:
    """The fields of a profile that are set, as they are stored.

    Raises:
        InvalidProfileError: it is too large, or JSON can't hold it.
    """
    try:
        text = profile.model_dump_json(exclude_unset=True)
    except PydanticSerializationError:
        raise InvalidProfileError("the profile holds something that JSON can't") from None
    if len(text) > MAX_PROFILE:
        raise InvalidProfileError(f"the profile has {len(text):,} characters: at most {MAX_PROFILE:,} are allowed")
    values: Values = json.loads(text)
    if read(type(profile), values) != profile:
        raise InvalidProfileError("the profile would come back from the database as another: JSON can't hold it")
    return values


def updated(schema: type[UserProfile], values: Values, fields: Mapping[str, object]) -> Values:
    """The values with other ones in some fields.

    Raises:
        InvalidProfileError: there is no such field, or the whole doesn't fit the schema.
    """
    unknown = sorted(set(fields) - set(schema.model_fields))
    if unknown:
        known = ", ".join(schema.model_fields)
        raise InvalidProfileError(f"{schema.__name__} has no field {unknown[0]!r}, but it has {known}")
    before = read(schema, values)
    kept = {name: getattr(before, name) for name in before.model_fields_set}
    try:
        return written(schema.model_validate({**kept, **fields}))
    except ValidationError as error:
        raise reject(InvalidProfileError, error, "profile") from None


def with_json(schema: type[UserProfile], values: Values, field: str, value: JsonValue) -> Values:
    """The values with one field as a model gave it.

    Raises:
        InvalidProfileError: the whole doesn't fit the schema.
    """
    return written(read(schema, {**values, field: value}))


def without(schema: type[UserProfile], values: Values, field: str) -> Values:
    """The values with a field unset: as it is in an empty profile."""
    return written(read(schema, {name: value for name, value in values.items() if name != field}))


def revised(
    schema: type[UserProfile],
    record: ProfileRecord,
    values: Values,
    *,
    cause: str,
    now: datetime,
    evidence: Mapping[str, str | None] | None = None,
    guard: bytes | None = None,
) -> ProfileRecord | None:
    """The next revision of a record; ``None`` if nothing is another. ``guard`` tells that it was made."""
    before, after = _whole(read(schema, record.values)), _whole(read(schema, values))
    told = evidence or {}
    changes = [
        ProfileChange(name, before[name], after[name], now, cause, told.get(name), record.revision + 1)
        for name in after
        if before[name] != after[name]
    ]
    if not changes:
        return None
    sources = {c.field: ProfileField(now, cause, c.evidence) for c in changes}
    return replace(
        record,
        values=values,
        fields={**record.fields, **sources},
        history=(*record.history, *changes)[-HISTORY:],
        revision=record.revision + 1,
        guards=record.guards if guard is None else (*record.guards, guard)[-HISTORY:],
    )


def _whole(profile: UserProfile) -> Values:
    values: Values = json.loads(profile.model_dump_json())
    return values


def render(profile: UserProfile, max_tokens: int) -> str:
    """The profile as a ``<user_profile>`` block, a line a field, as far as it fits; "" if it is empty."""
    room = max_tokens - estimate_tokens(f"{OPENING}\n{CLOSING}")
    lines: list[str] = []
    for name, value in _whole(profile).items():
        if name not in profile.model_fields_set or value in (None, "", [], {}):
            continue
        line = f"- {name}: {escape(' '.join(shown(value).split()))}"
        room -= estimate_tokens(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join([OPENING, *lines, CLOSING]) if lines else ""


def shown(value: JsonValue) -> str:
    """A value as a reader takes it: text bare, lists of text with commas, the rest as JSON."""
    match value:
        case str():
            return value
        case list() if all(isinstance(item, str) for item in value):
            return ", ".join(map(str, value))
        case _:
            return json.dumps(value, ensure_ascii=False)
