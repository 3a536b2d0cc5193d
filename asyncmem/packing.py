"""Conversations as the queue holds them, and several of them folded into one (pure)."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from .errors import InvalidMessageError
from .fingerprints import conversation_prints
from .messages import Turn
from .modes import LearningMode
from .types import Scope

MAX_BODY = 4 * 2**20
"""Bytes that one scheduled conversation may take: a document has 16 MB, and several wait in one."""

INLINE = 16_384
"""Bytes that are unpacked in the event loop; more go to a worker thread."""


@dataclass(frozen=True, slots=True)
class Talk:
    """One scheduled conversation.

    Attributes:
        turns: what was said; not empty.
        scope: whose memories; agent and team are recorded on what is added.
        prints: one fingerprint a turn.
        guard: the fingerprint by which it is known that it was carried out.
        said: the time of the turns that have none.
        key: the fingerprint of its idempotency key.
        mode: what of it is applied at once, and what waits as proposals.
    """

    turns: Sequence[Turn]
    scope: Scope
    prints: Sequence[bytes]
    guard: bytes
    said: datetime
    key: bytes | None = None
    mode: LearningMode = LearningMode.ALWAYS

    @property
    def mark(self) -> bytes:
        """What tells the same capture again: its key, else its last words with all before them."""
        return self.key or self.prints[-1]

    @property
    def day(self) -> date:
        """What "yesterday" counts from, where a turn doesn't say."""
        return self.said.date()


@dataclass(frozen=True, slots=True)
class Folded:
    """Some conversations as one.

    Attributes:
        count: how many of them it is made of, from the first on.
        turns: what was said.
        known: how many turns were captured before, and only show what the rest refers to.
        prints: fingerprints by which all of it is known later.
    """

    count: int
    turns: Sequence[Turn]
    known: int
    prints: Sequence[bytes]


def pack(turns: Sequence[Turn]) -> bytes:
    """The turns as bytes.

    Raises:
        InvalidMessageError: they take more than the queue holds.
    """
    rows = [[turn.role, turn.content, turn.at and turn.at.isoformat(), turn.index] for turn in turns]
    body = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
    if len(body) > MAX_BODY:
        raise InvalidMessageError(
            f"the conversation takes {len(body):,} bytes: at most {MAX_BODY:,} can be scheduled at once"
        )
    return body


def unpack(body: bytes) -> list[Turn]:
    """The turns again."""
    return [Turn(role=role, content=text, at=at, index=index) for role, text, at, index in json.loads(body)]


def prints_of(scope: Scope, turns: Sequence[Turn]) -> list[bytes]:
    """One fingerprint a turn."""
    return conversation_prints(scope, turns)


def fold(talks: Sequence[Talk], known: Collection[bytes]) -> Folded:
    """As many of the conversations, from the first on, as make one.

    One that goes on where the one before it ended adds what is new in it; one that has nothing to do with them stands
    behind them. What can't be told apart in one reading comes later: another agent's or team's, of another day or mode,
    a repetition, and one whose beginning was captured before and is needed to understand it.

    Args:
        talks: in order; the first is no repetition.
        known: fingerprints that were captured before.
    """
    first = talks[0]
    turns, prints, count = list(first.turns), list(first.prints), 1
    begin = max((i for i, p in enumerate(first.prints[:-1], 1) if p in known), default=0)
    seen, marks, tip, alone = set(first.prints), {first.mark}, first.prints[-1], True
    for talk in talks[1:]:
        if talk.scope != first.scope or talk.day != first.day or talk.mark in marks or talk.mark in known:
            break
        if talk.mode != first.mode:
            break
        goes_on = talk.prints.index(tip) + 1 if tip in talk.prints else 0
        if not goes_on and not seen.union(known).isdisjoint(talk.prints):
            break
        alone = alone and goes_on == len(turns)
        turns += talk.turns[goes_on:]
        prints += talk.prints[goes_on:]
        seen.update(talk.prints)
        marks.add(talk.mark)
        tip, count = talk.prints[-1], count + 1
    if not alone:  # else each turn has its place in the last of them
        turns = [turn.model_copy(update={"index": i}) for i, turn in enumerate(turns)]
    keys = [talk.key for talk in talks[:count] if talk.key is not None]
    return Folded(count, turns, begin, [*prints[begin:], *keys])


def newest_turns(scope: Scope, bodies: Sequence[bytes], characters: int) -> list[Turn]:
    """What some packed conversations say, oldest first, each turn once; only the newest of about so much text.

    Args:
        scope: whose.
        bodies: oldest first. One may hold all that those before it do, and more.
        characters: enough of them.
    """
    seen, turns = set[bytes](), list[Turn]()
    for body in reversed(bodies):
        said = unpack(body)
        prints = prints_of(scope, said)
        new = [turn for turn, p in zip(said, prints, strict=True) if p not in seen]
        seen.update(prints)
        turns[:0] = new
        characters -= sum(len(turn.content) for turn in new)
        if characters < 0:
            break
    return turns
