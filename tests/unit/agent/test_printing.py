"""Answers on the terminal: live where rich is installed, as plain text without it."""

import io
import sys

import pytest

from asyncmem import Agent, ModelUnavailableError, RunResult
from asyncmem.agent.printing import at_once, show
from asyncmem.testing import ScriptedModel, tool_reply

pytestmark = pytest.mark.anyio


async def look() -> str:
    """Look."""
    return "nothing"


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_is_printed_as_text(stream: bool) -> None:
    """Into a file the words go as they are, whole lines, with the calls of tools where they are streamed."""
    file = io.StringIO()
    async with ScriptedModel([tool_reply(("look", {})), "There is *nothing*."]) as model:
        result = await Agent(model, tools=[look]).print_response("Look", stream=stream, file=file)
    assert result.content == "There is *nothing*."
    assert file.getvalue() == ("[calls look]\n" if stream else "") + "There is *nothing*.\n"


async def test_an_answer_is_printed_as_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    """On the terminal rich renders the answer, and markup in a tool's name is none."""
    async with ScriptedModel([tool_reply(("look", {})), "There is **nothing**."]) as model:
        await Agent(model, tools=[look]).print_response("Look")
    out = capsys.readouterr().out
    assert "calls look" in out
    assert "There is nothing." in out


async def test_without_rich_an_answer_is_plain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rich is not installed the terminal gets plain text."""
    monkeypatch.setitem(sys.modules, "rich.live", None)
    async with ScriptedModel(["There is **nothing**."]) as model:
        await Agent(model).print_response("Look")
    assert capsys.readouterr().out == "There is **nothing**.\n"


async def test_what_went_wrong_is_printed_behind_the_answer() -> None:
    """Errors around an answer are not hidden, and an answer without words is an empty line."""
    file = io.StringIO()
    result = RunResult("", context_error=ModelUnavailableError("the embedder is down"))
    assert await show(at_once(result), file) is result
    assert file.getvalue() == "\n[context: ModelUnavailableError: the embedder is down]\n"
