"""The users' profiles: by hand, and read from conversations by the manager's model."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from weakref import WeakValueDictionary

from ..cleaning import clean_id
from ..errors import ConfigurationError, InvalidProfileError
from ..manager import MemoryManager
from ..messages import read_messages
from ..profile_values import ProfileChange, ProfileField, ProfileRecord, ProfileResult, UserProfile, Values
from .config import S_co, UserProfileConfig
from .merging import read, render, revised, updated, without, written
from .reading import Reading

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from ..store.profiles import Profiles

MANUAL = "manual"
P = TypeVar("P", bound=UserProfile)


class UserProfileStore(Generic[S_co]):
    """One profile a user, in typed fields.

    Args:
        manager: keeps the profiles in its database, and reads conversations with its model; stays the caller's to
            close.
        config: the fields, and how they are shown.

    Raises:
        ConfigurationError: ``manager`` or ``config`` is something else.
    """

    def __init__(self, manager: MemoryManager, config: UserProfileConfig[S_co] | None = None) -> None:
        if not isinstance(cast("object", manager), MemoryManager):
            raise ConfigurationError(f"expected a MemoryManager, not a {type(manager).__name__}")
        if not isinstance(cast("object", config), UserProfileConfig | None):
            raise ConfigurationError(f"expected a UserProfileConfig, not a {type(config).__name__}")
        self._manager = manager
        self._config: UserProfileConfig[S_co] = config or UserProfileConfig[Any]()
        self._users: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, user_id: str) -> S_co | None:
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

    async def set(self, user_id: str, profile: P) -> P:
        """Store a whole profile in the place of what there is; the profile.

        Raises:
            InvalidProfileError: it is not of the configured schema, or can't be stored.
        """
        if type(profile) is not self._config.schema:
            raise InvalidProfileError(f"expected a {self._config.schema.__name__}, not a {type(profile).__name__}")
        values = written(profile)
        await self._change(clean_id(user_id, "user_id"), lambda _: values)
        return profile

    async def update(self, user_id: str, /, **fields: object) -> S_co:
        """Give some fields new values and keep the rest; the profile as it is now. ``None`` unsets what may be so.

        Updates of different fields at the same time lose none of them.

        Raises:
            InvalidProfileError: there is no such field, or the whole doesn't fit the schema. Nothing was changed.
        """
        owner, schema = clean_id(user_id, "user_id"), self._config.schema
        values = await self._change(owner, lambda values: updated(schema, values, fields))
        return read(schema, values)

    async def change_fields(
        self, user_id: str, fields: Mapping[str, object], unset: Collection[str], cause: str
    ) -> tuple[S_co, bool]:
        """Like ``update``, under another cause, and with fields to be unset; the profile, and whether it changed."""
        owner, schema = clean_id(user_id, "user_id"), self._config.schema
        changed = False

        def make(values: Values) -> Values:
            nonlocal changed
            after = updated(schema, values, fields)
            for name in unset:
                after = without(schema, after, name)
            changed = after != values
            return after

        return read(schema, await self._change(owner, make, cause)), changed

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
        if not turns:
            return ProfileResult()
        store = await self._manager.opened()
        erasures, now = await store.captures.begun(owner), self._manager.settings.clock()
        lock = self.lock(owner)
        return await Reading(store, self._manager.llm, self._config, lock, owner, erasures, now).read(turns)

    # ------------------------------------------------------------------------------------------------ the steps

    async def _profiles(self) -> "Profiles":
        return (await self._manager.opened()).profiles

    async def _record(self, user_id: str) -> ProfileRecord | None:
        owner = clean_id(user_id, "user_id")
        return await (await self._profiles()).read(owner, self._config.stored_as)

    async def _change(self, owner: str, make: Callable[[Values], Values], cause: str = MANUAL) -> Values:
        """Change a profile by hand; its values then."""
        profiles, now, schema = await self._profiles(), self._manager.settings.clock(), self._config.schema
        values: Values = {}

        def step(record: ProfileRecord) -> ProfileRecord | None:
            nonlocal values
            values = make(record.values)
            return revised(schema, _readable(schema, record), values, cause=cause, now=now)

        async with self.lock(owner):
            await profiles.change(owner, self._config.stored_as, step, await profiles.begun(owner))
        return values

    def lock(self, owner: str) -> asyncio.Lock:
        """Of one process's writers for one user none has to try again."""
        return self._users.setdefault(owner, asyncio.Lock())


def _readable(schema: type[UserProfile], record: ProfileRecord) -> ProfileRecord:
    """The record, without values that don't fit the schema any more: ``set`` mends it."""
    try:
        read(schema, record.values)
    except InvalidProfileError:
        return ProfileRecord({}, record.fields, record.history, record.revision)
    return record
