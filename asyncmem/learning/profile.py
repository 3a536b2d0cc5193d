"""The users' profiles: by hand, and read from conversations by the manager's model."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, cast
from weakref import WeakValueDictionary

import anyio.to_thread

from ..cleaning import clean_id
from ..errors import ConfigurationError, InvalidProfileError
from ..manager import MemoryManager
from ..messages import read_messages
from ..profile_values import ProfileChange, ProfileField, ProfileRecord, ProfileResult, UserProfile, Values
from ..types import Skipped
from ..usage import Usage
from ..windows import Window, windows
from .config import UserProfileConfig
from .extracting import Judge, PlannedChange, ProfilePlan, plan_model, profile_prompt, readings, turns_of
from .merging import read, render, revised, updated, with_json, without, written

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from ..store.profiles import Profiles

REPLY_TOKENS = 1_200
MISFIT = "the value does not fit the field"
MANUAL, EXTRACT = "manual", "extract"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One field's change that the user's words carry."""

    field: str
    evidence: str
    value: str | None
    """As the model wrote it; ``None`` unsets."""


@dataclass(slots=True)
class _Outcome:
    changes: list[ProfileChange] = field(default_factory=list[ProfileChange])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    usage: Usage = field(default_factory=Usage)


class UserProfileStore:
    """One profile a user, in typed fields.

    Args:
        manager: keeps the profiles in its database, and reads conversations with its model; stays the caller's to
            close.
        config: the fields, and how they are shown.

    Raises:
        ConfigurationError: ``manager`` or ``config`` is something else.
    """

    def __init__(self, manager: MemoryManager, config: UserProfileConfig | None = None) -> None:
        if not isinstance(cast("object", manager), MemoryManager):
            raise ConfigurationError(f"expected a MemoryManager, not a {type(manager).__name__}")
        if not isinstance(cast("object", config), UserProfileConfig | None):
            raise ConfigurationError(f"expected a UserProfileConfig, not a {type(config).__name__}")
        self._manager = manager
        self._config = config or UserProfileConfig()
        self._users: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, user_id: str) -> UserProfile | None:
        """A user's profile, an instance of the configured schema; ``None`` if there is none.

        Raises:
            InvalidProfileError: what is stored does not fit the schema any more.
        """
        record = await self._record(user_id)
        return None if record is None else read(self._config.schema, record.values)

    async def fields(self, user_id: str) -> dict[str, ProfileField]:
        """When, by what and from which words each field was last changed."""
        record = await self._record(user_id)
        return {} if record is None else record.fields

    async def history(self, user_id: str) -> list[ProfileChange]:
        """The newest changes of a user's profile, oldest first."""
        record = await self._record(user_id)
        return [] if record is None else list(record.history)

    async def context(self, user_id: str) -> str:
        """The profile as a ``<user_profile>`` block for a prompt; "" if there is nothing in it."""
        profile = await self.get(user_id)
        return "" if profile is None else render(profile, self._config.max_tokens)

    async def set(self, user_id: str, profile: UserProfile) -> UserProfile:
        """Store a whole profile in the place of what there is; the profile.

        Raises:
            InvalidProfileError: it is not of the configured schema, or can't be stored.
        """
        if type(profile) is not self._config.schema:
            raise InvalidProfileError(f"expected a {self._config.schema.__name__}, not a {type(profile).__name__}")
        values = written(profile)
        await self._change(clean_id(user_id, "user_id"), lambda _: values)
        return profile

    async def update(self, user_id: str, /, **fields: object) -> UserProfile:
        """Give some fields new values and keep the rest; the profile as it is now. ``None`` unsets what may be so.

        Updates of different fields at the same time lose none of them.

        Raises:
            InvalidProfileError: there is no such field, or the whole doesn't fit the schema. Nothing was changed.
        """
        owner, schema = clean_id(user_id, "user_id"), self._config.schema
        values = await self._change(owner, lambda values: updated(schema, values, fields))
        return read(schema, values)

    async def delete(self, user_id: str) -> bool:
        """Delete a user's profile with its history; whether there was one."""
        owner = clean_id(user_id, "user_id")
        return await (await self._profiles()).delete(owner, self._config.stored_as)

    async def extract(self, messages: Sequence[object], user_id: str) -> ProfileResult:
        """The manager's model reads what was said and decides which fields change; what came of it.

        Each change needs the user's own words. One that they don't carry, or that doesn't fit its field, is skipped.

        Args:
            messages: a conversation, as ``create_user_memories`` takes it.
            user_id: whose profile.

        Raises:
            InvalidMessageError: a message can't be read.
            ModelError: the model could not be asked. What it decided on earlier windows of a long conversation stays.
        """
        owner, turns = clean_id(user_id, "user_id"), read_messages(None, messages)
        outcome = _Outcome()
        if turns:
            profiles = await self._profiles()
            erasures = await profiles.begun(owner)
            for window in windows(turns):
                await self._read(window, owner, erasures, outcome)
        return ProfileResult(outcome.changes, outcome.skipped, outcome.usage)

    # ------------------------------------------------------------------------------------------------ the steps

    async def _profiles(self) -> "Profiles":
        return (await self._manager.opened()).profiles

    async def _record(self, user_id: str) -> ProfileRecord | None:
        owner = clean_id(user_id, "user_id")
        return await (await self._profiles()).read(owner, self._config.stored_as)

    async def _change(self, owner: str, make: Callable[[Values], Values]) -> Values:
        """Change a profile by hand; its values then."""
        profiles, now, schema = await self._profiles(), self._manager.settings.clock(), self._config.schema
        values: Values = {}

        def step(record: ProfileRecord) -> ProfileRecord | None:
            nonlocal values
            values = make(record.values)
            return revised(schema, _readable(schema, record), values, cause=MANUAL, now=now)

        async with self._lock(owner):
            await profiles.change(owner, self._config.stored_as, step, await profiles.begun(owner))
        return values

    def _lock(self, owner: str) -> asyncio.Lock:
        """Of one process's writers for one user none has to try again."""
        return self._users.setdefault(owner, asyncio.Lock())

    async def _read(self, window: Window, owner: str, erasures: int, outcome: _Outcome) -> None:
        schema, now = self._config.schema, self._manager.settings.clock()
        record = await self._record(owner) or ProfileRecord()
        prompt = profile_prompt(schema, record.values, window, now, self._config.instructions)
        plan = plan_model(tuple(schema.model_fields))
        reply = await self._manager.llm.structured(prompt, plan, max_tokens=REPLY_TOKENS)
        outcome.usage += reply.usage
        judge = partial(_judged, schema, record.values, reply.value, Judge(schema, turns_of(window, now)))
        wanted, skipped = await anyio.to_thread.run_sync(judge)  # words of a long conversation take their time
        outcome.skipped += skipped
        if wanted:
            await self._apply(owner, wanted, now, erasures, outcome)

    async def _apply(
        self, owner: str, wanted: Sequence[_Wanted], now: datetime, erasures: int, outcome: _Outcome
    ) -> None:
        schema, words = self._config.schema, {want.field: want.evidence for want in wanted}
        known = 0

        def step(record: ProfileRecord) -> ProfileRecord | None:
            nonlocal known
            known, values = record.revision, record.values
            for want in wanted:
                values = _with(schema, values, want) or values
            return revised(schema, record, values, cause=EXTRACT, now=now, evidence=words)

        async with self._lock(owner):
            made = await (await self._profiles()).change(owner, self._config.stored_as, step, erasures)
        if made is not None:
            outcome.changes += [change for change in made.history if change.revision > known]


def _readable(schema: type[UserProfile], record: ProfileRecord) -> ProfileRecord:
    """The record, without values that don't fit the schema any more: ``set`` mends it."""
    try:
        read(schema, record.values)
    except InvalidProfileError:
        return ProfileRecord({}, record.fields, record.history, record.revision)
    return record


def _with(schema: type[UserProfile], values: Values, want: _Wanted) -> Values | None:
    """The values with a change in them; ``None`` if they don't fit then."""
    if want.value is None:
        with suppress(InvalidProfileError):
            return without(schema, values, want.field)
        return None
    for value in readings(want.value):
        with suppress(InvalidProfileError):
            return with_json(schema, values, want.field, value)
    return None


def _judged(
    schema: type[UserProfile], values: Values, plan: ProfilePlan, judge: Judge
) -> tuple[list[_Wanted], list[Skipped]]:
    """What of a plan may be applied, each field once, and the rest with the reasons."""
    wanted: dict[str, _Wanted] = {}
    skipped: list[Skipped] = []
    for planned in plan.changes:
        if planned.field not in wanted:
            found, reason = _weighed(schema, values, planned, judge)
            if found is not None:
                wanted[planned.field] = found
            elif reason:
                skipped.append(Skipped(f"{planned.action} {planned.field}", reason))
    return list(wanted.values()), skipped


def _weighed(
    schema: type[UserProfile], values: Values, planned: PlannedChange, judge: Judge
) -> tuple[_Wanted | None, str]:
    name, before = planned.field, values.get(planned.field)
    want = _Wanted(name, "", planned.value if planned.action == "set" else None)
    made = _with(schema, values, want)
    if made is None:
        return None, MISFIT
    after = made.get(name)
    if after == before:
        return None, ""  # it is so already
    if after is None:
        words, reason = judge.unset(name, planned.evidence, before), "the user does not take it back"
    else:
        words, reason = judge.set(planned.evidence, before, after)
    return (None, reason) if words is None else (_Wanted(name, words, want.value), "")
