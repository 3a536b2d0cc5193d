"""Halves of surrogate pairs: no characters, so no encoding can hold one, and no request or row."""

from typing import Any

from asyncmem.cleaning import encodable

from .lenient import is_array, is_object


def mended(value: Any) -> Any:
    """A copy of some JSON: halves that belong together joined, others replaced by the sign for what is no character."""
    if isinstance(value, str):
        return value if encodable(value) else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if is_object(value):
        return {mended(key): mended(each) for key, each in value.items()}
    return [mended(each) for each in value] if is_array(value) else value
