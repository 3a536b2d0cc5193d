"""Support: what a result says that no source does."""

import pytest

from asyncmem.optimize import Fact, invented
from asyncmem.optimize.supporting import is_foreign, supported
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
