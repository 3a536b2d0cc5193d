"""Conversations in the queue: packed without loss, and folded where one reading can tell them apart."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem import InvalidMessageError
from asyncmem.messages import Turn
from asyncmem.packing import Talk, fold, newest_turns, pack, prints_of, unpack
from asyncmem.types import Scope

LIN = Scope("lin")
MONDAY = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
turns = st.builds(
    Turn,
    role=st.sampled_from(["user", "assistant"]),
    content=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    at=st.none() | st.datetimes(timezones=st.timezones()),
    index=st.integers(0, 99),
)


def talk(*said: str, scope: Scope = LIN, key: bytes | None = None, at: datetime = MONDAY) -> Talk:
    """A conversation in which the user says this."""
    made = [Turn(content=text, index=i) for i, text in enumerate(said)]
    return Talk(made, scope, prints_of(scope, made), said[-1].encode(), at, key)


@given(st.lists(turns, min_size=1, max_size=5))
def test_turns_come_back_as_they_were(said: list[Turn]) -> None:
    """Roles, texts, places and times, in their zones; the fingerprints are the same."""
    back = unpack(pack(said))
    assert [(t.role, t.content, t.index) for t in back] == [(t.role, t.content, t.index) for t in said]
    # as instants: of two zones, times in an hour that a clock skipped or repeated are never equal
    assert [t.at and t.at.timestamp() for t in back] == [t.at and t.at.timestamp() for t in said]
    assert [t.at and t.at.utcoffset() for t in back] == [t.at and t.at.utcoffset() for t in said]
    assert prints_of(LIN, back) == prints_of(LIN, said)


def test_what_is_too_long_is_refused() -> None:
    """Bytes count, not characters."""
    with pytest.raises(InvalidMessageError, match="6,000,0"):
        pack([Turn(content="水" * 2_000_000)])


def test_turns_that_have_nothing_in_common_stand_behind_each_other() -> None:
    """Each keeps its fingerprints and gets a place in the whole."""
    folded = fold([talk("a"), talk("b", "c"), talk("d", key=b"k")], set())
    assert (folded.count, folded.known) == (3, 0)
    assert [(t.content, t.index) for t in folded.turns] == [("a", 0), ("b", 1), ("c", 2), ("d", 3)]
    assert folded.prints == [*talk("a").prints, *talk("b", "c").prints, *talk("d").prints, b"k"]


def test_a_conversation_that_grows_is_its_last_state() -> None:
    """Places are those in the last one."""
    system = [Turn(content=text, index=i + 3) for i, text in enumerate("abc")]
    talks = [Talk(system[:n], LIN, prints_of(LIN, system[:n]), b"", MONDAY) for n in (1, 2, 3)]
    folded = fold(talks, set())
    assert (folded.count, [t.index for t in folded.turns]) == (3, [3, 4, 5])
    assert folded.prints == talks[-1].prints


def test_a_conversation_may_go_on_behind_another() -> None:
    """What is new in it is added, though something else stands before it."""
    folded = fold([talk("x"), talk("a"), talk("a", "b")], set())
    assert (folded.count, [t.content for t in folded.turns]) == (3, ["x", "a", "b"])


def test_what_was_captured_before_is_context() -> None:
    """The first conversation's known turns are there, and their fingerprints are not written again."""
    first = talk("a", "b", "c")
    folded = fold([first, talk("d")], {first.prints[1]})
    assert (folded.count, folded.known, [t.content for t in folded.turns]) == (2, 2, ["a", "b", "c", "d"])
    assert folded.prints == [first.prints[2], *talk("d").prints]


@pytest.mark.parametrize(
    "other",
    [
        talk("b", scope=Scope("lin", "pip")),
        talk("b", scope=Scope("lin", None, "crew")),
        talk("b", at=MONDAY + timedelta(days=1)),
        talk("a", key=b"k"),
        talk("b", key=b"known"),
        talk("a"),
        talk("known"),
        talk("known", "more"),
    ],
)
def test_what_one_reading_can_not_tell_apart_comes_later(other: Talk) -> None:
    """Another agent, team or day, a repetition, and what needs a context that is not at hand."""
    known = {b"known", talk("known").prints[0]}
    folded = fold([talk("a", key=b"k"), other], known)
    assert folded.count == 1 or other.prints == talk("a").prints


def test_pending_turns_are_the_newest_and_each_once() -> None:
    """Conversations that hold each other are told once; enough is enough."""
    bodies = [pack(talk(*said).turns) for said in (("a",), ("b",), ("b", "c"))]
    assert [t.content for t in newest_turns(LIN, bodies, 100)] == ["a", "b", "c"]
    assert [t.content for t in newest_turns(LIN, bodies, 1)] == ["b", "c"]
