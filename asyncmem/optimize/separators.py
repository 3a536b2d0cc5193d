"""Where a text's sentences end, and what parts their clauses (pure)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .words import WIDE

SENTENCE = re.compile(rf"[.!?]+(?<!\b[ap]\.m\.(?=\s+[a-zß-ÿ]))(?=[\s\"”»)\]{WIDE}]|$)|[。！？؟\n;；•।]+")
_SOFT = (
    rf"(?P<comma>,(?=[\s{WIDE}]|$)|[，、،])|(?P<opening>[(\[])|(?P<closing>[)\]])|(?P<colon>：|(?<!\d):|:(?!\d))"
    r"|(?P<other>\s[–—-]\s|(?<![\w'])(?:and|und|y|и|or|oder|o|или|&|et|och|og|(?-i:e)DUTCH)(?![\w'])"
    r"|以及|그리고|そして)"
)
_SOFT_PLAIN = re.compile(_SOFT.replace("DUTCH", ""), re.IGNORECASE)
_SOFT_DUTCH = re.compile(_SOFT.replace("DUTCH", "|en"), re.IGNORECASE)
_DUTCH = re.compile(r"\b(?:een|het|geen|niet|houdt|heeft|woont|werkt|eet|spreekt)\b", re.IGNORECASE)
"""Its "en" is an "and"; to others it is an "in"."""
_CONTRARY = re.compile(
    r"(?<![\w'])(?:but|because|though|although|while|whereas|aber|sondern|weil|pero|sino|porque|но|а|потому|لكن|ولكن|لأن)(?![\w'])"
    r"|但是?|而是|因为|けど|けれど|지만",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a sentence.

    Attributes:
        text: as it stands.
        after: what stands before it: ``comma``, ``opening``, ``closing``, ``colon``, ``contrary`` or ``other``.
    """

    text: str
    after: str


def split_sentences(text: str) -> list[str]:
    """The text's sentences as they stand, each with what ends it."""
    ends = [match.end() for match in SENTENCE.finditer(text)]
    places = zip([0, *ends], [*ends, len(text)], strict=True)
    return [sentence for start, end in places if (sentence := text[start:end].strip())]


def parts(sentence: str) -> Iterator[Part]:
    """The sentence's parts, some of them blank."""
    soft = _SOFT_DUTCH if _DUTCH.search(sentence) else _SOFT_PLAIN
    for i, whole in enumerate(_CONTRARY.split(sentence)):
        after, start = "contrary" if i else "other", 0
        for match in soft.finditer(whole):
            yield Part(whole[start : match.start()].strip(), after)
            after, start = match.lastgroup or "", match.end()
        yield Part(whole[start:].strip(), after)
