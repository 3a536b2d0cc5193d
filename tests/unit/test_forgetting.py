"""Wishes to forget: which are seen, and that what only sounds like one is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.forgetting import wishes_to_forget

WISHES = [
    "Please forget where I work.",
    "Forget my weight please.",
    "Delete what you know about my divorce. And I take the tram.",
    "Don’t remember my salary, remove it.",
    "Forget everything about me",
    "I moved. Could you please forget that I was ill?",
    "Stop remembering where I go.",
    "I want you to forget my birthday",
    "Wipe your memory",
    "Erase everything you know about me",
    "Forget about my ex.",
    "Bitte vergiss, wo ich wohne.",
    "Vergiss bitte meine Adresse",
    "Lösche alles, was du über mich weißt",
    "Merk dir das nicht",
    "Olvida que trabajo de noche, por favor.",
    "Por favor, borra todo lo que sabes de mí",
    "No recuerdes mi edad",
    "Забудь, пожалуйста, где я живу.",
    "Забудь про моего брата",
    "Удали всё, что знаешь обо мне",
    "Не запоминай это",
    "请忘掉我住在哪里。",
    "把我的地址删掉",
    "不要记住我的年龄",
    "帮我忘记关于我女儿的事",
    "私の住所を忘れてください。",
    "年齢のことは忘れて",
    "私についての情報を削除してください",
    "覚えないで",
    "제 나이는 잊어 주세요",
    "제 정보를 삭제해 주세요",
    "기억하지 마세요",
    "انسَ أين أعيش",
    "من فضلك انس عنواني",
    "احذف كل ما تعرفه عني",
    "لا تتذكر عمري",
]
NO_WISHES = [
    "",
    "I like tea.",
    "Don't forget my birthday",
    "I forgot my keys",
    "Forget it, thanks.",
    "I always forget names",
    "I'll never forget that day",
    "Delete this file please",
    "Remove the first line of my essay",
    "Remove the mushrooms from my pizza",
    "I don't remember my password",
    "He told me to forget about him",
    "How do I delete my account?",
    "Vergiss nicht, dass ich vegan bin",
    "Ich habe vergessen, wo es ist",
    "No olvides que soy vegano",
    "Olvidé mi paraguas",
    "Не забудь про молоко",
    "Я забыл, где ключи",
    "别忘了我的生日",
    "不要忘记我的生日",
    "你忘了我的名字吗",
    "我忘了带伞",
    "我忘记关于会议的事了",
    "傘を忘れてしまった",
    "忘れていました",
    "忘れてはいけないのは母の誕生日",
    "우산을 잊어버렸어요",
    "잊지 마세요",
    "لا تنس أنني نباتي",
    "نسيت مفاتيحي",
]


@pytest.mark.parametrize("text", WISHES)
def test_a_plain_wish_is_seen(text: str) -> None:
    """A request to forget is seen in each of eight languages."""
    assert wishes_to_forget(text)


@pytest.mark.parametrize("text", NO_WISHES)
def test_what_only_sounds_like_a_wish_is_none(text: str) -> None:
    """Not forgetting, having forgotten, and removing other things are no wishes."""
    assert not wishes_to_forget(text)


@given(st.sampled_from(WISHES), st.sampled_from(["I like tea. ", "我喜欢茶。", "Hallo!\n"]))
def test_a_wish_is_seen_behind_other_sentences(wish: str, before: str) -> None:
    """What is said before a wish doesn't hide it."""
    assert wishes_to_forget(before + wish)


@given(st.text(max_size=80))
def test_any_text_is_answered(text: str) -> None:
    """Whatever the text, there is an answer, and case doesn't change it for plain letters."""
    assert wishes_to_forget(text) in (True, False)
    if text.isascii():
        assert wishes_to_forget(text) == wishes_to_forget(text.upper())
