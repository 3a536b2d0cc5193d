"""Conversations as applications hold them, read into turns (pure).

Shapes: strings, ``Message``, OpenAI's and Anthropic's dicts and objects, Gemini's ``parts``, and LangChain's messages,
their dicts and their (role, text) pairs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import InvalidMessageError
from .prompts import strip_recalled
from .types import Message

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "aimessagechunk": "assistant",
    "humanmessagechunk": "user",
}
"""What frameworks call the two speakers, where it is neither "user" nor "assistant"."""
_TEXTS = (None, "text", "input_text", "output_text")
"""Types of the parts that hold what was said; thoughts, tool results and media are no such."""
_TIMES = ("at", "created_at", "timestamp")


class Turn(Message):
    """A message of the user or the assistant, and its place among those that were passed in."""

    index: int = 0


def read_messages(message: object, messages: object) -> list[Turn]:
    """The turns of user and assistant, without what was recalled into them and without blank ones.

    Args:
        message: one message: a string, a ``Message``, or a message of OpenAI, Anthropic, Gemini or LangChain.
        messages: a sequence of such.

    Returns:
        The conversation; empty when the user said nothing.

    Raises:
        InvalidMessageError: both or neither were given, or one is no message.
    """
    if (message is None) == (messages is None):
        raise InvalidMessageError("pass either message or messages" + (", not both" if messages is not None else ""))
    if messages is None:
        items: Sequence[object] = [message]
    elif isinstance(messages, Sequence) and not isinstance(messages, str | bytes):
        items = messages  # pyright: ignore[reportUnknownVariableType]
    else:
        raise InvalidMessageError(f"messages must be a list, not {type(messages).__name__}: pass one as message")
    read = [_read(item, i, f"messages[{i}]" if messages is not None else "message") for i, item in enumerate(items)]
    turns = [turn for turn in read if turn.role in ("user", "assistant") and turn.content]
    return turns if any(turn.role == "user" for turn in turns) else []


def _read(item: object, index: int, where: str) -> Turn:
    said = _fields(item, where)
    role = said.get("role") or said.get("type")
    if not isinstance(role, str):
        raise InvalidMessageError(f"{where} has no role: use 'user' or 'assistant'")
    speaker = role.strip().casefold()
    text = strip_recalled(_content(said.get("content", said.get("parts")), where))
    at = next((said[key] for key in _TIMES if said.get(key) is not None), None)
    return Turn(role=_ROLES.get(speaker, speaker), content=text, at=at, index=index)


def _fields(item: object, where: str) -> Mapping[Any, Any]:
    """A message's fields, of whatever shape it is."""
    match item:
        case Message():
            return {"role": item.role, "content": item.content, "at": item.at}
        case str():
            return {"role": "user", "content": item}
        case Mapping():
            return _unwrapped(item)  # pyright: ignore[reportUnknownArgumentType]
        case (str() as speaker, (str() | list()) as words):  # pyright: ignore[reportUnknownVariableType]
            return {"role": speaker, "content": words}  # pyright: ignore[reportUnknownVariableType]
        case _ if hasattr(item, "content") and (hasattr(item, "role") or hasattr(item, "type")):
            names = ("role", "type", "content", *_TIMES)
            return {name: getattr(item, name) for name in names if hasattr(item, name)}
        case _:
            kind = type(item).__name__
            hint = ": pass several as messages=" if (kind, where) == ("list", "message") else ""
            raise InvalidMessageError(f"{where} must be a str, dict or Message, not {kind}{hint}")


def _unwrapped(item: Mapping[Any, Any]) -> Mapping[str, Any]:
    """LangChain's dicts hold the message one level deeper."""
    inner = item.get("data", item.get("kwargs"))
    return {"type": item.get("type"), **inner} if isinstance(inner, Mapping) and "role" not in item else item


def _content(content: object, where: str) -> str:
    """The text of a message's content; other parts, such as images and tool calls, hold none."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list() | tuple():
            return "\n".join(text for part in content if (text := _part(part, where)))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            raise InvalidMessageError(f"{where} has content of type {type(content).__name__}: use text or parts")


def _part(part: object, where: str) -> str:
    match part:
        case str():
            return part
        case Mapping():
            kind, text = part.get("type"), part.get("text")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        case _ if hasattr(part, "type"):
            kind, text = getattr(part, "type"), getattr(part, "text", None)  # noqa: B009  SDK objects of any kind
        case _:
            raise InvalidMessageError(f"{where} has a part of type {type(part).__name__}: use text or dicts")
    return text if kind in _TEXTS and isinstance(text, str) else ""
