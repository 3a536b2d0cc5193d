"""Capture by tool calls, for models that are set to take them."""

from typing import Any

import pytest

from asyncmem import LLMSettings, MemoryManager
from asyncmem.testing import ScriptedModel, tool_reply

from .conftest import Script, fill, texts

pytestmark = pytest.mark.anyio
SAID = "I row, and I swim daily"
ROWS = ("add_memory", {"memory": "Rows", "evidence": "I row"})
SWIMS = ("add_memory", {"memory": "Swims daily", "topics": ["sport"], "evidence": "I swim daily"})


@pytest.fixture
def tooled(make: Script) -> Script:
    """Makes a manager whose model takes tools."""

    def maker(**options: Any) -> MemoryManager:
        return make(llm=LLMSettings(tools=True), **options)

    return maker


def answers(model: ScriptedModel) -> list[str]:
    """What the model was told of its calls, in the last request."""
    return [m["content"] for m in model.requests[-1].messages if m["role"] == "tool"]


async def test_calls_side_by_side_take_one_call_of_the_model(tooled: Script, model: ScriptedModel) -> None:
    """Additions in one reply are applied without asking again; the result says that tools were called."""
    async with tooled() as manager:
        model.add(tool_reply(ROWS, SWIMS))
        result = await manager.create_user_memories(SAID, user_id="lin")
        assert [c.after and (c.after.memory, c.after.topics, c.after.input) for c in result.changes] == [
            ("Rows", [], "I row"),
            ("Swims daily", ["sport"], "I swim daily"),
        ]
        assert [c.sources for c in result.changes] == [(0,), (0,)]
        assert (result.usage.calls, result.tools, result.tier, result.ended) == (1, True, None, "done")
        (request,) = model.requests
        assert [t["function"]["name"] for t in request.tools or ()] == ["add_memory", "update_memory"]


async def test_nothing_to_remember_is_one_call(tooled: Script, model: ScriptedModel) -> None:
    """An answer without a call changes nothing."""
    async with tooled() as manager:
        model.add("Nothing to do.")
        result = await manager.create_user_memories("Thanks!", user_id="lin")
        assert (result.changes, result.skipped, result.usage.calls) == ([], [], 1)


async def test_a_model_that_calls_one_by_one_is_asked_until_it_is_done(tooled: Script, model: ScriptedModel) -> None:
    """Each call is answered and the model asked for more; what it changes twice is written once."""
    async with tooled(delete_memories=True) as manager:
        ids = await fill(manager, "lin", "Rows", "Keeps bees")
        model.add(
            tool_reply(("update_memory", {"memory_id": "1", "memory": "Rows and swims", "evidence": "I swim"})),
            tool_reply(
                ("update_memory", {"memory_id": "1", "memory": "Rows and swims daily", "evidence": "I swim daily"})
            ),
            tool_reply(("delete_memory", {"memory_id": "2"})),
            "Done.",
        )
        result = await manager.create_user_memories("I row and I swim daily. Forget the bees", user_id="lin")
        assert [(c.kind, c.memory_id) for c in result.changes] == [("update", ids[0]), ("delete", ids[1])]
        assert await texts(manager, "lin") == ["Rows and swims daily"]
        assert (await manager.get_user_memories(user_id="lin"))[0].revision == 2


async def test_what_makes_no_sense_is_told_once(tooled: Script, model: ScriptedModel) -> None:
    """An unknown alias is answered with what is wrong, and may be mended; wrong again, the model isn't asked more."""
    wrong = ("update_memory", {"memory_id": "99", "memory": "Rows daily", "evidence": "I row"})
    async with tooled() as manager:
        (row,) = await fill(manager, "lin", "Rows")
        right = ("update_memory", {"memory_id": "1", "memory": "Rows and swims daily", "evidence": "I swim daily"})
        model.add(tool_reply(wrong, SWIMS), tool_reply(right, ("delete_memory", {"memory_id": "1"})))
        result = await manager.create_user_memories(SAID, user_id="lin")
        assert answers(model) == ["Not done: this user has no memory under that alias.", "Done."]
        assert [(c.kind, c.memory_id == row) for c in result.changes] == [("add", False), ("update", True)]
        assert [s.op for s in result.skipped] == ["update", "delete_memory"]
        assert result.usage.calls == 2


async def test_case_6_a_model_that_always_adds_stops_at_the_limits(tooled: Script, model: ScriptedModel) -> None:
    """Rounds and writes are bounded, and the result says which bound it was; the same call again counts once."""
    said = "I own " + ", ".join(f"boat {n}" for n in range(60))

    def boats(*numbers: int) -> Any:
        calls = [("add_memory", {"memory": f"Owns boat {n}", "evidence": said}) for n in numbers]
        return tool_reply(*calls)

    async with tooled() as manager:
        model.add(*(boats(n) for n in range(4)))
        result = await manager.create_user_memories(said, user_id="lin")
        assert (len(result.changes), result.usage.calls, result.ended) == (4, 4, "rounds")
        assert "stopped at the limit of rounds" in str(result)
        model.add(boats(*range(10, 50), 10))
        result = await manager.create_user_memories(said, user_id="omar")
        assert (len(result.changes), result.usage.calls) == (32, 1)
        model.add(boats(3), boats(3), boats(3), boats(3))
        result = await manager.create_user_memories(said, user_id="ana")
        assert (len(result.changes), result.ended) == (1, "rounds")


async def test_case_1_clear_by_a_tool_says_how_many(tooled: Script, model: ScriptedModel) -> None:
    """Clear removes one user's memories, and the tool's reply says how many; removed ones can't be changed after."""
    async with tooled(clear_memories=True) as manager:
        await fill(manager, "lin", "Keeps two parrots", "Works nights")
        await fill(manager, "omar", "Plays go", "Swims", "Lives in Lima")
        late = ("update_memory", {"memory_id": "1", "memory": "Keeps two parrots, loud", "evidence": "loud"})
        model.add(tool_reply(("clear_memory", {})), tool_reply(late), "Done.")
        result = await manager.update_memory_task("Forget everything, the loud parrots too", user_id="lin")
        assert answers(model)[0] == "Done: all 2 memories that you know of are removed."
        assert [s.reason for s in result.skipped] == ["an operation before it removed the memory"]
        assert (await texts(manager, "lin"), len(await texts(manager, "omar"))) == ([], 3)


async def test_case_1_a_forged_call_clears_nothing(tooled: Script, model: ScriptedModel) -> None:
    """With clear off there is no such tool and no word of it; a forged call is refused."""
    async with tooled() as manager:
        await fill(manager, "lin", "Keeps two parrots")
        model.add(tool_reply(("clear_memory", {})), "Sorry.")
        result = await manager.update_memory_task("Please wipe it all", user_id="lin")
        assert (result.changes, await texts(manager, "lin")) == ([], ["Keeps two parrots"])
        assert "clear" not in str(model.requests[0].messages) + str(model.requests[0].tools)


async def test_a_wish_that_is_switched_off_is_reported(tooled: Script, model: ScriptedModel) -> None:
    """A wish to forget with delete off stands in the result, whether or not the model tried."""
    async with tooled() as manager:
        await fill(manager, "lin", "Works at Oakline")
        model.add("I can't.")
        result = await manager.create_user_memories("Please forget where I work", user_id="lin")
        assert [(s.op, s.reason) for s in result.skipped] == [
            ("delete", "forgetting is switched off (delete_memories=False)")
        ]


async def test_calls_that_reach_no_operation_are_reported(tooled: Script, model: ScriptedModel) -> None:
    """A tool that there is not, and arguments that make no sense, stand in the result beside what was applied."""
    async with tooled() as manager:
        model.add(tool_reply(("buy_memory", {}), ("add_memory", "{no json"), ROWS), "Done.")
        result = await manager.create_user_memories(SAID, user_id="lin")
        assert [c.after and c.after.memory for c in result.changes] == ["Rows"]
        assert [s.op for s in result.skipped] == ["buy_memory", "add_memory"]
        assert "no tool of that name" in result.skipped[0].reason


async def test_a_plan_that_names_no_memory_may_be_mended_once(make: Script, model: ScriptedModel) -> None:
    """An unknown alias is told to the model; what it writes then is applied, and what was wrong is reported."""
    async with make() as manager:
        (row,) = await fill(manager, "lin", "Rows")
        wrong = {"op": "update", "memory_id": "99", "memory": "Rows and swims daily", "evidence": "I swim daily"}
        model.add({"operations": [wrong]}, {"operations": [{**wrong, "memory_id": "1"}]})
        result = await manager.create_user_memories(SAID, user_id="lin")
        assert [(c.kind, c.memory_id) for c in result.changes] == [("update", row)]
        assert [s.reason for s in result.skipped] == ["this user has no memory under that alias"]
        assert "no memory under one of these numbers" in str(model.requests[1].messages[-1])


async def test_a_plan_of_too_much_says_that_it_was_cut(make: Script, model: ScriptedModel) -> None:
    """What a plan holds beyond the limit is skipped, and the result names the limit."""
    said = "I own " + ", ".join(f"boat {n}" for n in range(40))
    async with make() as manager:
        adds = [{"op": "add", "memory": f"Owns boat {n}", "evidence": said} for n in range(40)]
        model.add({"operations": adds})
        result = await manager.create_user_memories(said, user_id="lin")
        assert (len(result.changes), len(result.skipped), result.ended) == (32, 8, "operations")
