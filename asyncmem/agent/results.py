"""What comes of a run of an agent: frozen values, whose ``repr`` shows nothing that was said."""

from dataclasses import dataclass, field

from ..errors import AsyncMemError
from ..learning import LearningTickets
from ..llm.chat import WireMessage
from ..llm.events import TextDelta, ToolDone, ToolStarted
from ..llm.tools import Stopped, ToolResult
from ..tickets import CaptureTicket
from ..usage import Usage

Ticket = CaptureTicket | LearningTickets
"""What was scheduled: by a manager, or by a learning machine. ``await ticket.wait()`` says what came of it."""


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """A tool that raised an exception. The model was told its class alone.

    Attributes:
        name: which tool.
        error: what it raised.
    """

    name: str
    error: BaseException = field(repr=False)


@dataclass(frozen=True, slots=True)
class RunResult:
    """One answer of an agent, and what came of everything around it.

    What goes wrong around an answer never costs the answer: it stands in one of the errors.

    Attributes:
        content: the answer; "" when a bound stopped the model before it gave one.
        user_id: whose memories were used; ``None`` for an agent without memory.
        session_id: the session that the run belongs to, if any.
        context: what of the user's memories and profile stood in the prompt; "" for none.
        tool_results: every call of a tool, in order, and what the model was told.
        tool_failures: tools that raised an exception.
        messages: the whole conversation with the model in OpenAI's shape.
        usage: calls, tokens and cost of the agent's model, summaries of the session included.
        rounds: replies of the model.
        stopped: ``"answer"``, or the bound that stopped the model: ``"rounds"`` or ``"calls"``.
        captures: the captures that were scheduled: this run's, and those that an earlier run of the session left out.
        context_error: why memories or profile could not be read: the answer was given without.
        summary_error: why the older part of the session was left out and not summarised.
        session_error: why the exchange is not known to be stored in its session.
        capture_error: why the exchange is not scheduled to be captured. In a session the next run tries again.
    """

    content: str = field(repr=False)
    user_id: str | None = None
    session_id: str | None = None
    context: str = field(default="", repr=False)
    tool_results: list[ToolResult] = field(default_factory=list[ToolResult])
    tool_failures: list[ToolFailure] = field(default_factory=list[ToolFailure])
    messages: list[WireMessage] = field(default_factory=list[WireMessage], repr=False)
    usage: Usage = field(default_factory=Usage)
    rounds: int = 1
    stopped: Stopped = "answer"
    captures: list[Ticket] = field(default_factory=list[Ticket])
    context_error: AsyncMemError | None = None
    summary_error: AsyncMemError | None = None
    session_error: AsyncMemError | None = None
    capture_error: AsyncMemError | None = None

    def __str__(self) -> str:
        return self.content


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The last event of a stream.

    Attributes:
        result: what ``run`` would have returned.
    """

    result: RunResult


AgentEvent = TextDelta | ToolStarted | ToolDone | AnswerFinished
"""What ``Agent.stream`` gives."""
