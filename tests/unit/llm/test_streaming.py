"""``LLM.stream_tools`` with models of one's own: what is given out, what is retried, and what is closed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from asyncmem.errors import (
    InvalidInputError,
    ModelCodeError,
    ModelRefusedError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnavailableError,
    ModelUnreachableError,
)
from asyncmem.llm import (
    LLM,
    Abilities,
    CallReport,
    ChatDelta,
    ChatReply,
    ChatRequest,
    RunFinished,
    StreamEvent,
    StreamingModel,
    TextDelta,
    Tool,
    ToolCall,
    ToolDone,
    ToolRun,
    ToolStarted,
)
from asyncmem.llm.causes import cause
from asyncmem.settings import LLMSettings
from asyncmem.testing import ScriptedModel, ScriptError, tool_reply
from asyncmem.usage import Usage

from .test_assembling import chunk

pytestmark = pytest.mark.anyio

PROMPT = [{"role": "user", "content": "I play go"}]
PASSING = ModelUnavailableError("later", retryable=True, retry_after=0.01)
Script = Callable[[ChatRequest], AsyncIterator[Any]]


class Add(BaseModel):
    """Arguments of add."""

    memory: str


async def _add(arguments: Add) -> str:
    return f"added {arguments.memory}"


TOOLS: list[Tool[Any]] = [Tool("add", "Add a note.", Add, _add)]


class Streamer:
    """A model that streams what its scripts yield; an exception among that is raised."""

    name = "streamer"

    def __init__(self, *scripts: Sequence[Any]) -> None:
        self.scripts = list(scripts)
        self.requests: list[ChatRequest] = []
        self.closed = 0
        self.whole = ChatReply("whole")

    async def complete(self, request: ChatRequest) -> ChatReply:
        return self.whole

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta]:
        self.requests.append(request)
        try:
            for step in self.scripts.pop(0):
                if isinstance(step, BaseException):
                    raise step
                yield ChatDelta(step) if isinstance(step, str) else step
        finally:
            self.closed += 1


class Watcher:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.reports: list[CallReport] = []

    def on_call(self, report: CallReport) -> None:
        self.reports.append(report)


async def streamed(llm: LLM, tools: Sequence[Tool[Any]] = (), **bounds: int) -> tuple[list[str], ToolRun]:
    """The pieces of text, and the run."""
    events = [event async for event in llm.stream_tools(PROMPT, tools, **bounds)]
    assert isinstance(events[-1], RunFinished)
    return [event.text for event in events if isinstance(event, TextDelta)], events[-1].run


async def test_scripted_model_streams() -> None:
    """A scripted reply comes word by word, calls are events, and the run is what run_tools returns."""
    steps = [tool_reply(("add", {"memory": "Plays go"}), content="Let me  see. "), "Noted, \n friend."]
    async with ScriptedModel(steps) as model:
        assert isinstance(model, StreamingModel)
        events = [event async for event in LLM(model).stream_tools(PROMPT, TOOLS)]
    async with ScriptedModel(steps) as model:
        run = await LLM(model).run_tools(PROMPT, TOOLS)
    kinds: list[type[StreamEvent]] = [TextDelta] * 4 + [ToolStarted, ToolDone] + [TextDelta] * 2 + [RunFinished]
    assert [type(event) for event in events] == kinds
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Let me  see. Noted, \n friend."
    assert events[-1] == RunFinished(run)
    assert "Noted" not in repr(events)


async def test_texts_alone_are_a_reply() -> None:
    """A stream without a whole reply is the reply that its texts make."""
    model = Streamer(["Hello", "", " you"])
    pieces, run = await streamed(LLM(model))
    assert (pieces, run.answer, run.stopped, model.closed) == (["Hello", " you"], "Hello you", "answer", 1)
    assert model.requests[0].stream
    assert model.requests[0].tools is None


async def test_whole_reply_adds_what_its_pieces_left_out() -> None:
    """Text of the whole reply that no piece held is given out; a reply without text has that of its pieces."""
    more = Streamer(["Hal", ChatDelta(reply=ChatReply("Hallo", usage=Usage(1, 3, 4)))])
    assert await streamed(LLM(more)) == (["Hal", "lo"], ToolRun("Hallo", [], [*PROMPT, turn("Hallo")], Usage(1, 3, 4)))
    none = Streamer(["Hal", ChatDelta("lo", ChatReply()), "never read"])
    assert (await streamed(LLM(none)))[1].answer == "Hallo"
    other = Streamer(["Hal", ChatDelta(reply=ChatReply("Other"))])
    assert (await streamed(LLM(other)))[0] == ["Hal"]


def turn(content: str) -> dict[str, Any]:
    """An assistant's turn."""
    return {"role": "assistant", "content": content}


async def test_model_that_cannot_stream() -> None:
    """A model without ``stream`` gives its reply in one piece, and so does one that refuses to stream."""

    class Plain:
        name = "plain"

        async def complete(self, request: ChatRequest) -> ChatReply:
            return ChatReply("All at once.")

    assert (await streamed(LLM(Plain())))[0] == ["All at once."]
    refused = type("BadRequest", (Exception,), {"status_code": 400})(
        "Unsupported value: 'stream' does not support true"
    )
    llm = LLM(Streamer([refused]), abilities=Abilities())
    assert (await streamed(llm))[0] == ["whole"]
    assert llm.abilities.dump()[0]["dropped"] == ("stream",)


async def test_refused_usage_is_left_out() -> None:
    """A server that knows no stream_options is asked without them from then on."""
    refused = type("BadRequest", (Exception,), {"status_code": 400})("Unrecognized argument: stream_options")
    model = Streamer([refused], ["Hi"])
    assert (await streamed(LLM(model, LLMSettings(extra={"stream_options": {"x": 1}}))))[0] == ["Hi"]
    assert [request.extra for request in model.requests] == [{"stream_options": {"include_usage": True, "x": 1}}, {}]
    assert model.requests[1].stream


async def test_failure_before_the_first_piece_is_retried() -> None:
    """What passes is asked again while nothing was given out, after a retry too."""
    model = Streamer([PASSING], [ChatDelta(), PASSING], ["Hi"])
    pieces, run = await streamed(LLM(model))
    assert (pieces, run.usage.calls, run.usage.cost) == (["Hi"], 3, None)


async def test_failure_after_the_first_piece_is_raised() -> None:
    """What was given out can't be taken back: the error is raised, foreign ones as ours, with what it took."""
    watcher = Watcher()
    model = Streamer(["Hi"], ["Hello", ConnectionError("connection refused while I play go")])
    llm = LLM(model, observers=[watcher])
    await streamed(llm)
    with pytest.raises(ModelUnavailableError) as caught:
        await streamed(llm)
    assert "play go" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert caught.value.usage == Usage(calls=1, cost=None)
    assert [(report.kind, report.error) for report in watcher.reports] == [("chat", ""), ("chat", "ConnectionError")]


async def test_unreachable_before_anything_came() -> None:
    """Where nothing came, no connection is no connection."""
    with pytest.raises(ModelUnreachableError):
        await streamed(LLM(Streamer([ConnectionError("connection refused")]), LLMSettings(retries=0)))


async def test_no_plan_after_words() -> None:
    """A refusal after the model spoke is raised; before, a plan stands in."""
    refused = ModelRequestError("no tools here", status=400)
    with pytest.raises(ModelRequestError):
        await streamed(LLM(Streamer(["Hi", refused])), TOOLS)
    with pytest.raises(ModelRequestError):
        await streamed(LLM(Streamer([refused])))


async def test_plan() -> None:
    """A plan's calls are events, its answer one piece; a plan without an answer says nothing."""
    said = {"actions": [{"tool": "add", "memory": "Plays go"}], "answer": "Noted it."}
    async with ScriptedModel([said, {**said, "answer": None}]) as model:
        llm = LLM(model, LLMSettings(tools=False))
        pieces, run = await streamed(llm, TOOLS)
        assert (pieces, run.answer, run.tier) == (["Noted it."], "Noted it.", "native")
        assert (await streamed(llm, TOOLS))[0] == []


async def test_bounds() -> None:
    """Rounds and calls are bounded as in run_tools."""
    async with ScriptedModel([tool_reply(("add", {"memory": "a"}), ("add", {"memory": "b"}))]) as model:
        _, run = await streamed(LLM(model), TOOLS, max_calls=1)
        assert (run.stopped, len(run.results)) == ("calls", 2)
    with pytest.raises(InvalidInputError):
        LLM(model).stream_tools(PROMPT, max_rounds=0)
    with pytest.raises(InvalidInputError):
        LLM(model).stream_tools([])


async def test_empty_stream() -> None:
    """A stream of nothing is asked for once more, whole, and from one that never streamed not again."""
    model = Streamer([])
    llm = LLM(model)
    assert (await streamed(llm))[0] == ["whole"]
    pieces, run = await streamed(llm)
    assert (pieces, run.usage.calls, len(model.requests)) == (["whole"], 1, 1)
    once = LLM(Streamer(["Hi"], [], ["you"]))
    assert [(await streamed(once))[0] for _ in range(3)] == [["Hi"], ["whole"], ["you"]]
    nothing = Streamer([])
    nothing.whole = ChatReply(finish_reason="")
    llm = LLM(nothing)
    with pytest.raises(ModelUnavailableError):
        await streamed(llm)
    assert llm.abilities.dump() == []
    pieces, run = await streamed(LLM(Streamer([ChatDelta(reply=ChatReply())])))
    assert (pieces, run.answer) == ([], None)


async def test_refused_content() -> None:
    """A reply that ends in a refusal is an error, whatever was said before."""
    refused = ChatDelta(reply=ChatReply("Well", finish_reason="content_filter"))
    with pytest.raises(ModelRefusedError):
        await streamed(LLM(Streamer(["Well", refused])))


@pytest.mark.parametrize("given", [3, None, "text"])
async def test_models_that_break_the_contract(given: Any) -> None:
    """What streams anything else than pieces has failed."""

    class Odd(Streamer):
        def stream(self, request: ChatRequest) -> Any:
            return self.odd() if given != 3 else given

        async def odd(self) -> AsyncGenerator[Any]:
            yield given if given is not None else SimpleNamespace()

    with pytest.raises(ModelCodeError, match=r"its stream\(\): it"):
        await streamed(LLM(Odd(), LLMSettings(retries=0)))
    with pytest.raises(TypeError):
        ChatDelta(None)  # type: ignore[arg-type]


async def test_stream_that_is_awaited_first() -> None:
    """A coroutine that returns the stream does too."""

    class Late(Streamer):
        async def stream(self, request: ChatRequest) -> Any:  # type: ignore[override]
            return super().stream(request)

    assert (await streamed(LLM(Late(["Hi"]))))[0] == ["Hi"]


async def test_script_errors_pass() -> None:
    """A scripted model that has no step left says so itself."""
    with pytest.raises(ScriptError):
        await streamed(LLM(ScriptedModel()))


class Foreign:
    """A stream that closes in a way of its own."""

    def __init__(self, closing: BaseException | None = None, *, plain: bool = False) -> None:
        self.closing, self.closed = closing, False
        if plain:
            self.close = self._close
        else:
            self.aclose = self._aclose

    def __aiter__(self) -> "Foreign":
        return self

    async def __anext__(self) -> ChatDelta:
        return ChatDelta("more ")

    async def _aclose(self) -> None:
        self._close()

    def _close(self) -> None:
        self.closed = True
        if self.closing:
            raise self.closing


class Foreigner(Streamer):
    """A model whose stream is foreign."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.given = stream

    def stream(self, request: ChatRequest) -> Any:
        return self.given


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("closing", [None, OSError("secret"), asyncio.CancelledError()])
async def test_leaving_early(closing: BaseException | None, plain: bool) -> None:
    """Closing the generator closes the model's stream, and nothing that this raises gets out."""
    watcher = Watcher()
    foreign = Foreign(closing, plain=plain)
    llm = LLM(Foreigner(foreign), LLMSettings(concurrency=1), observers=[watcher])
    for _ in range(2):
        async with aclosing(llm.stream_tools(PROMPT)) as events:
            assert await anext(events) == TextDelta("more ")
        assert foreign.closed
    assert [(report.error, report.usage.cost) for report in watcher.reports] == [("Abandoned", None)] * 2


async def test_stream_that_cannot_be_closed() -> None:
    """A stream without a way to close it is left."""

    class Open:
        def __aiter__(self) -> AsyncIterator[ChatDelta]:
            return self

        async def __anext__(self) -> ChatDelta:
            return ChatDelta("x")

    async with aclosing(LLM(Foreigner(Open())).stream_tools(PROMPT)) as events:
        assert await anext(events) == TextDelta("x")


class Stalling(Streamer):
    """A model that says one word, and then waits for ever, in closing too if asked."""

    def __init__(self, *, slow_end: bool = False) -> None:
        super().__init__()
        self.slow_end = slow_end
        self.waiting = asyncio.Event()
        self.ending = asyncio.Event()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta]:
        try:
            yield ChatDelta("Wait")
            self.waiting.set()
            await asyncio.Event().wait()
        finally:
            self.closed += 1
            self.ending.set()
            if self.slow_end:
                await asyncio.Event().wait()


@pytest.mark.parametrize("settings", [{"timeout": 0.05}, {"deadline": 0.05}])
async def test_stall(settings: dict[str, float]) -> None:
    """A model that goes on no more is a timeout, by the request's time or by the deadline, and is closed."""
    model = Stalling()
    with pytest.raises(ModelTimeoutError):
        await streamed(LLM(model, LLMSettings(**settings)))
    assert model.closed == 1


async def test_readers_own_time_is_not_the_requests() -> None:
    """A reader that takes longer than the request's timeout loses nothing."""
    model = Streamer(["a", "b"])
    texts: list[str] = []
    async for event in LLM(model, LLMSettings(timeout=0.001)).stream_tools(PROMPT):
        if isinstance(event, TextDelta):
            texts.append(event.text)
            await asyncio.sleep(0.3)
    assert texts == ["a", "b"]


async def test_deadline_in_line() -> None:
    """The deadline counts while a request waits for its turn, and such a one was not sent."""
    model = Stalling()
    llm = LLM(model, LLMSettings(concurrency=1, deadline=0.3, retries=0))
    async with aclosing(llm.stream_tools(PROMPT)) as events:
        await anext(events)
        with pytest.raises(ModelTimeoutError) as caught:
            await streamed(llm)
    assert caught.value.usage.calls == 0


async def test_cancellation_while_waiting_and_while_closing() -> None:
    """Whoever cancels the reader is obeyed, in a wait for the model and in the closing of its stream."""
    model = Stalling(slow_end=True)
    task = asyncio.create_task(streamed(LLM(model)))
    await model.waiting.wait()
    task.cancel()
    await model.ending.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_cancellation_while_a_foreign_stream_is_closed() -> None:
    """Whoever cancels is obeyed there too."""
    closing = asyncio.Event()

    class Slow(Foreign):
        async def _aclose(self) -> None:
            closing.set()
            await asyncio.Event().wait()

    async def leave() -> None:
        async with aclosing(LLM(Foreigner(Slow())).stream_tools(PROMPT)) as events:
            await anext(events)

    task = asyncio.create_task(leave())
    await closing.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_model_that_cancels_itself() -> None:
    """A cancellation that nobody asked for is the model's failure."""
    with pytest.raises(ModelUnavailableError):
        await streamed(LLM(Streamer([asyncio.CancelledError()]), LLMSettings(retries=0)))


class Chunks:
    """A completion function that streams chunks as litellm does."""

    def __init__(self, *chunks: Any, reason: str | None = None) -> None:
        self.chunks = chunks
        self.arguments: dict[str, Any] = {}
        self.received_finish_reason = reason

    async def __call__(self, **arguments: Any) -> Any:
        self.arguments = arguments
        return self if arguments.get("stream") else SimpleNamespace(choices=[], usage=None)

    async def __aiter__(self) -> AsyncGenerator[Any]:
        for each in self.chunks:
            if isinstance(each, Exception):
                raise each
            yield each


async def test_completion_function() -> None:
    """A completion function that streams is asked to, for its usage too."""
    told = SimpleNamespace(prompt_tokens=5, completion_tokens=2)
    complete = Chunks(chunk(content="Hi"), chunk("stop", content=" you"), chunk(usage=told), reason="stop")
    pieces, run = await streamed(LLM(complete))
    assert (pieces, run.usage) == (["Hi", " you"], Usage(1, 5, 2, None))
    assert (complete.arguments["stream"], complete.arguments["stream_options"]) == (True, {"include_usage": True})


async def test_made_up_end() -> None:
    """A stream whose end litellm made up broke off; one that held nothing was empty."""
    with pytest.raises(ModelUnavailableError):
        await streamed(LLM(Chunks(chunk("stop", content="Hi"))))
    called = chunk("stop", tool_calls=[{"index": 0, "id": "a", "function": {"name": "add", "arguments": "{"}}])
    with pytest.raises(ModelUnavailableError):
        await streamed(LLM(Chunks(called), LLMSettings(retries=0)), TOOLS)
    with pytest.raises(ModelUnavailableError, match="twice"):
        await streamed(LLM(Chunks(chunk("stop"))))


async def test_broken_chunks() -> None:
    """A chunk that makes no sense, or an error in the middle, is a failure without its words."""
    for bad, kind in ((SimpleNamespace(choices=3), ModelCodeError), (RuntimeError("I play go"), ModelUnavailableError)):
        with pytest.raises(kind) as caught:
            await streamed(LLM(Chunks(chunk(content="Hi"), bad, reason="stop")))
        assert "play go" not in str(caught.value)


async def test_completion_function_that_answers_whole() -> None:
    """A completion function that does not stream gives its reply in one piece."""

    async def complete(**arguments: Any) -> Any:
        return ChatReply("Whole.", tool_calls=(ToolCall("a", "none", "{}"),))

    pieces, run = await streamed(LLM(complete), TOOLS, max_rounds=1)
    assert (pieces, run.answer, len(run.results)) == (["Whole."], "Whole.", 1)


def test_a_read_that_timed_out() -> None:
    """A stall is a timeout, whatever litellm calls the broken connection."""
    text = "litellm.APIConnectionError: OpenAIException - Timeout on reading data from socket"
    assert cause("APIConnectionError", 500, text) is ModelTimeoutError
