"""Conversations in windows: nothing lost, nothing doubled, none too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem import InvalidMessageError
from asyncmem.messages import Turn
from asyncmem.prompts import estimate_tokens
from asyncmem.windows import MAX_WINDOWS, OVERLAP_TOKENS, WINDOW_TOKENS, windows

from .work import work

PIECES = ["Moss", "is nine.", "我住在苏州。", "x" * 5_000, "\n", "and so on ", "12 " * 900, "水" * 4_500]
texts = st.lists(st.integers(0, len(PIECES) - 1), min_size=1, max_size=12)
conversations = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), texts), min_size=1, max_size=6)


@given(conversations, st.integers(0, 3))
def test_windows_hold_every_word_once(conversation: list[tuple[str, list[int]]], known: int) -> None:
    """The windows' turns in a row are what the user said; each window fits, and so does what is shown before it."""
    turns = [
        Turn(role=role, content=" ".join(PIECES[n] for n in words), index=i)
        for i, (role, words) in enumerate(conversation)
    ]
    parts = windows(turns, known)
    read = "".join(t.content for part in parts for t in part.turns if t.role == "user")
    said = "".join(t.content for t in turns[known:] if t.role == "user")
    assert "".join(read.split()) == "".join(said.split())
    for part in parts:
        assert sum(estimate_tokens(t.content) for t in part.turns) <= WINDOW_TOKENS + len(part.turns)
        assert sum(estimate_tokens(t.content) for t in part.earlier) <= OVERLAP_TOKENS + len(part.earlier)
        assert set(part.turns) <= set(part.evident) <= set(part.earlier) | set(part.turns)


def test_a_short_conversation_is_one_window() -> None:
    """What fits is read at once, known turns before it; the last words before the border stand in both windows."""
    turns = [Turn(content=f"turn {i}", index=i) for i in range(3)]
    (only,) = windows(turns, 1)
    assert (only.earlier, only.turns, only.overlaps) == ((turns[0],), tuple(turns[1:]), False)
    assert only.evident == tuple(turns[1:])
    asked = Turn(role="assistant", content="Red?")
    assert windows([turns[0], asked, turns[2]], 2)[0].evident == (asked, turns[2])
    long = [Turn(content="Moss is nine. " * 600, index=0), Turn(content="And black. " * 600, index=1)]
    first, second = windows(long)
    assert (first.earlier, first.overlaps, second.overlaps) == ((), False, True)
    assert second.earlier[0].content.startswith("Moss is nine.")
    assert second.evident == (*second.earlier, *second.turns)
    assert windows(turns, 3) == []


def test_work_on_a_long_conversation_is_in_proportion() -> None:
    """Twice as long is twice the work, not four times; what is too long is refused before all of it is read."""

    def read(times: int) -> int:
        return work(lambda: windows([Turn(content="Moss is nine and black. " * 4_000 * times)]))

    assert read(4) < 3 * read(2) < 9 * read(1)

    def refused(times: int) -> int:
        def reading() -> None:
            with pytest.raises(InvalidMessageError, match="400,000 tokens"):
                windows([Turn(content="Moss is nine. " * 1_300) for _ in range(MAX_WINDOWS * times)])

        return work(reading)

    assert refused(4) < 1.1 * refused(2)
