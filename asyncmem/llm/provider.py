"""litellm, a ``litellm.Router`` or a completion function, behind the ``ChatModel`` protocol."""

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from copy import copy
from functools import partial
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from asyncmem.errors import ConfigurationError
from asyncmem.settings import LLMSettings

from .assembling import Assembly, to_usage
from .chat import ChatDelta, ChatModel, ChatReply, ChatRequest, ScriptError
from .closing import closed
from .embeddings import EmbedReply, EmbedRequest
from .failures import Failure
from .faults import called, check_answer, check_chunk
from .loading import load_litellm
from .replies import to_reply, to_vectors
from .reranking import RankReply, RankRequest, to_ranking
from .verdicts import PARAMETERS

T = TypeVar("T")
Completion = Callable[..., Awaitable[Any]]
"""A function that is called like ``litellm.acompletion`` and answers like it."""


@runtime_checkable
class Router(Protocol):
    """What is used of a ``litellm.Router``."""

    def get_model_names(self) -> list[str]:
        """The names it routes."""
        ...

    async def acompletion(self, model: str, messages: list[Any], **arguments: Any) -> Any:
        """Complete a conversation."""
        ...


class CallFailed(Exception):  # noqa: N818  a signal inside this room; it never leaves it
    """A call through litellm failed; the foreign exception stays behind, only its facts are kept."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.name)
        self.failure = failure


class CompletionModel:
    """Anything that is called like ``litellm.acompletion`` and answers like it."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        completion: Completion | None = None,
        embedding: Completion | None = None,
        extra: Mapping[str, Any] | None = None,
        reranking: Completion | None = None,
        *,
        own: str = "",
    ) -> None:
        self.name = name
        self._options = dict(options)
        self._completion = completion
        self._embedding = embedding
        self._reranking = reranking
        self._own = own
        # of the settings' further arguments, those that are no parameters of chat: headers, versions, credentials
        self._extra = {key: value for key, value in (extra or {}).items() if key not in (*PARAMETERS, "model")}

    @property
    def embeds(self) -> bool:
        """It has an embedding function, or litellm's."""
        return self._embedding is not None or self._completion is None

    @property
    def ranks(self) -> bool:
        """It has a reranking function, or litellm's."""
        return self._reranking is not None or self._completion is None

    @property
    def waits(self) -> int:
        """How often a call waits until it is sent: litellm mostly prepares it in a worker thread before."""
        return 1 if self._own else 2

    async def load(self) -> None:
        """Import litellm if it is what completes: that takes seconds, which are not a request's."""
        if self._completion is None:
            await load_litellm()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request.

        Raises:
            CallFailed: whatever went wrong, as facts.
        """

        async def call() -> ChatReply:
            return self._read(await self._answer(self._arguments(request)))

        return await _facts_only(call, self._own)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta]:
        """Answer one request in pieces; what can't stream gives one.

        Raises:
            CallFailed: whatever went wrong, as facts.
        """

        async def call() -> object:
            response = await self._answer({**self._arguments(request), "stream": True})
            return cast("object", response) if isinstance(response, AsyncIterable) else self._read(response)

        response = await _facts_only(call, self._own)
        if isinstance(response, ChatReply):
            yield ChatDelta(reply=response)
            return
        assembly = Assembly()
        async with closed(cast("AsyncIterable[Any]", response)) as chunks:
            pieces = aiter(chunks)

            async def step() -> str | None:
                chunk = await anext(pieces, None)
                if self._own and chunk is not None:
                    check_chunk(chunk)
                return None if chunk is None else assembly.add(chunk)

            while (text := await _facts_only(step, self._own)) is not None:
                yield ChatDelta(text)
            finished = _is_finished(response)
            if not finished and not assembly.is_empty:
                raise CallFailed(_ENDED)
            reply = assembly.reply(finished=finished)
        yield ChatDelta(reply=reply)

    async def embed(self, request: EmbedRequest) -> EmbedReply:
        """One vector a text.

        Raises:
            CallFailed: whatever went wrong, as facts.
        """

        async def call() -> EmbedReply:
            embedding = self._embedding or (await load_litellm()).aembedding
            arguments = {**self._options, "input": request.texts, "timeout": request.timeout}
            arguments.pop("enable_json_schema_validation", None)
            return to_vectors(await embedding(**arguments, **self._extra))

        return await _facts_only(call)

    async def rerank(self, request: RankRequest) -> RankReply:
        """The order of some texts.

        Raises:
            CallFailed: whatever went wrong, as facts.
        """

        async def call() -> RankReply:
            reranking = self._reranking or (await load_litellm()).arerank
            arguments = {**self._options, "query": request.query, "documents": request.documents}
            arguments |= {"return_documents": False, "timeout": request.timeout, **self._extra}
            arguments.pop("enable_json_schema_validation", None)
            response = await reranking(**arguments)
            return to_ranking(response, to_usage(response))

        return await _facts_only(call)

    async def _answer(self, arguments: Mapping[str, Any]) -> object:
        if self._completion is None:
            return cast("object", await (await load_litellm()).acompletion(**arguments))
        return await called(self._completion, arguments)

    def _read(self, response: object) -> ChatReply:
        if self._own and not isinstance(response, ChatReply):
            check_answer(response)
        return to_reply(response)

    def _arguments(self, request: ChatRequest) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            "messages": [dict(message) for message in request.messages],
            "response_format": request.response_format,
            "tools": request.tools,
            "tool_choice": request.tool_choice,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            "timeout": request.timeout,
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        # copies: litellm writes into metadata
        extra = {name: copy(value) for name, value in request.extra.items()}
        return {**self._options, **given, **extra}


_ENDED = Failure("StreamEnded", known="APIConnectionError", text="the stream ended before the reply did")


def _is_finished(stream: object) -> bool:
    """Whether the provider said why its reply ended.

    litellm makes up a reason for a stream that ended without one: older versions for all that were cut, too.

    Source: ``litellm_core_utils/streaming_handler.py``, ``finish_reason_handler``.
    """
    names = ("received_finish_reason", "intermittent_finish_reason")
    reasons: list[object] = [getattr(stream, name) for name in names if hasattr(stream, name)]
    return not reasons or any(reasons)


async def _facts_only(call: Callable[[], Awaitable[T]], own: str = "") -> T:
    """What the call gives; its failure as facts alone.

    Raises:
        CallFailed: whatever went wrong.
    """
    try:
        return await call()
    except ScriptError:
        raise  # a test double says that it was not to be called
    except Exception as error:  # noqa: BLE001  litellm raises bare Exception, IndexError, ModuleNotFoundError …
        failure = Failure.of(error, own)
    # raised here, outside of the except block: chained, the foreign error would carry prompt, headers and key
    raise CallFailed(failure)


def litellm_model(name: str, settings: LLMSettings) -> CompletionModel:
    """The model of that name, called by litellm. Nothing is imported before its first request."""
    options: dict[str, Any] = {
        "model": name,
        # retries are ours: litellm's need another package, and repeat a 401 with it; the openai SDK's come on top
        "num_retries": 0,
        "max_retries": 0,
        # litellm's check throws the answer away before it can be repaired; a global setting must not bring it back
        "enable_json_schema_validation": False,
    }
    if settings.api_base is not None:
        options["api_base"] = settings.api_base
    if settings.api_key is not None:
        options["api_key"] = settings.api_key.get_secret_value()
    return CompletionModel(name, options, extra=settings.extra)


def to_model(model: object, settings: LLMSettings) -> ChatModel:
    """Whatever was passed as ``model=``, as a ``ChatModel``.

    Raises:
        ConfigurationError: it is none of the four.
    """
    if isinstance(model, type):
        raise ConfigurationError(f"model is the class {model.__name__}: pass an instance of it, {model.__name__}(...)")
    if isinstance(model, str):
        if not model.strip():
            raise ConfigurationError("model is blank: name one, such as 'openai/gpt-4o-mini'")
        return litellm_model(model.strip(), settings)
    if isinstance(model, ChatModel):
        return model
    if isinstance(model, Router):
        name = str(settings.extra.get("model") or next(iter(_names(model)), ""))
        embedding = getattr(model, "aembedding", None)
        reranking = getattr(model, "arerank", None)
        return CompletionModel(name, {"model": name}, model.acompletion, embedding, settings.extra, reranking)
    if callable(model):
        bound: Mapping[str, Any] = getattr(model, "keywords", {})
        name = str(settings.extra.get("model") or bound.get("model") or getattr(model, "__name__", "completion"))
        own = "" if _is_litellms(model) else "the completion function"
        return CompletionModel(name, {}, cast(Completion, model), own=own)
    raise ConfigurationError(
        f"model must be a litellm model string, a ChatModel, a litellm.Router or a completion function,"
        f" not {type(model).__name__}"
    )


def _is_litellms(function: object) -> bool:
    """Whether litellm's own function is what is called: what it raises is not the application's fault."""
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    return str(getattr(function, "__module__", "")).partition(".")[0] == "litellm"


def _names(router: Router) -> list[str]:
    """The model groups of a router; newer versions of litellm warn about the older way to ask for them."""
    registry: Callable[[], Any] | None = getattr(router, "registry", None)
    return list(router.get_model_names() if registry is None else registry().names())
