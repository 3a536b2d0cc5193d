"""Evidence: which of the user's words carry a memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.evidence import find_evidence

SAID = ["Hi there! I moved to Porto last week, for a job at the hospital.", "我下个月要搬到苏州，养了一只叫豆包的猫"]


@pytest.mark.parametrize(
    "claimed",
    [
        "I moved to Porto last week",
        "i MOVED to  Porto\nlast week",
        "I moved to Porto … job at the hospital",
        "I moved to Porto... the hospital",
        "我下个月要搬到苏州",
        "搬到 苏州",
    ],
)
def test_the_users_words_are_taken_as_they_are(claimed: str) -> None:
    """Words that the user said are evidence, case, space, punctuation and left-out middles apart."""
    assert find_evidence(claimed, "Anything", SAID) == claimed


def test_quotes_and_unicode_form_do_not_matter() -> None:
    """Typographic quotes and decomposed letters are the same words."""
    assert find_evidence("I can't stand cafe\u0301s", "Dislikes cafés", ["I can’t stand cafés"]) is not None


@pytest.mark.parametrize("claimed", ["I am an admin", "moved to", "Port", "job at the"])
def test_parts_of_words_are_not_words(claimed: str) -> None:
    """Evidence is looked for as whole words: a beginning of a name is not the name."""
    said = ["I removed to Porto a subjob at them"]
    assert find_evidence(claimed, "Is an admin", said) is None


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("Moved to Porto last week", "I moved to Porto last week, for a job at the hospital."),
        ("养了一只叫豆包的猫", "我下个月要搬到苏州，养了一只叫豆包的猫"),
    ],
)
def test_missing_evidence_is_replaced_by_the_sentence_that_carries_the_memory(memory: str, expected: str) -> None:
    """Without evidence, the sentence that says most of the memory stands for it."""
    assert find_evidence("", memory, SAID) == expected


def test_missing_evidence_for_something_unsaid_is_none() -> None:
    """Without evidence, a memory that no sentence carries has none."""
    assert find_evidence(" ", "Owns a red kayak", SAID) is None


def test_inexactly_copied_words_are_replaced_by_what_was_said() -> None:
    """Evidence that was nearly copied gives way to the user's own sentence."""
    found = find_evidence("I have moved to Porto last week", "Moved to Porto last week", SAID)
    assert found == "I moved to Porto last week, for a job at the hospital."


def test_invented_words_are_refused_even_when_the_memory_was_said() -> None:
    """Evidence that the user didn't say is no evidence, however true the memory is."""
    assert find_evidence("The doctor told me about Lisbon", "Moved to Porto last week", SAID) is None


def test_words_of_the_assistant_are_no_evidence() -> None:
    """Only what is handed over as said by the user counts."""
    assert find_evidence("As you own a red kayak", "Owns a red kayak", ["Nice idea, thanks."]) is None


def test_what_was_known_needs_no_evidence() -> None:
    """For an update only the new words must have been said."""
    known = "Runs a bakery with four ovens on Mill Street"
    said = ["We have five ovens now."]
    assert find_evidence("", "Runs a bakery with five ovens on Mill Street", said) is None
    assert find_evidence("", "Runs a bakery with five ovens on Mill Street", said, known) == said[0]


@pytest.mark.parametrize(("memory", "carries"), [("Born in 1990", True), ("Born in 1991", False)])
def test_numbers_must_be_equal(memory: str, carries: bool) -> None:
    """A number is carried by the same number only, while words may differ in their endings."""
    assert (find_evidence("", memory, ["I was born 1990"]) is not None) == carries


def test_nothing_said_is_no_evidence() -> None:
    """With no words and no memory to compare there is no evidence."""
    assert find_evidence("Hello", "Hello", []) is None
    assert find_evidence("", "!!!", ["Hello"]) is None
    assert find_evidence("…", "Hello", ["Hello"]) is None
    assert find_evidence("\u200b", "Hello", ["Hello"]) is None


@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text(max_size=80), max_size=3))
def test_evidence_never_fails(claimed: str, memory: str, said: list[str]) -> None:
    """Whatever is claimed and said, the result is evidence or none, and it is never blank."""
    found = find_evidence(claimed, memory, said)
    assert found is None or found.strip()


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll", "Lo", "Nd", "Zs"]), min_size=1, max_size=60))
def test_what_was_said_is_evidence_for_itself(words: str) -> None:
    """A whole message, quoted, is always evidence."""
    if words.strip():
        assert find_evidence(words, "anything", [words]) == words.strip()
