"""``LLM``: one model with its settings; the only place of the room that waits for it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from asyncmem.errors import ConfigurationError, InvalidInputError, ModelError
from asyncmem.settings import LLMSettings

from .abilities import SHARED, Abilities
from .asking import ask
from .chat import ChatModel, ChatReply, WireMessage
from .checking import NESTED, check_kind, check_observers, check_positive, clean_ranking, clean_texts, clean_turns
from .counting import TokenCount, count_tokens
from .embeddings import EmbedBatch, Embedder, Embeddings
from .events import StreamEvent
from .flows import Context
from .gates import Gates
from .guarded import GuardedEmbedder
from .ladder import Climb, Structured
from .loading import load_numpy
from .observing import UsageObserver
from .provider import Completion, CompletionModel, Router, to_model
from .reranking import RankReply, rank
from .running import Bounds, Pieces, ToolLoop, Whole
from .sending import Sender
from .shortening import shorten
from .tools import AnyTool, ToolResult, ToolRun, check_tools

T = TypeVar("T", bound=BaseModel)


class LLM:
    """A model that gives validated values or precise errors, whatever its provider can do.

    Making one imports nothing and does no I/O; litellm is loaded by the first call. It may be used from several
    event loops.

    Args:
        model: a litellm model string, a ``litellm.Router``, a completion function (called and answering like
            ``litellm.acompletion``), or anything with the ``ChatModel`` protocol. Never take it from a message.
        settings: how it is called.
        abilities: where to keep what is learned about it. By default models named by a string share one store in
            this process; every other model has its own.
        observers: told about every call.

    Raises:
        ConfigurationError: ``model`` is none of these, or another argument is not what it must be.
    """

    def __init__(
        self,
        model: "str | ChatModel | Router | Completion",
        settings: LLMSettings = LLMSettings(),  # noqa: B008  frozen
        *,
        abilities: Abilities | None = None,
        observers: Sequence[UsageObserver] = (),
    ) -> None:
        if isinstance(model, LLM):
            raise ConfigurationError(NESTED)
        check_kind("settings", settings, LLMSettings)
        check_kind("abilities", abilities, Abilities, optional=True)
        check_observers(observers)
        self._model = to_model(model, settings)
        self._given = model
        self._named = isinstance(model, str)
        self.settings = settings
        self.abilities: Abilities = abilities or (SHARED if isinstance(model, str) else Abilities())
        self._sender = Sender(self._model, Gates(settings.concurrency), tuple(observers))

    @property
    def name(self) -> str:
        """What errors and logs call the model."""
        return self._model.name

    @property
    def takes_tools(self) -> bool | None:
        """Whether the model takes tools: as set, else as learned; ``None`` when nobody knows yet."""
        return self.settings.tools if self.settings.tools is not None else self.abilities.get(self._key).tools

    @property
    def _key(self) -> tuple[str, str]:
        asked = self.settings.extra.get("dimensions")  # one model gives vectors of several lengths, if asked to
        return self.name if asked is None else f"{self.name} dimensions={asked}", self.settings.api_base or ""

    def __repr__(self) -> str:
        return f"LLM({self.name!r})"

    async def structured(
        self, messages: Sequence[Mapping[str, Any]], schema: type[T], *, max_tokens: int | None = None
    ) -> Structured[T]:
        """A validated instance of ``schema``, from whatever the model can do.

        The schema is put into the prompt on every step of the ladder: the messages need not mention it.

        Args:
            messages: the conversation in OpenAI's shape; not changed.
            schema: a pydantic model.
            max_tokens: tokens the reply may have; the settings' by default. A reply that is cut is asked for once
                more with four times that.

        Raises:
            ModelError: the call failed; each cause has a class of its own.
            StructuredOutputError: no reply could be read.
            InvalidInputError: there are no messages, ``schema`` is nothing that a model can be asked for, or
                ``max_tokens`` is no positive number.
            ConfigurationError: ``LLMSettings(tier=...)`` pins a step that can't express the schema.
        """
        check_positive(max_tokens=max_tokens)
        turns = clean_turns(messages)
        async with self._operation() as context:
            climb = Climb(context, turns, schema, max_tokens or self.settings.max_tokens)
            return await self._sender.drive(context, climb.run(), self._model.complete)

    async def complete(self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int | None = None) -> ChatReply:
        """A reply in the model's own words, its ``usage`` that of all calls it took.

        Args:
            messages: the conversation in OpenAI's shape; not changed.
            max_tokens: tokens the reply may have; the settings' by default.

        Raises:
            ModelError: the call failed.
            InvalidInputError: there are no messages, or ``max_tokens`` is no positive number.
        """
        check_positive(max_tokens=max_tokens)
        turns = clean_turns(messages)
        async with self._operation() as context:
            flow = ask(context, turns, max_tokens or self.settings.max_tokens)
            reply = await self._sender.drive(context, flow, self._model.complete)
            return replace(reply, usage=context.usage)

    async def run_tools(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[AnyTool],
        *,
        max_rounds: int = 4,
        max_calls: int = 32,
        max_tokens: int | None = None,
        enough: Callable[[Sequence[ToolResult]], bool] | None = None,
    ) -> ToolRun:
        """Let the model use tools until it answers.

        Every call is answered, parallel ones each on its own; one that makes no sense is answered with what is
        wrong; an identical one is carried out once. A model that takes no tools is asked for a plan of calls
        instead, which is carried out at once; that it takes none is remembered.

        Args:
            messages: the conversation in OpenAI's shape; not changed.
            tools: what it may do.
            max_rounds: replies it may give.
            max_calls: calls that are carried out.
            max_tokens: tokens a reply may have; the settings' by default.
            enough: told what came of each reply's calls; ``True`` ends the run without another call of the model.

        Raises:
            ModelError: a call failed. What the tools did before stays done. What a tool raises comes out as it is.
            InvalidInputError: there are no messages, no tools or two of one name, or a bound is no positive number.
        """
        if not tools:
            raise InvalidInputError("tools is empty: use complete() for a model without tools")
        check_positive(max_rounds=max_rounds, max_calls=max_calls, max_tokens=max_tokens)
        check_tools(tools)
        bounds = Bounds(max_rounds, max_calls, max_tokens or self.settings.max_tokens, enough)
        turns = clean_turns(messages)
        async with self._operation() as context:
            return await ToolLoop(context, Whole(self._sender, context), tools, bounds).run(turns)

    def stream_tools(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[AnyTool] = (),
        *,
        max_rounds: int = 4,
        max_calls: int = 32,
        max_tokens: int | None = None,
    ) -> AsyncGenerator[StreamEvent]:
        """The same as it happens: the model's words as they come, its calls of tools, and last the whole run.

        A request is sent again only while nothing of its reply was given out. A plan, of a model that takes no tools,
        has its answer in one piece. Leaving the generator early closes the provider's response:
        ``async with contextlib.aclosing(llm.stream_tools(...)) as events`` does so at once.

        Args:
            messages: the conversation in OpenAI's shape; not changed.
            tools: what the model may do; none for words alone.
            max_rounds: replies it may give.
            max_calls: calls that are carried out.
            max_tokens: tokens a reply may have; the settings' by default.

        Raises:
            ModelError: when it is iterated: a call failed, or a reply broke off.
            InvalidInputError: there are no messages, two tools of one name, or a bound is no positive number.
        """
        check_positive(max_rounds=max_rounds, max_calls=max_calls, max_tokens=max_tokens)
        check_tools(tools)
        bounds = Bounds(max_rounds, max_calls, max_tokens or self.settings.max_tokens)
        return self._events(clean_turns(messages), tools, bounds)

    async def _events(
        self, turns: list[WireMessage], tools: Sequence[AnyTool], bounds: Bounds
    ) -> AsyncGenerator[StreamEvent]:
        async with self._operation() as context:
            loop = ToolLoop(context, Pieces(self._sender, context), tools, bounds)
            async with aclosing(loop.events(turns)) as events:
                async for event in events:
                    yield event

    async def embed(self, texts: Sequence[str], *, batch: int = 96) -> Embeddings:
        """One vector a text, in order.

        A batch that the provider refuses is split. A text that is too long for it is cut, and marked: between tokens
        where litellm has the model's tokenizer (OpenAI's embedding models), else between words.

        Args:
            texts: what to embed; none of them blank.
            batch: texts in one request.

        Raises:
            ModelError: a call failed, or the vectors have another length than before.
            ConfigurationError: the model is one of your own that has no ``embed``.
            InvalidInputError: ``texts`` is no list of texts, one is blank, or ``batch`` is no positive number.
        """
        check_positive(batch=batch)
        texts, model = clean_texts(texts), self._model
        if not isinstance(model, CompletionModel) and isinstance(model, Embedder):
            return await GuardedEmbedder(model).embed(texts)
        if not isinstance(model, CompletionModel) or not model.embeds:
            raise ConfigurationError(f"{self.name} has no embed(texts): pass an embedding model")
        np = await load_numpy()
        if not texts:
            return Embeddings(np.empty((0, 0), np.float32))
        async with self._operation() as context:
            parts = [EmbedBatch(context, texts[i : i + batch]) for i in range(0, len(texts), batch)]
            failed: list[BaseException] = []
            try:
                async with asyncio.TaskGroup() as group:
                    for part in parts:
                        group.create_task(self._fill(context, part, model))
            except* ModelError as errors:
                failed += errors.exceptions
            if failed:
                raise failed[0]
        vectors = np.array([row for part in parts for row in part.rows], np.float32)
        return Embeddings(vectors, tuple(cut for part in parts for cut in part.truncated), context.usage)

    async def count_tokens(self, texts: Sequence[str]) -> TokenCount:
        """How many tokens the texts have: by the model's own tokenizer where litellm brings it, else estimated.

        No request is sent and nothing is downloaded. A model that is no string is estimated.

        Raises:
            InvalidInputError: ``texts`` is no list of texts.
        """
        return await count_tokens(self.name if self._named else None, clean_texts(texts, blank=True))

    async def rerank(self, query: str, texts: Sequence[str]) -> RankReply:
        """Places of the texts, the most relevant first, with their scores.

        Raises:
            ModelError: the call failed.
            ConfigurationError: the model is one of your own.
            InvalidInputError: ``texts`` is no list of texts, ``query`` no text, or one of them can't be sent.
        """
        texts = clean_ranking(query, texts)
        model = self._model
        if not isinstance(model, CompletionModel) or not model.ranks:
            raise ConfigurationError(f"{self.name} can't rerank: name a reranker that litellm knows")
        async with self._operation() as context:
            return await self._sender.drive(context, rank(context, query, texts), model.rerank, "rerank")

    async def _fill(self, context: Context, part: EmbedBatch, model: CompletionModel) -> None:
        """Get the vectors of one batch."""
        while (place := await self._sender.drive(context, part.run(), model.embed, "embed")) is not None:
            part.cut(place, await shorten(self.name, part.texts[place]))

    @asynccontextmanager
    async def _operation(self) -> AsyncGenerator[Context]:
        """One deadline, and one sum of what all calls took, which an error carries too.

        The clock starts when litellm is imported: that takes seconds once, and nothing is sent meanwhile.
        """
        with suppress(Exception):  # the request imports it again, and its failure says what is wrong
            await self._sender.load()
        loop = asyncio.get_running_loop()
        ends = loop.time() + self.settings.deadline
        context = Context(
            self.name, self._key, self.settings, self.abilities, lambda: ends - loop.time(), source=self._given
        )
        try:
            yield context
        except ModelError as error:
            error.usage = context.usage
            raise
