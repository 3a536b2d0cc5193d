"""An answer on the terminal: live and in colour where rich is installed, else as plain text."""

import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol, TextIO

import anyio.to_thread

from ..llm.events import TextDelta, ToolStarted
from .results import AgentEvent, AnswerFinished, RunResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.live import Live
    from rich.markdown import Markdown


class Shown(Protocol):
    """Where an answer is shown while it comes."""

    def add(self, text: str) -> None:
        """More of the answer."""
        ...

    def note(self, text: str) -> None:
        """Something beside it."""
        ...

    def end(self) -> None:
        """It is complete."""
        ...


class Plain:
    """Writes pieces as they come."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def add(self, text: str) -> None:
        """Write it."""
        self._file.write(text)
        self._file.flush()

    def note(self, text: str) -> None:
        """Write it in a line of its own."""
        self.add(f"[{text}]\n")

    def end(self) -> None:
        """End the line."""
        self.add("\n")


class Lively:
    """Shows the answer as Markdown that grows."""

    def __init__(self, live: "Live", render: "Callable[[str], Markdown]") -> None:
        self.live: Live = live
        self._render = render
        self._text = ""

    def add(self, text: str) -> None:
        """Show it at the end."""
        self._text += text
        self.live.update(self._render(self._text), refresh=True)

    def note(self, text: str) -> None:
        """Show it above the answer."""
        self.live.console.print(text, markup=False, style="dim")

    def end(self) -> None:
        """Leave it as it is."""
        self.live.refresh()


async def at_once(result: RunResult) -> AsyncGenerator[AgentEvent, None]:
    """An answer that is there already."""
    if result.content:
        yield TextDelta(result.content)
    yield AnswerFinished(result)


async def show(events: AsyncGenerator[AgentEvent, None], file: TextIO | None) -> RunResult:
    """Show an answer as it comes, and what went wrong around it; the result."""
    live = None if file is not None else await anyio.to_thread.run_sync(_live)  # importing rich reads files
    if live is None:
        return await _follow(events, Plain(file or sys.stdout))
    with live.live:
        return await _follow(events, live)


async def _follow(events: AsyncGenerator[AgentEvent, None], shown: Shown) -> RunResult:
    result = RunResult("")
    async with aclosing(events):
        async for event in events:
            match event:
                case TextDelta():
                    shown.add(event.text)
                case ToolStarted():
                    shown.note(f"calls {event.call.name}")
                case AnswerFinished():
                    result = event.result
                case _:
                    pass
    shown.end()
    for what in ("context", "summary", "session", "capture"):
        error: Exception | None = getattr(result, f"{what}_error")
        if error is not None:
            shown.note(f"{what}: {type(error).__name__}: {error}")
    return result


def _live() -> Lively | None:
    """Where rich shows an answer; ``None`` where it is not installed."""
    try:
        from rich.live import Live
        from rich.markdown import Markdown
    except ModuleNotFoundError:
        return None
    return Lively(Live(auto_refresh=False, vertical_overflow="visible"), Markdown)
