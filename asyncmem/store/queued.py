"""Jobs as workers find them in a lane (pure)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..fingerprints import job_print
from ..modes import LearningMode
from .documents import Row
from .rows import aware


@dataclass(frozen=True, slots=True)
class Queued:
    """A job as a worker finds it.

    Attributes:
        id: what its ticket names.
        guard: the fingerprint by which the capture that carries it out is known.
        body: the conversation, packed.
        said: the time of the turns that have none.
        agent_id: recorded on what is added.
        team_id: recorded on what is added.
        key: the fingerprint of its idempotency key.
        mode: what of it is applied at once, and what waits as proposals.
        erasures: how often the user had been erased when what was scheduled began; ``None`` if nobody asked.
    """

    id: str
    guard: bytes
    body: bytes
    said: datetime
    agent_id: str | None = None
    team_id: str | None = None
    key: bytes | None = None
    mode: LearningMode = LearningMode.ALWAYS
    erasures: int | None = None

    def is_over(self, erasures: int) -> bool:
        """Whether the user was erased since: by now so often."""
        return self.erasures is not None and self.erasures < erasures


def queued(user_id: str, row: Row) -> Queued:
    """A lane's row of a job as a worker reads it."""
    said: Any = aware(row["said"])
    optional = {name: row.get(name) for name in ("agent_id", "team_id", "key", "erasures")}
    mode, guard = LearningMode(row.get("mode") or "always"), job_print(user_id, row["id"], row["tries"])
    return Queued(row["id"], guard, bytes(row["body"]), said, **optional, mode=mode)
