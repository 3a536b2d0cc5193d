"""Tools that raise: what the model is told, and what goes through."""

import asyncio

import pytest
from pydantic import BaseModel

from asyncmem import Tool, ToolError
from asyncmem.agent.guarding import guarded
from asyncmem.agent.results import ToolFailure
from asyncmem.testing import ScriptError

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    """No arguments."""


async def run(raises: BaseException) -> tuple[str, list[ToolFailure]]:
    """What a tool that raises this tells the model."""

    async def fail(_: Nothing) -> str:
        raise raises

    failures: list[ToolFailure] = []
    (tool,) = guarded([Tool("fail", "Fails.", Nothing, fail)], failures)
    return await tool.run(Nothing()), failures


@pytest.mark.parametrize("raised", [ValueError("a key"), asyncio.CancelledError()])
async def test_what_a_tool_raises_is_told_by_its_class(raised: BaseException) -> None:
    """Also a cancellation that nobody asked for: of something that the tool waited for."""
    told, failures = await run(raised)
    assert told == f"Error: fail failed ({type(raised).__name__}). Don't say that it worked."
    assert failures == [ToolFailure("fail", raised)]


async def test_a_cancellation_goes_through() -> None:
    """When the run itself is cancelled, its tool is."""
    began = asyncio.Event()

    async def wait(_: Nothing) -> str:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    failures: list[ToolFailure] = []
    (tool,) = guarded([Tool("wait", "Waits.", Nothing, wait)], failures)
    task = asyncio.ensure_future(tool.run(Nothing()))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert failures == []


async def test_what_no_encoding_can_hold_is_replaced() -> None:
    """A lone surrogate in an answer, or in an error for the model, would end the run at the provider's."""

    async def odd(_: Nothing) -> str:
        return "a\ud800b"

    (tool,) = guarded([Tool("odd", "Odd.", Nothing, odd)], [])
    assert await tool.run(Nothing()) == "a?b"
    assert (await run(ToolError("no \ud800")))[0] == "Error: no ?"


async def test_a_script_that_ended_is_a_failed_test() -> None:
    """The error of a test double goes through."""
    with pytest.raises(ScriptError):
        await run(ScriptError("no more steps"))
