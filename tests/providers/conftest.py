"""One simulated provider, one event loop and one litellm for the whole suite."""

import gc
import warnings
from collections.abc import AsyncIterator, Iterator

import pytest

from asyncmem.llm.loading import load_litellm
from asyncmem.testing import ProviderSimulator


@pytest.fixture(scope="session", autouse=True)
async def litellm_once(anyio_backend: str) -> AsyncIterator[None]:
    """litellm, imported as the library does it; and, as it is asynchronous, one event loop for all tests.

    litellm keeps a client for every event loop, and never closes the sockets of those that ended.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litellm = await load_litellm()
    yield
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="session")
def server() -> Iterator[ProviderSimulator]:
    """The session's provider."""
    with ProviderSimulator() as simulator:
        yield simulator


@pytest.fixture
def provider(server: ProviderSimulator) -> ProviderSimulator:
    """The provider, with nothing received."""
    server.forget()
    return server
