"""Sessions as values: what one exchange holds, and which exchanges are captured together (pure)."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from .types import Message

MAX_SAID = 200_000
"""Characters that a message, and as much of an answer as is kept, may have: a document has 16 MB."""
WINDOW_TOKENS = 3_000
"""Estimated tokens of the exchanges that are captured as one conversation: fewer than a capture reads in one call."""
_FRAME = 8
"""Estimated tokens around the two messages of an exchange."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How an exchange is captured.

    Attributes:
        agent_id: recorded on what is added.
        team_id: recorded on what is added.
        learns: what is learnt of it, and in which modes.
    """

    agent_id: str | None
    team_id: str | None
    learns: str


@dataclass(frozen=True, slots=True)
class Said:
    """What a run adds to its session.

    Attributes:
        message: the user's words.
        said_at: when they came.
        answer: the agent's last words, as much as is kept.
        answered_at: when they were ready.
        tokens: about so many have both.
        capture: they are to be captured.
        terms: how; ``None`` if that is not known.
    """

    message: str = field(repr=False)
    said_at: datetime
    answer: str = field(repr=False)
    answered_at: datetime
    tokens: int
    capture: bool = False
    terms: Terms | None = None

    def messages(self) -> list[Message]:
        """Both as a conversation."""
        spoken = [Message(content=self.message, at=self.said_at)]
        return [*spoken, self.reply()] if self.answer else spoken

    def reply(self) -> Message:
        """The answer alone."""
        return Message(role="assistant", content=self.answer, at=self.answered_at)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange of a session as it is stored.

    Attributes:
        name: its row's.
        seq: its place in the session, from 1 on.
        said: what it holds.
        window: the place at which the conversation begins that it is captured with; 0 if it is not to be captured.
        weight: estimated tokens of that conversation up to and with this exchange.
        pending: nobody is known to have scheduled its capture.
        folded: somebody set out to summarise everything up to and with it.
        summary: what came of that.
    """

    name: str
    seq: int
    said: Said
    window: int
    weight: int
    pending: bool = False
    folded: bool = False
    summary: str | None = field(default=None, repr=False)

    def has_none_waiting(self, learns: str | None) -> bool:
        """Nothing of which this is learnt waits up to and with this exchange: its own run handed all over."""
        terms = self.said.terms
        return self.window > 0 and not self.pending and terms is not None and terms.learns == learns


def placed(name: str, said: Said, before: Exchange | None, remembered: timedelta) -> Exchange:
    """What a run said, at its place behind the exchange before it.

    Exchanges are captured as one growing conversation, of which what was captured before is known by its fingerprints
    and only read along. A new one begins where the old one is long, where it may be remembered no longer, or where it
    was captured on other terms: on these nothing of it is known, and all of it would be captured again.

    Args:
        name: the row's.
        said: what is to be stored.
        before: the session's last exchange.
        remembered: how long captured messages are remembered.
    """
    seq = 1 if before is None else before.seq + 1
    if not said.capture:
        return Exchange(name, seq, said, 0, 0)
    weight = said.tokens + _FRAME
    if before is not None and before.window and before.said.terms == said.terms:
        recent = (said.said_at - before.said.said_at) * 2 < remembered
        if recent and before.weight + weight <= WINDOW_TOKENS:
            return Exchange(name, seq, said, before.window, before.weight + weight, pending=True)
    return Exchange(name, seq, said, seq, weight, pending=True)
