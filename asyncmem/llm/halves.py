"""Halves of surrogate pairs: no characters, so no encoding can hold one, and no request or row."""

import re
from typing import Any

from .lenient import is_array, is_object

_HALF = re.compile("[\ud800-\udfff]")


def has_half(text: str) -> bool:
    """Whether one is in the text."""
    return not text.isascii() and _HALF.search(text) is not None


def mended(value: Any) -> Any:
    """A copy of some JSON: halves that belong together joined, others replaced by the sign for what is no character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if has_half(value) else value
    if is_object(value):
        return {mended(key): mended(each) for key, each in value.items()}
    return [mended(each) for each in value] if is_array(value) else value
