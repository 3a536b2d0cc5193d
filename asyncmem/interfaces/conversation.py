"""A conversation to demonstrate on: turns, questions, and what should come of it."""

import json
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asyncmem import ConfigurationError, Message

QUESTIONS = (
    "What is this person's situation?",
    "What does this person like or prefer?",
    "What should be kept in mind when helping this person?",
)
"""Asked about a conversation that brings no questions."""


class Question(BaseModel):
    """A question about the user.

    Attributes:
        ask: the question.
        expect: text of which some must be in the memories that answer; empty to check nothing.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    ask: str
    expect: list[str] = Field(default_factory=list[str])


class Expectation(BaseModel):
    """What the memories should hold in the end.

    Attributes:
        what: in words.
        any_of: text of which some must be in one memory (case apart).
        none_of: text that must be in no memory.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    what: str
    any_of: list[str] = Field(default_factory=list[str])
    none_of: list[str] = Field(default_factory=list[str])

    def holds(self, memories: list[str]) -> bool:
        """Whether the memories are as expected."""
        told = "\n".join(memories).casefold()
        wanted = not self.any_of or any(text.casefold() in told for text in self.any_of)
        return wanted and not any(text.casefold() in told for text in self.none_of)


class Conversation(BaseModel):
    """Turns in order, with questions and expectations."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    turns: list[Message]
    questions: list[Question] = Field(default_factory=lambda: [Question(ask=ask) for ask in QUESTIONS])
    expected: list[Expectation] = Field(default_factory=list[Expectation])

    @classmethod
    def shipped(cls) -> Self:
        """The example that comes with the package."""
        return cls._read(
            resources.files("asyncmem.interfaces").joinpath("example.json").read_text("utf-8"), "the example"
        )

    @classmethod
    def load(cls, path: Path) -> Self:
        """The conversation in a JSON file: a list of messages, or an object like the shipped example.

        Raises:
            ConfigurationError: there is no such file, or it holds something else.
            InvalidMessageError: a message in it can't be read.
        """
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path} can't be read: {type(error).__name__}") from None
        return cls._read(text, str(path))

    @classmethod
    def _read(cls, text: str, where: str) -> Self:
        try:
            value: Any = json.loads(text)
            return cls.model_validate({"turns": value} if isinstance(value, list) else value)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ConfigurationError(f"{where} is no JSON: {error}") from None
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise ConfigurationError(f"{where} is no conversation: {place}: {first['msg']}") from None

    def captures(self) -> list[list[Message]]:
        """Each user turn, behind the assistant turn that it answers."""
        pieces: list[list[Message]] = []
        for index, turn in enumerate(self.turns):
            if turn.role == "user":
                before = self.turns[index - 1 : index] if index else []
                pieces.append([*(t for t in before if t.role == "assistant"), turn])
        return pieces
