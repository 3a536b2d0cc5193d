"""What happens while a model works: its words as they come, its tools, and the end. Values."""

from dataclasses import dataclass, field

from .chat import ToolCall
from .tools import ToolResult, ToolRun


@dataclass(frozen=True, slots=True)
class TextDelta:
    """What the model's text goes on with. Its ``repr`` does not show it.

    Attributes:
        text: never empty.
    """

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call of a tool is about to be carried out.

    Attributes:
        call: as the model wrote it; it may make no sense, and is then answered with what is wrong.
    """

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolDone:
    """A call of a tool was answered.

    Attributes:
        result: the call, and what the model is told.
    """

    result: ToolResult


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event.

    Attributes:
        run: all of it, as ``LLM.run_tools`` returns it.
    """

    run: ToolRun


StreamEvent = TextDelta | ToolStarted | ToolDone | RunFinished
"""What ``LLM.stream_tools`` gives."""
