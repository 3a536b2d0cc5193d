"""Any model behind one call: a pydantic value or a precise error. The only room that knows litellm."""

from .abilities import Abilities, Ability
from .chat import ChatDelta, ChatModel, ChatReply, ChatRequest, StreamingModel, ToolCall
from .client import LLM
from .counting import TokenCount
from .embeddings import Embedder, Embeddings
from .events import RunFinished, StreamEvent, TextDelta, ToolDone, ToolStarted
from .ladder import Structured
from .observing import CallReport, UsageObserver
from .tools import Tool, ToolResult, ToolRun

__all__ = [
    "LLM",
    "Abilities",
    "Ability",
    "CallReport",
    "ChatDelta",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Embedder",
    "Embeddings",
    "RunFinished",
    "StreamEvent",
    "StreamingModel",
    "Structured",
    "TextDelta",
    "TokenCount",
    "Tool",
    "ToolCall",
    "ToolDone",
    "ToolResult",
    "ToolRun",
    "ToolStarted",
    "UsageObserver",
]
