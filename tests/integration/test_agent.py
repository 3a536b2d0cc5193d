"""The agent on a real server: what it remembers, what its prompt holds, what it captures, what can't cost an answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from asyncmem import (
    Agent,
    AnswerFinished,
    BacklogFullError,
    ChatReply,
    ChatRequest,
    Embeddings,
    LLMSettings,
    MemoryManager,
    Message,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
    RunResult,
    Settings,
    StoreError,
    TextDelta,
    TicketExpiredError,
    ToolDone,
    ToolError,
    ToolStarted,
)
from asyncmem.agent.results import AgentEvent
from asyncmem.agent.sources import ManagerSource, Switches
from asyncmem.session_values import Said
from asyncmem.testing import HashEmbedder, ScriptedModel, ScriptError, tool_reply

from ..servers import with_database
from .conftest import fill, plan, texts

pytestmark = pytest.mark.anyio

SAID = "I prefer code examples over explanations. I'm working on a machine learning project."
LEARNED = plan(
    {
        "op": "add",
        "memory": "Prefers code examples over explanations",
        "topics": ["preferences"],
        "evidence": "I prefer code examples over explanations",
    },
    {
        "op": "add",
        "memory": "Is working on a machine learning project",
        "topics": ["work"],
        "evidence": "I'm working on a machine learning project",
    },
)
NAMES = ("alpacas", "bees", "cats", "dogs", "eels", "finches")
BOTH = ("- Prefers code examples over explanations", "- Is working on a machine learning project")


def system_of(request: ChatRequest) -> str:
    """The system message of a prompt; "" for none."""
    first = request.messages[0]
    return str(first["content"]) if first["role"] == "system" else ""


def turns_of(request: ChatRequest) -> list[tuple[str, str]]:
    """What a prompt holds behind the system message."""
    return [(m["role"], str(m["content"])) for m in request.messages if m["role"] != "system"]


@pytest.fixture
async def keeper() -> AsyncIterator[ScriptedModel]:
    """The manager's model."""
    async with ScriptedModel(name="keeper") as model:
        yield model


@pytest.fixture
async def speaker() -> AsyncIterator[ScriptedModel]:
    """The agent's model."""
    async with ScriptedModel(name="speaker") as model:
        yield model


@pytest.fixture
async def memory(uri: str, keeper: ScriptedModel) -> AsyncIterator[MemoryManager]:
    """A manager without debounce, on each kind of server."""
    async with MemoryManager(uri, model=keeper, settings=Settings(debounce=timedelta(0))) as manager:
        yield manager


async def captured(result: RunResult) -> None:
    """Wait until what a run scheduled is done."""
    assert result.captures
    for ticket in result.captures:
        await ticket.wait(timeout=60)


async def test_two_sessions_with_capture(memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel) -> None:
    """What a user says in one session is captured behind the answer and stands in the prompt of the next one."""
    keeper.add(LEARNED)
    speaker.add("Noted.", "async def main(): ...")
    agent = Agent(speaker, memory_manager=memory, update_memory_on_run=True, instructions="You help with Python.")
    first = await agent.run(SAID, user_id="lin", session_id="one")
    assert (first.content, first.capture_error, first.session_error) == ("Noted.", None, None)
    await captured(first)
    keeper.add(plan())
    second = await agent.run("Explain async/await", user_id="lin", session_id="two")
    system = system_of(speaker.requests[1])
    assert system.startswith("You help with Python.\n\n")
    assert all(line in system for line in BOTH)
    assert all(line in second.context for line in BOTH)
    assert turns_of(speaker.requests[1]) == [("user", "Explain async/await")]
    await captured(second)


async def test_two_sessions_with_the_task_tool(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """An agentic agent hands over what to remember by its tool, and nothing is captured by itself."""
    keeper.add(LEARNED)
    speaker.add(tool_reply(("update_user_memory", {"task": SAID})), "I will remember that.", "async def main(): ...")
    agent = Agent(speaker, memory_manager=memory, enable_agentic_memory=True)
    first = await agent.run(SAID, user_id="lin", session_id="one")
    assert (first.content, first.captures, first.rounds) == ("I will remember that.", [], 2)
    assert [r.name for r in first.tool_results] == ["update_user_memory"]
    assert "2 added" in first.tool_results[0].answer
    await agent.run("Explain async/await", user_id="lin", session_id="two")
    assert all(line in system_of(speaker.requests[2]) for line in BOTH)


async def test_a_session_goes_on(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """The exchanges of a session stand before the message, and those of another user's session of that name do not."""
    speaker.add("Hello Lin.", "You are Lin.", "I don't know.")
    agent = Agent(speaker, memory_manager=memory)
    await agent.run("I am Lin", user_id="lin", session_id="s")
    await agent.run("Who am I?", user_id="lin", session_id="s")
    assert turns_of(speaker.requests[1]) == [("user", "I am Lin"), ("assistant", "Hello Lin."), ("user", "Who am I?")]
    await agent.run("Who am I?", user_id="omar", session_id="s")
    assert turns_of(speaker.requests[2]) == [("user", "Who am I?")]


# ------------------------------------------------------------------------------------------------------ capturing


def read_by(request: ChatRequest) -> str:
    """What a capture is asked to read: the last message of its prompt."""
    return str(request.messages[-1]["content"])


async def test_of_a_session_only_what_is_new_is_captured(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """The second capture of a session is told of the first exchange and reads the second alone."""
    rows = {"op": "add", "memory": "Rows", "evidence": "I row"}
    keeper.add(plan(rows), plan({"op": "add", "memory": "Swims daily", "evidence": "I swim daily"}))
    speaker.add("Where?", "Nice.")
    agent = Agent(speaker, memory_manager=memory, update_memory_on_run=True, agent_id="coach")
    for said in ("I row", "On a lake; and I swim daily"):
        await captured(await agent.run(said, user_id="lin", session_id="s"))
    assert await texts(memory, "lin") == ["Rows", "Swims daily"]
    assert [m.agent_id for m in await memory.get_user_memories(user_id="lin")] == ["coach", "coach"]
    earlier, new = read_by(keeper.requests[1]).split('{"user": "On a lake')
    assert '{"user": "I row"}' in earlier
    assert "Said before" in earlier
    assert "I row" not in new


async def test_a_run_without_a_session_is_captured_by_itself(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """Without a session just this exchange is captured, and the same words another time once more."""
    keeper.add(*[plan({"op": "add", "memory": "Rows", "evidence": "I row"})] * 2)
    speaker.add("Nice.", "Nice again.")
    agent = Agent(speaker, memory_manager=memory, update_memory_on_run=True)
    for _ in range(2):
        result = await agent.run("I row", user_id="lin")
        assert result.session_id is None
        await captured(result)
    assert await texts(memory, "lin") == ["Rows"]
    assert await agent.list_sessions(user_id="lin") == []


async def test_nothing_is_captured_unless_it_is_switched_on(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """A manager alone gives the prompt its memories, and no tool; no capture is scheduled."""
    await fill(memory, "lin", "Plays chess")
    speaker.add("Hello.")
    result = await Agent(speaker, memory_manager=memory).run("Hi", user_id="lin", session_id="s")
    assert result.captures == []
    assert result.context == "<user_memory>\n- Plays chess\n</user_memory>"
    assert result.context in system_of(speaker.requests[0])
    assert speaker.requests[0].tools is None
    assert (await memory.queue_status()).depth == 0


async def test_what_could_not_be_scheduled_is_scheduled_by_the_next_run(
    uri: str, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """A full backlog costs no answer and stands in the result; the next run schedules what is missing, once."""
    full = Settings(workers=False, backlog_per_user=1, debounce=timedelta(0))
    keeper.add(
        plan({"op": "add", "memory": "Rows", "evidence": "I row"}),
        plan(
            {"op": "add", "memory": "Swims", "evidence": "I swim"},
            {"op": "add", "memory": "Sings", "evidence": "I sing"},
        ),
    )
    speaker.add("One.", "Two.", "Three.")
    async with (
        MemoryManager(uri, model=keeper, settings=full) as web,
        MemoryManager(uri, model=keeper, settings=Settings(debounce=timedelta(0))) as worker,
    ):
        agent = Agent(speaker, memory_manager=web, update_memory_on_run=True)
        await agent.run("I row", user_id="lin", session_id="s")
        second = await agent.run("I swim", user_id="lin", session_id="s")
        assert (second.content, second.captures) == ("Two.", [])
        assert isinstance(second.capture_error, BacklogFullError)
        assert second.session_error is None
        await worker.drain(timeout=60)
        assert await texts(worker, "lin") == ["Rows"]
        third = await agent.run("I sing", user_id="lin", session_id="s")
        assert third.capture_error is None
        await worker.drain(timeout=60)
        assert await texts(worker, "lin") == ["Rows", "Swims", "Sings"]
        sessions = (await worker.opened()).sessions
        assert await sessions.pending("lin", "s") == []
    assert len(keeper.requests) == 2


async def test_what_waits_is_scheduled_whoever_answers_in_between(
    uri: str, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """An agent that captures nothing, or records another agent, breaks no chain; each exchange keeps its own agent."""
    full = Settings(workers=False, backlog_per_user=1, debounce=timedelta(0))
    roomier = Settings(workers=False, backlog_per_user=2, debounce=timedelta(0))
    rows, swims, sings = (
        plan({"op": "add", "memory": m, "evidence": e})
        for m, e in (("Rows", "I row"), ("Swims", "I swim"), ("Sings", "I sing"))
    )
    keeper.add(rows, swims, sings)
    speaker.add("One.", "Two.", "Three.", "Four.")
    async with (
        MemoryManager(uri, model=keeper, settings=full) as web,
        MemoryManager(uri, model=keeper, settings=roomier) as roomy,
        MemoryManager(uri, model=keeper, settings=Settings(debounce=timedelta(0))) as worker,
    ):
        a = Agent(speaker, memory_manager=web, update_memory_on_run=True, agent_id="a", team_id="x")
        b = Agent(speaker, memory_manager=roomy, update_memory_on_run=True, agent_id="b")
        await a.run("I row", user_id="lin", session_id="s")
        refused = await a.run("I swim", user_id="lin", session_id="s")
        assert isinstance(refused.capture_error, BacklogFullError)
        await Agent(speaker, memory_manager=web).run("What time is it?", user_id="lin", session_id="s")
        await worker.drain(timeout=60)
        last = await b.run("I sing", user_id="lin", session_id="s")
        assert (len(last.captures), last.capture_error) == (2, None)
        await worker.drain(timeout=60)
        kept = [(m.memory, m.agent_id, m.team_id) for m in await worker.get_user_memories(user_id="lin")]
        assert kept == [("Rows", "a", "x"), ("Swims", "a", "x"), ("Sings", "b", None)]
        assert await (await worker.opened()).sessions.pending("lin", "s") == []


@pytest.mark.parametrize("other", [{"agent_id": "b"}, {"agent_id": "a", "team_id": "y"}])
async def test_another_agent_of_a_session_captures_nothing_again(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel, other: dict[str, str]
) -> None:
    """What the first agent captured the second one is not told, so a memory that was deleted by hand stays away."""

    def keep(request: ChatRequest) -> dict[str, Any]:
        bees = [{"op": "add", "memory": "Keeps bees", "evidence": "I keep bees"}]
        return plan(*(bees if "I keep bees" in read_by(request) else []))

    keeper.add(keep, keep)
    speaker.add("Since when?", "Rest.")
    first = Agent(speaker, memory_manager=memory, update_memory_on_run=True, agent_id="a")
    second = Agent(speaker, memory_manager=memory, update_memory_on_run=True, **other)  # type: ignore[arg-type]
    await captured(await first.run("I keep bees", user_id="lin", session_id="s"))
    (bees,) = await memory.get_user_memories(user_id="lin")
    await memory.delete_user_memory(str(bees.memory_id), user_id="lin")
    await captured(await second.run("What now?", user_id="lin", session_id="s"))
    assert await texts(memory, "lin") == []
    assert "Since when?" in read_by(keeper.requests[1])


async def test_runs_at_once_in_one_session_are_captured_once(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """Concurrent runs of one session lose no exchange, and whoever schedules what, each is captured once."""

    def keep(request: ChatRequest) -> dict[str, Any]:
        new = read_by(request).rpartition("Said before")[2]
        return plan(*({"op": "add", "memory": f"Has {n}", "evidence": f"I have {n}"} for n in NAMES if n in new))

    speaker.add(*["Nice."] * len(NAMES))
    keeper.add(*[keep] * len(NAMES))
    agents = [Agent(speaker, memory_manager=memory, update_memory_on_run=True) for _ in range(2)]
    runs = [agents[i % 2].run(f"I have {n}", user_id="lin", session_id="s") for i, n in enumerate(NAMES)]
    results = await asyncio.gather(*runs)
    assert [r.capture_error for r in results] == [None] * len(NAMES)
    await memory.drain(timeout=60)
    assert sorted(await texts(memory, "lin")) == sorted(f"Has {n}" for n in NAMES)
    said = [m.content for m in await agents[0].get_messages("s", user_id="lin") if m.role == "user"]
    assert sorted(said) == sorted(f"I have {n}" for n in NAMES)
    assert await (await memory.opened()).sessions.pending("lin", "s") == []
    keeper._steps.clear()  # how many captures it took depends on who was first


async def test_a_change_of_taste_updates_what_is_remembered(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """A new interest in the place of an old one changes the memory, by capture and by the task tool, and adds none."""
    said = "I no longer enjoy photography, I've taken up rock climbing"
    now = "Has taken up rock climbing; no longer enjoys photography"
    update = plan({"op": "update", "memory_id": "1", "memory": now, "evidence": said})
    speaker.add("Good for you.", tool_reply(("update_user_memory", {"task": said})), "Changed.")
    keeper.add(update, update)
    for user, options in (("lin", {"update_memory_on_run": True}), ("omar", {"enable_agentic_memory": True})):
        await fill(memory, user, "Enjoys photography")
        result = await Agent(speaker, memory_manager=memory, **options).run(said, user_id=user, session_id="s")
        for ticket in result.captures:
            await ticket.wait(timeout=60)
        assert await texts(memory, user) == [now]


# ---------------------------------------------------------------------------------------------------------- tools


@pytest.mark.parametrize("on", [(), ("add",), ("add", "update", "delete", "clear")])
async def test_the_four_switches_decide_the_memory_tools(
    uri: str, keeper: ScriptedModel, speaker: ScriptedModel, on: tuple[str, ...]
) -> None:
    """The model gets the tools that the manager's flags allow, and search and list; a forged call does nothing."""
    flags = {f"{name}_memories": name in on for name in ("add", "update", "delete", "clear")}
    async with MemoryManager(uri, model=keeper, **flags) as manager:
        await fill(manager, "lin", "Plays chess")
        speaker.add(tool_reply(("clear_memories", {})), "Done.")
        result = await Agent(speaker, memory_manager=manager, memory_tools=True).run("Forget all", user_id="lin")
        names = [tool["function"]["name"] for tool in speaker.requests[0].tools or []]
        wanted = [f"{name}_memor{'ies' if name == 'clear' else 'y'}" for name in on]
        assert names == [*wanted, "search_memories", "list_memories"]
        assert await manager.count_user_memories(user_id="lin") == (0 if "clear" in on else 1)
        assert ("no tool of that name" in result.tool_results[0].answer) == ("clear" not in on)


async def test_tools_of_the_application_and_of_memory_in_one_loop(
    memory: MemoryManager, speaker: ScriptedModel
) -> None:
    """Functions of the application's own are called with what their hints say, beside the memory tools."""
    asked: list[tuple[str, int]] = []

    async def forecast(city: str, days: int = 1) -> dict[str, int]:
        """The weather of a city."""
        asked.append((city, days))
        return {"degrees": 21}

    speaker.add(
        tool_reply(("forecast", {"city": "Porto", "days": 2}), ("add_memory", {"memory": "Lives in Porto"})),
        tool_reply(("forecast", {"city": 3, "days": "x"})),
        "21 degrees.",
    )
    agent = Agent(speaker, memory_manager=memory, memory_tools=True, tools=[forecast])
    result = await agent.run("How warm is it in Porto, where I live?", user_id="lin")
    assert (result.content, result.rounds, asked) == ("21 degrees.", 3, [("Porto", 2)])
    assert [r.name for r in result.tool_results] == ["forecast", "add_memory", "forecast"]
    assert result.tool_results[0].answer == '{"degrees":21}'
    assert "can't be used" in result.tool_results[2].answer
    assert await texts(memory, "lin") == ["Lives in Porto"]


async def test_a_tool_that_raises_is_told_by_its_class(
    memory: MemoryManager, speaker: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    """The model sees the class of an exception and never its text, but for a ToolError; the result holds both."""

    async def charge() -> str:
        """Charge the card."""
        raise ValueError("card 4711 was refused")

    async def order(article: str) -> str:
        """Order an article."""
        raise ToolError(f"there is no article {article}")

    speaker.add(tool_reply(("charge", {}), ("order", {"article": "tea"})), "That did not work.")
    result = await Agent(speaker, tools=[charge, order]).run("Buy tea")
    assert [r.answer for r in result.tool_results] == [
        "Error: charge failed (ValueError). Don't say that it worked.",
        "Error: there is no article tea",
    ]
    assert [(f.name, type(f.error)) for f in result.tool_failures] == [("charge", ValueError), ("order", ToolError)]
    assert "4711" not in repr(result) + caplog.text
    assert "charge raised ValueError" in caplog.text


async def test_a_cancelled_tool_cancels_the_run(speaker: ScriptedModel) -> None:
    """Cancellation goes through tools to the caller, and nothing is answered."""
    begun = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    speaker.add(tool_reply(("wait", {})))
    task = asyncio.create_task(Agent(speaker, tools=[wait]).run("Wait"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_double_in_a_tool_still_fails_its_test(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """A scripted model that is called too often inside a tool is no failure of the tool."""
    speaker.add(tool_reply(("update_user_memory", {"task": "Remember that I row"})))
    agent = Agent(speaker, memory_manager=memory, enable_agentic_memory=True)
    with pytest.raises(ScriptError, match="keeper"):
        await agent.run("I row", user_id="lin")


async def test_a_bound_stops_a_model_that_only_calls(speaker: ScriptedModel) -> None:
    """A model that never answers is stopped, and the result says by which bound."""

    async def look(place: int) -> str:
        """Look."""
        return "nothing"

    speaker.add(*(tool_reply(("look", {"place": n})) for n in range(3)))
    result = await Agent(speaker, tools=[look], max_rounds=3).run("Look")
    assert (result.content, result.stopped, result.rounds) == ("", "rounds", 3)


async def test_a_model_without_tools_answers_after_it_saw_what_came_of_its_plan(speaker: ScriptedModel) -> None:
    """Where a plan stands in for tools, the answer is asked for once the results are there."""

    async def forecast(city: str) -> str:
        """The weather of a city."""
        return "21 degrees"

    speaker.add({"actions": [{"tool": "forecast", "city": "Porto"}], "answer": "It is cold."}, "It is 21 degrees.")
    speaker.add({"actions": [], "answer": "Hello."})
    agent = Agent(speaker, tools=[forecast], llm=LLMSettings(tools=False))
    result = await agent.run("How warm is it in Porto?")
    assert (result.content, result.rounds, result.usage.calls) == ("It is 21 degrees.", 2, 2)
    assert "1. forecast: 21 degrees" in str(speaker.requests[1].messages[-1]["content"])
    assert (await agent.run("Hi")).content == "Hello."


# ----------------------------------------------------------------------------------------------------- the context


async def test_a_long_memory_is_searched_by_the_message(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """As long as all memories fit, all are shown in one order; beyond that those that the message is about."""
    await fill(memory, "lin", *(f"Fact number {n} about something else" for n in range(40)), "Keeps two parrots")
    await fill(memory, "lin", *(f"Newer fact number {n} about something else" for n in range(40)))
    speaker.add("Pip and Bo.", "I don't know.")
    agent = Agent(speaker, memory_manager=memory, context_tokens=100)
    result = await agent.run("What are my parrots called?", user_id="lin")
    assert "- Keeps two parrots" in result.context
    other = await agent.run("Quelle heure est-il ?", user_id="lin")
    assert "parrots" not in other.context
    assert "- Newer fact number 39" in other.context


class Broken(HashEmbedder):
    """An embedder that fails once memories are stored."""

    broken = False

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Fail, or embed."""
        if self.broken:
            raise ModelUnavailableError("the embedder is down", model="broken")
        return await super().embed(texts)


async def test_memories_that_can_not_be_searched_cost_no_answer(uri: str, speaker: ScriptedModel) -> None:
    """Without a vector of the message the newest memories are shown, and the result says why; or the run raises."""
    embedder = Broken(8)
    async with MemoryManager(uri, model=ScriptedModel(), embedding_model=embedder) as manager:
        await fill(manager, "lin", *(f"Fact number {n} about something" for n in range(40)))
        embedder.broken = True
        speaker.add("Hello.")
        result = await Agent(speaker, memory_manager=manager, context_tokens=50).run("Hi", user_id="lin")
        assert "- Fact number 39" in result.context
        assert isinstance(result.context_error, ModelUnavailableError)
        strict = Agent(speaker, memory_manager=manager, context_tokens=50, on_context_failure="raise")
        with pytest.raises(ModelUnavailableError):
            await strict.run("Hi", user_id="lin")


# --------------------------------------------------------------------------------------------------------- sessions


async def test_a_long_session_is_summarised_once(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """What exceeds the budget is summarised by the model, kept with the session, and not asked for again."""
    agent = Agent(speaker, memory_manager=memory, history_tokens=80)
    for n in range(3):
        speaker.add(f"Answer {n} to what was said here, at some length.")
        await agent.run(f"Message {n}, which says something at some length.", user_id="lin", session_id="s")
    speaker.add("Lin said </earlier> things.", "Four.", "Five.")
    fourth = await agent.run("Go on", user_id="lin", session_id="s")
    assert (fourth.content, fourth.summary_error, fourth.usage.calls) == ("Four.", None, 2)
    asked, answered = speaker.requests[-2:]
    assert "Message 0" in read_by(asked)
    assert "<earlier>\nLin said &lt;/earlier&gt; things.\n</earlier>" in system_of(answered)
    assert "Message 0" not in str(turns_of(answered))
    fifth = await agent.run("And on", user_id="lin", session_id="s")
    assert fifth.usage.calls == 1
    assert "Lin said" in system_of(speaker.requests[-1])
    assert len(await agent.get_messages("s", user_id="lin")) == 10


@pytest.mark.parametrize("says", [ModelUnavailableError("down", model="speaker"), "  ", ModelRefusedError("no")])
async def test_a_summary_that_fails_costs_no_answer(memory: MemoryManager, speaker: ScriptedModel, says: Any) -> None:
    """The oldest exchanges are left out then, the result says why, and the next run is not held up by it again."""
    agent = Agent(speaker, memory_manager=memory, history_tokens=80, llm=LLMSettings(retries=0))
    for n in range(3):
        speaker.add(f"Answer {n} to what was said here, at some length.")
        await agent.run(f"Message {n}, which says something at some length.", user_id="lin", session_id="s")
    speaker.add(says, "Four.", "Five.")
    fourth = await agent.run("Go on", user_id="lin", session_id="s")
    assert fourth.content == "Four."
    assert isinstance(fourth.summary_error, ModelError)
    told = str(turns_of(speaker.requests[-1]))
    assert "Message 2" in told
    assert "Message 0" not in told
    fifth = await agent.run("And on", user_id="lin", session_id="s")
    assert (fifth.summary_error, fifth.usage.calls) == (None, 1)


async def test_a_session_without_summary_is_read_over_pages(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """Many short exchanges are read page by page, as many as a prompt takes."""
    agent = Agent(speaker, memory_manager=memory, history_tokens=10_000)
    sessions = (await memory.opened()).sessions
    last, at = None, datetime(2026, 1, 5, tzinfo=UTC)
    for n in range(120):
        added = await sessions.append("lin", "s", Said(f"m{n}", at, f"a{n}", at, 4), last, 0)
        assert added is not None
        last = added[0]
    speaker.add("Hello.")
    await agent.run("Hi", user_id="lin", session_id="s")
    assert len(turns_of(speaker.requests[0])) == 241
    assert turns_of(speaker.requests[0])[0] == ("user", "m0")


async def test_sessions_are_listed_read_and_deleted(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """An application can see its users' sessions, what was said in them, and delete one; memories stay."""
    speaker.add("Hello.", "Hello.", "Hello again.")
    agent = Agent(speaker, memory_manager=memory)
    await agent.run("Hi", user_id="lin", session_id="b")
    await agent.run("Hi", user_id="lin", session_id="a")
    assert await agent.list_sessions(user_id="lin") == ["a", "b"]
    messages = await agent.get_messages("a", user_id="lin")
    assert [(m.role, m.content, m.at is not None) for m in messages] == [
        ("user", "Hi", True),
        ("assistant", "Hello.", True),
    ]
    assert await agent.get_messages("a", user_id="omar") == []
    assert await agent.delete_session("a", user_id="omar") is False
    assert await agent.delete_session("a", user_id="lin") is True
    assert await agent.list_sessions(user_id="lin") == ["b"]
    again = await agent.run("Hi", user_id="lin", session_id="a")
    assert (again.content, len(again.messages)) == ("Hello again.", 2)


@pytest.mark.parametrize("session_id", ["s", None])
async def test_a_run_brings_no_erased_user_back(
    memory: MemoryManager, speaker: ScriptedModel, session_id: str | None
) -> None:
    """Of a user who is erased while the model answers neither exchange nor capture is left."""

    class Erasing:
        name = "erasing"

        async def complete(self, request: ChatRequest) -> ChatReply:
            await memory.erase_user("lin")
            return ChatReply("Bye.")

    result = await Agent(Erasing(), memory_manager=memory, update_memory_on_run=True).run(
        "I row", user_id="lin", session_id=session_id
    )
    assert (result.content, result.captures, result.capture_error) == ("Bye.", [], None)
    assert (await memory.queue_status()).depth == 0
    assert await Agent(speaker, memory_manager=memory).get_messages("s", user_id="lin") == []


async def test_a_user_who_is_erased_between_a_run_and_its_capture_stays_erased(memory: MemoryManager) -> None:
    """What a run schedules after the erasure, having looked for one before it, stores nothing; its ticket ends."""
    source = ManagerSource(memory, Switches(capture=True))
    erasures = await (await memory.opened()).sessions.begun("lin")
    await memory.erase_user("lin")
    (ticket,) = await source.schedule([Message(role="user", content="I row")], "lin", None, erasures)
    with pytest.raises(TicketExpiredError):
        await ticket.wait(60)
    await memory.drain(60)
    assert await memory.get_user_memories(user_id="lin") == []
    assert (await memory.erase_user("lin")).counts["jobs"] == 0


async def test_a_blank_answer_is_kept_as_such(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """A model that says nothing leaves the user's words in the session, and a stand-in for the next prompt."""
    speaker.add(ChatReply(content=None), "Here.")
    agent = Agent(speaker, memory_manager=memory)
    assert (await agent.run("Hi", user_id="lin", session_id="s")).content == ""
    await agent.run("Are you there?", user_id="lin", session_id="s")
    assert turns_of(speaker.requests[1])[:2] == [("user", "Hi"), ("assistant", "(no answer)")]


async def test_answers_that_no_encoding_holds_are_kept_readable(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """A lone surrogate in an answer is replaced in the session, and the answer is given as it was."""
    speaker.add("Hello \ud800.")
    agent = Agent(speaker, memory_manager=memory)
    result = await agent.run("Hi " + "there " * 2_000, user_id="lin", session_id="s")
    assert result.session_error is None
    assert (await agent.get_messages("s", user_id="lin"))[1].content == "Hello ?."


# --------------------------------------------------------------------------------------------------- the store fails

Failing = Callable[..., AbstractAsyncContextManager[None]]


@pytest.fixture
def failing(replica_set_uri: str) -> Failing:
    """Makes a command fail on the replica set for a while."""

    @asynccontextmanager
    async def fail(command: str) -> AsyncIterator[None]:
        async with AsyncMongoClient[dict[str, Any]](replica_set_uri) as client:
            point = {"configureFailPoint": "failCommand", "data": {"failCommands": [command], "errorCode": 8000}}
            await client.admin.command({**point, "mode": "alwaysOn"})
            try:
                yield
            finally:
                await client.admin.command({"configureFailPoint": "failCommand", "mode": "off"})

    return fail


@pytest.fixture
async def agent(replica_set_uri: str, database_name: str, speaker: ScriptedModel) -> AsyncIterator[Agent]:
    """An agent that captures, on the replica set, whose sessions become long at once."""
    uri, settings = with_database(replica_set_uri, database_name), Settings(workers=False)
    async with MemoryManager(uri, model=ScriptedModel(), settings=settings) as manager:
        yield Agent(speaker, memory_manager=manager, update_memory_on_run=True, history_tokens=1)


async def test_an_exchange_that_can_not_be_stored_costs_no_answer(
    agent: Agent, speaker: ScriptedModel, failing: Failing, caplog: pytest.LogCaptureFixture
) -> None:
    """When the store fails behind the answer, the answer comes, and the result and the log say what is missing."""
    speaker.add("Hello Lin.")
    async with failing("insert"):
        result = await agent.run("I am Lin", user_id="lin", session_id="s")
    assert result.content == "Hello Lin."
    assert isinstance(result.session_error, StoreError)
    assert result.capture_error is result.session_error
    assert "could not be stored or captured" in caplog.text
    assert "Lin" not in caplog.text


async def test_a_capture_that_can_not_be_scheduled_costs_no_answer(
    agent: Agent, speaker: ScriptedModel, failing: Failing
) -> None:
    """When the queue fails the exchange is in its session, and waits for the next run to schedule it."""
    speaker.add("Hello.", "In short", "Hello again.", "Alone.")
    async with failing("findAndModify"):
        result = await agent.run("I am Lin", user_id="lin", session_id="s")
        alone = await agent.run("I am Lin", user_id="omar")
    assert result.session_error is None
    assert isinstance(result.capture_error, StoreError)
    assert isinstance(alone.capture_error, StoreError)
    again = await agent.run("Who am I?", user_id="lin", session_id="s")
    assert (len(again.captures), again.capture_error) == (1, None)


async def test_a_summary_that_can_not_be_kept_costs_no_answer(
    agent: Agent, speaker: ScriptedModel, failing: Failing
) -> None:
    """When the store fails at the summary, the session is shown as far as it fits."""
    speaker.add("Hello.", "Hello again.")
    await agent.run("I am Lin", user_id="lin", session_id="s")
    async with failing("update"):
        result = await agent.run("Who am I?", user_id="lin", session_id="s")
    assert result.content == "Hello again."
    assert isinstance(result.summary_error, StoreError)


async def test_a_session_that_can_not_be_read_fails_its_run(
    agent: Agent, speaker: ScriptedModel, failing: Failing
) -> None:
    """An answer without what was said before would be a wrong one: the run raises, and no model is asked."""
    async with failing("find"):
        with pytest.raises(StoreError):
            await agent.run("Who am I?", user_id="lin", session_id="s")
    assert speaker.requests == []


async def test_memories_that_can_not_be_read_cost_no_answer(
    agent: Agent, speaker: ScriptedModel, failing: Failing
) -> None:
    """Without a session the answer comes without memories and uncaptured, and the result says both."""
    speaker.add("Hello.")
    async with failing("find"):
        result = await agent.run("Who am I?", user_id="lin")
        strict = Agent(speaker, memory_manager=manager_of(agent), on_context_failure="raise")
        with pytest.raises(StoreError):
            await strict.run("Who am I?", user_id="lin")
        strict = Agent(speaker, memory_manager=manager_of(agent), on_context_failure="raise", update_memory_on_run=True)
        with pytest.raises(StoreError):
            await strict.run("Who am I?", user_id="lin")
    assert (result.content, result.context) == ("Hello.", "")
    assert isinstance(result.context_error, StoreError)
    assert isinstance(result.capture_error, StoreError)


def manager_of(agent: Agent) -> MemoryManager:
    """The agent's manager."""
    assert agent._source is not None
    return agent._source.manager


# ------------------------------------------------------------------------------------------------------- streaming


async def told(agent: Agent, message: str, **ids: str) -> list[AgentEvent]:
    """Everything that a stream gives."""
    return [event async for event in agent.stream(message, **ids)]


async def test_a_stream_gives_what_a_run_gives(
    memory: MemoryManager, keeper: ScriptedModel, speaker: ScriptedModel
) -> None:
    """Words come as they are said, calls of tools as they happen, and last the result, stored and scheduled."""

    async def forecast(city: str) -> str:
        """The weather of a city."""
        return "21 degrees"

    keeper.add(plan({"op": "add", "memory": "Lives in Porto", "evidence": "I live in Porto"}))
    speaker.add(tool_reply(("forecast", {"city": "Porto"})), "It is 21 degrees.")
    agent = Agent(speaker, memory_manager=memory, update_memory_on_run=True, tools=[forecast])
    events = await told(agent, "I live in Porto. How warm is it?", user_id="lin", session_id="s")
    assert [type(e) for e in events[:2]] == [ToolStarted, ToolDone]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "It is 21 degrees."
    assert isinstance(events[-1], AnswerFinished)
    result = events[-1].result
    assert (result.content, result.rounds, len(result.tool_results)) == ("It is 21 degrees.", 2, 1)
    await captured(result)
    assert await texts(memory, "lin") == ["Lives in Porto"]
    assert [m.content for m in await agent.get_messages("s", user_id="lin")] == [
        "I live in Porto. How warm is it?",
        "It is 21 degrees.",
    ]


async def test_a_stream_without_tools_of_the_model(speaker: ScriptedModel) -> None:
    """Of a plan, whose answer was made before anything was done, only the answer that follows is told."""

    async def forecast(city: str) -> str:
        """The weather of a city."""
        return "21 degrees"

    speaker.add({"actions": [{"tool": "forecast", "city": "Porto"}], "answer": "It is cold."}, "It is 21 degrees.")
    speaker.add({"actions": [], "answer": "Hello."})
    agent = Agent(speaker, tools=[forecast], llm=LLMSettings(tools=False))
    for message, says in (("How warm is it?", "It is 21 degrees."), ("Hi", "Hello.")):
        events = await told(agent, message)
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == says
        assert isinstance(events[-1], AnswerFinished)
        assert events[-1].result.content == says


async def test_a_stream_that_is_left_early_leaves_nothing(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """Whoever closes the stream before its end has neither exchange nor capture."""
    speaker.add("It is a long story.")
    agent = Agent(speaker, memory_manager=memory, update_memory_on_run=True)
    async with aclosing(agent.stream("Tell me", user_id="lin", session_id="s")) as events:
        assert isinstance(await anext(events), TextDelta)
    assert await agent.get_messages("s", user_id="lin") == []
    assert (await memory.queue_status()).depth == 0


async def test_a_model_that_fails_fails_the_stream(memory: MemoryManager, speaker: ScriptedModel) -> None:
    """An error of the model comes out of the stream as of a run, and nothing is stored."""
    speaker.add(ModelRefusedError("no"), ModelRefusedError("no"))
    agent = Agent(speaker, memory_manager=memory)
    with pytest.raises(ModelRefusedError):
        await told(agent, "Hi", user_id="lin", session_id="s")
    with pytest.raises(ModelRefusedError):
        await agent.run("Hi", user_id="lin", session_id="s")
    assert await agent.list_sessions(user_id="lin") == []
