"""Failures of long requests, whose words are looked for in a worker thread."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from asyncmem.errors import ModelError, ModelRequestError
from asyncmem.llm import LLM, ChatDelta, ChatReply, ChatRequest, StreamEvent
from asyncmem.llm.failures import Failure
from asyncmem.llm.flows import Context
from asyncmem.settings import LLMSettings

from .schemas import Ids
from .test_client import Vectors, embedding_llm
from .test_streaming import Streamer

pytestmark = pytest.mark.anyio


class Refused(Exception):  # noqa: N818  named as a provider's might be
    """A provider's refusal that repeats the request."""

    status_code = 400


class Refusing:
    """A model that refuses what it is told, in the same words."""

    name = "refusing"

    async def complete(self, request: ChatRequest) -> ChatReply:
        raise Refused(f"Bad input: {request.messages[-1]['content']}")


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which the words of failures are looked at."""
    found: list[int] = []

    def noted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            found.append(threading.get_ident())
            return method(*given, **more)

        return call

    monkeypatch.setattr(Failure, "heard", noted(Failure.heard))
    monkeypatch.setattr(Context, "error", noted(Context.error))
    return found


async def streamed(llm: LLM, prompt: list[dict[str, Any]]) -> list[StreamEvent]:
    """All that happens."""
    return [event async for event in llm.stream_tools(prompt)]


@pytest.mark.parametrize(("times", "aside"), [(20, False), (3_000, True)])
async def test_failures_of_long_requests_leave_the_loop_free(threads: list[int], times: int, *, aside: bool) -> None:
    """Short ones are looked at at once, long ones elsewhere; no error shows anything of one."""
    said = "Ines plays go. " * times
    prompt = [{"role": "user", "content": said}]
    refusing = LLM(Refusing(), LLMSettings(retries=0))
    broken = LLM(Streamer([ChatDelta("Well"), Refused(f"Bad input: {said}")]), LLMSettings(retries=0))
    vectors = embedding_llm(Vectors(most=0), retries=0)
    calls: Sequence[tuple[Callable[[], Any], type[ModelError]]] = (
        (lambda: refusing.structured(prompt, Ids), ModelRequestError),
        (lambda: refusing.complete(prompt), ModelRequestError),
        (lambda: streamed(refusing, prompt), ModelRequestError),
        (lambda: streamed(broken, prompt), ModelRequestError),
        (lambda: vectors.embed([said]), ModelRequestError),
    )
    for call, kind in calls:
        threads.clear()
        with pytest.raises(kind) as caught:
            await call()
        assert "Ines" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert len(threads) >= 2
        assert all((thread != threading.get_ident()) is aside for thread in threads)
