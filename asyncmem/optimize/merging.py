"""What several memories have in common, for the one that takes their place (pure)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from ..cleaning import MAX_TOPICS, clean_metadata, fold_topics
from ..errors import InvalidMemoryError, MixedUsersError
from ..guards import looks_like_instructions
from ..types import UserMemory

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Merged:
    """The fields of a memory that takes the place of several.

    Attributes:
        user_id: whose they are.
        agent_id: the agent's that wrote all of them.
        team_id: the team's that wrote all of them.
        topics: theirs, in order, each once, as many as a memory may have.
        created_at: of the oldest.
        updated_at: of the newest.
        metadata: keys that have one value wherever they are; ``suspect`` if any of them was.
    """

    user_id: str | None = None
    agent_id: str | None = None
    team_id: str | None = None
    topics: tuple[str, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def memory(self, text: str) -> UserMemory:
        """A new memory of this text; marked as suspect where it talks to a model rather than about the user.

        Raises:
            InvalidMemoryError: the text can't be stored.
        """
        suspect: dict[str, JsonValue] = {"suspect": True} if looks_like_instructions(text) else {}
        return UserMemory.model_validate({**self._fields(), "memory": text, "metadata": {**self.metadata, **suspect}})

    def onto(self, memory: UserMemory) -> UserMemory:
        """One of the memories, with these fields."""
        return memory.model_copy(update=self._fields())

    def _fields(self) -> dict[str, Any]:
        names = ("user_id", "agent_id", "team_id", "created_at", "updated_at", "metadata")
        return {**{name: getattr(self, name) for name in names}, "topics": list(self.topics)}


def check_one_user(memories: Sequence[UserMemory]) -> None:
    """Check that all memories are of one user.

    Raises:
        MixedUsersError: they are not.
    """
    users = {memory.user_id for memory in memories}
    if len(users) > 1:
        raise MixedUsersError(f"memories of {len(users)} users came together: optimize each user's by themselves")


def merged(sources: Sequence[UserMemory]) -> Merged:
    """What the sources have in common.

    Args:
        sources: at least one, in the order in which their topics are to come.

    Raises:
        MixedUsersError: they are of several users.
    """
    check_one_user(sources)
    topics = fold_topics([topic for source in sources for topic in source.topics])
    created = [source.created_at for source in sources if source.created_at is not None]
    updated = [source.updated_at for source in sources if source.updated_at is not None]
    return Merged(
        user_id=sources[0].user_id,
        agent_id=_agreed("agent_id", sources),
        team_id=_agreed("team_id", sources),
        topics=tuple(topics[:MAX_TOPICS]),
        created_at=min(created, default=None),
        updated_at=max(updated, default=None),
        metadata=_metadata([source.metadata for source in sources]),
    )


def _agreed(name: str, sources: Sequence[UserMemory]) -> str | None:
    values: set[str | None] = {getattr(source, name) for source in sources}
    if len(values) == 1:
        return values.pop()
    _log.info("%d memories of %d different %ss become one without any", len(sources), len(values), name)
    return None


def _metadata(sources: Sequence[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    agreed: dict[str, JsonValue] = {}
    differing: set[str] = set()
    for metadata in sources:
        for key, value in metadata.items():
            if key in agreed and not _same(agreed[key], value):
                differing.add(key)
            agreed.setdefault(key, value)
    kept = {key: value for key, value in agreed.items() if key not in differing}
    if any(metadata.get("suspect") for metadata in sources):
        kept["suspect"] = True
    try:
        return clean_metadata(kept)
    except InvalidMemoryError:  # together they are too large
        return {k: v for k, v in kept.items() if k == "suspect" or all(k in metadata for metadata in sources)}


def _same(value: JsonValue, other: JsonValue) -> bool:
    """Equal, and not as 1 and true are."""
    return type(value) is type(other) and value == other
