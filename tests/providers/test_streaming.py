"""Replies in pieces over HTTP: what reaches the caller, and what a stream that breaks becomes."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from importlib.metadata import version
from typing import Any

import pytest
from pydantic import BaseModel

from asyncmem.errors import ModelAuthenticationError, ModelError, ModelTimeoutError, ModelUnavailableError
from asyncmem.llm import LLM, ChatReply, RunFinished, StreamEvent, TextDelta, Tool, ToolCall, ToolDone, ToolStarted
from asyncmem.testing import Behaviour, ProviderSimulator

from .paths import KEY, PATHS, Path, llm_for, sent

pytestmark = pytest.mark.anyio

SAYS = "The canary\n sleeps in Ogród, 日本語  too. "
PROMPT = [{"role": "user", "content": "I play go with the heron of Matosinhos"}]
CALLED = ChatReply(
    content="Let me see.",
    tool_calls=(ToolCall("c1", "add", '{"memory": "Plays go"}'), ToolCall("c2", "add", '{"memory": "Has a heron"}')),
    finish_reason="tool_calls",
)
STREAMED = [path for path in PATHS if path.dialect != "bedrock"]
EACH = [PATHS[0], PATHS[1], PATHS[6], PATHS[8], PATHS[10]]
"""One model of each way that litellm streams on."""

streamed = pytest.mark.parametrize("path", STREAMED, ids=[path.model for path in STREAMED])
each = pytest.mark.parametrize("path", EACH, ids=[path.model for path in EACH])


class Add(BaseModel):
    """Arguments of add."""

    memory: str


def adding(done: list[str]) -> list[Tool[Any]]:
    """One tool that keeps what it is called with."""

    async def add(arguments: Add) -> str:
        done.append(arguments.memory)
        return "added"

    return [Tool("add", "Add a note.", Add, add)]


async def all_of(llm: LLM, tools: Sequence[Tool[Any]] = (), seen: list[StreamEvent] | None = None) -> list[StreamEvent]:
    """Every event of a run."""
    events = [] if seen is None else seen
    async with aclosing(llm.stream_tools(PROMPT, tools, max_rounds=2)) as stream:
        async for event in stream:
            events.append(event)
    return events


def said(events: Sequence[StreamEvent]) -> list[str]:
    """The pieces of text."""
    return [event.text for event in events if isinstance(event, TextDelta)]


@streamed
async def test_text_comes_in_pieces(path: Path, provider: ProviderSimulator) -> None:
    """Pieces put together are the answer, the tokens are those the provider told, and one request was sent."""
    provider.behaviour = Behaviour(says=SAYS)
    *pieces, end = await all_of(llm_for(path, provider))
    assert isinstance(end, RunFinished)
    assert len(pieces) > 3
    assert "".join(said(pieces)) == end.run.answer == SAYS
    usage = end.run.usage
    assert usage.calls == 1
    if path.model != "mistral/foo":  # litellm does not ask Mistral for them, and estimates
        assert (usage.prompt_tokens, usage.completion_tokens) == (11, 7)
    assert (end.run.messages, sent(provider)) == ([*PROMPT, {"role": "assistant", "content": SAYS}], 1)


async def test_cost(provider: ProviderSimulator) -> None:
    """The cost of a model that litellm has no price of is unknown."""
    provider.behaviour = Behaviour(says=SAYS)
    *_, end = await all_of(llm_for(PATHS[0], provider))
    assert isinstance(end, RunFinished)
    assert end.run.usage.cost is None


@streamed
async def test_parallel_calls_come_in_pieces(path: Path, provider: ProviderSimulator) -> None:
    """Calls are put together, carried out one by one, and answered in the next round."""
    provider.behaviour = Behaviour(says=CALLED)
    done: list[str] = []
    events = await all_of(llm_for(path, provider), adding(done))
    first = [type(event) for event in events[: len(events) // 2]]
    assert first[-4:] == [ToolStarted, ToolDone, ToolStarted, ToolDone]
    assert set(first[:-4]) == {TextDelta}
    assert done == ["Plays go", "Has a heron"]
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert (end.run.rounds, end.run.stopped, end.run.usage.calls) == (2, "rounds", 2)
    assert [result.repeated for result in end.run.results] == [False, False, True, True]
    last = [request for request in provider.received if not request.path.endswith("/api/show")][-1]
    assert "added" in str(last.body)


# of one of Gemini's that broke litellm makes a finished reply: nothing tells that it did
BROKEN = [path for path in EACH if path.dialect != "gemini"]


@pytest.mark.parametrize("path", BROKEN, ids=[path.model for path in BROKEN])
@pytest.mark.parametrize("kind", ["cut", "ended", "failed"])
async def test_broken_streams(path: Path, kind: str, provider: ProviderSimulator) -> None:
    """A reply that breaks off is an error of ours that names neither prompt nor key, and is not asked for again."""
    provider.behaviour = Behaviour(says=SAYS, fails=(kind,) * 9)
    seen: list[StreamEvent] = []
    with pytest.raises(ModelError) as caught:
        await all_of(llm_for(path, provider), seen=seen)
    assert "canary" in "".join(said(seen))
    assert isinstance(caught.value, ModelUnavailableError) or path.dialect == "ollama"
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
    shown = f"{caught.value!r} {caught.value} {vars(caught.value)}"
    assert not any(secret in shown for secret in ("heron", "Matosinhos", "canary", KEY))
    assert (caught.value.usage.calls, caught.value.usage.cost, sent(provider)) == (1, None, 1)


async def test_malformed_events(provider: ProviderSimulator) -> None:
    """What is no JSON in the middle of a stream is a failure of the provider."""
    provider.behaviour = Behaviour(says=SAYS, fails=("garbled",))
    with pytest.raises(ModelUnavailableError) as caught:
        await all_of(llm_for(PATHS[0], provider))
    assert "canary" not in str(caught.value)


@each
async def test_empty_streams(path: Path, provider: ProviderSimulator) -> None:
    """A stream that says nothing is asked for once more, whole; a server that never streamed is not asked to again."""
    llm = llm_for(path, provider)
    provider.behaviour = Behaviour(says=SAYS, fails=("empty",))
    assert "".join(said(await all_of(llm))) == SAYS
    assert sent(provider) == 2
    provider.forget()
    assert "".join(said(await all_of(llm))) == SAYS
    assert sent(provider) == 1
    assert not provider.received[-1].body.get("stream")


@each
async def test_refusal_before_the_first_piece_is_retried(path: Path, provider: ProviderSimulator) -> None:
    """A 429 before anything was said is asked again, after as long as the provider wants."""
    provider.behaviour = Behaviour(says=SAYS, fails=("rate_limit", "drop"), retry_after="0.01")
    events = await all_of(llm_for(path, provider))
    assert ("".join(said(events)), sent(provider)) == (SAYS, 3)


@each
async def test_wrong_key(path: Path, provider: ProviderSimulator) -> None:
    """A 401 is raised at once, without the key."""
    provider.behaviour = Behaviour(fails=("key_echo",) * 3)
    with pytest.raises(ModelAuthenticationError) as caught:
        await all_of(llm_for(path, provider))
    assert KEY not in f"{caught.value} {vars(caught.value)}"
    assert sent(provider) == 1


@each
async def test_stalled_stream(path: Path, provider: ProviderSimulator) -> None:
    """A reply that goes on no more is a timeout."""
    provider.behaviour = Behaviour(says=SAYS, fails=("stalled",) * 3)
    with pytest.raises(ModelTimeoutError):
        await all_of(llm_for(path, provider, timeout=3.0))  # a busy machine needs some time to come to the stall


# before, litellm leaves most of its streams to the garbage collector
CLOSING = EACH if tuple(map(int, version("litellm").split(".")[:2])) >= (1, 110) else EACH[:1]


@pytest.mark.parametrize("path", CLOSING, ids=[path.model for path in CLOSING])
@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_leaving_early_closes_the_response(path: Path, how: str, provider: ProviderSimulator) -> None:
    """Whoever closes the generator, or is cancelled in the middle, ends the provider's response and frees the gate."""
    provider.behaviour = Behaviour(says=SAYS, fails=("stalled",))
    before = provider.left
    llm = llm_for(path, provider, concurrency=1)
    reading = asyncio.Event()

    async def read() -> None:
        async with aclosing(llm.stream_tools(PROMPT)) as events:
            async for _ in events:
                reading.set()
                if how == "closed":
                    return

    task = asyncio.create_task(read())
    await reading.wait()
    if how == "cancelled":
        task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() == (how == "cancelled")
    async with asyncio.timeout(20):
        while provider.left == before:
            await asyncio.sleep(0.01)
    assert (await llm.complete(PROMPT)).content == SAYS


@pytest.mark.parametrize("path", [PATHS[0], PATHS[1]], ids=["openai", "hosted_vllm"])
async def test_refused_tools_become_a_plan(path: Path, provider: ProviderSimulator) -> None:
    """Where tools are refused, a plan stands in, its answer in one piece."""
    says = {"actions": [{"tool": "add", "memory": "Plays go"}], "answer": "I noted it."}
    provider.behaviour = Behaviour(says=says, tools=False)
    done: list[str] = []
    events = await all_of(llm_for(path, provider), adding(done))
    assert [type(event) for event in events] == [ToolStarted, ToolDone, TextDelta, RunFinished]
    assert (done, said(events)) == (["Plays go"], ["I noted it."])
