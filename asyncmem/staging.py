"""What a capture has decided so far, and how the user's memories look with it (pure)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from .operations import Add, Clear, Delete, Grounded, Update
from .types import UserMemory


class Staged:
    """Operations of several windows, made into one list: each memory is changed once.

    Args:
        existing: what is known of the user, oldest update first.
        now: when the new ones are made.

    Attributes:
        dropped: additions and updates that a clear after them undid.
    """

    def __init__(self, existing: Sequence[UserMemory], now: datetime) -> None:
        self._now = now
        self._memories = {str(m.memory_id): m for m in existing}
        self._operations: dict[str, Grounded] = {}
        self._added: set[str] = set()
        self.dropped: list[Grounded] = []

    @property
    def memories(self) -> list[UserMemory]:
        """The memories as they will be. Those that are not stored yet have ids that hold in here only."""
        return list(self._memories.values())

    @property
    def operations(self) -> list[Grounded]:
        """What is to be applied, in order."""
        return list(self._operations.values())

    def take(self, grounded: Grounded) -> bool:
        """Add a decision, which may be about a memory that an earlier one made; whether its memory is still there."""
        if isinstance(grounded.operation, Update | Delete) and grounded.operation.memory_id not in self._memories:
            return False
        match grounded.operation:
            case Add() as add:
                self._add(add, grounded)
            case Update() as update:
                self._update(update, grounded)
            case Delete(memory_id=memory_id):
                del self._memories[memory_id]
                self._operations.pop(memory_id, None)
                if memory_id not in self._added:
                    self._operations[memory_id] = grounded
            case Clear():  # pragma: no branch  there are no others
                self._memories.clear()
                self.dropped += [g for g in self._operations.values() if isinstance(g.operation, Add | Update)]
                self._operations = {"": grounded}
        return True

    def _add(self, add: Add, grounded: Grounded) -> None:
        name = f"new {len(self._added) + 1}"  # no stored id: the store's have no space
        while name in self._memories:
            name += "+"
        self._added.add(name)
        self._memories[name] = UserMemory(
            memory=add.memory, memory_id=name, topics=list(add.topics), created_at=self._now
        )
        self._operations[name] = grounded

    def _update(self, update: Update, grounded: Grounded) -> None:
        before = self._memories.pop(update.memory_id)
        topics = before.topics if update.topics is None else list(update.topics)
        self._memories[update.memory_id] = before.model_copy(update={"memory": update.memory, "topics": topics})
        earlier = self._operations.get(update.memory_id)
        if earlier is None:
            self._operations[update.memory_id] = grounded
            return
        first = earlier.operation
        assert isinstance(first, Add | Update), "a memory that was removed is not shown again"
        evidence = " … ".join(dict.fromkeys(e for e in (first.evidence, update.evidence) if e)) or None
        merged = replace(
            first,
            memory=update.memory,
            evidence=evidence,
            suspect=first.suspect or update.suspect,
            sources=tuple(sorted({*first.sources, *update.sources})),
        )
        if update.topics is not None:
            merged = replace(merged, topics=update.topics)
        self._operations[update.memory_id] = Grounded(
            merged,
            earlier.prints | grounded.prints,
            _latest(earlier.said_at, grounded.said_at),
        )


def _latest(one: datetime | None, other: datetime | None) -> datetime | None:
    return None if one is None or other is None else max(one, other)
