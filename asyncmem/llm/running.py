"""The tool loop: with a model that takes tools, and with one that writes a plan instead."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from pydantic import BaseModel

from asyncmem.errors import ModelCodeError, ModelRequestError, ToolsRefusedError

from .asking import ask
from .chat import ChatReply, WireMessage
from .events import RunFinished, StreamEvent, TextDelta, ToolDone, ToolStarted
from .flows import Context, Flow
from .halves import mended
from .ladder import Climb, Structured
from .sending import Sender
from .streaming import speak
from .tools import AnyTool, Stopped, Toolbox, ToolResult, ToolRun, plan_calls, plan_prompt, plan_schema

R = TypeVar("R")


class Talk(Protocol):
    """How a flow's requests are sent."""

    @property
    def streams(self) -> bool:
        """Replies are wanted in pieces."""
        ...

    def drive(self, flow: Flow[R], /) -> Awaitable[R]:
        """Send what the flow asks for until it returns."""
        ...

    def speak(self, flow: Flow[ChatReply], /) -> AsyncGenerator[TextDelta | ChatReply]:
        """The same for a reply in words: its pieces, if it comes in some, and last the reply."""
        ...


@dataclass(frozen=True, slots=True)
class Whole:
    """Replies that come whole.

    Attributes:
        sender: sends requests.
        context: the operation's.
    """

    sender: Sender
    context: Context
    streams: bool = False

    async def drive(self, flow: Flow[R]) -> R:
        """Send what the flow asks for until it returns."""
        return await self.sender.drive(self.context, flow, self.sender.model.complete)

    async def speak(self, flow: Flow[ChatReply]) -> AsyncGenerator[TextDelta | ChatReply]:
        """The reply."""
        yield await self.drive(flow)


@dataclass(frozen=True, slots=True)
class Pieces(Whole):
    """Replies that come in pieces."""

    streams: bool = True

    def speak(self, flow: Flow[ChatReply]) -> AsyncGenerator[TextDelta | ChatReply]:
        """The pieces, and last the reply."""
        return speak(self.sender, self.context, flow)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a run may go.

    Attributes:
        max_rounds: replies the model may give.
        max_calls: calls that are carried out.
        max_tokens: tokens a reply may have.
        enough: whether the calls of a reply were all that is needed, so that the model is not asked again.
    """

    max_rounds: int
    max_calls: int
    max_tokens: int
    enough: Callable[[Sequence[ToolResult]], bool] | None = None


class ToolLoop:
    """One run of tools.

    Args:
        context: the model's.
        talk: sends requests.
        tools: what the model may do; none for words alone.
        bounds: how far it may go.
    """

    def __init__(self, context: Context, talk: Talk, tools: Sequence[AnyTool], bounds: Bounds) -> None:
        self._context = context
        self._talk = talk
        self._tools = tools
        self._bounds = bounds
        self._box = Toolbox(tools, bounds.max_calls)
        self._spoken = False

    async def run(self, turns: list[WireMessage]) -> ToolRun:
        """Let the model work with tools, or, where it takes none, with a plan.

        Raises:
            ModelError: a call failed.
        """
        async with aclosing(self.events(turns)) as events:
            *_, last = [event async for event in events]
        return cast(RunFinished, last).run

    async def events(self, turns: list[WireMessage]) -> AsyncGenerator[StreamEvent]:
        """The same as it happens.

        Raises:
            ModelError: a call failed.
        """
        refused: ModelRequestError | None = None
        if not self._tools or self._known() is not False:
            async with aclosing(self._use(turns)) as events:
                try:
                    async for event in events:
                        yield event
                    return
                except ModelRequestError as error:
                    if not self._may_plan(error):
                        raise
                    refused = error
        plan = await self._plan(turns, refused)
        async with aclosing(self._carry_out(plan, turns)) as events:
            async for event in events:
                yield event

    def _may_plan(self, refused: ModelRequestError) -> bool:
        """Whether it may have been the tools that were refused, and nothing was given out or done since.

        A plan knows nothing of what was done: it would do it again in other words.
        """
        given_out = self._spoken or self._box.results
        if not self._tools or given_out or self._context.settings.tools or isinstance(refused, ModelCodeError):
            return False
        return not self._known() or isinstance(refused, ToolsRefusedError)

    def _known(self) -> bool | None:
        pinned = self._context.settings.tools
        return pinned if pinned is not None else self._context.abilities.get(self._context.key).tools

    async def _use(self, turns: list[WireMessage]) -> AsyncGenerator[StreamEvent]:
        specs = [tool.spec() for tool in self._tools] or None
        reply, rounds = ChatReply(), 0
        stopped: Stopped = "rounds"
        while rounds < self._bounds.max_rounds:
            rounds += 1
            flow = ask(self._context, turns, self._bounds.max_tokens, tools=specs, stream=self._talk.streams)
            async with aclosing(self._talk.speak(flow)) as parts:
                async for part in parts:
                    if isinstance(part, ChatReply):
                        reply = part
                    else:
                        self._spoken = True
                        yield part
            turns = [*turns, reply.turn()]
            if not reply.tool_calls:
                stopped = "answer"
                break
            self._context.learn("it called one", tools=True)
            for call in reply.tool_calls:
                yield ToolStarted(call)
                turns.append({"role": "tool", "tool_call_id": mended(call.id), "content": await self._box.answer(call)})
                yield ToolDone(self._box.results[-1])
            if found := self._has_ended(len(reply.tool_calls)):
                stopped = found
                break
        yield RunFinished(ToolRun(reply.content, self._box.results, turns, self._context.usage, rounds, stopped))

    def _has_ended(self, calls: int) -> Stopped | None:
        """Why the run ends after these last calls, if it does."""
        if self._bounds.enough is not None and self._bounds.enough(self._box.results[-calls:]):
            return "answer"
        return "calls" if self._box.is_spent else None

    async def _plan(self, turns: list[WireMessage], refused: ModelRequestError | None) -> Structured[BaseModel]:
        """A plan of calls; after a refusal that gave no reason, that it works is what shows that tools were refused."""
        asked = [{"role": "system", "content": plan_prompt(self._tools)}, *turns]
        if turns[0].get("role") == "system" and isinstance(turns[0].get("content"), str):
            asked = [{**turns[0], "content": f"{turns[0]['content']}\n\n{plan_prompt(self._tools)}"}, *turns[1:]]
        climb = Climb(self._context, asked, plan_schema(self._tools), self._bounds.max_tokens)
        if refused is None or isinstance(refused, ToolsRefusedError):
            return await self._talk.drive(climb.run())
        plan: Structured[BaseModel] | None = None
        with suppress(ModelRequestError):  # if that is refused too, it was not the tools: the first error says more
            plan = await self._talk.drive(climb.run())
        if plan is None:
            raise refused
        self._context.learn("a plan worked where tools were refused", tools=False)
        return plan

    async def _carry_out(self, plan: Structured[BaseModel], turns: list[WireMessage]) -> AsyncGenerator[StreamEvent]:
        for call in plan_calls(plan.value, self._tools):
            yield ToolStarted(call)
            await self._box.answer(call)
            yield ToolDone(self._box.results[-1])
        answer: str | None = plan.value.model_dump()["answer"]
        if answer:
            yield TextDelta(answer)
        told: WireMessage = {
            "role": "assistant",
            "content": plan.value.model_dump_json(exclude_none=True, by_alias=True),
        }
        spent: Stopped = "calls" if self._box.is_spent else "answer"
        yield RunFinished(ToolRun(answer, self._box.results, [*turns, told], plan.usage, 1, spent, plan.tier))
