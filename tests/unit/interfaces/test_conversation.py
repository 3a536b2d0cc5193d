"""Conversations to demonstrate on."""

import json
from pathlib import Path
from typing import Any

import pytest

from asyncmem import ConfigurationError, InvalidMessageError, Message
from asyncmem.interfaces.conversation import QUESTIONS, Conversation, Expectation


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_the_shipped_example_is_complete() -> None:
    """About twenty turns over two sessions, three questions, a wish to forget."""
    shipped = Conversation.shipped()
    times = [turn.at for turn in shipped.turns if turn.at]
    assert times == sorted(times)
    days = {time.date() for time in times}
    assert 18 <= len(shipped.turns) == len(times) <= 26
    assert len(days) == 2
    assert len(shipped.questions) == 3
    assert any("forget" in turn.content.lower() for turn in shipped.turns if turn.role == "user")
    assert any(expectation.none_of for expectation in shipped.expected)


def test_a_list_of_messages_is_a_conversation(tmp_path: Path) -> None:
    """A plain list gets the general questions and nothing to compare with."""
    messages = [{"role": "user", "content": "I like tea"}, {"role": "assistant", "content": "Green?"}]
    loaded = Conversation.load(write(tmp_path / "c.json", messages))
    assert loaded.turns == [Message(content="I like tea"), Message(role="assistant", content="Green?")]
    assert [q.ask for q in loaded.questions] == list(QUESTIONS)
    assert loaded.expected == []


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("{nonsense", ConfigurationError, "is no JSON"),
        ("[" * 100_000, ConfigurationError, "is no JSON"),
        ({"turn": []}, ConfigurationError, "is no conversation"),
        (5, ConfigurationError, "is no conversation"),
        ([{"role": "user"}], InvalidMessageError, "content"),
    ],
)
def test_unusable_files_are_explained(tmp_path: Path, value: Any, error: type[Exception], message: str) -> None:
    """What is no conversation is named, not traced."""
    with pytest.raises(error, match=message):
        Conversation.load(write(tmp_path / "c.json", value))


def test_missing_and_binary_files_are_explained(tmp_path: Path) -> None:
    """A file that is not there, or holds no text."""
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    for name in ("none.json", "b.json", "."):
        with pytest.raises(ConfigurationError, match="can't be read"):
            Conversation.load(tmp_path / name)


def test_captures_are_user_turns_with_the_question_before_them() -> None:
    """An assistant's turn goes with the user's answer to it; other turns stand alone."""
    turns = [Message(role=r, content=c) for r, c in (("user", "a"), ("assistant", "b"), ("user", "c"), ("user", "d"))]
    captures = Conversation(turns=turns).captures()
    assert [[m.content for m in piece] for piece in captures] == [["a"], ["b", "c"], ["d"]]


def test_expectations_look_at_all_memories() -> None:
    """Some of the wanted text must be there, none of the unwanted, whatever the case."""
    assert Expectation(what="", any_of=["porto", "Lisbon"]).holds(["Lives in Porto"])
    assert not Expectation(what="", any_of=["Lisbon"]).holds(["Lives in Porto"])
    assert not Expectation(what="", none_of=["PORTO"]).holds(["Lives in Porto"])
    assert Expectation(what="", none_of=["Lisbon"]).holds([])
