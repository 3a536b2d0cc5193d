"""The model's part of a run: a whole answer, or its pieces as they come."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from ..llm import LLM, Tool, ToolRun
from ..llm.chat import WireMessage
from ..llm.events import RunFinished, StreamEvent, TextDelta, ToolDone

_RESULTS = "What came of these actions, in order, as data:"
_GO_ON = "Answer the user now, by these results. Claim nothing that they don't say."


@dataclass(frozen=True, slots=True)
class Answering:
    """How an agent's model is let work.

    Attributes:
        llm: the model.
        max_rounds: replies that it may give.
        max_calls: tool calls that are carried out.
    """

    llm: LLM
    max_rounds: int
    max_calls: int

    async def whole(self, prompt: list[WireMessage], tools: Sequence[Tool[Any]]) -> ToolRun:
        """The answer, once it is there.

        Raises:
            ModelError: the model could not answer.
        """
        if not tools:
            reply = await self.llm.complete(prompt)
            return ToolRun(reply.content, [], [*prompt, reply.turn()], reply.usage)
        run = await self.llm.run_tools(prompt, tools, max_rounds=self.max_rounds, max_calls=self.max_calls)
        if not _is_planned(run):
            return run
        reply = await self.llm.complete(asked := with_results(run))
        return _joined(run, ToolRun(reply.content, [], [*asked, reply.turn()], reply.usage))

    async def pieces(self, prompt: list[WireMessage], tools: Sequence[Tool[Any]]) -> AsyncGenerator[StreamEvent, None]:
        """The same as it happens, and last the run.

        Raises:
            ModelError: the model could not answer.
        """
        run, acted = ToolRun(None, [], prompt), False
        events = self.llm.stream_tools(prompt, tools, max_rounds=self.max_rounds, max_calls=self.max_calls)
        async with aclosing(events):
            async for event in events:
                acted = acted or isinstance(event, ToolDone)
                if isinstance(event, RunFinished):
                    run = event.run
                elif not (acted and isinstance(event, TextDelta) and self.llm.takes_tools is False):
                    yield event  # a plan's own answer was made before anything was done
        if _is_planned(run):
            events = self.llm.stream_tools(with_results(run))
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, RunFinished):
                        run = _joined(run, event.run)
                    else:
                        yield event
        yield RunFinished(run)


def with_results(run: ToolRun) -> list[WireMessage]:
    """What a model that takes no tools is asked after its plan was carried out: it has not seen what came of it."""
    lines = [f"{place}. {result.name}: {result.answer}" for place, result in enumerate(run.results, 1)]
    told = "\n".join([_RESULTS, *lines, "", _GO_ON])
    return [*run.messages, {"role": "user", "content": told}]


def _is_planned(run: ToolRun) -> bool:
    return run.tier is not None and bool(run.results)


def _joined(plan: ToolRun, answer: ToolRun) -> ToolRun:
    return replace(
        plan,
        answer=answer.answer,
        messages=answer.messages,
        usage=plan.usage + answer.usage,
        rounds=plan.rounds + answer.rounds,
    )
