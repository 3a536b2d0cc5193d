"""A text in its sentences, a quotation in its parts (pure)."""

import re

_SENTENCE = re.compile(r"[^.!?。！？؟\n]+[.!?。！？؟]*")
_ELISION = re.compile(r"\s*(?:\.\.\.|…)\s*")


def sentences_of(text: str) -> list[str]:
    """The text's sentences, in order."""
    return [sentence for match in _SENTENCE.finditer(text) if (sentence := match[0].strip())]


def parts_of(quotation: str) -> list[str]:
    """What stands between the dots that leave something out."""
    return [part for part in _ELISION.split(quotation) if part.strip()]
