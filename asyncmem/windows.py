"""Long conversations, read in parts that fit a prompt (pure)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .errors import InvalidMessageError
from .messages import Turn
from .prompts import estimate_tokens

WINDOW_TOKENS = 4_000
"""Estimated tokens that are read in one model call."""
OVERLAP_TOKENS = 400
"""Estimated tokens of what came before, shown beside it: a pronoun or an answer refers to them."""
MAX_WINDOWS = 100
"""Parts of one conversation: a bound on what one call can cost."""

_TAIL = 50 * OVERLAP_TOKENS
"""Characters from the end of a text in which an overlap is looked for."""
_STRETCH = re.compile(r"[^.!?。！？\n]*[.!?。！？\n]*\s*")


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a conversation.

    Attributes:
        earlier: what came before it, as far as it fits: it is shown, and read already.
        turns: what is to be read.
        overlaps: ``earlier`` is a part of this capture, so what lies across the border is this window's too.
    """

    earlier: tuple[Turn, ...]
    turns: tuple[Turn, ...]
    overlaps: bool = False

    @property
    def evident(self) -> tuple[Turn, ...]:
        """The turns whose words count: the user's own that were not captured before, and what they answer."""
        before = (turn for turn in self.earlier if self.overlaps or turn.role != "user")
        return (*before, *self.turns)


def windows(turns: Sequence[Turn], known: int = 0) -> list[Window]:
    """The parts that a conversation is read in; those in which the user says nothing are left out.

    Of a long one it takes a while: use a worker thread.

    Args:
        turns: the whole conversation.
        known: so many of the first turns were captured before: they are only referred to.

    Raises:
        InvalidMessageError: it is longer than one capture reads.
    """
    before = list(turns[:known])
    parts: list[Window] = []
    current: list[Turn] = []
    room = WINDOW_TOKENS

    def close() -> None:
        if any(turn.role == "user" for turn in current):
            parts.append(Window(_tail(before), tuple(current), overlaps=len(before) > known))
        if len(parts) > MAX_WINDOWS:
            most = MAX_WINDOWS * WINDOW_TOKENS
            raise InvalidMessageError(f"the messages exceed about {most:,} tokens: pass them in parts")
        before.extend(current)
        current.clear()

    for piece in (piece for turn in turns[known:] for piece in _pieces(turn)):
        tokens = estimate_tokens(piece.content)
        if tokens > room and current:
            close()
            room = WINDOW_TOKENS
        current.append(piece)
        room -= tokens
    close()
    return parts


def _tail(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The last turns that fit the overlap, the first of them cut where it must be."""
    kept: list[Turn] = []
    room = OVERLAP_TOKENS
    for turn in reversed(turns):
        text = turn.content
        if estimate_tokens(text) > room:
            text = _last_stretches(text, room)
        if not text:
            break
        kept.append(turn if text == turn.content else turn.model_copy(update={"content": text}))
        room -= estimate_tokens(text)
    return tuple(reversed(kept))


def _last_stretches(text: str, room: int) -> str:
    kept = ""
    for stretch in reversed(list(_stretches(text[-_TAIL:], OVERLAP_TOKENS))):
        if estimate_tokens(stretch + kept) > room:
            break
        kept = stretch + kept
    return kept.strip()


def _pieces(turn: Turn) -> Iterator[Turn]:
    """The turn, or the parts of a long one, cut between sentences where there are any."""
    if estimate_tokens(turn.content) <= WINDOW_TOKENS:
        yield turn
        return
    piece, tokens = "", 0
    for stretch in _stretches(turn.content, WINDOW_TOKENS // 4):
        more = estimate_tokens(stretch)
        if tokens + more > WINDOW_TOKENS:
            yield turn.model_copy(update={"content": piece.strip()})
            piece, tokens = "", 0
        piece, tokens = piece + stretch, tokens + more
    yield turn.model_copy(update={"content": piece.strip()})


def _stretches(text: str, most: int) -> Iterator[str]:
    """The text in sentences; one of more characters is cut between words, or anywhere. None is over a token each."""
    for match in _STRETCH.finditer(text):
        start, end = match.span()
        while end - start > most:
            cut = text.rfind(" ", start + 1, start + most - 1) + 1 or start + most - 1
            yield text[start:cut]
            start = cut
        if start < end:
            yield text[start:end]
