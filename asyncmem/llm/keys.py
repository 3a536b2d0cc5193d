"""The keys that texts of ours must not show: of the settings, of whatever was passed as the model, of the process."""

import functools
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from pydantic import BaseModel, SecretStr

from asyncmem.settings import LLMSettings

from .vocabulary import is_standard

SHORTEST = 8
"""Characters of a variable's value from which on it may be a key: shorter ones are switches."""

_MAX_DEPTH = 6
_SECRET = re.compile(
    r"key|token|secret|passw|credential|authorization|headers|cookie|signature|(?:^|[_-])(?:auth|pwd|pat|sig)(?:$|[_-])",
    re.IGNORECASE,
)
_VARIABLE = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PAT|CREDENTIALS?)(?:_|\d|$)", re.IGNORECASE
)
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey)\s+(\S+)", re.IGNORECASE)


def known_keys(settings: LLMSettings, source: object = None) -> list[str]:
    """Every key that may go with a request. Looked up only when an error is made.

    Args:
        settings: how the model is called.
        source: what was passed as the model: a completion function or a router may hold keys of its own.
    """
    own = settings.api_key.get_secret_value() if settings.api_key else ""
    found = [own, *_within(settings.extra), *_of_source(source), *_of_litellm(), *_of_environment()]
    whole = [value for value in found if value]
    bare = [match[1] for value in whole if (match := _SCHEME.fullmatch(value.strip()))]
    return list(dict.fromkeys([*whole, *bare]))


def _within(node: object, *, secret: bool = False, depth: int = 0) -> Iterator[str]:
    """The strings that stand under a name of a secret, however deep."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, BaseModel):
        node = vars(node) | (node.model_extra or {})
    if isinstance(node, SecretStr):
        yield node.get_secret_value()
    elif isinstance(node, bytes):
        yield from [node.decode(errors="replace")] if secret else []
    elif isinstance(node, str):
        yield from [node] if secret else []
    elif isinstance(node, Mapping):
        for name, value in cast("Mapping[object, object]", node).items():
            yield from _within(value, secret=secret or bool(_SECRET.search(str(name))), depth=depth + 1)
    elif isinstance(node, Sequence | set | frozenset):
        for value in cast("Iterable[object]", node):
            yield from _within(value, secret=secret, depth=depth + 1)


def _of_source(source: object) -> Iterator[str]:
    """Those of a ``functools.partial``, however many lie in each other, and of a router or its bound method."""
    while isinstance(source, functools.partial):
        yield from _within(source.keywords)
        source = cast("object", source.func)
    router: object = getattr(source, "__self__", source)
    for name in ("model_list", "default_litellm_params"):
        yield from _within(getattr(router, name, None))


def _of_litellm() -> Iterator[str]:
    """Those that the application gave to litellm itself, such as ``litellm.api_key``."""
    module = sys.modules.get("litellm")
    given = dict(vars(module)) if module else {}
    yield from _within({name: value for name, value in given.items() if name == "headers" or name.endswith("_key")})


def _of_environment() -> Iterator[str]:
    for name, value in os.environ.copy().items():
        if len(value) >= SHORTEST and _VARIABLE.search(name) and not is_standard(value):
            yield value
