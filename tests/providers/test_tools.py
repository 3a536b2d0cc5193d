"""Tools, plain replies and embeddings over HTTP, on every way through litellm that has them."""

from typing import Any

import pytest
from pydantic import BaseModel

from asyncmem.errors import ModelError, ModelTimeoutError
from asyncmem.llm import LLM, Abilities, ChatReply, Tool, ToolCall
from asyncmem.llm.loading import load_litellm
from asyncmem.settings import LLMSettings
from asyncmem.testing import TOOL_REFUSALS, Behaviour, ProviderSimulator

from .paths import KEY, PATHS, Path, llm_for, sent

pytestmark = pytest.mark.anyio

PROMPT = [{"role": "user", "content": "I play go"}]
CALLED = ChatReply(tool_calls=(ToolCall("c1", "add", '{"memory": "Plays go"}'),), finish_reason="tool_calls")
EMBEDDER = "openai/text-embedding-3-small"
WITH_TOOLS = [path for path in PATHS if "llama3" not in path.model]


class Add(BaseModel):
    """Arguments of add."""

    memory: str


def adding(done: list[str]) -> list[Tool[Any]]:
    """One tool that keeps what it is called with."""

    async def add(arguments: Add) -> str:
        done.append(arguments.memory)
        return "added"

    return [Tool("add", "Add a note.", Add, add)]


@pytest.mark.parametrize("path", WITH_TOOLS, ids=[path.model for path in WITH_TOOLS])
async def test_tool_loop(path: Path, provider: ProviderSimulator) -> None:
    """The model calls a tool, its answer goes back to the provider, and a second round is asked for."""
    provider.behaviour = Behaviour(says=CALLED)
    done: list[str] = []
    run = await llm_for(path, provider).run_tools(PROMPT, adding(done), max_rounds=2)
    assert done == ["Plays go"]
    assert [result.repeated for result in run.results] == [False, True]
    assert (run.rounds, run.stopped, sent(provider)) == (2, "rounds", 2)
    last = [request for request in provider.received if not request.path.endswith("/api/show")][-1]
    assert last.wanted.tools == ("add",)
    assert "added" in str(last.body)


STYLES = ["openai", "ollama", "vllm", "openrouter"]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("path", [PATHS[0], PATHS[1], PATHS[5]], ids=["openai", "hosted_vllm", "litellm_proxy"])
async def test_refused_tools_become_a_plan(path: Path, style: str, provider: ProviderSimulator) -> None:
    """However tools are refused, a plan stands in; from the second run on it costs one call."""
    says = {"actions": [{"tool": "add", "memory": "Plays go"}], "answer": "Noted."}
    provider.behaviour = Behaviour(says=says, tools=False, style=style)
    done: list[str] = []
    llm = llm_for(path, provider)
    run = await llm.run_tools(PROMPT, adding(done))
    assert (done, run.answer, run.tier, sent(provider)) == (["Plays go"], "Noted.", "native", 2)
    provider.forget()
    await llm.run_tools(PROMPT, adding(done))
    assert sent(provider) == 1
    assert set(STYLES) <= set(TOOL_REFUSALS)


async def test_tools_that_litellm_refuses_itself(provider: ProviderSimulator) -> None:
    """A model that litellm knows to have no tools gets none, and nothing is sent to learn it."""
    says = {"actions": [{"tool": "add", "memory": "Plays go"}]}
    provider.behaviour = Behaviour(says=says)
    done: list[str] = []
    llm = llm_for(Path("bedrock/meta.llama3-8b-instruct-v1:0", "bedrock"), provider)
    run = await llm.run_tools(PROMPT, adding(done))
    assert (done, run.usage.calls, llm.takes_tools) == (["Plays go"], 1, False)


@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_plain_reply(path: Path, provider: ProviderSimulator) -> None:
    """A reply in words comes through every way, with the tokens it took."""
    provider.behaviour = Behaviour(says="Hello.")
    reply = await llm_for(path, provider).complete(PROMPT)
    assert (reply.content, reply.usage.calls, reply.usage.prompt_tokens) == ("Hello.", 1, 11)


@pytest.mark.parametrize("model", ["openai/e", "hosted_vllm/e", "litellm_proxy/e", "mistral/e"])
async def test_embeddings(model: str, provider: ProviderSimulator) -> None:
    """Batches come back in order, on both of litellm's ways."""
    provider.behaviour = Behaviour(dimensions=5)
    llm = LLM(model, LLMSettings(api_base=provider.url, api_key=KEY), abilities=Abilities())
    texts = [f"text {i}" for i in range(7)]
    done = await llm.embed(texts, batch=3)
    assert done.vectors.shape == (7, 5)
    assert len(provider.received) == 3
    again = await llm.embed(texts[::-1])
    assert (again.vectors[::-1] == done.vectors).all()
    assert done.usage.calls == 3
    assert done.usage.prompt_tokens == 35


@pytest.mark.parametrize("word", ["chess ", "日本語を話す。"])
async def test_too_long_embedding_is_cut_to_the_tokens_that_the_model_takes(
    word: str, provider: ProviderSimulator
) -> None:
    """A known model's text is cut to its limit in its own tokens, then by half, and marked; the others are whole."""
    litellm = await load_litellm()
    provider.behaviour = Behaviour(fails=("too_long",) * 3)
    llm = LLM(EMBEDDER, LLMSettings(api_base=provider.url, api_key=KEY), abilities=Abilities())
    long = word * 12_000
    done = await llm.embed([long, "short"])
    assert done.truncated == (True, False)
    sent_texts = [request.body["input"] for request in provider.received]
    assert sent_texts[0] == [long, "short"]
    assert sent_texts[1] == [long]
    assert sent_texts[-1] == ["short"]
    counts = [len(litellm.encode("text-embedding-3-small", texts[0])) for texts in sent_texts[2:4]]
    assert 8_188 <= counts[0] <= 8_191
    assert 4_090 <= counts[1] <= 4_096
    assert all(long.startswith(texts[0]) for texts in sent_texts[2:4])
    assert done.usage.calls == 5


@pytest.mark.parametrize("kind", ["wrong_key", "rate_limit", "prompt_echo", "drop"])
async def test_embedding_failures(kind: str, provider: ProviderSimulator) -> None:
    """A failed embedding is an error of ours without key or text."""
    provider.behaviour = Behaviour(fails=(kind,) * 9)
    llm = LLM("openai/e", LLMSettings(api_base=provider.url, api_key=KEY, retries=0), abilities=Abilities())
    with pytest.raises(ModelError) as caught:
        await llm.embed(["the canary sleeps in the teapot"])
    assert "canary" not in f"{caught.value!r} {caught.value.__context__!r} {vars(caught.value)}"
    assert KEY not in str(caught.value)


async def test_slow_embedding(provider: ProviderSimulator) -> None:
    """An embedding that takes too long is stopped."""
    provider.behaviour = Behaviour(fails=("slow",) * 9)
    settings = LLMSettings(api_base=provider.url, api_key=KEY, retries=0, timeout=0.3)
    with pytest.raises(ModelTimeoutError):
        await LLM("openai/e", settings, abilities=Abilities()).embed(["x"])


@pytest.mark.parametrize("path", WITH_TOOLS, ids=[path.model for path in WITH_TOOLS])
async def test_echoed_tools_are_not_refused_tools(path: Path, provider: ProviderSimulator) -> None:
    """A 400 that repeats the tools offered refuses none: a plan is tried, and nothing learned when that fails too."""
    provider.behaviour = Behaviour(fails=("prompt_echo",) * 9)
    llm = llm_for(path, provider)
    with pytest.raises(ModelError):
        await llm.run_tools(PROMPT, adding([]))
    assert [row for row in llm.abilities.dump() if row["tools"] is not None or row["dropped"] or row["renamed"]] == []
    assert {row["tier"] for row in llm.abilities.dump()} <= {None}
