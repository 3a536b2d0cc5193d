"""The tool loop: with a model that takes tools, and with one that writes a plan instead."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from asyncmem.errors import ModelRequestError, ToolsRefusedError

from .asking import ask
from .chat import ChatReply, WireMessage
from .flows import Context, Flow
from .ladder import Climb
from .tools import AnyTool, Stopped, Toolbox, ToolResult, ToolRun, plan_calls, plan_prompt, plan_schema

R = TypeVar("R")


class Drive(Protocol):
    """Sends what a flow asks for until it returns."""

    def __call__(self, flow: Flow[R], /) -> Awaitable[R]:
        """The flow's result."""
        ...


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """One run of tools.

    Attributes:
        context: the model's.
        drive: sends requests.
        tools: what the model may do.
        box: carries them out.
        max_rounds: replies the model may give.
        max_tokens: tokens a reply may have.
        enough: whether the calls of a reply were all that is needed, so that the model is not asked again.
    """

    context: Context
    drive: Drive
    tools: Sequence[AnyTool]
    box: Toolbox
    max_rounds: int
    max_tokens: int
    enough: Callable[[Sequence[ToolResult]], bool] | None = None

    async def run(self, turns: list[WireMessage]) -> ToolRun:
        """Let the model work with tools, or, where it takes none, with a plan.

        Raises:
            ModelError: a call failed.
        """
        known = self._known()
        if known is False:
            return await self._plan(turns)
        try:
            return await self._use(turns)
        except ModelRequestError as error:
            if self.context.settings.tools or (self._known() and not isinstance(error, ToolsRefusedError)):
                raise
            refused = error
        return await self._instead(turns, refused)

    def _known(self) -> bool | None:
        pinned = self.context.settings.tools
        return pinned if pinned is not None else self.context.abilities.get(self.context.key).tools

    async def _instead(self, turns: list[WireMessage], refused: ModelRequestError) -> ToolRun:
        """A plan after tools were refused; a refusal that gave no reason is learned only if the plan works."""
        if isinstance(refused, ToolsRefusedError):
            return await self._plan(turns)
        planned: ToolRun | None = None
        with suppress(ModelRequestError):  # if that is refused too, it was not the tools: the first error says more
            planned = await self._plan(turns)
        if planned is None:
            raise refused
        self.context.learn("a plan worked where tools were refused", tools=False)
        return planned

    async def _use(self, turns: list[WireMessage]) -> ToolRun:
        specs = [tool.spec() for tool in self.tools]
        reply, rounds = ChatReply(), 0
        stopped: Stopped = "rounds"
        while rounds < self.max_rounds:
            rounds += 1
            reply = await self.drive(ask(self.context, turns, self.max_tokens, tools=specs))
            turns = [*turns, reply.turn()]
            if not reply.tool_calls:
                stopped = "answer"
                break
            self.context.learn("it called one", tools=True)
            for call in reply.tool_calls:
                turns.append({"role": "tool", "tool_call_id": call.id, "content": await self.box.answer(call)})
            if self.enough is not None and self.enough(self.box.results[-len(reply.tool_calls) :]):
                stopped = "answer"
                break
            if self.box.is_spent:
                stopped = "calls"
                break
        return ToolRun(reply.content, self.box.results, turns, self.context.usage, rounds, stopped)

    async def _plan(self, turns: list[WireMessage]) -> ToolRun:
        asked = [{"role": "system", "content": plan_prompt(self.tools)}, *turns]
        if turns[0].get("role") == "system":
            asked = [{**turns[0], "content": f"{turns[0]['content']}\n\n{plan_prompt(self.tools)}"}, *turns[1:]]
        climb = Climb(self.context, asked, plan_schema(self.tools), self.max_tokens)
        plan = await self.drive(climb.run())
        for call in plan_calls(plan.value, self.tools):
            await self.box.answer(call)
        answer: Any = plan.value.model_dump()["answer"]
        told: WireMessage = {"role": "assistant", "content": plan.value.model_dump_json(exclude_none=True)}
        spent: Stopped = "calls" if self.box.is_spent else "answer"
        return ToolRun(answer, self.box.results, [*turns, told], plan.usage, 1, spent, plan.tier)
