"""Any model behind one call: a pydantic value or a precise error. The only room that knows litellm."""

from .abilities import Abilities, Ability
from .chat import ChatModel, ChatReply, ChatRequest, ToolCall
from .client import LLM
from .counting import TokenCount
from .embeddings import Embedder, Embeddings
from .ladder import Structured
from .observing import CallReport, UsageObserver
from .tools import Tool, ToolResult, ToolRun

__all__ = [
    "LLM",
    "Abilities",
    "Ability",
    "CallReport",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Embedder",
    "Embeddings",
    "Structured",
    "TokenCount",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolRun",
    "UsageObserver",
]
