"""The tool loop, with models that take tools and models that don't."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import pytest
from pydantic import BaseModel, Field

from asyncmem.errors import InvalidInputError, ModelRequestError, ModelUnavailableError, ToolsRefusedError
from asyncmem.llm import LLM, ChatReply, Tool, ToolCall
from asyncmem.llm.tools import plan_schema
from asyncmem.settings import LLMSettings
from asyncmem.testing import ScriptedModel, tool_reply

pytestmark = pytest.mark.anyio

PROMPT = [{"role": "system", "content": "You keep notes."}, {"role": "user", "content": "I play go in Porto"}]
REFUSED = ModelRequestError("this model does not support tools", status=400)
BARE = ModelRequestError("Bad Request", status=400)
CALLED = [{"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "\ufffd"}}]


class Add(BaseModel):
    """Arguments of add."""

    memory: str
    topics: list[str] | None = None


class Delete(BaseModel):
    """Arguments of delete."""

    memory_id: str


class Notes:
    """Two tools, and what they were called with."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.tools: list[Tool[Any]] = [
            Tool("add", "Add a note.", Add, self.add),
            Tool("delete", "Delete a note.", Delete, self.delete),
        ]

    async def add(self, arguments: Add) -> str:
        self.done.append(f"+{arguments.memory}")
        return f"added {arguments.memory}"

    async def delete(self, arguments: Delete) -> str:
        self.done.append(f"-{arguments.memory_id}")
        return "deleted"


async def test_parallel_calls_are_answered_one_by_one() -> None:
    """Each call of a turn gets an answer of its own, in order, and the model's last words end the run."""
    notes = Notes()
    said = tool_reply(("add", {"memory": "Plays go"}), ("add", {"memory": "Lives in Porto"}))
    async with ScriptedModel([said, "Noted."]) as model:
        run = await LLM(model).run_tools(PROMPT, notes.tools)
    assert notes.done == ["+Plays go", "+Lives in Porto"]
    assert (run.answer, run.rounds, run.stopped, run.usage.calls, run.tier) == ("Noted.", 2, "answer", 2, None)
    assert model.requests[1].messages == [
        *PROMPT,
        said.turn(),
        {"role": "tool", "tool_call_id": "call_1", "content": "added Plays go"},
        {"role": "tool", "tool_call_id": "call_2", "content": "added Lives in Porto"},
    ]
    assert run.messages == [*model.requests[1].messages, {"role": "assistant", "content": "Noted."}]
    assert len(PROMPT) == 2


async def test_tools_are_offered_in_openai_shape() -> None:
    """A tool's name, description and arguments reach the model."""
    async with ScriptedModel(["Nothing to do."]) as model:
        await LLM(model).run_tools(PROMPT, Notes().tools)
    tools = model.requests[0].tools
    assert tools is not None
    assert tools[1] == {
        "type": "function",
        "function": {
            "name": "delete",
            "description": "Delete a note.",
            "parameters": {
                "description": "Arguments of delete.",
                "type": "object",
                "properties": {"memory_id": {"type": "string"}},
                "required": ["memory_id"],
            },
        },
    }


async def test_senseless_calls_are_answered_with_what_is_wrong() -> None:
    """Broken JSON, missing arguments and unknown tools are told to the model, and nothing is done."""
    notes = Notes()
    said = tool_reply(("add", '{"memory": "cut'), ("add", ""), ("add", {"memory": 3}), ("drop_all", {}))
    async with ScriptedModel([said, "Sorry."]) as model:
        run = await LLM(model).run_tools(PROMPT, notes.tools)
    answers = [message["content"] for message in model.requests[1].messages if message["role"] == "tool"]
    assert answers == [
        "Error: the arguments can't be used: there was no JSON object of the required form in the reply",
        "Error: the arguments can't be used: memory: Field required",
        "added 3",
        "Error: there is no tool of that name. There are: add, delete",
    ]
    assert notes.done == ["+3"]
    assert [result.arguments is None for result in run.results] == [True, True, False, True]


async def test_fields_of_the_provider_are_kept() -> None:
    """The assistant's turn is appended as it came, signatures of thoughts included."""
    turn = {"role": "assistant", "content": None, "thinking_blocks": [{"signature": "x"}], "tool_calls": [{"id": "c"}]}
    called = tool_reply(("delete", {"memory_id": "1"}))
    said = ChatReply(tool_calls=called.tool_calls, finish_reason="tool_calls", message=turn)
    async with ScriptedModel([said, "Done."]) as model:
        await LLM(model).run_tools(PROMPT, Notes().tools)
    assert model.requests[1].messages[2] == turn


async def test_what_no_encoding_holds_is_not_sent() -> None:
    """Half of a surrogate pair in a reply, a call or a tool's answer is replaced: the next request can be sent."""
    half = "\ud83d"
    kept = {"role": "assistant", "content": half, "extra": [{"signature": half}, 1, None]}
    said = tool_reply(("add", {"memory": "Plays go"}))
    called = (replace(said.tool_calls[0], id=half),)
    fields = ChatReply(content=half, tool_calls=called, finish_reason="tool_calls", message=kept)
    parts = ChatReply(content=half, tool_calls=(ToolCall("call_1", "add", half),), finish_reason="tool_calls")
    assert parts.turn() == {"role": "assistant", "content": "\ufffd", "tool_calls": CALLED}

    async def run(_: Add) -> str:
        return f"added {half}"

    async with ScriptedModel([fields, "Noted."]) as model:
        done = await LLM(model).run_tools(PROMPT, [Tool("add", "Add a note.", Add, run)])
    assert model.requests[1].messages[2:] == [
        {"role": "assistant", "content": "\ufffd", "extra": [{"signature": "\ufffd"}, 1, None]},
        {"role": "tool", "tool_call_id": "\ufffd", "content": "added \ufffd"},
    ]
    assert done.results[0].answer == "added \ufffd"
    assert kept["content"] == half
    json.dumps(done.messages, ensure_ascii=False).encode()


async def test_rounds_are_bounded() -> None:
    """A model that never stops calling is stopped after so many replies, and the result says so."""
    notes = Notes()

    def more(request: Any) -> ChatReply:
        return tool_reply(("add", {"memory": f"note {len(request.messages)}"}))

    async with ScriptedModel([more] * 3) as model:
        run = await LLM(model).run_tools(PROMPT, notes.tools, max_rounds=3)
    assert (run.stopped, run.rounds, len(notes.done), run.answer) == ("rounds", 3, 3, None)


async def test_calls_are_bounded() -> None:
    """Beyond the bound no call is carried out, the rest of the turn is answered, and no reply is asked for."""
    notes = Notes()
    said = tool_reply(*[("add", {"memory": str(i)}) for i in range(5)])
    async with ScriptedModel([said]) as model:
        run = await LLM(model).run_tools(PROMPT, notes.tools, max_calls=2)
    assert notes.done == ["+0", "+1"]
    assert run.stopped == "calls"
    assert [result.answer for result in run.results][2:] == ["Error: no further calls are allowed"] * 3


async def test_identical_calls_are_carried_out_once() -> None:
    """A repeated call gets the first one's answer, and is marked."""
    notes = Notes()
    said = tool_reply(("add", {"memory": "Plays go"}), ("add", '{"memory": "Plays go", "topics": null}'))
    async with ScriptedModel([said, said, "ok"]) as model:
        run = await LLM(model).run_tools(PROMPT, notes.tools)
    assert notes.done == ["+Plays go"]
    assert [result.repeated for result in run.results] == [False, True, True, True]
    assert {result.answer for result in run.results} == {"added Plays go"}


PLAN = {
    "actions": [
        {"tool": "add", "memory": "Plays go", "topics": None, "memory_id": None},
        {"tool": "delete", "memory_id": "3"},
    ],
    "answer": "Noted.",
}


async def test_refused_tools_become_a_plan_and_are_remembered() -> None:
    """Where tools are refused, the same calls come as a plan; the next run asks for the plan at once."""
    notes = Notes()
    async with ScriptedModel([REFUSED, PLAN, PLAN]) as model:
        llm = LLM(model)
        assert llm.takes_tools is None
        run = await llm.run_tools(PROMPT, notes.tools)
        assert llm.takes_tools is False
        await llm.run_tools(PROMPT, notes.tools)
    assert notes.done == ["+Plays go", "-3"] * 2
    assert (run.answer, run.tier, run.stopped, run.rounds) == ("Noted.", "native", "answer", 1)
    assert run.messages[-1]["role"] == "assistant"
    system = model.requests[1].messages[0]["content"]
    assert system.startswith("You keep notes.\n\nYou have no tools here.")
    assert "- add: Add a note. Arguments:" in system


async def test_plan_without_a_system_message() -> None:
    """A conversation without a system message gets one."""
    async with ScriptedModel([{"actions": []}]) as model:
        run = await LLM(model, LLMSettings(tools=False)).run_tools(PROMPT[1:], Notes().tools)
    assert [message["role"] for message in model.requests[0].messages] == ["system", "user"]
    assert (run.answer, run.results) == (None, [])


async def test_bare_refusal_is_learned_only_if_the_plan_works() -> None:
    """A 400 that says nothing leads to the plan, and is remembered since that worked."""
    async with ScriptedModel([BARE, PLAN]) as model:
        llm = LLM(model)
        await llm.run_tools(PROMPT, Notes().tools)
    assert llm.takes_tools is False


async def test_first_refusal_is_raised_when_the_plan_is_refused_too() -> None:
    """If nothing works it was not the tools: the first error is raised, and nothing learned."""
    async with ScriptedModel([ModelRequestError("first", status=400), BARE, BARE, BARE]) as model:
        llm = LLM(model)
        with pytest.raises(ModelRequestError, match="first"):
            await llm.run_tools(PROMPT, Notes().tools)
    assert llm.takes_tools is None


async def test_pinned_tools_are_never_replaced() -> None:
    """With ``tools=True`` a refusal is raised as what it is."""
    async with ScriptedModel([REFUSED]) as model:
        with pytest.raises(ToolsRefusedError):
            await LLM(model, LLMSettings(tools=True)).run_tools(PROMPT, Notes().tools)


async def test_bare_refusal_of_a_model_known_to_take_tools_is_raised() -> None:
    """Once tools worked, a 400 that says nothing is about something else."""
    async with ScriptedModel([tool_reply(("delete", {"memory_id": "1"})), BARE]) as model:
        llm = LLM(model)
        with pytest.raises(ModelRequestError):
            await llm.run_tools(PROMPT, Notes().tools)
    assert llm.takes_tools is True


class ProviderError(Exception):
    """An error as a provider's client raises it."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status_code = status


UNREADABLE = ProviderError("Failed to call a function. (tool_use_failed)", 400)


async def test_unreadable_call_is_asked_for_again_and_tools_stay() -> None:
    """A call that the provider could not read is written anew; nothing is learned, also when it never can."""
    called = tool_reply(("delete", {"memory_id": "1"}))
    async with ScriptedModel([called, UNREADABLE, "Done.", UNREADABLE, UNREADABLE]) as model:
        llm = LLM(model, LLMSettings(retries=1, deadline=30))
        assert (await llm.run_tools(PROMPT, Notes().tools)).answer == "Done."
        with pytest.raises(ModelUnavailableError) as caught:
            await llm.run_tools(PROMPT, Notes().tools)
    assert caught.value.retryable
    assert llm.takes_tools is True


async def test_model_that_never_writes_a_readable_call_is_asked_for_a_plan() -> None:
    """A model that used no tool yet, and can't, gets the plan in the end; that is remembered."""
    async with ScriptedModel([UNREADABLE, UNREADABLE, PLAN]) as model:
        llm = LLM(model, LLMSettings(retries=1))
        assert (await llm.run_tools(PROMPT, Notes().tools)).answer == "Noted."
    assert llm.takes_tools is False


async def test_no_plan_follows_on_what_was_done() -> None:
    """Tools that are refused once some were carried out end the run: a plan would do the same in other words."""
    notes = Notes()
    async with ScriptedModel([tool_reply(("add", {"memory": "Plays go"})), REFUSED, PLAN]) as model:
        llm = LLM(model)
        with pytest.raises(ToolsRefusedError) as caught:
            await llm.run_tools(PROMPT, notes.tools)
        assert notes.done == ["+Plays go"]
        assert caught.value.usage.calls == 2
        assert (await llm.run_tools(PROMPT, notes.tools)).tier == "native"


async def test_too_large_a_limit_is_said() -> None:
    """More tokens than a model gives are an error that says so, with tools as without."""
    told = ProviderError("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 400)
    async with ScriptedModel([told]) as model:
        llm = LLM(model, LLMSettings(tools=True))
        with pytest.raises(ModelRequestError, match="max_tokens is too large for this model"):
            await llm.run_tools(PROMPT, Notes().tools, max_tokens=100_000)
    assert llm.abilities.dump() == []


async def test_a_default_limit_that_is_too_large_is_left_out() -> None:
    """A model that gives less than the default limit is used without one, with tools as without."""
    told = ProviderError("max_tokens is too large: 2048. This model supports at most 1024 completion tokens", 400)
    again = ProviderError("max_completion_tokens is too large: 2048. At most 1024 are supported", 400)
    async with ScriptedModel([told, again, "Noted."]) as model:
        assert (await LLM(model, LLMSettings(tools=True)).run_tools(PROMPT, Notes().tools)).answer == "Noted."
        assert model.requests[-1].max_tokens is None
        assert "max_completion_tokens" not in model.requests[-1].extra
    async with ScriptedModel([told, again, {"memory": "Plays go"}]) as model:
        assert (await LLM(model).structured(PROMPT, Add)).tier == "native"


async def test_other_failures_are_retried_and_raised() -> None:
    """An overloaded provider is asked again, then the error is raised: tools are not at fault."""
    down = ModelUnavailableError("down", retryable=True)
    settings = LLMSettings(retries=1)
    async with ScriptedModel([down, down]) as model:
        with pytest.raises(ModelUnavailableError):
            await LLM(model, settings).run_tools(PROMPT, Notes().tools)
    async with ScriptedModel([down, "ok"]) as model:
        assert (await LLM(model, settings).run_tools(PROMPT, Notes().tools)).usage.calls == 2


async def test_plan_has_the_names_that_the_tool_shows() -> None:
    """An argument goes by its alias; one that is called tool, or has to be given as null, can be planned too."""

    class Write(BaseModel):
        text: str = Field(alias="noteText")
        tool: str = "pen"
        until: str | None
        colour: str | None = "blue"

    written: list[Write] = []

    async def write(arguments: Write) -> str:
        written.append(arguments)
        return "written"

    action = {"tool": "write", "noteText": "x", "tool_argument": "brush", "until": None, "colour": None}
    model = ScriptedModel([{"actions": [action], "answer": None}])
    run = await LLM(model, LLMSettings(tools=False)).run_tools(PROMPT, [Tool("write", "Write.", Write, write)])
    assert written == [Write(noteText="x", tool="brush", until=None)]
    assert json.loads(run.messages[-1]["content"])["actions"][0]["tool_argument"] == "brush"
    assert 'write "tool" as "tool_argument"' in model.requests[0].messages[0]["content"]


@pytest.mark.parametrize("content", [[{"type": "text", "text": "You keep notes."}], None])
async def test_plan_leaves_a_system_message_that_is_no_text_as_it_is(content: object) -> None:
    """The tools are told in a message of their own then."""
    turns = [{"role": "system", "content": content}, *PROMPT[1:]]
    model = ScriptedModel([PLAN])
    await LLM(model, LLMSettings(tools=False)).run_tools(turns, Notes().tools)
    first, second, *_ = model.requests[0].messages
    assert "Tools:" in first["content"]
    assert second["content"] == content


async def test_a_call_with_nothing_for_a_tool_that_needs_nothing() -> None:
    """Empty, null and unknown arguments are no arguments."""

    class Nothing(BaseModel):
        pass

    async def look(arguments: Nothing) -> str:
        return "seen"

    calls = [ToolCall(str(n), "look", text) for n, text in enumerate(["", "null", '{"confirm": true}'])]
    model = ScriptedModel([ChatReply(tool_calls=tuple(calls), finish_reason="tool_calls"), "Done."])
    run = await LLM(model).run_tools(PROMPT, [Tool("look", "Look.", Nothing, look, reads=True)])
    assert [result.answer for result in run.results] == ["seen"] * 3


async def test_plan_is_bounded_too() -> None:
    """A plan of more calls than are allowed is carried out up to the bound."""
    notes = Notes()
    async with ScriptedModel([PLAN]) as model:
        run = await LLM(model, LLMSettings(tools=False)).run_tools(PROMPT, notes.tools, max_calls=1)
    assert (notes.done, run.stopped) == (["+Plays go"], "calls")


async def test_error_of_a_tool_ends_the_run() -> None:
    """What a tool raises is the caller's, and is not told to the model."""

    async def fail(arguments: Add) -> str:
        raise KeyError(arguments.memory)

    async with ScriptedModel([tool_reply(("add", {"memory": "x"}))]) as model:
        with pytest.raises(KeyError):
            await LLM(model).run_tools(PROMPT, [Tool("add", "Add.", Add, fail)])


async def test_no_tools_and_no_messages() -> None:
    """An empty list of either is refused before anything is sent."""
    llm = LLM(ScriptedModel([]))
    with pytest.raises(InvalidInputError, match="tools is empty"):
        await llm.run_tools(PROMPT, [])
    with pytest.raises(InvalidInputError, match="messages is empty"):
        await llm.run_tools([], Notes().tools)


def test_plan_of_clashing_arguments_is_loose() -> None:
    """An argument that two tools declare differently may be anything in the plan."""
    from asyncmem.llm.schemas import plain_schema

    class Count(BaseModel):
        memory: int

    async def nothing(arguments: Any) -> str:
        return ""

    clash = plan_schema([Tool("add", "", Add, nothing), Tool("count", "", Count, nothing)])
    assert plain_schema(clash) is None
    same: Callable[..., Any] = nothing
    assert plain_schema(plan_schema([Tool("add", "", Add, same), Tool("again", "", Add, same)])) is not None


async def test_repr_shows_nothing_that_was_said() -> None:
    """Neither a run nor a structured value shows in its repr what the model wrote."""
    model = ScriptedModel([tool_reply(("add", {"memory": "plays go"})), ChatReply(content="noted that one")])
    run = await LLM(model).run_tools(PROMPT, Notes().tools)
    assert run.answer == "noted that one"
    assert "noted" not in repr(run)
    assert "plays go" not in repr(run)
    done = await LLM(ScriptedModel([{"memory": "plays go"}])).structured(PROMPT, Add)
    assert done.value.memory == "plays go"
    assert "plays go" not in repr(done)


def sync(arguments: Add) -> str:
    """A tool that is not async."""
    return arguments.memory


@pytest.mark.parametrize("run", [sync, partial(sync), partial(partial(sync)), print, Notes.__init__, None, "add"])
def test_a_tool_must_be_async(run: Any) -> None:
    """What can't be awaited is refused when the tool is made."""
    with pytest.raises(InvalidInputError, match="the run of the tool add must be an async function"):
        Tool("add", "Add a note.", Add, run)


async def test_whatever_gives_an_awaitable_is_a_tool() -> None:
    """Async methods, partials and wrappers of them, objects that are called, and lambdas."""

    class Called:
        async def __call__(self, arguments: Add) -> str:
            return "called"

    @wraps(Notes.add)
    def wrapped(*given: Any) -> Any:
        return notes.add(*given)

    notes = Notes()
    runs: list[Any] = [notes.add, partial(notes.add), Called(), wrapped, lambda arguments: notes.add(arguments)]
    for run in runs:
        async with ScriptedModel([tool_reply(("add", {"memory": "x"})), "ok"]) as model:
            assert await LLM(model).run_tools(PROMPT, [Tool("add", "Add a note.", Add, run)])
    assert notes.done == ["+x"] * 4
    told = Tool("add", "Add a note.", Add, lambda arguments: arguments.memory)  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidInputError, match="must be async: its call gave no awaitable"):
        await LLM(ScriptedModel([tool_reply(("add", {"memory": "x"}))])).run_tools(PROMPT, [told])


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "größe", "a.b", "add\n", None, 5])
def test_a_name_that_providers_refuse(name: Any) -> None:
    """It is refused when the tool is made, with what a name may hold."""
    with pytest.raises(InvalidInputError, match="a tool's name is 1 to 64 of"):
        Tool(name, "Add a note.", Add, Notes().add)


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ([*Notes().tools, Notes().tools[0]], "two tools have the same name: add"),
        ([5], "one is a int"),
        ("add", "must be a list of Tool values, not a str"),
        (Notes().tools[0], "must be a list of Tool values, not a Tool"),
    ],
)
async def test_tools_are_a_list_of_different_ones(tools: Any, words: str) -> None:
    """Both verbs refuse anything else, before anything is asked."""
    with pytest.raises(InvalidInputError, match=words):
        await LLM(ScriptedModel([])).run_tools(PROMPT, tools)
    with pytest.raises(InvalidInputError, match=words):
        LLM(ScriptedModel([])).stream_tools(PROMPT, tools)


async def test_an_exception_of_a_tool_ends_the_run_as_it_is() -> None:
    """It is the application's own, and no affair of the model's."""

    async def fails(arguments: Add) -> str:
        raise LookupError(arguments.memory)

    with pytest.raises(LookupError):
        await LLM(ScriptedModel([tool_reply(("add", {"memory": "x"}))])).run_tools(
            PROMPT, [Tool("add", "Add a note.", Add, fails)]
        )
