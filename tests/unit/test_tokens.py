"""Tokens: what a text is found by, in any script."""

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.tokens import LONGEST, query_tokens, stem, tokenize, warm_up


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Likes running, LIKED runs!", ["like", "run", "like", "run"]),
        ("Größe der Straße", ["gross", "der", "strass"]),
        ("caf\u00e9 cafe\u0301 CAFÉ", ["cafe"] * 3),
        ("ＡＢＣ１２", ["abc12"]),
        ("ORD-4711", ["ord", "4711", "ord-4711"]),
        ("snake_case", ["snake", "case", "snake_case"]),
        ("ana@x.org", ["ana", "x", "org", "ana@x.org"]),
        ("C C# C++", ["c", "c#", "c++"]),
        ("1,234.50 and 12,34", ["1234.50", "and", "12", "34"]),
        (
            "2026-01-05 10:30",
            ["2026", "01", "05", "2026-01-05", "10", "30", "10:30", "--01", "--01-05", "2026-01"],
        ),
        ("She went, has gone and goes", ["she", "go", "has", "go", "and", "go"]),
        ("Anna Maria: likes it", ["anna", "maria", "like", "it", "anna:", "maria:"]),
        ("小明：茶", ["小", "明", "小明", "茶", "小:", "明:", "小明:"]),
        ("10: 30, see https://x.org", ["10", "30", "see", "https", "x", "org", "x.org"]),
        ("e-mails", ["e", "mail", "email"]),
        ("Anna's Anna’s don't", ["anna", "anna", "don", "t"]),
        ("C#'s", ["c#", "s"]),
        ("-tea \"$where\" {'$ne': .*}", ["tea", "where", "ne"]),
        ("苏州", ["苏", "州", "苏州"]),
        ("iPhone手机", ["iphon", "手", "机", "手机"]),
        ("カレー", ["カ", "レ", "ー", "カレ", "レー"]),
        ("커피", ["커", "피", "커피"]),
        ("Ёлки йогой", ["елк", "йог"]),
        ("القَهْوَة", tokenize("القهوة")),
        ("मुझे हिन्दी", ["मुझे", "हिन्दी"]),
        ("๑๒ บา", ["12", "บ", "า", "บา"]),
        ("٣٤", ["34"]),
        ("a\u200bb so\u00adft", ["ab", "soft"]),
        ("🙂 — ''' …", []),
        ("", []),
    ],
)
def test_tokens_of_texts(text: str, expected: list[str]) -> None:
    """Words are folded and stemmed by script, ids and numbers whole, scripts without spaces as uni- and bigrams."""
    assert tokenize(text) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Where does she live?", ["live", "live:"]),
        ("Wo wohnt der Hund", ["wohnt", "hund", "wohnt:", "hund:"]),
        ("where is the", ["where", "is", "the", "where:", "is:", "the:"]),
        ("猫的", ["猫", "猫的", "猫:", "猫的:"]),
        ("in June", ["june", "--06", "june:", "--06:"]),
        ("", []),
    ],
)
def test_queries_drop_function_words(query: str, expected: list[str]) -> None:
    """Function words count only where there is nothing else; a query asks for its words as labels as well."""
    assert query_tokens(query) == expected


@given(st.text())
def test_any_text_has_sound_tokens(text: str) -> None:
    """No text fails; tokens are not empty, hold no space and are not longer than allowed."""
    for token in tokenize(text):
        assert token
        assert token.split() == [token]
        assert len(token) <= LONGEST


@given(st.text())
def test_case_and_form_do_not_matter(text: str) -> None:
    """A text has the same tokens when it is folded before."""
    assert tokenize(text.casefold()) == tokenize(text.casefold().casefold())


def test_long_words_are_cut() -> None:
    """A word of any length is one token of bounded length."""
    assert [len(token) for token in tokenize("a" * 500 + " " + "7" * 500 + " " + "x1" * 500)] == [64, 64, 64]
    assert stem("x" * 100) == stem("x" * 64)
    assert {len(token) for token in query_tokens("7" * 500)} == {64}


@pytest.mark.anyio
async def test_long_texts_are_stemmed_beside_the_event_loop() -> None:
    """Warming up a text of thousands of new words leaves the event loop free; its tokens are then at hand."""
    text = " ".join(f"{chr(97 + n % 26)}unheard{n}ofness" for n in range(900))
    text = re.sub(r"\d+", lambda number: "".join(chr(97 + int(digit)) for digit in number[0]), text)
    turns, running = 0, True

    async def watch() -> None:
        nonlocal turns
        while running:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(watch())
    before = stem.cache_info().misses
    await warm_up(text)
    running = False
    await task
    assert turns > 1
    warmed = stem.cache_info().misses
    assert warmed - before > 800
    assert len(tokenize(text)) == 900
    assert stem.cache_info().misses == warmed


def test_irregular_forms_meet_their_word() -> None:
    """What no rule of endings finds is the same word."""
    assert stem("bought") == stem("buys") == stem("buying") == "buy"
    assert stem("children") == stem("child")
    assert stem("written") == stem("writes")
    assert stem("lives") == stem("live") != stem("life")
