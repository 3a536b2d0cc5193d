"""One reading of a conversation for one user's profile: a model call a window, then what the user's words carry."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from pydantic import JsonValue

from ..errors import InvalidProfileError
from ..llm import LLM
from ..messages import Turn
from ..modes import LearningMode
from ..profile_values import ProfileChange, ProfileRecord, ProfileResult, UserProfile, Values
from ..proposal_values import Proposal
from ..types import Skipped
from ..usage import Usage
from ..windows import Window, windows
from .config import UserProfileConfig
from .extracting import Judge, PlannedChange, ProfilePlan, plan_model, profile_prompt, readings, turns_of
from .merging import revised, with_json, without

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from ..store.store import MemoryStore

REPLY_TOKENS = 1_200
MISFIT = "the value does not fit the field"
OVERTAKEN = "somebody else set the field meanwhile"
PROPOSED = "it is proposed already"
EXTRACT = "extract"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One field's change that the user's words carry."""

    field: str
    evidence: str
    value: str | None
    """As the model wrote it; ``None`` unsets."""


@dataclass(slots=True)
class Reading:
    """Reads one conversation for one user's profile, and writes what comes of it.

    Attributes:
        store: where the profile is.
        llm: the model.
        config: the profile's fields.
        lock: of one process's writers for one user none has to try again.
        user_id: whose.
        erasures: what ``Captures.begun`` said before the conversation was taken.
        now: the date of messages without a time.
        mode: what is applied at once, and what waits as proposals.
        capture: names the reading when it is made again, so that nothing is done twice; "" for one that isn't.
    """

    store: "MemoryStore"
    llm: LLM
    config: UserProfileConfig[Any]
    lock: asyncio.Lock
    user_id: str
    erasures: int
    now: datetime
    mode: LearningMode = LearningMode.ALWAYS
    capture: str = ""
    _changes: list[ProfileChange] = field(default_factory=list[ProfileChange])
    _skipped: list[Skipped] = field(default_factory=list[Skipped])
    _proposals: list[Proposal] = field(default_factory=list[Proposal])
    _usage: Usage = field(default_factory=Usage)

    async def read(self, turns: Sequence[Turn], known: int = 0) -> ProfileResult:
        """Read the conversation; what came of it.

        Args:
            turns: what was said.
            known: so many of the first turns were read before.
        """
        for number, window in enumerate(await anyio.to_thread.run_sync(windows, turns, known)):
            await self._read(window, number)
        return ProfileResult(self._changes, self._skipped, self._usage, self._proposals)

    async def _read(self, window: Window, number: int) -> None:
        schema = self.config.schema
        record = await self.store.profiles.read(self.user_id, self.config.stored_as) or ProfileRecord()
        prompt = profile_prompt(schema, record.values, window, self.now, self.config.instructions)
        plan = plan_model(tuple(schema.model_fields))
        reply = await self.llm.structured(prompt, plan, max_tokens=REPLY_TOKENS)
        self._usage += reply.usage
        judge = partial(_judged, schema, record.values, reply.value, Judge(schema, turns_of(window, self.now)))
        wanted, skipped = await anyio.to_thread.run_sync(judge)  # words of a long conversation take their time
        self._skipped += skipped
        waiting = [want for want in wanted if _waits(self.mode, want, record.values)]
        # first what waits: a reading that is made again finds it, and writes the rest
        await self._propose(waiting, record.values, number)
        if len(waiting) < len(wanted):
            await self._apply([want for want in wanted if want not in waiting], number)

    async def _propose(self, waiting: Sequence[_Wanted], values: Values, number: int) -> None:
        proposals, name = self.store.proposals, self.config.stored_as
        rows = [
            proposals.of_field(
                *(self.user_id, name, want.field, f"{self.capture}:{number}"),
                before=values.get(want.field),
                after=None if want.value is None else _value(self.config.schema, values, want),
                is_unset=want.value is None,
                evidence=want.evidence,
            )
            for want in waiting
        ]
        made = await proposals.propose(rows, self.erasures)
        self._proposals += made
        again = {want.field: want for want in waiting} | {str(p.field): None for p in made}
        self._skipped += [Skipped(_name(want), PROPOSED) for want in again.values() if want is not None]

    async def _apply(self, wanted: Sequence[_Wanted], number: int) -> None:
        schema, words = self.config.schema, {want.field: want.evidence for want in wanted}
        guard = blake2b(f"{self.capture}:{number}".encode(), digest_size=16).digest() if self.capture else None
        known, overtaken = 0, list[_Wanted]()

        def step(record: ProfileRecord) -> ProfileRecord | None:
            nonlocal known
            if guard in record.guards:
                return None
            known, values = record.revision, record.values
            overtaken[:] = [want for want in wanted if _waits(self.mode, want, values)]
            for want in wanted:
                if want not in overtaken:
                    values = _with(schema, values, want) or values
            return revised(schema, record, values, cause=EXTRACT, now=self.now, evidence=words, guard=guard)

        async with self.lock:
            made = await self.store.profiles.change(self.user_id, self.config.stored_as, step, self.erasures)
        self._skipped += [Skipped(_name(want), OVERTAKEN) for want in overtaken]
        if made is not None:
            self._changes += [change for change in made.history if change.revision > known]


def _name(want: _Wanted) -> str:
    return f"{'unset' if want.value is None else 'set'} {want.field}"


def _waits(mode: LearningMode, want: _Wanted, values: Values) -> bool:
    """Whether somebody has to approve the change first."""
    if mode == LearningMode.HITL:
        return want.value is None or values.get(want.field) not in (None, "", [], {})
    return mode == LearningMode.PROPOSE


def _value(schema: type[UserProfile], values: Values, want: _Wanted) -> JsonValue:
    return (_with(schema, values, want) or {}).get(want.field)


def _with(schema: type[UserProfile], values: Values, want: _Wanted) -> Values | None:
    """The values with a change in them; ``None`` if they don't fit then."""
    if want.value is None:
        with suppress(InvalidProfileError):
            return without(schema, values, want.field)
        return None
    for value in readings(want.value):
        with suppress(InvalidProfileError):
            return with_json(schema, values, want.field, value)
    return None


def _judged(
    schema: type[UserProfile], values: Values, plan: ProfilePlan, judge: Judge
) -> tuple[list[_Wanted], list[Skipped]]:
    """What of a plan may be applied, each field once, and the rest with the reasons."""
    wanted: dict[str, _Wanted] = {}
    skipped: list[Skipped] = []
    for planned in plan.changes:
        if planned.field not in wanted:
            found, reason = _weighed(schema, values, planned, judge)
            if found is not None:
                wanted[planned.field] = found
            elif reason:
                skipped.append(Skipped(f"{planned.action} {planned.field}", reason))
    return list(wanted.values()), skipped


def _weighed(
    schema: type[UserProfile], values: Values, planned: PlannedChange, judge: Judge
) -> tuple[_Wanted | None, str]:
    name, before = planned.field, values.get(planned.field)
    want = _Wanted(name, "", planned.value if planned.action == "set" else None)
    made = _with(schema, values, want)
    if made is None:
        return None, MISFIT
    after = made.get(name)
    if after == before:
        return None, ""  # it is so already
    if after is None:
        words, reason = judge.unset(name, planned.evidence, before), "the user does not take it back"
    else:
        words, reason = judge.set(planned.evidence, before, after)
    return (None, reason) if words is None else (_Wanted(name, words, want.value), "")
