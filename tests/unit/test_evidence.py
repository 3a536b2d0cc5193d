"""Evidence: which of the user's words carry a memory, and which memories they don't carry."""

import unicodedata
from datetime import date

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asyncmem.answers import Turn, user_turns
from asyncmem.claims import is_negated
from asyncmem.evidence import (
    ECHO,
    FOREIGN,
    NAME,
    NEGATED,
    NO_NEWS,
    NOT_NEGATED,
    NUMBER,
    PAST,
    UNSAID,
    Evidence,
    find_evidence,
    find_sources,
    objection,
    says_the_same,
)
from asyncmem.numbers import said_numbers
from asyncmem.wording import common, content

DAY = date(2026, 3, 2)
SAID = ("Hi there! I moved to Porto last week, for a job at the hospital.", "我下个月要搬到苏州，养了一只叫豆包的猫")


def turns(*texts: str) -> list[Turn]:
    """User turns without questions."""
    return [Turn(i, text, DAY) for i, text in enumerate(texts)]


def talk(*texts: str) -> list[Turn]:
    """A conversation that the assistant begins."""
    roles = ("assistant", "user")
    return user_turns([(roles[i % 2], text, DAY, i) for i, text in enumerate(texts)])


def words(claimed: str, memory: str, *said: str, known: str = "") -> str | None:
    """The evidence that is found."""
    found = find_evidence(claimed, memory, turns(*said), known)
    return found.words if found else None


def judged(memory: str, spoken: list[Turn], claimed: str | None = None, known: str = "") -> str | None:
    """What is to be said against a memory that rests on the last turn, or on what is claimed."""
    found = find_evidence(spoken[-1].text if claimed is None else claimed, memory, spoken, known)
    return UNSAID if found is None else objection(found, memory, spoken, known)


# -------------------------------------------------------------------------------------------------------- finding


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
    assert words(claimed, "Anything", *SAID) == claimed


def test_quotes_and_unicode_form_do_not_matter() -> None:
    """Typographic quotes and decomposed letters are the same words."""
    assert words("I can't stand cafe\u0301s", "Dislikes cafés", "I can’t stand cafés") is not None


@pytest.mark.parametrize("claimed", ["I am an admin", "moved to", "Port", "job at the"])
def test_parts_of_words_are_not_words(claimed: str) -> None:
    """Evidence is looked for as whole words: a beginning of a name is not the name."""
    assert words(claimed, "Is an admin", "I removed to Porto a subjob at them") is None


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("Moved to Porto last week", "I moved to Porto last week, for a job at the hospital."),
        ("养了一只叫豆包的猫", SAID[1]),
    ],
)
def test_missing_evidence_is_replaced_by_the_sentence_that_carries_the_memory(memory: str, expected: str) -> None:
    """Without evidence, the sentence that says most of the memory stands for it."""
    assert words("", memory, *SAID) == expected


def test_missing_evidence_for_something_unsaid_is_none() -> None:
    """Without evidence, a memory that no sentence carries has none."""
    assert words(" ", "Owns a red kayak", *SAID) is None


def test_inexactly_copied_words_are_replaced_by_what_was_said() -> None:
    """Evidence that was nearly copied gives way to the user's own sentence."""
    found = words("I have moved to Porto last week", "Moved to Porto last week", *SAID)
    assert found == "I moved to Porto last week, for a job at the hospital."


def test_invented_words_are_refused_even_when_the_memory_was_said() -> None:
    """Evidence that the user didn't say is no evidence, however true the memory is."""
    assert words("The doctor told me about Lisbon", "Moved to Porto last week", *SAID) is None


def test_words_of_the_assistant_are_no_evidence() -> None:
    """What the assistant states is not evidence, also when the user goes on talking."""
    spoken = talk("As you own a red kayak, go to the lake.", "Nice idea, thanks.")
    assert find_evidence("As you own a red kayak", "Owns a red kayak", spoken) is None


def test_words_of_a_question_are_replaced_by_the_answer() -> None:
    """Evidence that was copied from the question is the answer that takes it up."""
    spoken = talk("Are you vegan?", "Yes, I am.")
    assert find_evidence("Are you vegan", "Is vegan", spoken) == Evidence("Yes, I am.", (1,))


def test_what_was_known_needs_no_evidence() -> None:
    """For an update only the new words must have been said."""
    known = "Runs a bakery with four ovens on Mill Street"
    memory, said = "Runs a bakery with five ovens on Mill Street", "We have five ovens now."
    assert words("", memory, said) is None
    assert words("", memory, said, known=known) == said


@pytest.mark.parametrize(("memory", "carries"), [("Born in 1990", True), ("Born in 1991", False)])
def test_numbers_must_be_equal(memory: str, carries: bool) -> None:
    """A number is carried by the same number only, while words may differ in their endings."""
    assert (words("", memory, "I was born 1990") is not None) == carries


def test_nothing_said_is_no_evidence() -> None:
    """With no words and no memory to compare there is no evidence."""
    assert words("Hello", "Hello") is None
    assert words("", "!!!", "Hello") is None
    assert words("…", "Hello", "Hello") is None
    assert words("\u200b", "Hello", "Hello") is None


def test_sources_are_the_messages_that_hold_the_words() -> None:
    """Each source is the index of a message; parts may stand in several."""
    spoken = [Turn(3, "I have a dog.", DAY), Turn(7, "His name is Rex.", DAY)]
    assert find_evidence("name is Rex", "Has a dog, Rex", spoken) == Evidence("name is Rex", (7,))
    assert find_evidence("a dog … is Rex", "Has a dog, Rex", spoken) == Evidence("a dog … is Rex", (3, 7))
    assert find_evidence("a dog … is Max", "Has a dog, Max", spoken) is None
    assert find_sources("a dog", spoken) == Evidence("a dog", (3,))
    assert find_sources(" ", spoken) == Evidence(None, ())
    assert find_sources("a cat", spoken) == Evidence("a cat", ())


# ------------------------------------------------------------------------------------------------------- carrying


@pytest.mark.parametrize(
    ("claimed", "memory"),
    [
        ("hi", "Owns a yacht"),
        ("I moved to Porto last week", "Owns a yacht"),
        ("Hi there!", "The user is a pilot"),
        ("搬到苏州", "喜欢打篮球"),
        ("for a job at the hospital", "Has a brother who likes opera and teaches piano at school, a job"),
    ],
)
def test_a_true_quote_beside_another_statement_carries_nothing(claimed: str, memory: str) -> None:
    """Words that say nothing of the memory are no evidence for it, though the user said them."""
    assert judged(memory, turns("hi", *SAID), claimed) == UNSAID


@pytest.mark.parametrize(
    ("said", "memory"),
    [
        ("I moved to Porto last week", "Lives in Porto"),
        ("I teach chemistry", "Is a chemistry teacher"),
        ("I'm thirty-four", "Age is 34"),
        ("I have 2 dogs", "Has two dogs"),
        ("Yesterday I ran a marathon", "Ran a marathon on 2026-03-01"),
        ("My wedding is on 14 May 2027", "Wedding is on 2027-05-14"),
        ("I started here five years ago", "Started the job in 2021"),
        ("I live in NYC", "Lives in New York City"),
        ("我在成都开一家面馆", "用户在成都经营一家面馆"),
        ("저는 부산에 살아요", "부산에 산다"),
        ("Ich trinke keinen Kaffee", "Trinkt keinen Kaffee"),
        ("أنا مهندس وأعيش في عمّان", "مهندس في عمان"),
        ("I sold my car", "Has no car any more"),
        ("I can't wait to see Rome", "Looks forward to seeing Rome"),
        ("No, I live in Rome, not in Milan", "Lives in Rome"),
    ],
)
def test_what_the_user_said_in_other_words_passes(said: str, memory: str) -> None:
    """Other endings, numbers in words, absolute dates, initials and idioms are what was said."""
    assert judged(memory, turns(said)) is None


@pytest.mark.parametrize(
    ("said", "memory", "reason"),
    [
        ("I have two dogs", "Has three dogs", NUMBER),
        ("I have dogs", "Has 12 dogs", NUMBER),
        ("I run every day", "Runs every day at 06:30", NUMBER),
        ("I ran a marathon", "Ran a marathon on 2025-05-05", NUMBER),
        ("I have a dog", "Has a dog, Rex", NAME),
        ("Ich wohne am Meer", "Wohnt am Meer in Kiel", NAME),
        ("猫を飼っています", "猫のミケを飼っています", NAME),
        ("我养了一只猫", "养了一只叫豆包的猫", NAME),
        ("I drink alcohol", "Doesn't drink alcohol", NOT_NEGATED),
        ("I don't drink alcohol", "Drinks alcohol", NEGATED),
        ("I'm not vegan, but I never eat pork", "Is vegan", NEGATED),
        ("我不吃辣", "吃辣", NEGATED),
        ("我叫林曦，养了一只猫", "Has a cat", FOREIGN),
    ],
)
def test_what_was_invented_is_refused(said: str, memory: str, reason: str) -> None:
    """A number, a name, a negation or a language that the user's words don't hold is said to be so."""
    assert judged(memory, turns(said)) == reason


@pytest.mark.parametrize(
    ("asked", "answer", "memory"),
    [
        ("Window or aisle?", "Aisle, always.", "Prefers aisle seats"),
        ("So you're 52 and retired?", "Yes, exactly.", "Is 52 and retired"),
        ("Three plans: 1. gym, 2. swimming, 3. yoga. Which one?", "The second one.", "Prefers swimming"),
        ("Do you like opera?", "Not really.", "Doesn't like opera"),
        ("Do you have pets?", "Two. Both rabbits.", "Has two pet rabbits"),
        ("您住在上海吗？", "是的", "住在上海"),
        ("Wohnen Sie in Kiel?", "Ja, genau.", "Wohnt in Kiel"),
    ],
)
def test_an_answer_carries_what_was_asked(asked: str, answer: str, memory: str) -> None:
    """The question is part of what an answer says."""
    assert judged(memory, talk(asked, answer)) is None


@pytest.mark.parametrize(
    ("asked", "answer", "memory", "reason"),
    [
        ("As you own a red kayak, go to the lake.", "Great idea!", "Owns a red kayak", UNSAID),
        ("As you own a red kayak, shall I look for a lake?", "Yes, please.", "Owns a red kayak", UNSAID),
        ("You own a red kayak. Shall I look for a lake?", "Yes, please.", "Owns a red kayak", UNSAID),
        ("Do you own a kayak?", "Thanks!", "Owns a kayak", UNSAID),
        ("Try restarting the router.", "That worked!", "Restarted the router; it worked", ECHO),
        ("Are you vegan?", "No.", "Is vegan", NEGATED),
        ("Do you live in Rome?", "No, in Pisa.", "Lives in Rome", NEGATED),
    ],
)
def test_what_the_assistant_says_is_no_source(asked: str, answer: str, memory: str, reason: str) -> None:
    """What it states, presumes or asks in vain is not what the user said."""
    assert judged(memory, talk(asked, answer)) == reason


def test_an_update_brings_news_of_its_own() -> None:
    """Only what is new in it must be carried; that what was known no longer holds needs no word."""
    known = "Works at Brightwater Logistics"
    spoken = turns("I started at Oakline on Monday")
    assert judged("Works at Oakline; no longer at Brightwater Logistics", spoken, known=known) is None
    assert judged("Works at Brightwater Logistics as a planner", spoken, known=known) == NO_NEWS
    assert judged("Works at Brightwater Logistics since 2026-03-02", spoken, known=known) == NO_NEWS
    assert judged("Works at Oakline, doesn't like trains", spoken, known=known) == NOT_NEGATED
    assert judged("Works at Brightwater Logistics; started at Oakline before", spoken, known=known) == PAST


def test_an_update_of_a_memory_in_another_script_is_left_to_its_quote() -> None:
    """Words can't be compared across scripts, numbers can."""
    spoken = turns("我3月要搬到苏州")
    assert judged("Lives in Leeds, moves to Suzhou", spoken, known="Lives in Leeds") is None
    assert judged("Lives in Leeds, has 8 cats", spoken, known="Lives in Leeds") == NUMBER


def test_names_that_are_known_may_be_named() -> None:
    """Whom "she" means may stand in another memory."""
    spoken = turns("My daughter starts school")
    evidence = Evidence("My daughter starts school", (0,))
    assert objection(evidence, "Her daughter Wilma starts school", spoken) == NAME
    assert objection(evidence, "Her daughter Wilma starts school", spoken, names=["Has a daughter, Wilma"]) is None


def test_words_far_from_the_evidence_do_not_carry() -> None:
    """Only the sentences beside the evidence are around it."""
    spoken = turns("I moved. It rained. It was cold. My boss bought a yacht.")
    assert judged("Owns a yacht", spoken, "I moved") == UNSAID
    assert judged("Moved in the cold", spoken, "It rained") is None
    assert judged("Owns a yacht", spoken, "rained. It was") is None, (
        "words across sentences have the whole turn around them"
    )


# ------------------------------------------------------------------------------------------------------ duplicates


@pytest.mark.parametrize(
    ("text", "known", "same"),
    [
        ("Has 4 ovens", "Has four ovens", True),
        ("The user has four ovens", "Has four ovens", True),
        ("Has five ovens", "Has four ovens", False),
        ("Has no ovens", "Has ovens", False),
        ("Likes horses", "Has a daughter, Mia, who likes horses", False),
        ("住在苏州", "住在苏州", True),
    ],
)
def test_the_same_in_other_words(text: str, known: str, same: bool) -> None:
    """Frames, endings and number words don't matter; numbers, negations and left-out details do."""
    assert says_the_same(text, known) == same


# ------------------------------------------------------------------------------------------------------------ laws


@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text(max_size=80), max_size=3))
def test_evidence_never_fails(claimed: str, memory: str, said: list[str]) -> None:
    """Whatever is claimed and said, the result is evidence of messages that are there or none, never blank."""
    spoken = turns(*said)
    found = find_evidence(claimed, memory, spoken)
    if found is not None:
        assert found.words
        assert found.words.strip()
        assert found.sources
        assert set(found.sources) <= set(range(len(said)))
        objection(found, memory, spoken)


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll", "Lo", "Nd", "Zs"]), min_size=1, max_size=60))
def test_what_was_said_is_evidence_for_itself(text: str) -> None:
    """A whole message, quoted, is always evidence."""
    if text.strip():
        assert words(text, "anything", text) == text.strip()


LETTERS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzäöüéñ", min_size=3, max_size=9)


@given(st.lists(LETTERS, min_size=1, max_size=6), st.sampled_from(["NFC", "NFD"]), st.booleans())
def test_folding_never_loses_evidence(said: list[str], form: str, upper: bool) -> None:
    """Case, spaces and Unicode form of a quote never matter."""
    text = " ".join(said)
    claimed = unicodedata.normalize(form, "  ".join(said))
    assert words(claimed.upper() if upper else claimed, "anything", text) is not None


@given(st.lists(LETTERS, min_size=1, max_size=5, unique=True), st.lists(LETTERS, min_size=1, max_size=5, unique=True))
def test_unrelated_words_never_carry(said: list[str], memory: list[str]) -> None:
    """A memory that has no word's beginning in common with what was said never passes."""
    assume(not {word[:3] for word in said} & {word[:3] for word in memory})
    assert judged(" ".join(memory), turns(" ".join(said))) is not None


@given(st.integers(2, 10**6), st.integers(2, 10**6))
def test_a_number_passes_if_and_only_if_it_was_said(said: int, written: int) -> None:
    """Of two numbers only the one that was said may be written."""
    assume(not 1800 <= written < 2200)
    assert judged(f"Earns {written} a month", turns(f"I earn {said} a month")) == (None if said == written else NUMBER)


_WORDS = ["I", "Owns", "four", "4", "boats", "boat", "Bo", "not", "我", "我在", "苏州", "Ivo's", "ivory", "tea", "teas"]
_PHRASES = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=5).map(" ".join)


@given(_PHRASES, _PHRASES)
def test_unlike_beginnings_never_hide_the_same_statement(text: str, known: str) -> None:
    """The shortcut by first letters rules out only what the whole comparison rules out."""
    words, there = content(text), content(known)

    def shared(one: set[str], other: set[str], words_of: str) -> set[str]:
        return common(one, other) | {word for word in one if said_numbers(word) & said_numbers(words_of)}

    assert says_the_same(text, known) == (
        shared(words, there, known) == words
        and len(shared(there, words, text)) >= 0.6 * len(there)
        and is_negated(text) == is_negated(known)
    )
