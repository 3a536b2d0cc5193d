"""A reader of almost-JSON: comments, trailing commas, single and smart quotes, bare keys, Python's literals.

Pure, linear in the text, and bounded by a budget of tokens, since what it reads may be hostile.
"""

import json
import re
import sys
from dataclasses import dataclass
from typing import Any, TypeGuard

MAX_DEPTH = 64
"""How deep arrays and objects may nest."""

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)|#[^\n]*)*+")
# possessive, so that hostile text can't make it go back
_STRING = re.compile(
    r'"((?:[^"\\]|\\.)*+)"|\'((?:[^\'\\]|\\.)*+)\'|[“„]((?:[^”\\]|\\.)*+)”|‘((?:[^’\\]|\\.)*+)’', re.DOTALL
)
_NUMBER = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_LITERALS = {"true": True, "false": False, "null": None, "none": None, "undefined": None, "nan": None}
_QUOTES = "\"'“„‘"


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """It is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """It is a JSON array."""
    return isinstance(value, list)


class Broken(Exception):  # noqa: N818  a signal to the caller in the same room
    """This is not even almost JSON."""


class Cut(Exception):  # noqa: N818  a signal to the caller in the same room
    """The text ends inside the value; ``value`` is what was complete."""

    def __init__(self, value: Any = None) -> None:
        super().__init__("cut")
        self.value = value


@dataclass(slots=True)
class Budget:
    """Tokens that may still be read."""

    tokens: int = 20_000

    def spend(self) -> None:
        """Take one token.

        Raises:
            Cut: none is left, as if the text ended here.
        """
        self.tokens -= 1
        if self.tokens < 0:
            raise Cut


class LenientReader:
    """Reads one value at a place in a text."""

    def __init__(self, text: str, at: int, budget: Budget) -> None:
        self._text = text
        self._budget = budget
        self.at: int = at
        """Where reading goes on."""

    def value(self, depth: int = 0) -> Any:
        """The value that starts here.

        Raises:
            Broken: there is none.
            Cut: the text ends inside it, or it is larger or deeper than is read.
        """
        self._budget.spend()
        if depth > MAX_DEPTH:
            raise Cut
        char = self._peek()
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        return self._string() if char in _QUOTES else self._scalar()

    def _peek(self) -> str:
        """The next character that means something."""
        blank = _BLANK.match(self._text, self.at)
        self.at = blank.end() if blank else self.at
        if self.at >= len(self._text):
            raise Cut
        return self._text[self.at]

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        try:
            while self._peek() != "}":
                key = self._key()
                if self._peek() != ":":
                    raise Broken
                self.at += 1
                found[key] = self._field(key, found, depth)
                self._comma("}")
        except Cut:
            raise Cut(found) from None
        self.at += 1
        return found

    def _field(self, key: str, found: dict[str, Any], depth: int) -> Any:
        """A field's value; of a list that is cut, the complete items stay."""
        try:
            return self.value(depth + 1)
        except Cut as cut:
            if is_array(cut.value) and cut.value:
                found[key] = cut.value
            raise

    def _array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        try:
            while self._peek() != "]":
                found.append(self.value(depth + 1))
                self._comma("]")
        except Cut:
            raise Cut(found) from None
        self.at += 1
        return found

    def _comma(self, end: str) -> None:
        char = self._peek()
        if char == ",":
            self.at += 1
        elif char != end:
            raise Broken

    def _key(self) -> str:
        self._budget.spend()
        if self._peek() in _QUOTES:
            return self._string()
        if word := _WORD.match(self._text, self.at):
            self.at = word.end()
            return word[0]
        raise Broken

    def _string(self) -> str:
        hit = _STRING.match(self._text, self.at)
        if hit is None:
            raise Cut  # a string that never ends
        self.at = hit.end()
        raw = next(group for group in hit.groups() if group is not None)
        return _ESCAPE.sub(_unescape, raw) if "\\" in raw else raw

    def _scalar(self) -> Any:
        if number := _NUMBER.match(self._text, self.at):
            self.at = number.end()
            return json.loads(number[0]) if not re.match(r"-?0\d", number[0]) else number[0]
        if (word := _WORD.match(self._text, self.at)) and word[0].lower() in _LITERALS:
            self.at = word.end()
            return _LITERALS[word[0].lower()]
        raise Broken


def _unescape(hit: re.Match[str]) -> str:
    code = hit[1]
    if len(code) == 1:
        return _ESCAPES.get(code, code)
    return chr(min(int(code[1:], 16), sys.maxunicode))
