"""Conversations read for profiles, each once: now, or when a worker takes them from the queue."""

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import anyio.to_thread

from ..capturing import Carried
from ..fingerprints import conversation_prints
from ..manager import MemoryManager
from ..messages import Turn
from ..modes import clean_mode
from ..packing import Talk, fold
from ..profile_values import ProfileResult
from ..types import Scope, Skipped
from .config import UserProfileConfig
from .profile import UserProfileStore
from .reading import Reading

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from ..store.store import MemoryStore

REPEATED = "it was captured before"


class ProfileCapturer:
    """Reads conversations for one manager's profiles of one schema: those of one user one after the other.

    Args:
        manager: keeps the profiles.
        profiles: writes them.
        config: their fields.
    """

    def __init__(self, manager: MemoryManager, profiles: UserProfileStore[Any], config: UserProfileConfig[Any]) -> None:
        self._manager = manager
        self._profiles = profiles
        self._config = config
        self._users: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def capture(self, turns: Sequence[Turn], scope: Scope, key: bytes | None) -> ProfileResult:
        """Read a conversation now; what came of it. The same again does nothing.

        Args:
            turns: what was said; not empty.
            scope: whose profile.
            key: the fingerprint of its idempotency key.
        """
        store = await self._manager.opened()
        said = self._manager.settings.clock()
        async with self._users.setdefault(scope.user_id, asyncio.Lock()):
            erasures = await store.captures.begun(scope.user_id)
            prints = conversation_prints(scope, turns)
            mark = key or prints[-1]
            talk = Talk(turns, scope, prints, mark, said, key, clean_mode(self._config.mode))
            result: ProfileResult = (await self._carry_out(store, [talk], erasures)).result
            return result

    async def carry_out(
        self,
        store: "MemoryStore",
        talks: Sequence[Talk],
        erasures: int,
        turn: int,  # noqa: ARG002  only memories tell earlier workers from later ones
    ) -> Carried:
        """Read scheduled conversations of one user, as many of them as fold into one."""
        async with self._users.setdefault(talks[0].scope.user_id, asyncio.Lock()):
            return await self._carry_out(store, talks, erasures)

    async def carried_out(self, store: "MemoryStore", talk: Talk, turn: int) -> None:
        """What came of a conversation that was read already: reading it again finds that, nothing else does."""

    async def _carry_out(self, store: "MemoryStore", talks: Sequence[Talk], erasures: int) -> Carried:
        first = talks[0]
        owner, prints = first.scope.user_id, {p for talk in talks for p in (*talk.prints, talk.mark)}
        ours = {self._print(p): p for p in prints}
        known = {ours[p] for p in await store.captures.known(owner, sorted(ours))}
        if first.mark in known:
            return Carried(1, ProfileResult(skipped=[Skipped("capture", REPEATED)], repeated=True))
        folded = await anyio.to_thread.run_sync(fold, talks, known)
        name = self._print(first.guard).hex()
        reading = Reading(
            *(store, self._manager.llm, self._config, self._profiles.lock(owner), owner, erasures, first.said),
            mode=first.mode,
            capture=name,
        )
        result = await reading.read(folded.turns, folded.known)
        # last: a reading that was left half-way is made again, and finds what it wrote
        await store.captures.remember(owner, name, [self._print(p) for p in folded.prints], erasures)
        return Carried(folded.count, result)

    def _print(self, said: bytes) -> bytes:
        """The fingerprint of what was said as it was read for this profile, not for memories."""
        return blake2b(f"profile:{self._config.stored_as}:{said.hex()}".encode(), digest_size=16).digest()
