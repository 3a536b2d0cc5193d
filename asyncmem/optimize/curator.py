"""Keeping memories tidy without a model: what is too old or too many goes, and duplicates are folded."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from ..errors import AsyncMemError, InvalidQueryError, ManagerClosedError
from ..settings import Settings
from ..tasks import Tasks
from .optimizer import Optimizer
from .pruning import clean_flags, clean_limits, to_prune
from .results import CurationResult
from .strategy import DeduplicateStrategy

if TYPE_CHECKING:
    from ..store.store import MemoryStore

_log = logging.getLogger(__name__)
USERS = 500
"""Users whose ids are read at once."""


@dataclass(frozen=True, slots=True)
class Curation:
    """What a manager gives its curator to work with.

    Attributes:
        store: opens the manager's store, or gives it.
        owner: the user that a call means.
        optimizer: carries out strategies.
        settings: the clock.
        tasks: the manager's own tasks.
    """

    store: Callable[[], Awaitable["MemoryStore"]]
    owner: Callable[[str | None], str]
    optimizer: Optimizer
    settings: Settings
    tasks: Tasks


class Curated(Protocol):
    """What has memories to be curated: a ``MemoryManager``."""

    @property
    def curation(self) -> Curation:
        """What its curator works with."""
        ...


class Curator:
    """Prunes and deduplicates memories, now or on a schedule. Nothing is lost at once: see each verb.

    Args:
        manager: whose memories, and whose tasks a schedule runs in.
    """

    def __init__(self, manager: Curated) -> None:
        self._with = manager.curation

    async def prune(
        self,
        *,
        user_id: str | None = None,
        max_age: timedelta | None = None,
        max_count: int | None = None,
        keep_pinned: bool = True,
        dry_run: bool = False,
    ) -> CurationResult:
        """Remove a user's memories that are too old or too many; what was removed.

        Each is removed only if it still is as it was read. ``revert`` brings one back while the archive keeps it.

        Args:
            user_id: whose.
            max_age: what was last updated longer ago goes.
            max_count: so many stay, those updated last.
            keep_pinned: pinned memories never go; they count all the same.
            dry_run: only say what would go.

        Raises:
            InvalidQueryError: neither limit is given, or an argument can't be used.
        """
        owner = self._with.owner(user_id)
        age, count = clean_limits(max_age, max_count)
        clean_flags(keep_pinned=keep_pinned, dry_run=dry_run)
        store = await self._with.store()
        memories = await store.swaps.snapshot(owner)
        going = to_prune(memories, self._with.settings.clock(), age, count, keep_pinned=keep_pinned)
        gone = going if dry_run or not going else await store.remove.several(owner, going, "prune")
        return CurationResult(gone, owner, dry_run, len(memories) - len(gone))

    async def deduplicate(self, *, user_id: str | None = None, dry_run: bool = False) -> CurationResult:
        """Fold a user's exact and near duplicates; what was removed. ``undo_optimization`` takes it back.

        Memories that differ in a number, a date, a name, a negation or a quotation are no duplicates.

        Raises:
            OptimizationConflictError: this user's memories are being optimized, or one was deleted meanwhile.
        """
        owner = self._with.owner(user_id)
        clean_flags(dry_run=dry_run)
        store = await self._with.store()
        result = await self._with.optimizer.optimize(store, owner, DeduplicateStrategy(), apply=not dry_run)
        left = len(result.kept) + len(result.memories)
        return CurationResult(result.retired, owner, dry_run, left, result.run_id)

    async def users(self) -> AsyncIterator[str]:
        """Every user who has memories, page by page: for curating all of them.

        Example:
            ``async for user_id in curator.users(): await curator.prune(user_id=user_id, max_count=500)``
        """
        store, last = await self._with.store(), None
        while page := await store.read.users(USERS, last):
            for user_id in page:
                yield user_id
            last = page[-1]

    def every(
        self,
        interval: timedelta,
        *,
        user_id: str | None = None,
        max_age: timedelta | None = None,
        max_count: int | None = None,
        keep_pinned: bool = True,
        deduplicate: bool = False,
    ) -> "asyncio.Task[None]":
        """Curate again and again, beside everything else, until the manager is closed or the task is cancelled.

        A round that fails for one user is logged, without a word of any memory, and goes on with the next.

        Args:
            interval: from the end of a round to the next one; the first begins at once.
            user_id: whose memories; ``None`` means those of every user.
            max_age: see ``prune``.
            max_count: see ``prune``.
            keep_pinned: see ``prune``.
            deduplicate: fold duplicates too, before pruning.

        Raises:
            InvalidQueryError: the interval is no positive timedelta, there is nothing to do, or a limit can't be used.
            ManagerClosedError: the manager is closed.
        """
        if not isinstance(interval, timedelta) or interval <= timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidQueryError("interval must be a positive timedelta, such as timedelta(days=1)")
        clean_flags(keep_pinned=keep_pinned, deduplicate=deduplicate)
        prunes = max_age is not None or max_count is not None
        if prunes or not deduplicate:
            clean_limits(max_age, max_count)
        owner = None if user_id is None else self._with.owner(user_id)

        async def one(user: str) -> None:
            try:
                if deduplicate:
                    await self.deduplicate(user_id=user)
                if prunes:
                    await self.prune(user_id=user, max_age=max_age, max_count=max_count, keep_pinned=keep_pinned)
            except ManagerClosedError:
                raise
            except AsyncMemError as error:
                _log.warning("curating a user failed with %s: the next round tries again", type(error).__name__)

        async def rounds() -> None:
            while True:
                await self._round(owner, one)
                await asyncio.sleep(interval.total_seconds())

        return self._with.tasks.start("asyncmem curator", rounds)

    async def _round(self, owner: str | None, one: Callable[[str], Awaitable[None]]) -> None:
        if owner is not None:
            await one(owner)
            return
        try:
            async for user in self.users():
                await one(user)
        except ManagerClosedError:
            raise
        except AsyncMemError as error:
            _log.warning("curating stopped with %s: the next round tries again", type(error).__name__)
