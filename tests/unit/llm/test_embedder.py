"""What may be passed as an embedding model."""

from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
import pytest

from asyncmem.errors import (
    ConfigurationError,
    ModelAuthenticationError,
    ModelCodeError,
    ModelError,
    ModelRateLimitError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
    ModelUnreachableError,
)
from asyncmem.llm import LLM, Embeddings
from asyncmem.llm.embedder import to_embedder
from asyncmem.search.embedding import embed_texts
from asyncmem.settings import LLMSettings
from asyncmem.testing import Behaviour, HashEmbedder, ProviderSimulator, ScriptError

pytestmark = pytest.mark.anyio


async def test_a_name_is_a_model_of_litellm() -> None:
    """It is called with the settings, and its errors are those of every model."""
    async with ProviderSimulator() as provider:
        settings = LLMSettings(api_base=provider.url, api_key="sk-simulated", retries=0)
        embedder = to_embedder("openai/text-embedding-3-small", settings)
        made, usage = await embed_texts(embedder, ["tea", "tea", "coffee"])
        assert (set(made), usage.calls) == ({"tea", "coffee"}, 1)
        assert made["tea"]["model"] == "openai/text-embedding-3-small"
        assert provider.received[0].body["input"] == ["tea", "coffee"]
        provider.behaviour = Behaviour(fails=["wrong_key"])
        with pytest.raises(ModelAuthenticationError):
            await embedder.embed(["tea"])


async def test_an_llm_and_an_embedder_are_taken_as_they_are() -> None:
    """An LLM keeps its own settings; an Embedder is watched, under its own name; anything else is refused."""
    llm = LLM("openai/text-embedding-3-small")
    assert to_embedder(llm, LLMSettings()) is llm
    assert to_embedder(HashEmbedder(8), LLMSettings()).name == "hash-8"
    assert await embed_texts(HashEmbedder(8), []) == ({}, (await embed_texts(HashEmbedder(8), []))[1])
    for wrong in (5, object(), HashEmbedder.embed):
        with pytest.raises(ConfigurationError, match="embedding_model must be"):
            to_embedder(wrong, LLMSettings())


class Own:
    """An embedder of the application's own."""

    name = "own"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


async def failed(embedder: Any) -> ModelError:
    """The error of an embedder that failed."""
    with pytest.raises(ModelError) as caught:
        await to_embedder(embedder, LLMSettings()).embed(["I play go", "Lin"])
    assert caught.value.__context__ is None
    assert "play go" not in str(caught.value)
    return caught.value


async def test_failures_of_an_embedder_of_ones_own_are_judged_as_a_providers_are() -> None:
    """By the status, the kind and the words; keys and texts are not shown."""

    def with_status(status: int) -> Exception:
        odd: Any = type("Odd", (Exception,), {"status_code": status})
        return odd("sk-canary-1234567890abcdef: I play go")  # type: ignore[no-any-return]

    told: list[tuple[Exception, type[ModelError], bool]] = [
        (with_status(429), ModelRateLimitError, True),
        (with_status(401), ModelAuthenticationError, False),
        (with_status(400), ModelRequestError, False),
        (with_status(503), ModelUnavailableError, True),
        (httpx.ConnectError("All connection attempts failed"), ModelUnreachableError, True),
        (httpx.ConnectError(""), ModelUnavailableError, True),
        (TimeoutError(), ModelTimeoutError, True),
        (RuntimeError("I play go"), ModelUnavailableError, True),
    ]
    for error, kind, retryable in told:
        caught = await failed(Own(error))
        assert isinstance(caught, kind)
        assert (caught.retryable, caught.model) == (retryable, "own")
        assert "canary" not in str(caught)


async def test_errors_of_ours_and_of_test_doubles_pass_through_an_embedder() -> None:
    """A ``ModelError`` keeps what it says; a double's assertion is no failure of a provider."""
    mine = ModelRequestError("later", retryable=True)
    assert await failed(Own(mine)) is mine
    with pytest.raises(ScriptError):
        await to_embedder(Own(ScriptError("not me")), LLMSettings()).embed(["x"])


class Sync:
    """An embedder that is not async."""

    name = "sync"

    def embed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings(np.zeros((2, 2), np.float32))


async def test_faults_of_an_embedder_of_ones_own_say_so() -> None:
    """A sync ``embed``, a fault in its code, and an answer of the wrong type or shape: none is tried again."""
    told: list[tuple[Any, str]] = [
        (Sync(), "its embed(): it must be an async function"),
        (Own(KeyError("I play go")), "[KeyError (raised at test_embedder.py:"),
        (Own(AssertionError("I play go")), "its embed() raised an error"),
        (Own([[1.0], [2.0]]), "it returned a list: Embeddings is wanted"),
        (Own(Embeddings(np.zeros((3, 2), np.float32))), "the shape (3, 2): one row with one vector a text is wanted"),
        (Own(Embeddings(np.zeros((2, 0), np.float32))), "the shape (2, 0)"),
        (Own(Embeddings(None)), "the shape ()"),  # type: ignore[arg-type]
    ]
    for embedder, words in told:
        error = await failed(embedder)
        assert isinstance(error, ModelCodeError)
        assert not error.retryable
        assert words in str(error)


def test_a_class_is_no_embedder() -> None:
    """The error says to pass an instance."""
    with pytest.raises(ConfigurationError, match="the class HashEmbedder: pass an instance"):
        to_embedder(HashEmbedder, LLMSettings())
