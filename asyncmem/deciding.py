"""Deciding by tool calls: each call is judged and staged as it comes, and answered with what will come of it."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

import anyio.to_thread
from pydantic import BaseModel, Field

from .guards import Judged, judge_plan
from .llm import Tool, ToolResult
from .operations import Clear, Operation
from .plan import Plan, PlannedOperation, Text, Texts
from .staging import Staged
from .types import Skipped, UserMemory
from .windows import Window

Words = Annotated[Text, Field(description="The user's own words that it rests on, copied.")]
Alias = Annotated[Text, Field(description="The memory's number.")]


class AddMemory(BaseModel):
    """Arguments of ``add_memory``."""

    memory: Text
    topics: Texts = []
    evidence: Words = ""


class UpdateMemory(BaseModel):
    """Arguments of ``update_memory``."""

    memory_id: Alias
    memory: Text
    topics: Texts = []
    evidence: Words = ""


class DeleteMemory(BaseModel):
    """Arguments of ``delete_memory``."""

    memory_id: Alias


class ClearMemory(BaseModel):
    """Arguments of ``clear_memory``: none."""


_TOOLS: dict[str, tuple[type[BaseModel], str]] = {
    "add": (AddMemory, "Keep a new memory."),
    "update": (UpdateMemory, "Give a memory a new text, which keeps every detail that still holds."),
    "delete": (DeleteMemory, "Remove a memory."),
    "clear": (ClearMemory, "Remove all memories, only when the user asks for exactly that."),
}


@dataclass(slots=True)
class ToolDecisions:
    """What a model decides on one window, call by call.

    Attributes:
        window: what is read.
        shown: the memories that the model was shown, in order.
        staged: where decisions go.
        enabled: names of the operations that are switched on.
        now: when messages without a time were said.
        evidence: ``"off"`` asks for none.
        accept: stages an operation; whether its memory is still there.
        skipped: what was decided and must not be applied.
    """

    window: Window
    shown: Sequence[UserMemory]
    staged: Staged
    enabled: Collection[str]
    now: datetime
    evidence: Literal["strict", "off"]
    accept: Callable[[Operation], bool]
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    _told: bool = False

    def tools(self) -> list[Tool[BaseModel]]:
        """One tool for each operation that is switched on."""
        return [
            Tool(f"{name}_memory", description, arguments, self._runner(name))
            for name, (arguments, description) in _TOOLS.items()
            if name in self.enabled
        ]

    def _runner(self, name: str) -> Callable[[BaseModel], Awaitable[str]]:
        async def run(arguments: BaseModel) -> str:
            return await self.decide(PlannedOperation(op=name, **arguments.model_dump()))

        return run

    async def decide(self, planned: PlannedOperation) -> str:
        """Judge and stage one call; what the model is told."""
        judged = await self._judge(planned)
        known = len(self.staged.memories)
        for operation in judged.operations:
            if not self.accept(operation):
                return "Not done: an operation before it removed the memory."
            cleared = f": all {known} memories that you know of are removed"
            return f"Done{cleared if isinstance(operation, Clear) else ''}."
        self.skipped += [s for s in judged.skipped if s not in self.skipped]
        return f"Not done: {judged.skipped[0].reason}."

    async def _judge(self, *planned: PlannedOperation) -> Judged:
        current = {m.memory_id: m for m in self.staged.memories}
        judge = partial(
            judge_plan,
            Plan(operations=list(planned)),
            shown=[current.get(m.memory_id, m) for m in self.shown],
            existing=self.staged.memories,
            messages=self.window.evident,
            enabled=self.enabled,
            now=self.now,
            indexes=[turn.index for turn in self.window.evident],
            evidence=self.evidence,
        )
        return await anyio.to_thread.run_sync(judge)  # hundreds of memories take longer than a loop may wait

    async def finish(self) -> None:
        """Report what the user wished and no call was made for."""
        self.skipped += [s for s in (await self._judge()).skipped if s not in self.skipped]

    def is_enough(self, results: Sequence[ToolResult]) -> bool:
        """Whether the model need not be asked again: it made its calls side by side, and there is nothing to mend.

        One that makes its calls one by one is asked until it makes none. What can't be done is told to it once.
        """
        failed = any(not r.answer.startswith("Done") for r in results)
        told, self._told = self._told, self._told or failed
        return told if failed else len(results) > 1
