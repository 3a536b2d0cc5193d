"""The agent: answers with what is remembered of its user, in sessions, with tools, and has each run captured."""

from .agent import Agent
from .results import AnswerFinished, RunResult, ToolFailure

__all__ = ["Agent", "AnswerFinished", "RunResult", "ToolFailure"]
