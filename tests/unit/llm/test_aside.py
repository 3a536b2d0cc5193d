"""Failures of long requests, whose words are looked for in a worker thread."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread
import pytest

from asyncmem.errors import ModelError, ModelRequestError
from asyncmem.llm import LLM, ChatDelta, ChatReply, ChatRequest, StreamEvent
from asyncmem.llm.failures import Failure
from asyncmem.settings import LLMSettings

from .schemas import Ids
from .test_client import Vectors, embedding_llm
from .test_streaming import Streamer, Watcher

pytestmark = pytest.mark.anyio


class Refused(Exception):  # noqa: N818  named as a provider's might be
    """A provider's refusal that repeats the request."""

    status_code = 400


class Refusing:
    """A model that refuses what it is told, in the same words."""

    name = "refusing"

    async def complete(self, request: ChatRequest) -> ChatReply:
        await asyncio.sleep(0)
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
    return found


async def streamed(llm: LLM, prompt: list[dict[str, Any]]) -> list[StreamEvent]:
    """All that happens."""
    return [event async for event in llm.stream_tools(prompt)]


@pytest.mark.parametrize(("times", "aside"), [(20, False), (8_000, True)])
async def test_failures_of_long_requests_leave_the_loop_free(threads: list[int], times: int, *, aside: bool) -> None:
    """Short ones are looked at at once, long ones elsewhere; no error shows anything of one."""
    said = "Lin plays go. " * times
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
        assert "Lin" not in str(caught.value)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
        assert threads
        assert all((thread != threading.get_ident()) is aside for thread in threads)


@pytest.mark.parametrize("streams", [False, True])
async def test_observers_hear_of_a_failure_that_nobody_waited_for(
    monkeypatch: pytest.MonkeyPatch, *, streams: bool
) -> None:
    """A call that had failed when it was cancelled is reported as failed, not as one that may still cost."""
    entered, leave = threading.Event(), threading.Event()

    def slow(self: Failure, told: Sequence[str]) -> Failure:
        entered.set()
        leave.wait(10)
        return self

    monkeypatch.setattr(Failure, "heard", slow)
    watcher = Watcher()
    llm = LLM(Refusing(), LLMSettings(retries=0), observers=[watcher])
    prompt = [{"role": "user", "content": "Lin plays go. " * 3_000}]
    task = asyncio.ensure_future(streamed(llm, prompt) if streams else llm.complete(prompt))
    await asyncio.to_thread(entered.wait, 10)
    task.cancel()
    await asyncio.wait([task])
    leave.set()
    assert task.cancelled()
    assert [(report.error, report.usage.cost) for report in watcher.reports] == [("Refused", 0.0)]


async def test_threads_that_all_wait_for_a_failure_are_not_needed_for_it() -> None:
    """Where every usual thread waits for a call that fails, as a web framework's may, it fails all the same."""
    llm = LLM(Refusing(), LLMSettings(retries=0))
    prompt = [{"role": "user", "content": "Lin plays go. " * 3_000}]
    limiter = anyio.to_thread.current_default_thread_limiter()
    held = int(limiter.total_tokens)
    holders = [object() for _ in range(held)]
    for holder in holders:
        limiter.acquire_on_behalf_of_nowait(holder)
    try:
        async with asyncio.timeout(10):
            with pytest.raises(ModelRequestError):
                await llm.complete(prompt)
    finally:
        for holder in holders:
            limiter.release_on_behalf_of(holder)
