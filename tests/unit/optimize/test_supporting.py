"""Support: what a result says that no source does."""

import pytest

from asyncmem.optimize import Fact, invented
from asyncmem.optimize.supporting import added, is_foreign, supported
from asyncmem.types import UserMemory


def memories(*texts: str) -> list[UserMemory]:
    """Memories of these texts."""
    return [UserMemory(memory=text) for text in texts]


SOURCES = memories("Has 2 cats named Pip", "Doesn't eat meat", 'Says "no worries"', "Born on 2021-03-13")


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ("Has two cats named Pip. Doesn't eat meat.", []),
        ("Has 2 cats named Pip", []),
        ("Born on March 13, 2021", []),
        ('Often says "no worries"', []),
        ("Has 5 cats and 7 dogs", [Fact("number", "5"), Fact("number", "7")]),
        ("Has a cat named Bo", [Fact("name", "Bo")]),
        ("Born on 2022-03-13", [Fact("number", "2022-03-13")]),
        ('Says "oh no"', [Fact("quoted", "oh no")]),
        ("Doesn't like cats", [Fact("negation", "Doesn't like cats")]),
        ("Doesn't eat meat", []),
        ("Born on 2021-03-13 at 2 pm", [Fact("number", "2 pm")]),
    ],
)
def test_what_nobody_said_is_found(result: str, found: list[Fact]) -> None:
    """Numbers, names, dates, quotations and negations that no source has, and no others."""
    assert invented(SOURCES, memories(result)) == found


def test_many_inventions_are_named_up_to_a_bound() -> None:
    """A text full of numbers and names names eight of each."""
    text = ". ".join(f"Has {n} cats of Town{n}" for n in range(20, 40))
    found = invented(SOURCES, memories(text))
    assert [fact.kind for fact in found] == ["number"] * 8 + ["name"] * 8


@pytest.mark.parametrize(
    ("source", "text", "foreign"),
    [
        ("Likes tea and the sea", "Enjoys the sea and tea", False),
        ("Likes tea", "喜欢茶", True),
        ("Likes tea and coffee in the morning", "Trinkt Tee und ist mit Kaffee in der Stadt", True),
        ("Mag Tee und ist nicht alt", "Ist nicht alt und mag Tee", False),
        ("喜欢茶", "喜欢茶。", False),
        ("Likes tea", "Somebody is happy today", True),
    ],
)
def test_another_language_is_noticed(source: str, text: str, *, foreign: bool) -> None:
    """Another script, another language, or words that the sources don't have."""
    assert is_foreign(memories(source), text) is foreign


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Has 2 cats named Pip. Is a kind person.", "Has 2 cats named Pip."),
        ("Has 2 cats named Pip.\nIs kind.\nDoesn't eat meat.", "Has 2 cats named Pip.\nDoesn't eat meat."),
        ("Has 2 cats named Pip and 13 dogs.", ""),
        ("The user, also, has 2 cats named Pip.", "The user, also, has 2 cats named Pip."),
        ("👍. Doesn't eat meat.", "Doesn't eat meat."),
    ],
)
def test_sentences_without_a_source_are_left_out(text: str, kept: str) -> None:
    """A sentence stays if each of its clauses says what a source says, with no number or name of something else."""
    assert supported(SOURCES, text) == kept


HOURS = memories("Wakes at 3", "Lunch at 12:30", "Sleeps at 11 p.m.", "Runs at 7 am")


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ("Wakes at 3 pm every day", [Fact("number", "3 pm")]),
        ("Lunch at 12:30 pm and a run at 7 a.m.", []),
        ("Sleeps at 11 PM sharp", []),
        ("Sleeps at 11 AM sharp", [Fact("number", "11 AM")]),
    ],
)
def test_the_half_of_the_day_is_not_made_up(result: str, found: list[Fact]) -> None:
    """Before or after noon is found where no source says it, or says the other."""
    assert invented(HOURS, memories(result)) == found


WORK = memories("Works nights", "Plays chess every evening", "Ben is a nurse", "야간에 일한다", "喜欢登山")


@pytest.mark.parametrize(
    ("sentence", "is_kept"),
    [
        ("Works nights as a smuggler.", False),
        ("Plays chess badly.", False),
        ("Plays chess every evening when drunk.", False),
        ("Works nights and plays chess every evening.", True),
        ("Ben, who is a nurse, has work.", False),
        ("Ben is also a nurse.", True),
        ("야간에 일하며.", True),
        ("喜欢登山。", True),
        ("喜欢登山和狗。", False),
    ],
)
def test_words_that_no_source_has_are_no_part(sentence: str, *, is_kept: bool) -> None:
    """A sentence with a word of its own that isn't one that joins is left out, and named."""
    assert supported(WORK, sentence) == (sentence if is_kept else "")
    assert added(WORK, sentence) == ([] if is_kept else [sentence])


@pytest.mark.parametrize(
    ("sources", "text", "foreign"),
    [
        (["Abita a Milano", "Ha due figli"], "Abita a Milano e ha due figli, e abita con due figli.", False),
        (["Likes tea", "Has two cats"], "Ama il tè e ha due gatti, che sono belli.", True),
        (["Ist nicht alt und mag den Tee"], "Tiene los gatos y una casa con té.", True),
        (["Vive en Valencia con Hugo y los perros"], "Vive em Valencia com Hugo e os cães.", True),
    ],
)
def test_fragments_are_in_their_language(sources: list[str], text: str, *, foreign: bool) -> None:
    """Where the sources' language can't be told, most of the words must be theirs; else it must be the same."""
    assert is_foreign(memories(*sources), text) is foreign
