"""Sending one model's requests: by the gate, within the deadline, with every failure turned into facts."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from .aside import heard
from .chat import ChatModel, ChatReply, ChatRequest, ScriptError, StreamingModel
from .closing import is_cancelled
from .embeddings import EmbedReply, EmbedRequest
from .failures import Failure
from .faults import AnswerError, awaited, named
from .flows import Context, Send
from .gates import Gates, Start
from .observing import CallReport, UsageObserver, tell
from .provider import CallFailed, CompletionModel
from .reranking import RankReply, RankRequest
from .schemas import texts

Q = TypeVar("Q", ChatRequest, EmbedRequest, RankRequest)
A = TypeVar("A", ChatReply, EmbedReply, RankReply)
R = TypeVar("R")
_CANCELLED = Failure("CancelledError", known="APIConnectionError")
"""A call that nobody waited for to its end: what it cost, nobody knows."""
GRACE = 0.25
"""Seconds that a model has beyond a request's timeout, which it may keep itself."""


@dataclass(frozen=True, slots=True)
class Sender:
    """What sends the requests of one model.

    Attributes:
        model: answers them.
        gates: how many at once.
        observers: told about every one.
    """

    model: ChatModel
    gates: Gates
    observers: Sequence[UsageObserver]

    async def drive(
        self,
        context: Context,
        flow: Generator[Send[Q], Any, R],
        call: Callable[[Q], Awaitable[A]],
        kind: str = "chat",
    ) -> R:
        """Send what the flow asks for until it returns."""
        try:
            step = next(flow)
            while True:
                if step.after:
                    await asyncio.sleep(step.after)
                step = flow.send(await self._observed(context, call, step.request, kind))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    def tell(self, kind: str, outcome: ChatReply | EmbedReply | RankReply | Failure, began: float) -> None:
        """Tell the observers what came of a request that was sent at that time of the loop's clock."""
        if not self.observers:
            return
        error = outcome.name if isinstance(outcome, Failure) else ""
        seconds = asyncio.get_running_loop().time() - began
        tell(self.observers, CallReport(self.model.name, kind, outcome.usage, seconds, error))

    def own(self, request: ChatRequest | EmbedRequest | RankRequest) -> str:
        """The code of the application's own that a request goes to; empty when it is none, or told by the failure."""
        if isinstance(self.model, CompletionModel):
            return ""
        streams = isinstance(request, ChatRequest) and request.stream and isinstance(self.model, StreamingModel)
        return "its stream()" if streams else "its complete()"

    def passage(self) -> AbstractAsyncContextManager[Start]:
        """A request's place among those under way, and its turn to begin."""
        return self.gates.here().passage(self.model.waits if isinstance(self.model, CompletionModel) else 1)

    async def load(self) -> None:
        """Import what answers: that takes seconds, which are not a request's."""
        if isinstance(self.model, CompletionModel):
            await self.model.load()

    async def _observed(
        self, context: Context, call: Callable[[Q], Awaitable[A]], request: Q, kind: str
    ) -> A | Failure:
        began = asyncio.get_running_loop().time()
        sent: list[bool] = []
        try:
            outcome = await self._send(context, call, request, sent)
        except asyncio.CancelledError:
            self.tell(kind, replace(_CANCELLED, sent=bool(sent)), began)
            raise
        try:
            if isinstance(outcome, Failure):
                told = texts(request.messages) if isinstance(request, ChatRequest) else request.texts
                outcome = await heard(outcome, told)
        finally:
            self.tell(kind, outcome, began)
        return outcome

    async def _send(
        self, context: Context, call: Callable[[Q], Awaitable[A]], request: Q, sent: list[bool]
    ) -> A | Failure:
        """The reply, or the facts of the failure: no foreign exception goes further than this.

        ``sent`` holds something once the request went out.
        """
        try:
            # the operation's deadline bounds also the wait in line; then the one request's; a model may keep it itself
            async with asyncio.timeout(context.left()) as bound, self.passage() as start:
                await self.load()
                grown = float("inf") if request.timeout is None else request.timeout + GRACE
                bound.reschedule(asyncio.get_running_loop().time() + min(grown, context.left()))
                sent.append(True)
                answer = await start.through(awaited(call(request)))
            if isinstance(answer, ChatReply | EmbedReply | RankReply):
                return cast("A", answer)
            wrong = AnswerError(f"it returned a {named(answer)}: a ChatReply is wanted")
            return Failure.of(wrong, self.own(request))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  a model of the user's own may raise anything
            return to_failure(error, sent=bool(sent), own=self.own(request))


def to_failure(error: BaseException, *, sent: bool, own: str = "") -> Failure:
    """The facts of what a request raised.

    Raises:
        ScriptError: a test double says that it was not to be called.
        CancelledError: somebody cancelled the running task.
    """
    if isinstance(error, ScriptError) or (isinstance(error, asyncio.CancelledError) and is_cancelled()):
        raise error
    if isinstance(error, CallFailed):
        return error.failure
    if isinstance(error, asyncio.CancelledError):
        return Failure.of(RuntimeError("the model's call was cancelled from within"))  # by nobody of ours
    failure = Failure.of(error, own)
    return failure if sent else replace(failure, sent=False)
