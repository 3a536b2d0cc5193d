"""Answers: which of the assistant's words they take up."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.answers import Turn, asked_for, user_turns
from asyncmem.sentences import sentences_of

DAY = date(2026, 3, 2)


@pytest.mark.parametrize(
    ("said", "answer", "question"),
    [
        ("Window or aisle?", "Aisle, always.", "Window or aisle?"),
        ("1. gym 2. yoga. Which one?", "The second one", "1. gym 2. yoga. Which one?"),
        ("Hello!", "Aisle", ""),
        ("Window or aisle?", "Thanks!", ""),
        ("Window or aisle?", "", ""),
        ("You own a boat. Shall we sail?", "Yes", "Shall we sail?"),
        ("As you own a boat, shall we sail?", "Yes", " shall we sail?"),
        ("How was it?", "I went to see my old friends in the north and it rained", ""),
        ("Was it you?", "Yes, I went to see my old friends in the north, all alone", "Was it you?"),
        ("您住在上海吗？", "是的", "您住在上海吗？"),
    ],
)
def test_what_an_answer_takes_up(said: str, answer: str, question: str) -> None:
    """A question is taken up by a short answer or one that agrees; statements about the user are not."""
    assert asked_for(said, answer) == question


def test_each_user_turn_has_its_question() -> None:
    """The assistant's turns right before a user turn are what it answers."""
    talk = [
        ("user", "Hi", DAY, 0),
        ("assistant", "Tea?", DAY, 2),
        ("assistant", "Green?", DAY, 3),
        ("user", "Yes", DAY, 4),
        ("user", "Hot", DAY, 5),
        ("assistant", "Fine.", DAY, 6),
        ("user", "Bye", DAY, 7),
    ]
    assert user_turns(talk) == [
        Turn(0, "Hi", DAY),
        Turn(4, "Yes", DAY, "Tea? Green?", "Tea?\nGreen?"),
        Turn(5, "Hot", DAY, "Tea? Green?", "Tea?\nGreen?"),
        Turn(7, "Bye", DAY, "", "Fine."),
    ]


@pytest.mark.parametrize(
    ("text", "question", "assents"),
    [("Yes", "Tea?", True), ("No", "Tea?", True), ("B", "Tea?", True), ("Black", "Tea?", False), ("Yes", "", False)],
)
def test_assent(text: str, question: str, assents: bool) -> None:
    """Agreeing, denying and choosing take the question's words as one's own."""
    assert Turn(0, text, DAY, question).assents == assents


def test_sentences() -> None:
    """Sentences end where they do in any script."""
    assert sentences_of("Hi! I'm Ana.\n我很好。 ok") == ["Hi!", "I'm Ana.", "我很好。", "ok"]


@given(st.text(max_size=60), st.text(max_size=40))
def test_a_question_is_made_of_the_assistants_words(said: str, answer: str) -> None:
    """Nothing is taken up that the assistant did not say."""
    assert all(word in said for word in asked_for(said, answer).split())
