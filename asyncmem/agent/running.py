"""One run of an agent: its prompt, the model's work with tools, and what it leaves behind."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio.to_thread

from ..cleaning import sendable
from ..errors import AsyncMemError, ModelError, ModelTimeoutError, ModelUnavailableError, StoreError
from ..llm import LLM, Tool, ToolRun
from ..llm.chat import WireMessage
from ..prompts import estimate_tokens
from ..session_values import MAX_SAID, Said
from ..usage import Usage
from .guarding import guarded
from .history import SUMMARY_TOKENS, Past, folded, shortened, shown, summary_prompt, system_text, to_fold
from .options import Options, check_names
from .recalling import Recalled
from .remembering import Left, Place
from .results import RunResult, ToolFailure
from .sources import Source

_log = logging.getLogger(__name__)
SUMMARY_SECONDS = 30.0
"""What a summary may take: the answer waits for it."""
INLINE = 8_192
"""Characters of a text that is read in the event loop; a longer one is read in a worker thread."""


@dataclass(slots=True)
class Run:
    """One message on its way to its answer.

    Attributes:
        llm: the agent's model.
        options: how the agent answers.
        source: its memory, if any.
        message: what the user said.
        user_id: whose memories; ``None`` without memory, if the caller named nobody.
        place: where the run belongs; ``None`` if nothing is to be stored or captured.
        lost: why there is no place, where there should be one.
        clock: gives the time.
    """

    llm: LLM
    options: Options
    source: Source | None
    message: str = field(repr=False)
    user_id: str | None
    place: Place | None
    clock: Callable[[], datetime]
    lost: AsyncMemError | None = None
    said_at: datetime = field(init=False)
    past: Past = field(default_factory=Past)
    recalled: Recalled = field(default_factory=Recalled)
    summary_error: AsyncMemError | None = None
    usage: Usage = field(default_factory=Usage)
    failures: list[ToolFailure] = field(default_factory=list[ToolFailure])

    def __post_init__(self) -> None:
        self.said_at = self.clock()

    async def prepare(self) -> list[WireMessage]:
        """The prompt.

        Raises:
            StoreError: the session can't be read, or, where the agent is to raise then, the memories.
            ModelError: where the agent is to raise then, the memories can't be searched.
        """
        if self.place is not None:
            self.past = await self.place.read(self.options.history_tokens)
            await self._fold(self.place)
        if self.source is not None and self.user_id is not None:
            self.recalled = await self._recall(self.source, self.user_id)
        system = system_text(self.options.instructions, self.recalled.text, self.past.summary)
        prompt: list[WireMessage] = [{"role": "system", "content": system}] if system else []
        prompt += shown(self.past, self.options.history_tokens)
        return [*prompt, {"role": "user", "content": self.message}]

    def tools(self) -> list[Tool[Any]]:
        """What the model may do in this run."""
        mine = self.source.tools(self.user_id) if self.source is not None and self.user_id is not None else []
        tools = [*self.options.tools, *mine]
        check_names(tools)
        return guarded(tools, self.failures)

    async def finish(self, run: ToolRun) -> RunResult:
        """What the run comes to, once its exchange is stored and its capture scheduled."""
        left = await self._leave(run.answer or "")
        return RunResult(
            content=run.answer or "",
            user_id=self.user_id,
            session_id=None if self.place is None else self.place.session_id,
            context=self.recalled.text,
            tool_results=run.results,
            tool_failures=self.failures,
            messages=run.messages,
            usage=self.usage + run.usage,
            rounds=run.rounds,
            stopped=run.stopped,
            captures=left.captures,
            context_error=self.recalled.error,
            summary_error=self.summary_error,
            session_error=left.session_error,
            capture_error=left.capture_error,
        )

    async def _recall(self, source: Source, user_id: str) -> Recalled:
        try:
            found = await source.recall(user_id, self.message)
        except (StoreError, ModelError) as error:
            found = Recalled(error=error)
        if found.error is not None:
            if self.options.on_context_failure == "raise":
                raise found.error
            _log.warning("memories could not be read for an answer: %s", type(found.error).__name__)
        return found

    async def _fold(self, place: Place) -> None:
        """Summarise the older part of a session that has become long, unless somebody else does."""
        until = to_fold(self.past, self.options.history_tokens)
        if until is None:
            return
        prompt = summary_prompt(self.past, until, self.options.history_tokens)
        try:
            if not await place.sessions.fold(place.user_id, until):
                return
            async with asyncio.timeout(SUMMARY_SECONDS):
                reply = await self.llm.complete(prompt, max_tokens=SUMMARY_TOKENS)
            self.usage += reply.usage
            if not (summary := shortened(reply.content or "")):
                raise ModelUnavailableError(f"{self.llm.name} gave no summary of the session", model=self.llm.name)
            await place.sessions.summarize(place.user_id, until, summary)
            self.past = folded(self.past, until, summary)
        except TimeoutError:
            said = f"{self.llm.name} took longer than {SUMMARY_SECONDS:.0f} s for a summary of the session"
            self.summary_error = ModelTimeoutError(said, model=self.llm.name, retryable=True)
        except ModelError as error:
            self.usage += error.usage
            self.summary_error = error
        except StoreError as error:
            self.summary_error = error

    async def _leave(self, answer: str) -> Left:
        if self.place is None or self.source is None:
            return Left(capture_error=self.lost)
        kept = sendable(answer[:MAX_SAID])
        said = Said(
            message=self.message,
            said_at=self.said_at,
            answer=kept,
            answered_at=max(self.clock(), self.said_at),
            tokens=await _tokens(self.message) + await _tokens(kept),
            capture=self.source.captures,
            terms=self.source.terms if self.source.captures else None,
        )
        left = await self.place.leave(said, self.past.last, self.source)
        for error in {left.session_error, left.capture_error} - {None}:
            _log.warning("an answer could not be stored or captured: %s", type(error).__name__)
        return left


async def _tokens(text: str) -> int:
    if len(text) <= INLINE:
        return estimate_tokens(text)
    return await anyio.to_thread.run_sync(estimate_tokens, text)
