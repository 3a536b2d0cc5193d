"""Every exception class of litellm and openai is one of ours: a new one in a release fails this test."""

import asyncio
import importlib
import inspect
import warnings
from collections.abc import Iterator

import pytest

from asyncmem import errors
from asyncmem.errors import ModelError
from asyncmem.llm.causes import CLASSES
from asyncmem.llm.failures import Failure
from asyncmem.llm.loading import load_litellm

MODULES = ("litellm.exceptions", "litellm.types.router", "openai", "openai._exceptions")


def exceptions() -> Iterator[type[Exception]]:
    """Every exception class that these modules define or show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.run(load_litellm())
        modules = [importlib.import_module(name) for name in MODULES]
    found: dict[str, type[Exception]] = {}
    for module in modules:
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, Exception) and cls.__module__.split(".")[0] in ("litellm", "openai"):
                found[f"{cls.__module__}.{cls.__name__}"] = cls
    yield from found.values()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_exception_is_mapped_by_name() -> None:
    """No class is left to the guess that its base class is enough."""
    found = list(exceptions())
    assert len(found) > 30
    assert [cls.__name__ for cls in found if cls.__name__ not in CLASSES] == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_exception_becomes_a_precise_error() -> None:
    """An instance of each class, without status and text, is one of the leaves of our tree."""
    leaves = {kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, ModelError)}
    for cls in exceptions():
        cause = Failure.of(cls.__new__(cls)).cause
        assert cause in leaves - {ModelError}, cls


def test_provider_classes_inside_litellm_share_one_base() -> None:
    """The exceptions of litellm's provider modules, when one escapes, are told by their status."""
    asyncio.run(load_litellm())
    base = importlib.import_module("litellm.llms.base_llm.chat.transformation").BaseLLMException
    own = type("SomeProviderError", (base,), {})
    assert Failure.of(own(status_code=401, message="no")).cause is errors.ModelAuthenticationError
    assert Failure.of(own(status_code=503, message="no")).cause is errors.ModelUnavailableError
