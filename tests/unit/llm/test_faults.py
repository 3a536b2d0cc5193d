"""Code of the application's own in a model's place: its faults are told from a provider's failures."""

import functools
import json
from collections.abc import AsyncGenerator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from openai import AsyncOpenAI

from asyncmem.errors import (
    ConfigurationError,
    ModelCodeError,
    ModelError,
    ModelPackageMissingError,
    ModelRateLimitError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from asyncmem.llm import LLM, CallReport, ChatReply, ChatRequest, Embeddings, Tool
from asyncmem.llm.failures import Failure
from asyncmem.llm.loading import load_litellm
from asyncmem.settings import LLMSettings
from asyncmem.testing import Behaviour, HashEmbedder, ProviderSimulator, ScriptedModel

from .schemas import Ids

pytestmark = pytest.mark.anyio

PROMPT = [{"role": "user", "content": "I play go"}]


def response(**fields: Any) -> Any:
    """A response as litellm gives it."""
    told = SimpleNamespace(content='{"memory_ids": ["1"]}', model_dump=lambda exclude_none: {})
    return SimpleNamespace(choices=[SimpleNamespace(message=told, finish_reason="stop")], **fields)


class Calls:
    """Counts what observers are told."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def on_call(self, report: CallReport) -> None:
        self.errors.append(report.error)


async def refused(model: Any, kind: type[ModelError] = ModelCodeError, **settings: Any) -> str:
    """What the error says of the one call that was made, whichever verb made it."""
    said: list[str] = []
    tool = Tool("add", "Adds.", Ids, AddsNothing().run)
    verbs: list[Callable[[LLM], Any]] = [
        lambda llm: llm.structured(PROMPT, Ids),
        lambda llm: llm.complete(PROMPT),
        lambda llm: llm.run_tools(PROMPT, [tool]),
        lambda llm: last(llm.stream_tools(PROMPT, [tool])),
    ]
    for verb in verbs:
        calls = Calls()
        with pytest.raises(kind) as caught:
            await verb(LLM(model, LLMSettings(retries=2, **settings), observers=[calls]))
        assert (caught.value.retryable, caught.value.usage.calls, len(calls.errors)) == (False, 1, 1)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        said.append(str(caught.value))
    assert "play go" not in "".join(said)
    return said[0]


class AddsNothing:
    """A tool that is not called."""

    async def run(self, arguments: Ids) -> str:
        raise AssertionError(arguments)


async def last(events: Any) -> None:
    """Read a stream to its end."""
    async for _ in events:
        pass


class Own:
    """A chat model of the application's own."""

    name = "own"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def complete(self, request: ChatRequest) -> ChatReply:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "error",
    [TypeError, AttributeError, KeyError, IndexError, NameError, NotImplementedError, ZeroDivisionError, ImportError],
)
async def test_a_fault_of_ones_own_code_is_one_call_and_no_outage(error: type[Exception]) -> None:
    """It is not tried again, and told by its class and place, without its words."""

    async def complete(**arguments: Any) -> Any:
        raise error("sk-canary I play go")

    said = await refused(complete)
    assert said.startswith("complete: the completion function raised an error that is a fault in its code")
    assert said.endswith(f"[{error.__name__} (raised at test_faults.py:{complete.__code__.co_firstlineno + 1})]")
    said = await refused(Own(error("sk-canary I play go")))
    assert said.startswith("own: its complete() raised an error")
    assert f"{error.__name__} (raised at test_faults.py:" in said
    assert "canary" not in said


async def test_failures_that_may_pass_are_tried_again_as_before() -> None:
    """A status, a timeout, a broken connection and a missing package are what they are, whoever raised them."""
    busy = type("Busy", (TypeError,), {"status_code": 429})("slow down")
    kinds: dict[Exception, type[ModelError]] = {
        busy: ModelRateLimitError,
        TimeoutError(): ModelTimeoutError,
        ConnectionError("reset"): ModelUnavailableError,
        ValueError("no JSON"): ModelUnavailableError,
        ModuleNotFoundError("No module named 'boto3'"): ModelPackageMissingError,
    }
    for error, kind in kinds.items():
        with pytest.raises(kind) as caught:
            await LLM(Own(error), LLMSettings(retries=0)).complete(PROMPT)
        assert caught.value.retryable is (kind is not ModelPackageMissingError)


async def test_what_must_be_async_says_so() -> None:
    """A sync function, a sync ``complete`` and an async generator are no async functions."""

    def sync(**arguments: Any) -> Any:
        return {"content": "I play go"}

    async def pieces(**arguments: Any) -> AsyncGenerator[str]:
        yield "I play go"

    class Sync:
        name = "sync"

        def complete(self, request: ChatRequest) -> ChatReply:
            return ChatReply("I play go")

    for model, kind in ((sync, "dict"), (Sync(), "ChatReply"), (pieces, "async_generator")):
        said = await refused(model)
        assert "must be an async function ('async def')" in said
        assert f"not a {kind}. [TypeError" in said


async def test_a_function_that_takes_other_arguments() -> None:
    """The error names the argument that it lacks or doesn't take."""

    async def blind(prompt: str = "", **arguments: Any) -> Any:
        return response()

    async def deaf(model: str, timeout: float) -> Any:
        return response()

    assert await LLM(blind).complete(PROMPT)
    said = await refused(deaf)
    assert "deaf: the completion function: it must take what litellm.acompletion takes" in said
    assert "missing a required argument: 'model'" in said
    assert "missing a required argument: 'model'" in await refused((await load_litellm()).acompletion)

    async def inner(**arguments: Any) -> Any:
        raise TypeError("an argument of something else")

    assert "raised an error" in await refused(inner)
    assert "raised an error" in await refused(functools.partial(max, 1))  # of which Python tells no signature


async def test_answers_of_the_wrong_type_say_what_was_returned_and_what_is_wanted() -> None:
    """Of a completion function, and of ``ChatModel.complete``."""
    wrong: dict[str, Any] = {
        "a str": "I play go",
        "a dict": {"choices": []},
        "a NoneType": None,
        "choices that are a dict": SimpleNamespace(choices={"I": "play go"}),
        "a choice that is a dict without .message": SimpleNamespace(choices=[{"message": "I play go"}]),
        "a message that is a str without .model_dump()": SimpleNamespace(
            choices=[SimpleNamespace(message="I play go")]
        ),
    }
    for told, answer in wrong.items():
        given = answer

        async def complete(given: Any = given, **arguments: Any) -> Any:
            return given

        said = await refused(complete)
        assert f"it returned {told}: what litellm.acompletion gives is wanted" in said
    assert "its complete(): it returned a str: a ChatReply is wanted" in await refused(Own("I play go"))
    assert "its complete(): a ChatReply has content of another type" in await refused(Bare())
    async with ScriptedModel([ChatReply(finish_reason=""), "ok"]) as model:
        assert (await LLM(model).complete(PROMPT)).content == "ok"


class Bare(Own):
    """A model that makes its reply of the wrong parts."""

    def __init__(self) -> None:
        super().__init__(None)

    async def complete(self, request: ChatRequest) -> ChatReply:
        return ChatReply(content=5)  # type: ignore[arg-type]


async def test_pieces_of_the_wrong_type() -> None:
    """A completion function that streams texts is told what is wanted."""

    async def complete(stream: bool = False, **arguments: Any) -> Any:
        async def pieces() -> AsyncGenerator[str]:
            yield "I play go"

        return pieces()

    with pytest.raises(ModelCodeError, match="it streamed a str: what"):
        await last(LLM(complete).stream_tools(PROMPT))


async def test_what_litellm_raises_itself_stays_an_outage() -> None:
    """An odd error inside litellm is no fault of the application, be it called through a partial of its own."""
    odd = functools.partial((await load_litellm()).acompletion, model="openai/x")
    assert LLM(odd)._model._own == ""  # type: ignore[attr-defined]
    assert Failure.of(AttributeError("choices")).cause is ModelUnavailableError


async def test_openai_sdk_as_completion_function() -> None:
    """The SDK takes no pydantic class: the next step of the ladder is taken, and remembered."""
    async with ProviderSimulator(Behaviour(says={"memory_ids": ["1"]})) as provider:
        client = AsyncOpenAI(base_url=provider.url, api_key="sk-test")
        llm = LLM(functools.partial(client.chat.completions.create, model="gpt-x"))
        done = await llm.structured(PROMPT, Ids)
        assert (llm.name, done.value, done.tier) == ("gpt-x", Ids(memory_ids=["1"]), "json_schema")
        assert len(provider.received) == 1
        assert (await llm.structured(PROMPT, Ids)).usage.calls == 1
        pinned = LLM(functools.partial(client.chat.completions.create, model="x"), LLMSettings(tier="native"))
        with pytest.raises(ModelCodeError, match=r"LLMSettings\(tier='native'\) pins what it refuses"):
            await pinned.structured(PROMPT, Ids)
        await client.close()


async def test_a_function_that_can_not_put_a_class_into_json() -> None:
    """It gets the plain schema next; a refusal after that is told as the provider's."""

    async def complete(**arguments: Any) -> Any:
        json.dumps(arguments)
        if arguments.get("response_format"):
            raise type("BadRequestError", (Exception,), {"status_code": 400})("what is this?")
        return "text"

    with pytest.raises(ModelRequestError, match="it returned a str"):
        await LLM(complete).structured(PROMPT, Ids)


@pytest.mark.parametrize("model", [ScriptedModel, ChatRequest, Own, HashEmbedder])
def test_a_class_is_no_model(model: Any) -> None:
    """It is refused when the LLM is made, with what to pass instead."""
    with pytest.raises(ConfigurationError, match=rf"the class {model.__name__}: pass an instance"):
        LLM(model)


def test_an_llm_is_no_model() -> None:
    """It would keep its own settings and lose the others: the error says what to pass."""
    with pytest.raises(ConfigurationError, match="model is an LLM already: pass the model that it was made of"):
        LLM(LLM("openai/x"))  # type: ignore[arg-type]


async def test_a_function_has_no_embeddings_and_ranks_nothing() -> None:
    """A completion function is never taken for litellm's embedding function."""

    async def complete(**arguments: Any) -> Any:
        return response()

    with pytest.raises(ConfigurationError, match="has no embed"):
        await LLM(complete).embed(["x"])
    with pytest.raises(ConfigurationError, match="can't rerank"):
        await LLM(complete).rerank("x", ["x"])


class OwnVectors(Own):
    """A model of the application's own with an ``embed``."""

    async def embed(self, texts: Any) -> Embeddings:
        raise self.answer


async def test_an_embed_of_ones_own_is_judged_like_complete() -> None:
    """``LLM.embed`` of such a model raises what is ours."""
    busy = type("Busy", (Exception,), {"status_code": 429})("slow down, I play go")
    with pytest.raises(ModelRateLimitError) as caught:
        await LLM(OwnVectors(busy)).embed(["I play go"])
    assert caught.value.retryable
    assert "play go" not in str(caught.value)
