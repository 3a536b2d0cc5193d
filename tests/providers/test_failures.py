"""What goes wrong besides refusals, over HTTP: which error it becomes, what is retried, and that nothing leaks."""

import asyncio
import logging
import traceback
from dataclasses import dataclass

import pytest

from asyncmem.errors import (
    ModelAuthenticationError,
    ModelError,
    ModelKeyMissingError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnreachableError,
    StructuredOutputError,
)
from asyncmem.llm import LLM, Abilities, ChatReply, ToolCall
from asyncmem.settings import LLMSettings
from asyncmem.testing import FAILURES, FORMAT_REFUSALS, Behaviour, ProviderSimulator

from ..unit.llm.schemas import Ids
from .matrix import ERRORS, generally
from .paths import HEADER, KEY, OPENAI_PATHS, PATHS, Path, llm_for, sent, settings

pytestmark = pytest.mark.anyio

SECRET_WORDS = "the canary sleeps in the blue teapot"
PROMPT = [
    {"role": "system", "content": "You choose memories."},
    {"role": "user", "content": f"Remember that {SECRET_WORDS} on Sundays."},
]
GOOD = Behaviour(says={"memory_ids": ["1"]})


def test_every_failure_has_an_error() -> None:
    """No failure that the simulator knows is left out of this suite."""
    fixable = {"max_tokens", "temperature", "json_word"}
    assert set(FAILURES) - fixable <= set(ERRORS)


SECRETS = (KEY, HEADER, SECRET_WORDS, "canary sleeps", "teapot", "Sundays", "AKIACANARYCANARY")


@dataclass
class Watch:
    """All that a call shows besides its result."""

    caplog: pytest.LogCaptureFixture
    capfd: pytest.CaptureFixture[str]

    def shows(self, llm: LLM, error: ModelError) -> str:
        """The error in every form, what was printed, and what was logged: by asyncmem at all levels."""
        records = [r for r in self.caplog.records if r.levelno >= logging.INFO or r.name.startswith("asyncmem")]
        return "\n".join(
            [
                *(str(error), repr(error), repr(vars(error)), repr(error.args), *traceback.format_exception(error)),
                *(f"{record.getMessage()} {record.exc_text}" for record in records),
                *self.capfd.readouterr(),
                *(repr(llm), repr(llm.settings), repr(llm.abilities.dump())),
            ]
        )


@pytest.fixture
def watch(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Watch:
    """Watches logs and output."""
    caplog.set_level(logging.DEBUG)
    return Watch(caplog, capfd)


def assert_nothing_leaks(watch: Watch, llm: LLM, error: ModelError) -> None:
    """No key, header or prompt is shown, and no foreign exception hangs on the error."""
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = watch.shows(llm, error)
    assert [secret for secret in SECRETS if secret in shown] == []


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_precise_error_and_nothing_leaks(
    path: Path, kind: str, provider: ProviderSimulator, watch: Watch
) -> None:
    """Each failure is an error of its own that names the model and holds no key, header or prompt, nor do the logs."""
    provider.behaviour = Behaviour(fails=(kind,) * 9)
    llm = llm_for(path, provider, retries=0, timeout=0.3 if kind == "slow" else 20)
    with pytest.raises(ModelError) as caught:
        await llm.structured(PROMPT, Ids)
    error = caught.value
    assert generally(type(error)) is ERRORS[kind]
    assert error.model == path.model
    assert str(error).startswith(path.model)
    assert error.usage.calls == sent(provider)
    assert_nothing_leaks(watch, llm, error)


@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_nothing_is_learned_from_an_echo(path: Path, provider: ProviderSimulator) -> None:
    """A 400 that only repeats the request names all its parameters, and blames none: nothing is remembered.

    Where a lower tier works, that is remembered, and no parameter is left out.
    """
    provider.behaviour = Behaviour(fails=("prompt_echo",) * 9)
    llm = llm_for(path, provider)
    with pytest.raises(ModelRequestError):
        await llm.structured(PROMPT, Ids)
    assert sent(provider) == (2 if path.start == "json_object" else 3)
    assert llm.abilities.dump() == []
    provider.behaviour = Behaviour(says={"memory_ids": ["1"]}, fails=("prompt_echo",))
    done = await llm.structured(PROMPT, Ids)
    lower = "text" if path.start == "json_object" else "json_object"
    assert (done.tier, done.usage.calls) == (lower, 2)
    (row,) = llm.abilities.dump()
    assert (row["tier"], row["dropped"], row["renamed"]) == (lower, (), ())


@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_nothing_is_learned_from_a_broken_answer(path: Path, provider: ProviderSimulator) -> None:
    """A 200 that nobody can read is asked for again on the same tier, whatever litellm shows; nothing is learned."""
    provider.behaviour = Behaviour(says={"memory_ids": ["1"]}, fails=("no_message",), style=path.dialect)
    llm = llm_for(path, provider)
    done = await llm.structured(PROMPT, Ids)
    assert (done.value.memory_ids, done.tier, done.usage.calls) == (["1"], path.start, 2)
    (row,) = llm.abilities.dump()
    assert (row["tier"], row["proven"]) == (None, (path.start,))


@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_too_great_a_limit_is_the_callers_to_mend(path: Path, provider: ProviderSimulator) -> None:
    """More tokens than the model gives are an error that says so; what others ask for stays as it was."""
    provider.behaviour = Behaviour(says={"memory_ids": ["1"]}, fails=("too_many_tokens",))
    llm = llm_for(path, provider)
    with pytest.raises(ModelRequestError, match="max_tokens is too large for this model"):
        await llm.structured(PROMPT, Ids, max_tokens=100_000)
    assert llm.abilities.dump() == []
    assert (await llm.structured(PROMPT, Ids)).usage.calls == 1


@pytest.mark.parametrize("style", FORMAT_REFUSALS)
@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_refusal_of_a_pinned_tier_is_raised_and_nothing_leaks(
    path: Path, style: str, provider: ProviderSimulator, watch: Watch
) -> None:
    """However the refusal is worded, a pinned tier is not left, the error says so and shows nothing of the request."""
    provider.behaviour = Behaviour(accepts=(), style=style)
    llm = llm_for(path, provider, tier=path.start)
    with pytest.raises(ModelRequestError, match="pins what it refuses") as caught:
        await llm.structured(PROMPT, Ids)
    assert sent(provider) == 1
    assert_nothing_leaks(watch, llm, caught.value)


@pytest.mark.parametrize("path", [PATHS[0], PATHS[1]], ids=["SDK", "httpx"])
async def test_passing_failures_are_retried(path: Path, provider: ProviderSimulator) -> None:
    """Two failures that pass are followed by the answer; all three calls are counted."""
    provider.behaviour = Behaviour(says={"memory_ids": ["1"]}, fails=("overloaded", "drop"), retry_after="0")
    done = await llm_for(path, provider).structured(PROMPT, Ids)
    assert (done.value.memory_ids, done.tier, done.usage.calls) == (["1"], "native", 3)
    assert sent(provider) == 3


@pytest.mark.parametrize("path", [PATHS[0], PATHS[1]], ids=["SDK", "httpx"])
async def test_retry_after_is_kept(path: Path, provider: ProviderSimulator) -> None:
    """The next try waits as long as the provider asked."""
    provider.behaviour = Behaviour(says={"memory_ids": ["1"]}, fails=("rate_limit",), retry_after="0.4")
    loop = asyncio.get_running_loop()
    started = loop.time()
    await llm_for(path, provider).structured(PROMPT, Ids)
    assert loop.time() - started >= 0.4


async def test_retry_after_beyond_the_deadline_is_raised_at_once(provider: ProviderSimulator) -> None:
    """A wait that would outlast the deadline is not begun; the error carries it."""
    provider.behaviour = Behaviour(fails=("rate_limit",) * 9, retry_after="500")
    with pytest.raises(ModelRateLimitError) as caught:
        await llm_for(PATHS[0], provider).structured(PROMPT, Ids)
    assert (caught.value.retry_after, caught.value.retryable, caught.value.status) == (500.0, True, 429)
    assert len(provider.received) == 1


async def test_one_deadline_over_everything(provider: ProviderSimulator) -> None:
    """However many tries are left, the deadline ends them all."""
    provider.behaviour = Behaviour(fails=("slow",) * 99)
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(ModelTimeoutError):
        await llm_for(PATHS[0], provider, retries=20, timeout=0.2, deadline=0.5).structured(PROMPT, Ids)
    assert loop.time() - started < 2.0


async def test_cancelling_is_prompt_and_harmless(provider: ProviderSimulator) -> None:
    """A cancelled call ends at once, and the model works on."""
    llm = llm_for(PATHS[0], provider)
    provider.behaviour = Behaviour(fails=("slow",))
    task = asyncio.ensure_future(llm.structured(PROMPT, Ids))
    while not provider.received:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    provider.behaviour = GOOD
    assert (await llm.structured(PROMPT, Ids)).value.memory_ids == ["1"]


async def test_unreachable_server() -> None:
    """A server that is not there is said to be unreachable, with what to check."""
    llm = LLM("openai/foo", LLMSettings(api_base="http://127.0.0.1:9", api_key=KEY, retries=0), abilities=Abilities())
    with pytest.raises(ModelUnreachableError, match="check LLMSettings\\(api_base") as caught:
        await llm.structured(PROMPT, Ids)
    assert caught.value.retryable


@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "groq/foo", "mistral/foo"])
async def test_missing_key(model: str, monkeypatch: pytest.MonkeyPatch, provider: ProviderSimulator) -> None:
    """Without a key the error says that there is none and where to put it."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    provider.behaviour = Behaviour(fails=("wrong_key",) * 9)
    base = provider.root if "anthropic" in model else provider.url
    llm = LLM(model, LLMSettings(api_base=base, retries=0), abilities=Abilities())
    with pytest.raises((ModelKeyMissingError, ModelAuthenticationError), match="key"):
        await llm.structured(PROMPT, Ids)


async def test_missing_openai_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm calls a missing OpenAI key a server error; it is told from one, and not retried."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelKeyMissingError, match="No API key is configured: set") as caught:
        await LLM("openai/gpt-4o", abilities=Abilities()).structured(PROMPT, Ids)
    assert not caught.value.retryable


async def test_model_without_provider(capfd: pytest.CaptureFixture[str]) -> None:
    """A model string that no provider has is unknown, and litellm prints no banner."""
    with pytest.raises(ModelNotFoundError, match="provider/model"):
        await LLM("no-such-model", abilities=Abilities()).structured(PROMPT, Ids)
    assert capfd.readouterr() == ("", "")


BODIES: dict[str, str] = {
    "plain": '{"memory_ids": ["1", "2"]}',
    "fenced": '```json\n{"memory_ids": ["1", "2"]}\n```',
    "prose around": 'Sure! Here it is:\n{"memory_ids": ["1", "2"]}\nAnything else?',
    "reasoning block": '<think>Maybe {"memory_ids": ["9"]}?</think>{"memory_ids": ["1", "2"]}',
    "reasoning not opened": 'Maybe {"memory_ids": ["9"]}? </think> {"memory_ids": ["1", "2"]}',
    "decoy first": 'Of {"memory_ids": ["9"]} and others I choose {"memory_ids": ["1", "2"]}',
    "schema first": '{"type": "object", "properties": {"memory_ids": {"type": "array"}}} {"memory_ids": ["1", "2"]}',
    "byte order mark": '\ufeff{"memory_ids": ["1", "2"]}',
    "encoded twice": '"{\\"memory_ids\\": [\\"1\\", \\"2\\"]}"',
    "bare list": '["1", "2"]',
    "class name": '{"Ids": {"memory_ids": ["1", "2"]}}',
    "properties": '{"properties": {"memory_ids": ["1", "2"]}}',
    "tool call as text": '{"name": "Ids", "arguments": {"memory_ids": ["1", "2"]}}',
    "single quotes": "{'memory_ids': ['1', '2']}",
    "smart quotes": "{“memory_ids”: [“1”, “2”]}",
    "trailing comma": '{"memory_ids": ["1", "2",],}',
    "comment": '{"memory_ids": ["1", "2"] // both\n}',
    "numbers": '{"memory_ids": [1, 2]}',
    "objects": '{"memory_ids": [{"id": "1"}, {"id": 2}]}',
    "nulls": '{"memory_ids": [null, "1", "2"]}',
    "extra keys": '{"memory_ids": ["1", "2"], "confidence": 0.9}',
}
APART: dict[str, ChatReply] = {
    "reasoning apart": ChatReply(content=None, reasoning=BODIES["plain"]),
    "tool call": ChatReply(
        content=None, tool_calls=(ToolCall("c", "Ids", BODIES["plain"]),), finish_reason="tool_calls"
    ),
}


@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
@pytest.mark.parametrize("body", BODIES)
async def test_bodies_are_read_in_one_call(path: Path, body: str, provider: ProviderSimulator) -> None:
    """What a model wraps its answer in costs no further call, on any way."""
    provider.behaviour = Behaviour(says=BODIES[body])
    done = await llm_for(path, provider).structured(PROMPT, Ids)
    assert (done.value.memory_ids, done.usage.calls, done.repairs) == (["1", "2"], 1, 0)


@pytest.mark.parametrize("path", OPENAI_PATHS, ids=[path.model for path in OPENAI_PATHS])
@pytest.mark.parametrize("body", APART)
async def test_answer_beside_the_content_is_read_in_one_call(
    path: Path, body: str, provider: ProviderSimulator
) -> None:
    """An answer that stands in a tool call, or where the reasoning does, costs no further call either."""
    provider.behaviour = Behaviour(says=APART[body])
    done = await llm_for(path, provider).structured(PROMPT, Ids)
    assert (done.value.memory_ids, done.usage.calls, done.repairs) == (["1", "2"], 1, 0)


@pytest.mark.parametrize("path", PATHS, ids=[path.model for path in PATHS])
async def test_cut_reply_is_asked_for_with_more_tokens_then_salvaged(path: Path, provider: ProviderSimulator) -> None:
    """A reply that stays cut is salvaged after one more call with four times the tokens, and says so."""
    provider.behaviour = Behaviour(says=ChatReply(content='{"memory_ids": ["1", "2", "3', finish_reason="length"))
    done = await llm_for(path, provider).structured(PROMPT, Ids, max_tokens=50)
    assert (done.value.memory_ids, done.partial, done.usage.calls) == (["1", "2"], True, 2)
    assert "200" in str(provider.received[-1].body)


FILTERING = [path for path in PATHS if path.dialect != "ollama"]  # Ollama filters nothing


@pytest.mark.parametrize("path", FILTERING, ids=[path.model for path in FILTERING])
async def test_refused_content(path: Path, provider: ProviderSimulator) -> None:
    """A content filter is a refusal, wherever the provider puts it."""
    provider.behaviour = Behaviour(says=ChatReply(content=None, finish_reason="content_filter"))
    with pytest.raises(ModelRefusedError):
        await llm_for(path, provider).structured(PROMPT, Ids)


async def test_refusal_in_words_of_the_provider(provider: ProviderSimulator) -> None:
    """A refusal field is a refusal; its words are not repeated."""
    provider.behaviour = Behaviour(says=ChatReply(content=None, refusal=f"I can't talk about {SECRET_WORDS}"))
    with pytest.raises(ModelRefusedError) as caught:
        await llm_for(PATHS[0], provider).structured(PROMPT, Ids)
    assert SECRET_WORDS not in str(caught.value)


async def test_unreadable_replies_end_with_the_raw_text(provider: ProviderSimulator) -> None:
    """After two repairs the error carries the reply, and its message does not."""
    provider.behaviour = Behaviour(says=f"I will not. {SECRET_WORDS}")
    with pytest.raises(StructuredOutputError) as caught:
        await llm_for(PATHS[0], provider).structured(PROMPT, Ids)
    assert caught.value.raw == f"I will not. {SECRET_WORDS}"
    assert SECRET_WORDS not in str(caught.value)
    assert [r.wanted.format for r in provider.received] == ["json_schema", "json_schema", None]


async def test_many_at_once_learn_together(provider: ProviderSimulator) -> None:
    """A herd of cold calls costs one refusal each at most; later ones cost none."""
    provider.behaviour = Behaviour(says={"memory_ids": ["1"]}, accepts=("json_object",))
    llm = llm_for(PATHS[0], provider)
    first = await asyncio.gather(*(llm.structured(PROMPT, Ids) for _ in range(32)))
    assert {done.tier for done in first} == {"json_object"}
    assert len(provider.received) <= 64
    provider.forget()
    await asyncio.gather(*(llm.structured(PROMPT, Ids) for _ in range(32)))
    assert len(provider.received) == 32


async def test_usage_is_summed_and_unknown_cost_is_none(provider: ProviderSimulator) -> None:
    """Tokens of all calls are added; the cost of a model without a price is None, of a known one a number."""
    provider.behaviour = Behaviour(says="no", accepts=())
    llm = llm_for(PATHS[0], provider)
    provider.behaviour = Behaviour(says={"memory_ids": ["1"]}, accepts=())
    done = await llm.structured(PROMPT, Ids)
    assert (done.usage.calls, done.usage.prompt_tokens, done.usage.completion_tokens) == (3, 11, 7)
    assert done.usage.cost is None
    known = LLM("openai/gpt-4o-mini", settings(PATHS[0], provider), abilities=Abilities())
    provider.behaviour = GOOD
    cost = (await known.structured(PROMPT, Ids)).usage.cost
    assert cost is not None
    assert cost > 0
