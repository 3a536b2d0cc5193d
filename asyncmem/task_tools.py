"""One tool that hands a task to the manager's own model: what an agent says in words, another model carries out."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Field

from .cleaning import clean_id
from .errors import ConfigurationError, InvalidInputError
from .guards import looks_like_instructions
from .llm import Tool
from .manager import MemoryManager
from .tool_answers import alias_of, done, not_done, shown
from .tool_arguments import MAX_STATEMENT
from .types import CaptureResult, Change, Skipped, UserMemory

TASK_TOOL = "update_user_memory"
_ROOM = 200
"""Estimated tokens that the text of one memory may have in an answer."""
_DESCRIPTION = (
    "Hand over a task about what is remembered of the user: to remember, correct or forget something. Call it when the"
    " user says something about himself or herself that will matter later, or asks for it. The answer says what was"
    " done and what was not, and why."
)
_SAID = "What to do, in the user's own words as far as possible, with all details: 'Remember that I live in Porto'."


class UpdateUserMemory(BaseModel):
    """Arguments of ``update_user_memory``."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", hide_input_in_errors=True)

    task: str = Field(min_length=1, max_length=MAX_STATEMENT, description=_SAID)


def task_tool(
    manager: MemoryManager, *, user_id: str, agent_id: str | None = None, team_id: str | None = None
) -> Tool[Any]:
    """The tool ``update_user_memory(task)`` on one user's memories, as ``LLM.run_tools`` takes it.

    Its answers are JSON: ``{"ok": true, "result": ..., "added": [...], ...}``, or ``{"ok": false, "error": ...}`` when
    nothing was changed. What the manager's model or store could not do is raised.

    Args:
        manager: carries out the tasks by ``update_memory_task``; stays the caller's to close.
        user_id: whose memories. The tool takes no user, and reaches no other one.
        agent_id: recorded on what is added.
        team_id: recorded on what is added.

    Raises:
        ConfigurationError: ``manager`` is none.
        InvalidIdError: an id is not a usable string.
    """
    if not isinstance(cast("object", manager), MemoryManager):
        raise ConfigurationError(f"expected a MemoryManager, not a {type(manager).__name__}")
    user_id = clean_id(user_id, "user_id")
    agent_id = None if agent_id is None else clean_id(agent_id, "agent_id")
    team_id = None if team_id is None else clean_id(team_id, "team_id")

    async def run(arguments: UpdateUserMemory) -> str:
        try:
            result = await manager.update_memory_task(
                arguments.task, user_id=user_id, agent_id=agent_id, team_id=team_id
            )
        except InvalidInputError as error:
            return not_done(f"{error}. Nothing was changed. Call {TASK_TOOL} again with what is allowed.")
        return task_answer(result)

    return Tool(TASK_TOOL, _DESCRIPTION, UpdateUserMemory, run)


def task_answer(result: CaptureResult) -> str:
    """What a model is told of a task that was carried out."""
    skipped: dict[str, object] = {"skipped": [_skipped(s) for s in result.skipped]} if result.skipped else {}
    if not result.changes:
        why = "it asks for no change of what is remembered" if not result.skipped else "see what was skipped and why"
        return not_done(f"Nothing was changed: {why}.", **skipped)
    groups = (
        ("added", [_now(c.after) for c in _of(result.changes, "add")]),
        ("updated", [{**_now(c.after), "before": _text(c.before)} for c in _of(result.changes, "update")]),
        ("deleted", [_text(c.before) for c in _of(result.changes, "delete")]),
    )
    told = ", ".join(f"{len(entries)} {name}" for name, entries in groups if entries)
    return done(f"Done: {told}.", **{name: entries for name, entries in groups if entries}, **skipped)


def _of(changes: Sequence[Change], kind: str) -> list[Change]:
    return [change for change in changes if change.kind == kind]


def _now(memory: UserMemory | None) -> dict[str, object]:
    return shown(cast("UserMemory", memory), lambda m: alias_of(str(m.memory_id)), _ROOM)


def _text(memory: UserMemory | None) -> object:
    """What a memory said, which is not as it is any more."""
    entry = _now(memory)
    return entry.get("memory", entry.get("withheld"))


def _skipped(skipped: Skipped) -> dict[str, object]:
    text = skipped.memory
    more = {} if text is None or looks_like_instructions(text) else {"memory": text[:MAX_STATEMENT]}
    return {"operation": skipped.op, "why": skipped.reason, **more}
