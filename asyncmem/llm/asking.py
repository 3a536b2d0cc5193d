"""A plain completion, with or without tools: retries, refused parameters, refused tools. Pure policy."""

from collections.abc import Sequence
from typing import Any

from asyncmem.errors import ModelRefusedError, ModelRequestError, ModelUnavailableError, ToolsRefusedError

from .chat import ChatReply, ChatRequest, WireMessage
from .failures import Failure
from .flows import Context, Flow, Patience, Send, is_bounded_by_default, sent_parameters
from .schemas import texts
from .verdicts import Drop, Fatal, NoTools, Retry, TooLarge, judge


def ask(
    context: Context,
    messages: Sequence[WireMessage],
    max_tokens: int,
    *,
    tools: list[dict[str, Any]] | None = None,
    tool_choice: str | dict[str, Any] | None = None,
    stream: bool = False,
) -> Flow[ChatReply]:
    """One reply, wanted in pieces or whole.

    Raises:
        ToolsRefusedError: the model takes no tools; that is remembered.
        ModelError: the call failed.
    """
    patience, pause, empties, silent = Patience(context), 0.0, 0, False
    while True:
        streamed = stream and not silent
        request = context.request(list(messages), max_tokens, tools=tools, tool_choice=tool_choice, stream=streamed)
        outcome = yield Send(request, pause)
        context.usage += outcome.usage
        pause = 0.0
        if isinstance(outcome, ChatReply):
            if outcome.finish_reason:
                if request.stream:
                    context.learn("it streamed", streams=True)
                elif silent and not context.abilities.get(context.key).streams:
                    context.drop(["stream"])  # it answers whole whatever it is asked: no stream holds any of that
                return _checked(context, outcome)
            empties += 1
            silent = request.stream
            if empties > 1:
                raise ModelUnavailableError(
                    f"{context.name}: the provider answered without a choice, twice", model=context.name, retryable=True
                )
            continue
        pause = _handled(context, outcome, patience, request)


def _checked(context: Context, reply: ChatReply) -> ChatReply:
    if reply.refusal or reply.finish_reason == "content_filter":
        raise ModelRefusedError(f"{context.name}: the model refused the content", model=context.name)
    return reply


def _handled(
    context: Context,
    failure: Failure,
    patience: Patience,
    request: ChatRequest,
) -> float:
    """Seconds to wait before the request is sent again.

    Raises:
        ModelError: it is not to be sent again.
    """
    used, sent = context.settings.tools or context.abilities.get(context.key).tools, sent_parameters(request)
    verdict = judge(failure, "text", proven=True, sent=sent, tools=bool(request.tools), used=bool(used))
    told = texts(request.messages)
    match verdict:
        case Drop():
            context.drop(verdict.names)
            return 0.0
        case Retry() if (pause := patience.pause(failure)) is not None:
            return pause
        case NoTools():
            context.learn("it refused tools", tools=False)
            raise context.error(failure, told, ToolsRefusedError)
        case TooLarge() if is_bounded_by_default(request):
            context.drop((verdict.name,))
            return 0.0
        case TooLarge():
            raise context.error(failure, told, ModelRequestError, verdict.hint)
        case Retry() | Fatal():
            raise context.error(failure, told, verdict.kind)
        case _:
            raise context.error(failure, told, failure.cause)
