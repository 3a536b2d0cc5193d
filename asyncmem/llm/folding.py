"""Texts as they are compared: without case, accents, escapes and differences of white space. Pure and linear."""

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import unquote

_ESCAPE = re.compile(
    r"\\+u(d[89ab][0-9a-f]{2})\\+u(d[c-f][0-9a-f]{2})|\\+u([0-9a-f]{4})|\\+x([0-9a-f]{2})"
    r"|(\\+[nrtbf]|\s+)|\\+|((?:%[0-9a-f]{2})+)|%",
    re.IGNORECASE,
)
_PIECE = re.compile(rf"{_ESCAPE.pattern}|[^\\%\s]+", re.IGNORECASE)


class _Plain(dict[int, str]):
    """Each character in lower case without accents, as ``str.translate`` wants it."""

    def __missing__(self, code: int) -> str:
        apart = unicodedata.normalize("NFD", chr(code).casefold())
        plain = self[code] = "".join(char for char in apart if not "\u0300" <= char <= "\u036f")
        return plain


_PLAIN = _Plain()


@dataclass(frozen=True, slots=True)
class Folded:
    """A text without case, accents, escapes and differences of white space, and where each character of it came from.

    Attributes:
        text: one space stands for each run of white space.
        starts: for each character, where what it stands for begins in the original.
        ends: and where it ends.
    """

    text: str
    starts: list[int]
    ends: list[int]

    def squeezed(self) -> tuple[str, list[int]]:
        """The text without any space, and the place of each of its characters in ``text``."""
        places = [i for i, char in enumerate(self.text) if char != " "]
        return "".join(self.text[i] for i in places), places


def folded(text: str) -> str:
    """The same without places, much faster: a prompt may be long."""
    if "\\" in text or "%" in text:
        text = _ESCAPE.sub(_unescaped, text)
    return " ".join(text.translate(_PLAIN).split())


def fold(text: str) -> Folded:
    """The text as it is compared, be it quoted in JSON, in Python, or in JSON within JSON."""
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for piece in _PIECE.finditer(text):
        begin, end = piece.span()
        whole = piece[0][0] in "\\%" or piece[0].isspace()
        plain = _unescaped(piece) if whole else piece[0]
        for place, char in enumerate(plain, begin):
            part = _PLAIN[ord(char)]
            chars.append(part)
            starts += [place] * len(part)
            ends += [end if whole else place + 1] * len(part)
    return Folded("".join(chars), starts, ends)


def _unescaped(piece: re.Match[str]) -> str:
    high, low, code, byte, blank, percent = piece.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if code or byte:
        char = chr(int(code or byte, 16))
        return " " if char.isspace() else char
    if percent:  # as in an address
        return " ".join(unquote(percent, errors="replace").split("\n")).replace("\t", " ")
    return " " if blank else piece[0].strip("\\")
