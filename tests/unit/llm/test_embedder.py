"""What may be passed as an embedding model."""

import pytest

from asyncmem.errors import ConfigurationError, ModelAuthenticationError
from asyncmem.llm import LLM
from asyncmem.llm.embedder import to_embedder
from asyncmem.search.embedding import embed_texts
from asyncmem.settings import LLMSettings
from asyncmem.testing import Behaviour, HashEmbedder, ProviderSimulator

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
