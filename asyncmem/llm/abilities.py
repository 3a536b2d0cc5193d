"""What models were found to support: learned from their answers, kept for an hour, readable and settable."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, PositiveInt, StrictBool, StrictStr, ValidationError

from asyncmem.types import Tier

from .checking import listed

log: logging.Logger = logging.getLogger("asyncmem.llm")
TIERS: tuple[Tier, ...] = ("native", "json_schema", "json_object", "text")
"""The steps of the ladder, best first."""
TTL = 3600.0
"""Seconds that what was learned counts: then the best is tried again, since servers get better."""


@dataclass(frozen=True, slots=True)
class Ability:
    """What one model at one address was found to support.

    Attributes:
        tier: the step of the ladder it takes; ``None`` when nothing was learned.
        loose: the same for schemas that plain JSON schema can't say: these begin at JSON mode.
        proven: steps that gave a value.
        tools: whether it takes tools; ``None`` when nothing was learned.
        streams: a reply of it came in pieces; ``None`` when none did so far.
        dropped: parameters that it refuses.
        renamed: parameters that it wants under another name.
        dimensions: length of its embeddings.
        at: Unix seconds when the last of these was learned.
    """

    tier: Tier | None = None
    loose: Tier | None = None
    proven: tuple[Tier, ...] = ()
    tools: bool | None = None
    streams: bool | None = None
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    dimensions: int | None = None
    at: float = 0.0


_NOTHING = Ability()


def lower(one: Tier, other: Tier) -> Tier:
    """The lower of two steps."""
    return one if TIERS.index(one) > TIERS.index(other) else other


class Abilities:
    """What was learned about many models, each by its name and address.

    Reading and writing need no lock: every change replaces one frozen value.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time, ttl: float = TTL) -> None:
        self._clock = clock
        self._ttl = ttl
        self._known: dict[tuple[str, str], Ability] = {}

    def get(self, key: tuple[str, str]) -> Ability:
        """What is known now; nothing, once it is older than an hour."""
        known = self._known.get(key, _NOTHING)
        if known is not _NOTHING and self._clock() - known.at >= self._ttl:
            # an embedding's length is a fact, not an ability: it never expires
            return replace(_NOTHING, dimensions=known.dimensions)
        return known

    def learn(self, key: tuple[str, str], **found: Any) -> bool:
        """Note what was found; whether that was news."""
        before = self.get(key)
        if all(getattr(before, name) == value for name, value in found.items()):
            return False
        self._known[key] = replace(before, **found, at=before.at or self._clock())
        return True

    def dump(self) -> list[dict[str, Any]]:
        """All of it as JSON values, to be kept across restarts and handed to ``load``."""
        return [{"model": model, "api_base": base, **asdict(ability)} for (model, base), ability in self._known.items()]

    def load(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Take over what ``dump`` gave, older knowledge of the same models replaced.

        A row that can't be read is left out, and logged: what it said is learned anew.

        Returns:
            How many rows were taken over.

        Raises:
            InvalidInputError: it is no list; nothing was taken over.
        """
        given = listed(rows, "abilities are loaded from the list that dump() gave")
        read = [row for row in map(_read, given) if row is not None]
        now = self._clock()
        # learned by a clock that was ahead, it would count for longer than an hour
        self._known |= {(row.model, row.api_base): replace(row.ability(), at=min(row.at, now)) for row in read}
        if len(read) < len(rows):
            log.warning("abilities: %d of %d rows can't be read and were left out", len(rows) - len(read), len(rows))
        return len(read)

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


class _Row(BaseModel):
    """One row of ``dump``. Whatever else an ability had before, or will have, is left out."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", allow_inf_nan=False)

    model: StrictStr
    api_base: StrictStr
    tier: Tier | None
    loose: Tier | None
    proven: tuple[Tier, ...]
    tools: StrictBool | None
    streams: StrictBool | None = None
    dropped: tuple[StrictStr, ...]
    renamed: tuple[tuple[StrictStr, StrictStr], ...]
    dimensions: PositiveInt | None
    at: float

    def ability(self) -> Ability:
        """What it says."""
        return Ability(**self.model_dump(exclude={"model", "api_base"}))


def _read(row: object) -> _Row | None:
    try:
        return _Row.model_validate(row)
    except ValidationError:
        return None


SHARED = Abilities()
"""What all models named by a string in this process share."""
