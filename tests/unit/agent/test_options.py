"""Options of an agent: whatever can't be meant is refused when it is made."""

from typing import Any

import pytest

from asyncmem import (
    Agent,
    ConfigurationError,
    InvalidIdError,
    InvalidMessageError,
    LearningMachine,
    LearningMode,
    LLMSettings,
    MemoryManager,
    UserMemoryConfig,
)
from asyncmem.agent.recalling import bullets
from asyncmem.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def search(query: str) -> str:
    """Search."""
    return query


async def update_user_memory(task: str) -> str:
    """Of the application's own."""
    return task


def manager() -> MemoryManager:
    """A manager that is never opened."""
    return MemoryManager("mongodb://localhost/app", model=ScriptedModel())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"memory": 1}, "no option 'memory'"),
        ({"llm": {}}, "llm must be a LLMSettings"),
        ({"memory_manager": "mongodb://localhost/app"}, "memory_manager must be a MemoryManager, not a str"),
        ({"update_memory_on_run": True}, "update_memory_on_run needs memory_manager"),
        ({"memory_tools": True, "enable_agentic_memory": True}, "enable_agentic_memory and memory_tools need"),
        ({"update_memory_on_run": "no"}, "update_memory_on_run must be a bool"),
        ({"learning": "always"}, "learning must be a LearningMachine, not a str"),
        ({"learning": LearningMachine(manager(), user_memory=True), "memory_tools": True}, "decides by its modes"),
        ({"learning": LearningMachine(manager(), user_memory=True), "memory_manager": manager()}, "by its modes"),
        ({"instructions": 3}, "instructions must be a str"),
        ({"tools": search}, "must be a list"),
        ({"tools": "search"}, "must be a list"),
        ({"tools": [len]}, "must be an async function"),
        ({"tools": [search, search]}, "two tools are named search"),
        ({"max_rounds": 0}, "max_rounds must be an int from 1"),
        ({"max_calls": True}, "max_calls must be an int from 1"),
        ({"history_tokens": 1.5}, "history_tokens must be an int from 1"),
        ({"context_tokens": -1}, "context_tokens must be an int from 1"),
        ({"on_context_failure": "ignore"}, "on_context_failure"),
    ],
)
def test_what_can_not_be_meant_is_refused(options: dict[str, Any], says: str) -> None:
    """Unknown, wrong and contradicting options are typed errors that name the option."""
    with pytest.raises(ConfigurationError, match=says):
        Agent(ScriptedModel(), **options)


def test_a_tool_may_not_hide_a_memory_tool() -> None:
    """A tool of the application's that is named as a memory tool is refused where that is switched on."""
    Agent(ScriptedModel(), memory_manager=manager(), tools=[update_user_memory])
    with pytest.raises(ConfigurationError, match="two tools are named update_user_memory"):
        Agent(ScriptedModel(), memory_manager=manager(), enable_agentic_memory=True, tools=[update_user_memory])
    learning = LearningMachine(manager(), user_memory=UserMemoryConfig(mode=LearningMode.AGENTIC))
    with pytest.raises(ConfigurationError, match="two tools are named update_user_memory"):
        Agent(ScriptedModel(), learning=learning, tools=[update_user_memory])


def test_ids_of_agents_are_checked() -> None:
    """An agent_id that is no id is a typed error."""
    with pytest.raises(InvalidIdError, match="agent_id"):
        Agent(ScriptedModel(), memory_manager=manager(), agent_id="")


def test_an_agent_shows_its_model_alone() -> None:
    """Its repr names the model, and no instruction."""
    assert repr(Agent("openai/gpt-4o", instructions="secret", llm=LLMSettings())) == "Agent('openai/gpt-4o')"


@pytest.mark.parametrize(
    ("message", "says"),
    [(3, "must be a str"), (" \n", "blank"), ("x" * 200_001, "200,001"), ("\ud800", "surrogate")],
)
async def test_messages_are_checked(message: Any, says: str) -> None:
    """What is no message is a typed error, and no model is asked."""
    with pytest.raises(InvalidMessageError, match=says):
        await Agent(ScriptedModel()).run(message)


async def test_a_session_needs_a_place() -> None:
    """Without a manager there is nowhere to keep a session, and that is said."""
    agent = Agent(ScriptedModel())
    with pytest.raises(ConfigurationError, match="memory_manager"):
        await agent.run("hi", session_id="s")
    with pytest.raises(ConfigurationError, match="memory_manager"):
        await agent.list_sessions()


async def test_an_agent_without_memory_answers() -> None:
    """No manager is needed for an answer: the prompt holds the instructions and the message alone."""
    async with ScriptedModel(["Hello."]) as model:
        result = await Agent(model, instructions="Be brief.").run(" hi ", user_id="lin")
    assert (str(result), result.user_id, result.session_id, result.context) == ("Hello.", "lin", None, "")
    assert model.requests[0].messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]
    assert result.messages[-1] == {"role": "assistant", "content": "Hello."}
    with pytest.raises(InvalidIdError):
        await Agent(ScriptedModel()).run("hi", user_id="")


def test_bullets_are_those_of_memories() -> None:
    """Lines of a profile are no memories."""
    block = "<user_profile>\n- name: Lin\n</user_profile>\n<user_memory>\n- Rows\n- Sings\n</user_memory>"
    assert bullets(block) == 2
