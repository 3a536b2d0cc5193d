"""``LLM``: what may be passed as a model, what it asks of it, and what it does with time and failures."""

import asyncio
import functools
import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from asyncmem.errors import (
    ConfigurationError,
    InvalidInputError,
    ModelCodeError,
    ModelError,
    ModelRefusedError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from asyncmem.llm import LLM, Abilities, CallReport, ChatModel, ChatReply, ChatRequest, ToolCall
from asyncmem.llm.abilities import SHARED
from asyncmem.settings import LLMSettings
from asyncmem.testing import HashEmbedder, ScriptedModel, ScriptError
from asyncmem.usage import Usage

from .schemas import Ids

pytestmark = pytest.mark.anyio

PROMPT = [{"role": "user", "content": "hi"}]
GOOD = {"memory_ids": ["1"]}


def response(content: str = '{"memory_ids": ["1"]}', **message: Any) -> Any:
    """A response as litellm gives it."""
    fields = {"content": content, "tool_calls": None, **message}
    told = SimpleNamespace(**fields, model_dump=lambda exclude_none: {"role": "assistant", "content": content})
    return SimpleNamespace(
        choices=[SimpleNamespace(message=told, finish_reason="stop")],
        usage=SimpleNamespace(prompt_tokens=5, completion_tokens=2),
        _hidden_params={"response_cost": 0.25},
    )


class Recorder:
    """A completion function that records its arguments."""

    def __init__(self, answer: Any = None) -> None:
        self.calls: list[dict[str, Any]] = []
        self.answer = answer or response()

    async def __call__(self, **arguments: Any) -> Any:
        self.calls.append(arguments)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class FakeRouter:
    """What is used of a ``litellm.Router``."""

    def __init__(self) -> None:
        self.completion = Recorder()
        self.embedding = Recorder(SimpleNamespace(data=[{"index": 0, "embedding": [1.0, 0.0]}]))

    def get_model_names(self) -> list[str]:
        return ["fast", "good"]

    async def acompletion(self, model: str, messages: list[Any], **arguments: Any) -> Any:
        return await self.completion(model=model, messages=messages, **arguments)

    async def aembedding(self, **arguments: Any) -> Any:
        return await self.embedding(**arguments)


async def test_completion_function() -> None:
    """A function that answers like litellm is a model; it gets the settings' parameters and no litellm options."""
    complete = Recorder()
    llm = LLM(complete, LLMSettings(seed=7, extra={"metadata": {"a": 1}}))
    done = await llm.structured(PROMPT, Ids, max_tokens=50)
    assert done.value == Ids(memory_ids=["1"])
    assert (done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.cost) == (5, 2, 0.25)
    sent = complete.calls[0]
    assert (sent["seed"], sent["max_tokens"], sent["temperature"], sent["response_format"]) == (7, 50, 0.0, Ids)
    assert sent["metadata"] == {"a": 1}
    assert not {"num_retries", "max_retries", "model"} & sent.keys()


async def test_metadata_is_copied() -> None:
    """litellm writes into metadata: the settings' own is not what it gets."""
    metadata = {"a": 1}
    complete = Recorder()
    await LLM(complete, LLMSettings(extra={"metadata": metadata})).structured(PROMPT, Ids)
    complete.calls[0]["metadata"]["b"] = 2
    assert metadata == {"a": 1}


class NewRouter(FakeRouter):
    """A router whose names stand in a registry, as they do from litellm 1.110 on."""

    def get_model_names(self) -> list[str]:
        raise DeprecationWarning

    def registry(self) -> Any:
        return SimpleNamespace(names=lambda: ("fast", "good"))


@pytest.mark.parametrize("kind", [FakeRouter, NewRouter])
async def test_router(kind: type[FakeRouter]) -> None:
    """A router is a model: its first name, or the one in the settings; so is its acompletion, by the latter."""
    router = kind()
    llm = LLM(router)
    assert llm.name == "fast"
    await llm.structured(PROMPT, Ids)
    assert router.completion.calls[0]["model"] == "fast"
    other = LLM(router, LLMSettings(extra={"model": "good"}))
    await other.structured(PROMPT, Ids)
    assert (other.name, router.completion.calls[1]["model"]) == ("good", "good")
    bare = LLM(router.acompletion, LLMSettings(extra={"model": "good"}))
    await bare.structured(PROMPT, Ids)
    assert (bare.name, router.completion.calls[2]["model"]) == ("good", "good")
    assert (await other.embed(["x"])).vectors.tolist() == [[1.0, 0.0]]
    assert router.embedding.calls[0]["model"] == "good"


async def test_names() -> None:
    """A partial function is named by its model, another by its own name."""
    assert LLM(functools.partial(Recorder(), model="x/y")).name == "x/y"

    async def mine(**arguments: Any) -> Any:
        return response()

    assert LLM(mine).name == "mine"
    assert repr(LLM(" openai/x ")) == "LLM('openai/x')"
    assert isinstance(ScriptedModel([], name="s"), ChatModel)
    assert LLM(ScriptedModel([], name="s")).name == "s"


@pytest.mark.parametrize("model", ["", "  ", 3, None])
async def test_what_is_no_model(model: Any) -> None:
    """Anything else is refused when the LLM is made."""
    with pytest.raises(ConfigurationError, match="model"):
        LLM(model)


async def test_abilities_are_shared_by_name_only() -> None:
    """Models named by a string share what was learned; objects keep it to themselves."""
    assert LLM("openai/x").abilities is SHARED
    one, two = LLM(ScriptedModel([])), LLM(ScriptedModel([]))
    assert one.abilities is not two.abilities
    mine = Abilities()
    assert LLM("openai/x", abilities=mine).abilities is mine


async def test_complete() -> None:
    """A reply in the model's own words, with the usage of all calls."""
    down = ModelUnavailableError("down", retryable=True)
    async with ScriptedModel([down, "Hello."]) as model:
        reply = await LLM(model).complete(PROMPT, max_tokens=9)
    assert (reply.content, reply.usage.calls) == ("Hello.", 2)
    assert (model.requests[0].max_tokens, model.requests[0].response_format) == (9, None)


async def test_complete_with_refused_parameter_refusal_and_no_choice() -> None:
    """A refused parameter is dropped, a refusal raised, and no choice asked for once more."""
    no_seed = ModelRequestError("seed is not supported", status=400)
    async with ScriptedModel([no_seed, "ok"]) as model:
        assert (await LLM(model, LLMSettings(seed=1)).complete(PROMPT)).content == "ok"
        assert model.requests[1].seed is None
    with pytest.raises(ModelRefusedError):
        await LLM(ScriptedModel([ChatReply(refusal="no")])).complete(PROMPT)
    empty = ChatReply(finish_reason="")
    assert (await LLM(ScriptedModel([empty, "ok"])).complete(PROMPT)).content == "ok"
    with pytest.raises(ModelUnavailableError, match="without a choice"):
        await LLM(ScriptedModel([empty, empty])).complete(PROMPT)
    with pytest.raises(InvalidInputError, match="messages is empty"):
        await LLM(ScriptedModel([])).structured([], Ids)


async def test_unexpected_call_passes_through() -> None:
    """A test double's assertion is not taken for a failure of a provider."""
    with pytest.raises(ScriptError):
        await LLM(ScriptedModel([])).structured(PROMPT, Ids)
    with pytest.raises(ModelCodeError):
        await LLM(Recorder(AssertionError("of its own")), LLMSettings(retries=0)).structured(PROMPT, Ids)
    with pytest.raises(ScriptError, match="not me"):
        await LLM(Recorder(ScriptError("not me"))).structured(PROMPT, Ids)
    with pytest.raises(ScriptError, match="not me"):
        await (
            LLM("openai/x")
            ._model.__class__("x", {}, None, Recorder(ScriptError("not me")))
            .embed(
                SimpleNamespace(texts=["a"], timeout=None)  # type: ignore[attr-defined]
            )
        )


async def test_bug_in_a_model_of_ones_own_names_its_place() -> None:
    """An exception that is no provider's says where it came from, and carries nothing of it."""

    class Buggy:
        name = "buggy"

        async def complete(self, request: ChatRequest) -> ChatReply:
            return request.nothing  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(ModelCodeError, match=r"AttributeError \(raised at test_client.py:\d+\)") as caught:
        await LLM(Buggy(), LLMSettings(retries=0)).structured(PROMPT, Ids)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


class Slow:
    """A model that takes its time."""

    name = "slow"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at_once = self.most = self.begun = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.begun += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        return ChatReply(content='{"memory_ids": ["1"]}')


async def test_time_out_of_one_request() -> None:
    """A model that doesn't keep the time-out itself is stopped."""
    with pytest.raises(ModelTimeoutError) as caught:
        await LLM(Slow(60), LLMSettings(timeout=0.05, retries=0)).structured(PROMPT, Ids)
    assert caught.value.retryable


async def test_deadline_counts_while_waiting_in_line() -> None:
    """Waiting for one's turn ends with the deadline too."""
    llm = LLM(Slow(0.4), LLMSettings(concurrency=1, deadline=0.2, retries=0))
    outcomes = await asyncio.gather(*(llm.structured(PROMPT, Ids) for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ModelTimeoutError] * 3


async def test_request_that_never_left_the_line_is_not_counted() -> None:
    """Of calls that wait in line until the deadline, only those that were sent are counted."""
    model = Slow(0.4)
    llm = LLM(model, LLMSettings(concurrency=1, deadline=0.2, retries=0))
    outcomes = await asyncio.gather(*(llm.structured(PROMPT, Ids) for _ in range(4)), return_exceptions=True)
    counted = [outcome.usage.calls for outcome in outcomes if isinstance(outcome, ModelError)]
    assert len(counted) == 4
    assert 1 <= sum(counted) == model.begun < 4


async def test_error_carries_what_the_operation_took() -> None:
    """Tokens of the calls before a failure are on the error, whichever verb failed."""
    price = Usage(calls=1, prompt_tokens=5, completion_tokens=2, cost=0.25)
    unread = ChatReply(content="no", usage=price)
    refused = ModelRefusedError("no", status=400)
    for steps, calls, cost in ([[unread] * 3, 3, 0.75], [[unread, refused], 2, 0.25]):
        async with ScriptedModel(steps) as model:
            with pytest.raises(ModelError) as caught:
                await LLM(model).structured(PROMPT, Ids)
        usage = caught.value.usage
        assert (usage.calls, usage.prompt_tokens, usage.cost) == (calls, 5 * (calls - (cost < 0.5)), cost)
    with pytest.raises(ModelError) as caught:
        await LLM(ScriptedModel([refused])).complete(PROMPT)
    assert caught.value.usage == Usage(calls=1)
    with pytest.raises(ModelError) as caught:
        await embedding_llm(Vectors(longest=0)).embed(["a", "b"])
    assert caught.value.usage.calls == 2


async def test_cost_of_an_answer_that_never_came_is_unknown() -> None:
    """A time-out may have been billed: its cost is None; that of a server that was too busy is 0."""
    busy = ModelUnavailableError("busy", retryable=True, status=503)
    late = ModelTimeoutError("late", retryable=True)
    priced = ChatReply(content='{"memory_ids": []}', usage=Usage(calls=1, cost=0.5))
    for first, cost in ((busy, 0.5), (late, None)):
        async with ScriptedModel([first, priced]) as model:
            assert (await LLM(model).structured(PROMPT, Ids)).usage == Usage(calls=2, cost=cost)


async def test_concurrency_is_bounded() -> None:
    """No more requests than the settings say are under way at once."""
    model = Slow(0.01)
    llm = LLM(model, LLMSettings(concurrency=3))
    await asyncio.gather(*(llm.structured(PROMPT, Ids) for _ in range(12)))
    assert model.most == 3


def test_one_model_in_several_loops() -> None:
    """A model works in one event loop after another, and keeps nothing of those that ended."""
    llm = LLM(Slow(0.0))
    for _ in range(3):
        asyncio.run(_ask(llm))
    assert len(llm._sender.gates) == 1


async def _ask(llm: LLM) -> None:
    done = await asyncio.gather(*(llm.structured(PROMPT, Ids) for _ in range(3)))
    assert [one.value for one in done] == [Ids(memory_ids=["1"])] * 3


class Observer:
    """Keeps what it is told."""

    def __init__(self, *, fails: bool = False) -> None:
        self.reports: list[CallReport] = []
        self.fails = fails

    def on_call(self, report: CallReport) -> None:
        self.reports.append(report)
        if self.fails:
            raise ValueError("secret")


async def test_observers_are_told_of_every_call(caplog: pytest.LogCaptureFixture) -> None:
    """Refused and answered calls are reported; an observer that fails is logged without its words."""
    good, bad = Observer(), Observer(fails=True)
    refused = ModelRequestError("response_format is not supported", status=400)
    async with ScriptedModel([refused, GOOD]) as model:
        await LLM(model, observers=[bad, good]).structured(PROMPT, Ids)
    assert [(r.model, r.kind, r.usage.calls, r.error) for r in good.reports] == [
        ("scripted", "chat", 1, "ModelRequestError"),
        ("scripted", "chat", 1, ""),
    ]
    assert all(report.seconds >= 0 for report in good.reports)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["scripted: the observer Observer failed: ValueError"] * 2


class Vectors:
    """An embedding function that answers like litellm's, and refuses what it is told to."""

    def __init__(self, *, size: int = 2, most: int = 99, longest: int = 999) -> None:
        self.size, self.most, self.longest = size, most, longest
        self.batches: list[list[str]] = []

    async def __call__(self, **arguments: Any) -> Any:
        texts: Sequence[str] = arguments["input"]
        self.batches.append(list(texts))
        if len(texts) > self.most:
            raise _bad_request("input array is too long")
        if max(map(len, texts)) > self.longest:
            raise _bad_request("maximum context length exceeded")
        rows = [{"index": i, "embedding": [float(len(t))] * self.size} for i, t in enumerate(texts)]
        return SimpleNamespace(data=rows[::-1], usage=SimpleNamespace(prompt_tokens=len(texts)))


def _bad_request(text: str) -> Exception:
    return type("BadRequestError", (Exception,), {"status_code": 400})(text)  # type: ignore[no-any-return]


def embedding_llm(vectors: Any, **settings: Any) -> LLM:
    """An LLM whose vectors come from this function."""
    router = FakeRouter()
    router.aembedding = vectors  # type: ignore[method-assign]
    return LLM(router, LLMSettings(**settings))


async def test_embeddings_come_in_the_order_of_the_texts() -> None:
    """Batches run side by side, and every text has its own vector."""
    vectors = Vectors()
    done = await embedding_llm(vectors).embed(["a", "bb", "ccc", "dddd", "eeeee"], batch=2)
    assert done.vectors.tolist() == [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5]]
    assert done.vectors.dtype == np.float32
    assert done.truncated == (False,) * 5
    assert (done.usage.calls, done.usage.prompt_tokens, done.usage.cost) == (3, 5, None)
    assert sorted(map(len, vectors.batches)) == [1, 2, 2]


async def test_no_texts_cost_no_call() -> None:
    """Nothing to embed is no request."""
    vectors = Vectors()
    assert (await embedding_llm(vectors).embed([])).vectors.shape == (0, 0)
    assert vectors.batches == []


async def test_refused_batches_are_split() -> None:
    """A provider that takes fewer texts at once gets fewer."""
    done = await embedding_llm(Vectors(most=2)).embed(["a", "bb", "ccc", "dddd", "eeeee"])
    assert done.vectors[:, 0].tolist() == [1, 2, 3, 4, 5]


async def test_texts_that_are_too_long_are_cut_between_words_and_marked() -> None:
    """Only the text that is too long is cut, at a space where there is one."""
    vectors = Vectors(longest=10)
    done = await embedding_llm(vectors).embed(["short", "seven words that are far too long", "x" * 30])
    assert done.truncated == (False, True, True)
    assert done.vectors[:, 0].tolist() == [5, 5, 7]
    assert ["seven"] in vectors.batches


async def test_vectors_of_another_length_are_refused() -> None:
    """A model whose vectors change their length can't be compared any more; that is said."""
    llm = embedding_llm(Vectors(size=2))
    await llm.embed(["a"])
    llm._model._embedding = Vectors(size=3)  # type: ignore[attr-defined]
    with pytest.raises(ModelRequestError, match=r"have 3 numbers, and had 2 before.*'dimensions': 2") as caught:
        await llm.embed(["a"])
    assert "llm.abilities.clear()" in str(caught.value)
    llm.abilities.clear()
    assert (await llm.embed(["a"])).vectors.shape == (1, 3)


async def test_lengths_that_were_asked_for_are_kept_apart() -> None:
    """Two users of one model that ask for vectors of different lengths don't disturb each other."""
    abilities = Abilities()
    for size in (2, 3, 2, 3):
        settings = LLMSettings(extra={"dimensions": size})
        llm = LLM("openai/foo", settings, abilities=abilities)
        llm._model._embedding = Vectors(size=size)  # type: ignore[attr-defined]
        assert (await llm.embed(["a"])).vectors.shape == (1, size)


NO_VECTORS = {
    "none": [],
    "too many": [[1.0], [1.0], [1.0]],
    "empty": [[], []],
    "several lengths": [[1.0], [1.0, 2.0]],
    "not a number": [[float("nan")], [1.0]],
    "too large for float32": [[1e300], [1.0]],
    "null": [[None], [1.0]],
    "words": [["a"], ["b"]],
    "digits": ["12", "34"],
    "base64": ["zczMPc3MTD6amZk+"] * 2,
    "nested": [[[0.1]], [[0.2]]],
    "nested unevenly": [[[0.1]], [0.2]],
    "true": [[True], [False]],
}


@pytest.mark.parametrize("rows", NO_VECTORS.values(), ids=NO_VECTORS.keys())
async def test_broken_vectors_are_asked_for_again(rows: list[Any]) -> None:
    """What is no finite vector for each text is a broken answer: it is tried again, and teaches nothing."""
    answer = Recorder(SimpleNamespace(data=[{"index": i, "embedding": row} for i, row in enumerate(rows)]))
    llm = embedding_llm(answer, retries=1)
    with pytest.raises(ModelUnavailableError, match="vectors") as caught:
        await llm.embed(["a", "b"])
    assert (caught.value.retryable, len(answer.calls), llm.abilities.dump()) == (True, 2, [])


async def test_vectors_without_their_places_are_in_order() -> None:
    """Some servers leave the index out."""
    answer = Recorder(SimpleNamespace(data=[{"embedding": [1.0]}, {"embedding": [2]}]))
    assert (await embedding_llm(answer).embed(["a", "b"])).vectors.tolist() == [[1.0], [2.0]]


async def test_embedding_failures_are_retried_and_raised_unwrapped() -> None:
    """A failure that passes is tried again; then the error itself is raised, and other batches end."""
    limited = type("RateLimitError", (Exception,), {"status_code": 429})("slow down")
    limited.litellm_response_headers = {"retry-after": "0"}
    embedding = Recorder(limited)
    with pytest.raises(Exception, match="Too many requests") as caught:
        await embedding_llm(embedding, retries=1).embed(["a", "b"], batch=1)
    assert type(caught.value).__name__ == "ModelRateLimitError"
    assert caught.value.__context__ is None
    assert len(embedding.calls) in (3, 4)


async def test_text_of_one_character_that_is_too_long() -> None:
    """What can't be cut any further is an error."""
    with pytest.raises(Exception, match="exceeds the model's context"):
        await embedding_llm(Vectors(longest=0)).embed(["a"])


async def test_embedder_of_ones_own() -> None:
    """A model with an embed method is asked itself; one without is no embedder."""

    class Both(HashEmbedder):
        async def complete(self, request: ChatRequest) -> ChatReply:
            return ChatReply()

    done = await LLM(Both(8)).embed(["a", "b"])
    assert done.vectors.shape == (2, 8)
    with pytest.raises(ConfigurationError, match="has no embed"):
        await LLM(ScriptedModel([])).embed(["a"])


async def test_reply_of_litellm_in_all_its_parts() -> None:
    """Tool calls, legacy function calls, refusals, reasoning and content in parts are all read."""
    from asyncmem.llm.replies import to_reply

    call = SimpleNamespace(id=None, function=SimpleNamespace(name="add", arguments='{"a": 1}'))
    reply = to_reply(response("", tool_calls=[call], reasoning_content="hm"))
    assert (reply.tool_calls[0].id, reply.tool_calls[0].name, reply.reasoning) == ("", "add", "hm")
    legacy = to_reply(response("", function_call=SimpleNamespace(name="add", arguments=None)))
    assert (legacy.tool_calls[0].name, legacy.tool_calls[0].arguments) == ("add", "")
    assert to_reply(response(provider_specific_fields={"refusal": "no"})).refusal == "no"
    assert to_reply(response(["part"])).content is None  # type: ignore[arg-type]
    assert to_reply(SimpleNamespace(choices=[])).finish_reason == ""
    given = ChatReply(content="x")
    assert to_reply(given) is given


async def test_nothing_shows_prompts_or_keys() -> None:
    """No repr of a request, reply, setting or model holds a prompt, a key or a header."""
    settings = LLMSettings(api_key="sk-canary", extra={"extra_headers": {"x": "canary"}})  # type: ignore[arg-type]
    request = ChatRequest([{"role": "user", "content": "canary"}], extra=settings.extra, tools=[{"canary": 1}])
    reply = ChatReply(content="canary", message={"content": "canary"}, reasoning="canary", refusal="canary")
    for value in (settings, request, reply, LLM("openai/x", settings)):
        assert "canary" not in repr(value)


@pytest.mark.parametrize("answer", [None, "text", {"content": "text"}, 5])
async def test_a_model_of_ones_own_that_answers_the_wrong_type_is_a_model_error(answer: object) -> None:
    """Whatever ``complete`` returns instead of a reply comes out as a typed error that names the type."""

    class Odd:
        name = "odd"

        async def complete(self, request: ChatRequest) -> ChatReply:
            return answer  # type: ignore[return-value]

    with pytest.raises(ModelError, match=type(answer).__name__):
        await LLM(Odd(), LLMSettings(retries=0)).complete([{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("fields", [{"content": 5}, {"content": b"{}"}, {"tool_calls": None}, {"usage": None}])
def test_a_reply_of_wrong_types_is_refused_when_made(fields: dict[str, Any]) -> None:
    """The error names the field."""
    with pytest.raises(TypeError, match=next(iter(fields))):
        ChatReply(**fields)


@pytest.mark.parametrize("bound", [0, -1, "5", True, 1.5])
async def test_bounds_are_positive_numbers(bound: Any) -> None:
    """A bound that is no positive whole number is refused by name, before anything is asked."""
    llm = LLM(ScriptedModel([]))
    for name, call in {
        "max_tokens": lambda **kw: llm.structured(PROMPT, Ids, **kw),
        "max_calls": lambda **kw: llm.run_tools(PROMPT, [SimpleNamespace(name="x")], **kw),  # type: ignore[list-item]
        "batch": lambda **kw: llm.embed(["x"], **kw),
    }.items():
        with pytest.raises(InvalidInputError, match=f"{name} must be a whole number"):
            await call(**{name: bound})


@pytest.mark.parametrize("arguments", [None, {"x": 1}])
async def test_a_call_without_text_is_an_error_of_the_model(arguments: Any) -> None:
    """A model of one's own that gives arguments as something else than text fails as a model does."""

    async def complete(**_: Any) -> ChatReply:
        return ChatReply(tool_calls=(ToolCall("1", "add", arguments),))

    with pytest.raises(ModelError, match="id, name and arguments"):
        await LLM(complete, LLMSettings(retries=0)).complete([{"role": "user", "content": "x"}])


@pytest.mark.parametrize("waiting", [False, True])
async def test_cancelled_call_is_told_to_observers(waiting: bool) -> None:
    """A call that was cancelled is reported, its cost unknown; one that waited in line took nothing."""
    reports: list[CallReport] = []

    class Meter:
        def on_call(self, report: CallReport) -> None:
            reports.append(report)

    begun = asyncio.Event()

    class Endless:
        name = "endless"

        async def complete(self, request: ChatRequest) -> ChatReply:
            begun.set()
            await asyncio.Event().wait()
            return ChatReply()

    llm = LLM(Endless(), LLMSettings(concurrency=1), observers=[Meter()])
    tasks = [asyncio.ensure_future(llm.complete([{"role": "user", "content": "hi"}])) for _ in range(1 + waiting)]
    await begun.wait()
    for task in reversed(tasks):
        task.cancel()
        await asyncio.wait([task])
    last = reports[-1]
    assert (last.error, last.usage.calls, last.usage.cost) == ("CancelledError", 1, None)
    assert [report.usage.calls for report in reports[:-1]] == [0] * waiting


async def test_text_that_cannot_be_sent_is_refused() -> None:
    """Half of a surrogate pair is no character: it is said before anything is sent."""
    model = ScriptedModel([])
    with pytest.raises(InvalidInputError, match="text 0 holds half of a surrogate pair"):
        await LLM(model).complete([{"role": "user", "content": "a\ud800b"}])
    with pytest.raises(InvalidInputError, match="text 1 holds"):
        await embedding_llm(Vectors()).embed(["fine", "\udfff"])
    for query, texts, told in (("tea", ["fine", "\ud801"], "text 1"), ("\ud801", ["fine"], "the query")):
        with pytest.raises(InvalidInputError, match=f"{told} holds half"):
            await embedding_llm(Vectors()).rerank(query, texts)


@pytest.mark.parametrize("messages", ["hi", b"hi", {"role": "user", "content": "hi"}, [5], ["hi"], None, 5])
async def test_what_is_no_conversation(messages: Any) -> None:
    """A text, a single message and what holds something else are refused by every verb, before anything is asked."""
    llm = LLM(ScriptedModel([]))
    for call in (lambda: llm.structured(messages, Ids), lambda: llm.complete(messages)):
        with pytest.raises(InvalidInputError, match="messages must be a list of dicts in OpenAI's shape"):
            await call()
    with pytest.raises(InvalidInputError, match="messages must be"):
        llm.stream_tools(messages)


@pytest.mark.parametrize("texts", ["tea", b"tea", 5, None, [5], ["tea", None]])
async def test_what_is_no_list_of_texts(texts: Any) -> None:
    """A bare text is not taken for a list of characters."""
    llm = embedding_llm(Vectors())
    for call in (lambda: llm.embed(texts), lambda: llm.rerank("tea", texts), lambda: llm.count_tokens(texts)):
        with pytest.raises(InvalidInputError, match="texts must be a list of"):
            await call()
    with pytest.raises(InvalidInputError, match="query must be a str, not a int"):
        await llm.rerank(5, ["tea"])  # type: ignore[arg-type]


async def test_blank_texts_have_no_vector() -> None:
    """They are refused with their place; their tokens can be counted."""
    llm = embedding_llm(Vectors())
    for blank in ("", " \n"):
        with pytest.raises(InvalidInputError, match="blank text at number 1"):
            await llm.embed(["tea", blank])
    assert (await llm.count_tokens(["", "tea"])).tokens == (await llm.count_tokens(["tea"])).tokens


class AsyncObserver:
    """An observer that nobody would wait for."""

    async def on_call(self, report: CallReport) -> None:
        raise AssertionError(report)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"settings": {"timeout": 5}}, "settings must be LLMSettings"),
        ({"settings": None}, "settings must be LLMSettings"),
        ({"abilities": {}}, "abilities must be Abilities"),
        ({"observers": print}, "observers must be a list of objects with a method on_call"),
        ({"observers": "print"}, "observers must be a list"),
        ({"observers": Observer()}, "observers must be a list .* not a Observer"),
        ({"observers": [5]}, "observers must be a list .* not a int"),
        ({"observers": [Observer]}, "not the class Observer"),
        ({"observers": [AsyncObserver()]}, "the on_call of AsyncObserver must be a plain method"),
    ],
)
def test_what_an_llm_can_not_be_made_of(given: dict[str, Any], words: str) -> None:
    """Each argument of the wrong kind is refused by name when the LLM is made."""
    with pytest.raises(ConfigurationError, match=words):
        LLM("openai/x", **given)
