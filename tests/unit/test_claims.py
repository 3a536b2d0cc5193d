"""Names and negations that a memory claims."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.claims import backdates, clauses, denies, is_averse, is_negated, unsaid_name, unsaid_negation


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Works at Oakline Foods", "I'm at oakline foods"),
        ("Lives in New York City", "I live in NYC"),
        ("Works for NASA", "I'm with the National Aeronautics Space Administration"),
        ("Is Portuguese", "I'm from Portugal"),
        ("Met Ana's brother", "I met Ana's brother"),
        ("Zoltan is a friend. The user trusts him", "My friend Zoltan, I trust him"),
        ("The User watches TV on Monday", "I watch television"),
        ("Says: Hello", "I say hello"),
        ("Arbeitet als Tischlerin in Rostock", "ich bin tischlerin in rostock"),
        ("Hat einen Dackel und mag Kuchen", "mein hund liebt torte"),
        ("Живёт в Казани", "я живу в казани"),
        ("养了一只叫豆包的猫", "我有只猫叫豆包"),
        ("コーヒーが好き", "コーヒーが好きです"),
        ("", ""),
    ],
)
def test_names_that_were_said_pass(text: str, said: str) -> None:
    """Case, endings, initials and a sentence's first capital are no inventions."""
    assert unsaid_name(text, [said]) is None


@pytest.mark.parametrize(
    ("text", "said", "name"),
    [
        ("Has a dog, Rex", "I have a dog", "Rex"),
        ("Has a dog, Bo", "I have a dog and a boat", "Bo"),
        ("Lives in Los Altos Hills", "I live in NYC", "Los"),
        ("Works for NASA", "I work at an office", "NASA"),
        ("NASA employs the user", "I work at an office", "NASA"),
        ("Wohnt in Kiel und hat einen Hund", "ich wohne am meer, mein hund", "Kiel"),
        ("Живёт в Казани", "я живу в городе", "Казани"),
        ("养了一只叫豆包的猫", "我有只猫", "豆包"),
        ("ミケという猫を飼っている", "猫を飼っています", "ミケ"),
    ],
)
def test_names_that_nobody_said_are_found(text: str, said: str, name: str) -> None:
    """A name that stands in no words of the user is named, in each script that shows names."""
    assert unsaid_name(text, [said]) == name


@pytest.mark.parametrize(
    "text",
    ["I don't smoke", "I can’t swim", "never", "kein Kaffee", "nicht", "no vivo aquí", "не ем рыбу", "我不吃鱼",
     "食べません", "안 먹어요", "못 먹어요", "لا آكل السمك", "je ne fume pas"],
)  # fmt: skip
def test_negations_are_seen(text: str) -> None:
    """Each language's ways to say no are seen."""
    assert is_negated(text)
    assert is_averse(text)


@pytest.mark.parametrize(
    "text",
    ["I smoke", "can't wait to go", "Don't forget I'm vegan", "Notes are nice", "nicht nur Tee", "这不错", "少ない",
     "안녕하세요", "Нетерпение", "knows Noah"],
)  # fmt: skip
def test_idioms_are_no_negations(text: str) -> None:
    """What only looks like a negation is none."""
    assert not is_negated(text)


def test_what_is_hated_or_over_is_averse() -> None:
    """A text may say no in other words."""
    assert is_averse("Hates opera")
    assert is_averse("Was a baker")
    assert not is_averse("Bakes bread")


def test_texts_fall_into_clauses() -> None:
    """Punctuation and common conjunctions part clauses."""
    assert clauses("I'm not vegan, but I never eat pork. 我不吃辣，但是吃鱼") == [
        "I'm not vegan", "I never eat pork", "我不吃辣", "吃鱼",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "words", "denied"),
    [
        ("Drinks alcohol", "I don't drink alcohol", True),
        ("Doesn't drink alcohol", "I don't drink alcohol", False),
        ("Dislikes beaches", "I don't like beaches", False),
        ("Lives in Rome", "No, I live in Rome", False),
        ("Lives in Rome", "No. I live in Rome, not in Milan", False),
        ("Prefers tea", "I don't like coffee, I prefer tea", False),
        ("Plays chess", "I don't ski", False),
        ("Plays chess", "No.", False),
        ("Speaks Finnish; never spoke it before", "I don't speak Finnish", True),
    ],
)
def test_what_the_user_denies(memory: str, words: str, denied: bool) -> None:
    """The clause that carries the memory decides; the word no that answers a question does not."""
    assert denies(memory, words) == denied


@pytest.mark.parametrize(
    ("memory", "said", "backdated"),
    [
        ("Prefers window seats; took the aisle before", "I take the aisle", True),
        ("Prefers the aisle; preferred window seats before", "I take the aisle", False),
        ("Prefers window seats; took the aisle before", "I used to take the aisle", False),
        ("Prefers window seats and coffee", "I like coffee", False),
        ("Prefers window seats; took the aisle before", "You said I was fond of windows. I take the aisle", True),
        ("Prefers window seats since the flight was cold", "I like coffee", False),
    ],
)
def test_what_holds_now_is_not_of_the_past(memory: str, said: str, backdated: bool) -> None:
    """News that an update puts into its past, though the user says them of now, are turned around."""
    assert backdates(memory, "Prefers window seats", said) == backdated


@pytest.mark.parametrize(
    ("memory", "known", "said", "invented"),
    [
        ("Doesn't eat fish", "", "I eat fish", True),
        ("Doesn't eat fish", "", "I don't eat fish", False),
        ("Doesn't eat meat", "", "I'm vegetarian", False),
        ("Has no car", "Has a car", "I sold the car", False),
        ("Drives a van, no longer a car", "Drives a car", "I drive a van", False),
        ("Drives a van, never a bus", "Drives a car", "I drive a van", True),
        ("Eats fish", "", "I eat fish", False),
    ],
)
def test_negations_that_nobody_said(memory: str, known: str, said: str, invented: bool) -> None:
    """A negation needs one of the user's, unless it only ends what was known."""
    assert unsaid_negation(memory, known, [said]) == invented


@given(st.text(max_size=60), st.text(max_size=60))
def test_what_was_said_whole_is_never_invented(text: str, said: str) -> None:
    """A text that repeats what was said holds no name and no negation of its own."""
    assert unsaid_name(text, [said, text]) is None
    assert not unsaid_negation(text, "", [said, text])


def test_one_name_has_no_initials() -> None:
    """A single letter of the user's ("don't") is no short form of a name that begins with it."""
    assert unsaid_name("Lives in Turin", ["I don't live there"]) == "Turin"
