"""Test tools for code that uses asyncmem."""

from .scripted import ScriptedModel, ScriptError, Step, tool_reply

__all__ = ["ScriptError", "ScriptedModel", "Step", "tool_reply"]
