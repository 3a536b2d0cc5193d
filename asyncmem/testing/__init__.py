"""Test tools for code that uses asyncmem: a scripted model, and a provider on loopback."""

from asyncmem.llm.chat import ScriptError

from .failures import FAILURES
from .hashing import HashEmbedder
from .refusals import FORMAT_REFUSALS, TOOL_REFUSALS, Answer
from .scripted import ScriptedModel, Step, tool_reply
from .simulator import Behaviour, ProviderSimulator, Received
from .streams import BREAKS

__all__ = [
    "BREAKS",
    "FAILURES",
    "FORMAT_REFUSALS",
    "TOOL_REFUSALS",
    "Answer",
    "Behaviour",
    "HashEmbedder",
    "ProviderSimulator",
    "Received",
    "ScriptError",
    "ScriptedModel",
    "Step",
    "tool_reply",
]
