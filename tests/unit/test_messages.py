"""Messages of every shape, read into turns."""

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from asyncmem.errors import InvalidMessageError
from asyncmem.messages import read_messages
from asyncmem.types import Message


def read(message: object, messages: object) -> list[Message]:
    """The turns without their places."""
    return [Message(role=t.role, content=t.content, at=t.at) for t in read_messages(message, messages)]


def test_every_shape_of_message_is_read() -> None:
    """Strings, dicts in OpenAI's shape and ``Message`` values become turns with the text they hold."""
    at = datetime(2026, 1, 5, 8, tzinfo=UTC)
    messages = [
        "I like tea",
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {"role": "assistant", "content": "Green?", "name": "pip", "at": "2026-01-05T08:00:00Z"},
        {"role": "user", "content": [{"type": "text", "text": "Yes,"}, {"type": "image_url"}, "please"]},
        Message(content="Always.", at=at),
        {"role": "user", "content": ()},
    ]  # fmt: skip
    assert read(None, messages) == [
        Message(content="I like tea"),
        Message(role="assistant", content="Green?", at=at),
        Message(content="Yes,\nplease"),
        Message(content="Always.", at=at),
    ]


@pytest.mark.parametrize(
    "one", ["I like tea", {"role": "user", "content": "I like tea"}, Message(content="I like tea")]
)
def test_one_message_is_a_conversation(one: object) -> None:
    """``message`` takes each shape as well."""
    assert read(one, None) == [Message(content="I like tea")]


@pytest.mark.parametrize("blank", ["", " \n\t", {"role": "user", "content": None}, {"role": "user", "content": []}])
def test_blanks_are_an_empty_conversation(blank: object) -> None:
    """Nothing said is nothing to capture, not an error."""
    assert read(blank, None) == []
    assert read(None, [blank, blank]) == []


def test_other_roles_are_left_out() -> None:
    """System, tool and developer turns are not part of what is captured."""
    turns: list[object] = [{"role": role, "content": f"by {role}"} for role in ("system", "user", "tool", "developer")]
    assert read(None, turns) == [Message(content="by user")]


def test_without_the_user_there_is_no_source() -> None:
    """A conversation in which the user said nothing is empty, whatever the assistant said."""
    assert read(None, [{"role": "assistant", "content": "You own a kayak!"}, ""]) == []


def test_what_was_recalled_is_not_captured_again() -> None:
    """A ``<user_memory>`` block in a message is taken out, also one that is cut or written in capitals."""
    text = "<user_memory>\n- Owns a red kayak\n</user_memory>\nI like tea. <USER_MEMORY>\n- cut"
    assert read(text, None) == [Message(content="I like tea.")]
    assert read("<user_memory>\n- Owns a red kayak\n</user_memory>", None) == []


@pytest.mark.parametrize(
    ("message", "messages", "text"),
    [
        (None, None, "pass either message or messages"),
        ("a", ["b"], "not both"),
        (None, "a", "messages must be a list, not str"),
        (None, 3, "messages must be a list, not int"),
        (3, None, "message must be a str, dict or Message, not int"),
        ([3], None, "message must be a str, dict or Message, not list: pass several as messages="),
        (None, ["a", 3], r"messages\[1\] must be"),
        ({"content": "a"}, None, "has no role"),
        ({"role": None, "content": "a"}, None, "has no role"),
        ({"role": "user", "content": 3}, None, "content of type int"),
        ({"role": "user", "content": [3]}, None, "a part of type int"),
        ({"role": "user", "content": "a", "at": "soon"}, None, "a time must be"),
    ],
)
def test_what_is_no_conversation_is_an_error(message: object, messages: object, text: str) -> None:
    """Both, neither, and what is no message each raise an error that says what to do."""
    with pytest.raises(InvalidMessageError, match=text):
        read(message, messages)


class HumanMessage:
    """A message as LangChain makes them."""

    type = "human"
    content: Any = "I like tea"


SHAPES: list[Any] = [
    {"role": "user", "content": "I like tea"},
    {"role": "user", "content": [{"type": "input_text", "text": "I like tea"}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "I like tea"}]},
    {"role": "user", "content": [{"type": "text", "text": "I like tea"}, {"type": "tool_result", "content": "42"}]},
    {"role": "user", "content": [{"type": "thinking", "text": "Hm"}, {"type": "text", "text": "I like tea"}]},
    {"role": "user", "parts": [{"text": "I like tea"}]},
    {"type": "human", "data": {"content": "I like tea", "type": "human"}},
    {"lc": 1, "type": "constructor", "kwargs": {"content": "I like tea", "type": "human"}},
    {"role": " Human ", "content": "I like tea"},
    ("user", "I like tea"),
    ("human", "I like tea"),
    HumanMessage(),
    SimpleNamespace(role="user", content="I like tea", name=None),
    SimpleNamespace(role="user", content=[SimpleNamespace(type="text", text="I like tea")]),
    SimpleNamespace(role="user", content=[SimpleNamespace(type="text", text="I like tea"), SimpleNamespace(type="a")]),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_messages_of_the_usual_frameworks_are_read(shape: object) -> None:
    """OpenAI's, Anthropic's, Gemini's and LangChain's shapes all hold the same words of the user."""
    assert read(None, [shape]) == [Message(content="I like tea")]


@pytest.mark.parametrize("role", ["assistant", "ai", "model", "AIMessageChunk"])
def test_the_other_speaker_has_many_names(role: str) -> None:
    """What frameworks call the assistant is one role."""
    turns = read_messages(None, [{"type": role, "content": "Green?"}, {"role": "user", "content": "Yes"}])
    assert [t.role for t in turns] == ["assistant", "user"]


def test_turns_know_their_places() -> None:
    """The index is that of the message as it was passed in, whatever was left out before it."""
    turns = read_messages(None, [{"role": "system", "content": "You are Pip"}, "", "a", {"role": "tool"}, "b"])
    assert [(t.index, t.content) for t in turns] == [(2, "a"), (4, "b")]


@pytest.mark.parametrize("name", ["at", "created_at", "timestamp"])
def test_times_keep_their_zone(name: str) -> None:
    """A message's time stays in its own zone, whose day counts; it is read under the usual names."""
    (turn,) = read_messages({"role": "user", "content": "a", name: "2021-03-14T23:30:00-05:00"}, None)
    assert turn.at == datetime(2021, 3, 15, 4, 30, tzinfo=UTC)
    assert turn.at is not None
    assert turn.at.date().isoformat() == "2021-03-14"
    zone = timezone(timedelta(hours=9))
    (turn,) = read_messages({"role": "user", "content": "a", name: datetime(2021, 3, 14, 1, tzinfo=zone)}, None)
    assert turn.at is not None
    assert turn.at.utcoffset() == timedelta(hours=9)
