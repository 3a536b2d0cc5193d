"""Decided operations, applied to the revisions that they were decided on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..cleaning import MAX_INPUT
from ..errors import MemoryConflictError, MemoryNotFoundError, RevisionConflictError
from ..operations import Add, Clear, Delete, Operation, Update
from ..types import Change, Scope, Skipped, UserMemory
from .core import Core
from .remover import Remover
from .rows import NO_VECTORS, Vectors, to_memory, to_row
from .writer import Writer


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of a list of operations."""

    changes: list[Change] = field(default_factory=list[Change])
    skipped: list[Skipped] = field(default_factory=list[Skipped])


class Applier:
    """Applies what a capture decided, for one user."""

    def __init__(self, core: Core, writer: Writer, remover: Remover) -> None:
        self._core = core
        self._writer = writer
        self._remover = remover

    async def apply(
        self,
        scope: Scope,
        operations: Sequence[Operation],
        *,
        seen: Mapping[str, int],
        cause: str,
        words: str | None,
        vectors: Vectors = NO_VECTORS,
    ) -> Applied:
        """Apply operations in order.

        Args:
            scope: whose memories; agent and team are recorded on what is added.
            operations: what was decided, with the memories' real ids.
            seen: revision of each memory that the decision was made on.
            cause: what the changes record as their cause.
            words: what was said, recorded as ``input`` where an operation brings no evidence of its own.
            vectors: those of the operations' texts, as far as they are known.
        """
        applied = Applied()
        for operation in operations:
            match operation:
                case Add():
                    await self._add(scope, operation, cause, words, applied, vectors)
                case Update():
                    await self._update(scope, operation, seen.get(operation.memory_id), cause, applied, vectors)
                case Delete():
                    await self._delete(scope, operation, seen.get(operation.memory_id), cause, applied)
                case Clear():  # pragma: no branch  there are no others
                    now = self._core.now()
                    for memory in await self._remover.clear(scope.user_id, cause):
                        applied.changes.append(Change("delete", str(memory.memory_id), memory, None, cause, now))
        return applied

    async def _add(
        self, scope: Scope, add: Add, cause: str, words: str | None, applied: Applied, vectors: Vectors
    ) -> None:
        memory = UserMemory(
            memory=add.memory,
            topics=list(add.topics),
            agent_id=scope.agent_id,
            team_id=scope.team_id,
            input=(add.evidence or words or "")[:MAX_INPUT] or None,
            metadata={"suspect": True} if add.suspect else {},
        )
        row = to_row(memory, scope.user_id, self._core.now(), cause, vectors)
        memory_id = await self._writer.insert(row)
        if memory_id == row["_id"]:
            applied.changes.append(Change("add", memory_id, None, to_memory(row), cause, row["at"]))
        else:
            applied.skipped.append(Skipped("add", "an existing memory says the same", add.memory, memory_id))

    async def _update(
        self, scope: Scope, update: Update, seen: int | None, cause: str, applied: Applied, vectors: Vectors
    ) -> None:
        def values(before: UserMemory) -> dict[str, object]:
            topics = {} if update.topics is None else {"topics": list(update.topics)}
            metadata = {"metadata": {**before.metadata, "suspect": True}} if update.suspect else {}
            return {"memory": update.memory, **topics, **metadata}

        reason = ""
        # Changed meanwhile: read again and retried once, on whatever revision is there, so without another conflict.
        for expected in (seen, None):  # pragma: no branch
            try:
                before, after = await self._writer.change(
                    scope.user_id, update.memory_id, values, cause, expected, vectors
                )
            except RevisionConflictError:
                continue
            except MemoryNotFoundError:
                reason = "the memory is gone"
            except MemoryConflictError:
                reason = "an existing memory says the same"
            else:
                if before == after:
                    reason = "it changes nothing"
                else:
                    change = Change("update", update.memory_id, before, after, cause, self._core.now())
                    applied.changes.append(change)
            break
        if reason:
            applied.skipped.append(Skipped("update", reason, update.memory, update.memory_id))

    async def _delete(self, scope: Scope, delete: Delete, seen: int | None, cause: str, applied: Applied) -> None:
        try:
            memory = await self._remover.delete(scope.user_id, delete.memory_id, cause, seen)
        except RevisionConflictError:
            memory = await self._remover.delete(scope.user_id, delete.memory_id, cause)
        if memory is None:
            applied.skipped.append(Skipped("delete", "the memory is gone", None, delete.memory_id))
        else:
            now = self._core.now()
            applied.changes.append(Change("delete", delete.memory_id, memory, None, cause, now))
