"""Replies in pieces: each step within the deadline, nothing foreign let through, everything closed at the end."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from .aside import heard
from .chat import ChatDelta, ChatReply, ChatRequest, StreamingModel
from .closing import closed
from .events import TextDelta
from .failures import Failure
from .faults import AnswerError, awaited, named
from .flows import Context, Flow
from .schemas import texts
from .sending import GRACE, Sender, to_failure

_ABANDONED = Failure("Abandoned", known="APIConnectionError", begun=True)
"""A reply that nobody waited for to its end: what it cost, nobody knows."""


async def speak(sender: Sender, context: Context, flow: Flow[ChatReply]) -> AsyncGenerator[TextDelta | ChatReply]:
    """Send what the flow asks for; the pieces of text as they come, and last the reply.

    A failure goes back to the flow, which may send again, only while nothing of that reply was given out.

    Raises:
        ModelError: the flow gave up, or a reply broke off after a piece of it was given out.
    """
    try:
        step = next(flow)
        while True:
            if step.after:
                await asyncio.sleep(step.after)
            told, outcome = False, cast("ChatReply | Failure", _ABANDONED)
            async with aclosing(_observed(sender, context, step.request)) as parts:
                async for part in parts:
                    if isinstance(part, TextDelta):
                        told = True
                        yield part
                    else:
                        outcome = part
            if told and isinstance(outcome, Failure):
                context.usage += outcome.usage
                raise context.error(outcome, texts(step.request.messages), outcome.cause)
            step = flow.send(outcome)
    except StopIteration as stop:
        reply: ChatReply = stop.value
    yield reply


async def _observed(
    sender: Sender, context: Context, request: ChatRequest
) -> AsyncGenerator[TextDelta | ChatReply | Failure]:
    """The pieces of one reply, and last the reply or the facts of its failure."""
    began = asyncio.get_running_loop().time()
    outcome: ChatReply | Failure = _ABANDONED
    said: list[str] = []
    try:
        async with aclosing(_steps(sender, context, request)) as steps:
            async for step in steps:
                if isinstance(step, Failure):
                    outcome = step
                    outcome = await heard(step, texts(request.messages))
                    continue
                if text := _news(step, said):
                    said.append(text)
                    yield TextDelta(text)
                outcome = step.reply or outcome
        if outcome is _ABANDONED:
            outcome = ChatReply("".join(said) or None, finish_reason="stop" if said else "")
        elif isinstance(outcome, ChatReply) and outcome.content is None and said:
            outcome = replace(outcome, content="".join(said))
    finally:
        sender.tell("chat", outcome, began)
    yield outcome


def _news(step: ChatDelta, said: list[str]) -> str:
    """What a piece adds; the whole reply adds what its pieces left out."""
    if step.reply is None or step.text:
        return step.text
    whole, before = step.reply.content or "", "".join(said)
    return whole.removeprefix(before) if whole.startswith(before) else ""


async def _steps(sender: Sender, context: Context, request: ChatRequest) -> AsyncGenerator[ChatDelta | Failure]:
    """The pieces of one reply as the model gives them, up to the whole or to the facts of a failure.

    A timeout bounds each step alone: around a ``yield`` it would cancel whoever reads. The request's own counts only
    the time that the model took.
    """
    loop = asyncio.get_running_loop()
    left, sent, begun = float("inf"), False, False
    async with aclosing(_pieces(sender, request)) as pieces:
        while True:
            began = loop.time()
            try:
                async with asyncio.timeout(min(left, context.left())):
                    piece = cast("object", await anext(pieces, None))
                if not isinstance(piece, ChatDelta | None):
                    raise AnswerError(f"it streamed a {named(piece)}: ChatDelta is wanted")  # noqa: TRY301
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  a model may raise anything
                yield replace(to_failure(error, sent=sent, own=sender.own(request)), begun=begun)
                return
            if piece is None:
                return
            if sent:
                left -= loop.time() - began
                begun = True
                yield piece
                if piece.reply is not None:
                    return
            else:
                left = GRACE + (request.timeout or left)
                sent = True


async def _pieces(sender: Sender, request: ChatRequest) -> AsyncGenerator[ChatDelta]:
    """First an empty piece, when the request's turn has come; then those of the model."""
    async with sender.passage() as start:
        await sender.load()
        yield ChatDelta()
        model = sender.model
        if request.stream and isinstance(model, StreamingModel):
            given: object = model.stream(request)
            found = await start.through(awaited(given)) if inspect.isawaitable(given) else given
            if not hasattr(found, "__aiter__"):
                raise AnswerError(f"it must be an async generator, which a {named(found)} is not")
            async with closed(cast("AsyncIterator[ChatDelta]", found)) as stream:
                pieces = aiter(stream)
                while (piece := await start.through(_next(pieces))) is not None:
                    yield piece
        else:
            reply = await start.through(awaited(model.complete(request)))
            if not isinstance(reply, ChatReply):
                raise AnswerError(f"it returned a {named(reply)}: a ChatReply is wanted")
            yield ChatDelta(reply=reply)


async def _next(pieces: AsyncIterator[ChatDelta]) -> ChatDelta | None:
    return await anext(pieces, None)
