"""What came of scheduled captures, as lanes keep it: notes without text, told again by what they are about."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from ..errors import MemoryNotFoundError
from ..outcomes import pack_profile, pack_result, unpack_profile, unpack_result
from ..profile_values import ProfileResult
from ..types import CaptureResult, Change
from .documents import Row
from .profiles import Profiles
from .proposals import Proposals
from .reader import Reader
from .rows import from_note, to_note


class Results(Protocol):
    """Writes one kind of results down, and reads them again."""

    def pack(self, result: Any) -> Row:
        """A result as a lane keeps it."""
        ...

    async def unpack(self, user_id: str, row: Row) -> Any:
        """The result again, as far as there is somebody who still tells of it."""
        ...


class CaptureResults:
    """Results of captures of memories, told again by the memories' histories."""

    def __init__(self, reader: Reader, proposals: Proposals) -> None:
        self._reader = reader
        self._proposals = proposals

    def pack(self, result: CaptureResult) -> Row:
        """A result as a lane keeps it."""
        row = pack_result(result, [to_note(change) for change in result.changes])
        return row | ({"proposals": [p.proposal_id for p in result.proposals]} if result.proposals else {})

    async def unpack(self, user_id: str, row: Row) -> CaptureResult:
        """The result again."""
        result = unpack_result(row, await self.retold(user_id, row["changes"]))
        return replace(result, proposals=await self._proposals.several(user_id, row.get("proposals", ())))

    async def retold(self, user_id: str, notes: Sequence[Row]) -> list[Change]:
        """The changes that notes are about, as far as the memories' histories tell of them."""
        told: dict[str, list[Change]] = {}
        for memory_id in {note["id"]: None for note in notes}:
            with suppress(MemoryNotFoundError):
                told[memory_id] = await self._reader.history(user_id, memory_id)
        return [from_note(note, told.get(note["id"], ())) for note in notes]


class ProfileResults:
    """Results of reading conversations for profiles of one name, told again by the profiles' histories."""

    def __init__(self, profiles: Profiles, proposals: Proposals, name: str) -> None:
        self._profiles = profiles
        self._proposals = proposals
        self._name = name

    def pack(self, result: ProfileResult) -> Row:
        """A result as a lane keeps it."""
        return pack_profile(result)

    async def unpack(self, user_id: str, row: Row) -> ProfileResult:
        """The result again."""
        record = await self._profiles.read(user_id, self._name) if row["fields"] else None
        proposals = await self._proposals.several(user_id, row["proposals"])
        return unpack_profile(row, () if record is None else record.history, proposals)
