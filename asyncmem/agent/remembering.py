"""What a run leaves behind: its exchange in the session, and the capture of what was said."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from ..errors import AsyncMemError, InvalidInputError
from ..session_values import Exchange, Said
from ..types import Message
from .history import Past, is_enough, past_of
from .results import Ticket
from .sources import Source

if TYPE_CHECKING:  # the store is opened, and PyMongo imported, only when a verb needs it
    from ..store.sessions import Sessions


@dataclass(slots=True)
class Left:
    """What a run left behind.

    Attributes:
        captures: what was scheduled.
        session_error: why the exchange is not known to be stored.
        capture_error: why it is not scheduled.
    """

    captures: list[Ticket] = field(default_factory=list[Ticket])
    session_error: AsyncMemError | None = None
    capture_error: AsyncMemError | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run belongs: a session of a user, or none.

    Attributes:
        sessions: the store's.
        user_id: whose.
        session_id: which session; ``None`` for a run of its own.
        erasures: how often the user was erased before the run.
    """

    sessions: "Sessions"
    user_id: str
    session_id: str | None
    erasures: int

    async def read(self, budget: int) -> Past:
        """The session as far as a prompt shows it."""
        if self.session_id is None:
            return Past()
        newest = await self.sessions.newest(self.user_id, self.session_id, self.erasures)
        page = newest
        while page and page[-1].seq > 1 and not is_enough(newest, budget):
            page = await self.sessions.newest(self.user_id, self.session_id, self.erasures, before=page[-1].seq)
            newest += page
        return past_of(newest)

    async def leave(self, said: Said, last: Exchange | None, source: Source) -> Left:
        """Store the exchange, and schedule its capture and those that earlier runs of the session left out."""
        left = Left()
        try:
            if self.session_id is None:
                if said.capture and await self.sessions.begun(self.user_id) <= self.erasures:
                    left.captures += await source.schedule(said.messages(), self.user_id, said.terms, self.erasures)
                return left
            added = await self.sessions.append(self.user_id, self.session_id, said, last, self.erasures)
        except AsyncMemError as error:
            name = "capture_error" if self.session_id is None else "session_error"
            setattr(left, name, error)
            left.capture_error = error if said.capture else None
            return left
        if added is not None and said.capture:
            await self._capture(*added, source, left)
        return left

    async def _capture(self, made: Exchange, before: Exchange | None, source: Source, left: Left) -> None:
        assert self.session_id is not None
        try:
            waiting = [made]
            learns = source.terms.learns
            if before is not None and not before.has_none_waiting(learns):
                waiting = await self.sessions.pending(self.user_id, self.session_id, learns)
            for window, some in groupby(waiting, lambda exchange: exchange.window):
                await self._schedule(window, list(some), source, left)
        except AsyncMemError as error:
            left.capture_error = error

    async def _schedule(self, window: int, waiting: Sequence[Exchange], source: Source, left: Left) -> None:
        """Schedule one conversation up to the last exchange that waits; of what was captured before it is told."""
        assert self.session_id is not None
        last, terms = waiting[-1].seq, waiting[-1].said.terms
        stored = await self.sessions.between(self.user_id, self.session_id, max(1, window - 1), last)
        try:
            left.captures += await source.schedule(conversation(window, stored), self.user_id, terms, self.erasures)
        except InvalidInputError as error:  # it will never be taken, and must not be in the way of the next
            left.capture_error = error
        await self.sessions.scheduled(self.user_id, waiting)


def conversation(window: int, stored: Sequence[Exchange]) -> list[Message]:
    """The exchanges of a window as one conversation, behind the answer before it: the user may refer to that."""
    messages: list[Message] = []
    for exchange in stored:
        if exchange.window == window:
            messages += exchange.said.messages()
        elif exchange.seq < window and exchange.said.answer:
            messages.append(exchange.said.reply())
    return messages
