"""The changes that decided operations would make, for those who want to look first (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from .operations import Add, Clear, Delete, Grounded, Update
from .types import Change, ChangeKind, Scope, UserMemory


def preview(
    operations: Sequence[Grounded], existing: Sequence[UserMemory], scope: Scope, now: datetime
) -> list[Change]:
    """The changes that the operations would make. Memories that would be added have no id yet: theirs is ""."""
    known = {str(memory.memory_id): memory for memory in existing}
    return [change for grounded in operations for change in _changes(grounded, known, scope, now)]


def _changes(grounded: Grounded, known: Mapping[str, UserMemory], scope: Scope, now: datetime) -> Iterator[Change]:
    def change(kind: ChangeKind, memory_id: str, before: UserMemory | None, after: UserMemory | None) -> Change:
        return Change(kind, memory_id, before, after, "capture", now, grounded.evidence, grounded.sources)

    match grounded.operation:
        case Add() as add:
            yield change("add", "", None, _added(add, scope, now))
        case Update(memory_id=memory_id) as update:
            yield change("update", memory_id, known[memory_id], _updated(known[memory_id], update, now))
        case Delete(memory_id=memory_id):
            yield change("delete", memory_id, known[memory_id], None)
        case Clear():  # pragma: no branch  there are no others
            for memory_id, memory in known.items():
                yield change("delete", memory_id, memory, None)


def _added(add: Add, scope: Scope, now: datetime) -> UserMemory:
    return UserMemory(
        memory=add.memory,
        topics=list(add.topics),
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        team_id=scope.team_id,
        input=add.evidence,
        created_at=now,
        updated_at=now,
        metadata={"suspect": True} if add.suspect else {},
    )


def _updated(before: UserMemory, update: Update, now: datetime) -> UserMemory:
    changed: dict[str, object] = {"memory": update.memory, "updated_at": now, "revision": before.revision + 1}
    if update.topics is not None:
        changed["topics"] = list(update.topics)
    if update.suspect:
        changed["metadata"] = {**before.metadata, "suspect": True}
    return before.model_copy(update=changed)
