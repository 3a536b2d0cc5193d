"""Words as they are compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.wording import alike, common, content, is_wide, language_of, scripts, share, share_words, tokens


def test_tokens_are_words_and_pairs() -> None:
    """Words of three letters and more, numbers, and pairs of characters of scripts without spaces."""
    assert tokens("I've 2 cats, 豆包!") == {"2", "cats", "豆包"}
    assert tokens("面馆在") == {"面馆", "馆在"}
    assert tokens("عمّان") == tokens("عمان")


def test_names_of_two_letters_are_words() -> None:
    """Bo and Li are names where they don't begin a sentence; it, my and so are none."""
    assert tokens("Works with Bo and, Li. It is so") == {"works", "with", "bo", "and", "li"}
    assert tokens("Bo works") == {"works"}


def test_content_is_without_frames() -> None:
    """What frames a fact carries none; a text of frames alone keeps its words."""
    assert content("The user has two cats") == {"two", "cats"}
    assert content("用户住在成都") == tokens("住在成都")
    assert content("The user has") == {"the", "user", "has"}
    assert content("") == set()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("teach", "teacher", True), ("walks", "walking", True), ("12", "123", False), ("cat", "dog", False)],
)
def test_endings_do_not_matter(one: str, other: str, same: bool) -> None:
    """Words are the same but for their endings; numbers only when equal."""
    assert alike(one, other) == same


def test_shares() -> None:
    """What is known counts neither way; a text without words shares nothing by itself, and all in common."""
    assert share("red kayak", "a red boat") == 0.5
    assert share("red kayak", "a kayak", "red") == 1.0
    assert share("", "x") == 0.0
    assert share_words("", "red")
    assert not share_words("red", "blue")
    assert common({"red", "blue"}, {"reds"}) == {"red"}


@pytest.mark.parametrize(
    ("text", "found"),
    [("Ana 豆包", {"latin", "east asian"}), ("Анна", {"cyrillic"}), ("عمان", {"arabic"}), ("12 !", set())],
)
def test_scripts(text: str, found: set[str]) -> None:
    """The scripts of a text are those of its letters."""
    assert scripts(text) == found
    assert is_wide(text) == ("east asian" in found)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I live in Leeds and I have a cat", None),
        ("Ich wohne in Kiel und bin müde", "German"),
        ("Vivo en Cuenca y soy veterinaria", "Spanish"),
        ("J'habite à Lyon et je suis prof", "French"),
        ("Sono di Trieste e lavoro in una scuola", "Italian"),
        ("Eu moro em Braga e não fumo", "Portuguese"),
        ("Я живу в Казани", "Russian"),
        ("Я живу у Києві, її місто", "Ukrainian"),
        ("我住在成都", "Chinese"),
        ("京都に住んでいます", "Japanese"),
        ("부산에 살아요", "Korean"),
        ("أعيش في عمّان", "Arabic"),
        ("Kiel", None),
        ("What does 面馆 mean in English?", None),
        ("", None),
    ],
)
def test_languages(text: str, language: str | None) -> None:
    """A language is named where letters or everyday words make it plain, English never."""
    assert language_of(text) == language


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_share_is_a_share(text: str, words: str) -> None:
    """Shares lie between none and all, and a text has all of itself."""
    assert 0.0 <= share(text, words) <= 1.0
    assert share(text, text) in (0.0, 1.0)
    assert content(text) <= tokens(text) | content(text)
