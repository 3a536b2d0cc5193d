"""Any model behind one call: a pydantic value or a precise error. The only room that knows litellm."""

from .abilities import Abilities, Ability
from .chat import ChatModel, ChatReply, ChatRequest, ToolCall
from .client import LLM
from .ladder import Structured

__all__ = ["LLM", "Abilities", "Ability", "ChatModel", "ChatReply", "ChatRequest", "Structured", "ToolCall"]
