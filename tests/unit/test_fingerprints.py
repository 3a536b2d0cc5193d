"""Fingerprints: the same words again are known, and no others."""

from hypothesis import given
from hypothesis import strategies as st

from asyncmem.fingerprints import conversation_prints, evidence_prints, key_print, sentence_prints, user_print
from asyncmem.types import Message, Scope

LIN = Scope("lin")
talks = st.lists(
    st.builds(Message, role=st.sampled_from(["user", "assistant"]), content=st.text(max_size=5)), max_size=5
)


@given(talks, talks)
def test_a_conversation_that_goes_on_keeps_its_fingerprints(before: list[Message], after: list[Message]) -> None:
    """What was said before has the same fingerprints in the longer conversation, and only equal ones share all."""
    short, long = conversation_prints(LIN, before), conversation_prints(LIN, [*before, *after])
    assert long[: len(short)] == short
    assert len(set(long)) == len(long)


def test_fingerprints_belong_to_one_scope_and_time() -> None:
    """Other users, agents, times and keys have others; a zone makes no other time."""
    said = Message(content="Yes", at="2026-01-05T08:00:00+00:00")  # type: ignore[arg-type]
    same = Message(content="Yes", at="2026-01-05T17:00:00+09:00")  # type: ignore[arg-type]
    prints = [
        conversation_prints(s, [said])[0] for s in (LIN, Scope("omar"), Scope("lin", "pip"), Scope("lin", None, "t"))
    ]
    assert len({*prints, conversation_prints(LIN, [Message(content="Yes")])[0], key_print(LIN, "Yes")}) == 6
    assert conversation_prints(LIN, [same]) == prints[:1]
    assert key_print(LIN, "k") != key_print(Scope("omar"), "k")
    assert "lin" not in user_print("lin")


def test_sentences_are_known_again() -> None:
    """A sentence has one fingerprint, however it is written; evidence has those of the sentences around it."""
    (print_,) = sentence_prints("I started at Oakline  Foods on Monday!")
    text = "Hello there. i started at oakline foods on monday. Bye."
    assert evidence_prints("Oakline Foods", [text]) == {print_}
    assert evidence_prints("hello there … Oakline", [text]) == sentence_prints("Hello there") | {print_}
    assert evidence_prints("I started at Oakline Foods on Monday. Bye", [text]) == {print_, *sentence_prints("Bye.")}
    assert evidence_prints("Brightwater", [text]) == evidence_prints("", [text]) == sentence_prints(" ") == set()
