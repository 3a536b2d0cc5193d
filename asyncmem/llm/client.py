"""``LLM``: one model with its settings; the only place of the room that awaits."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from asyncmem.errors import InvalidInputError
from asyncmem.settings import LLMSettings

from .abilities import SHARED, Abilities
from .chat import ChatModel, ChatReply, ChatRequest
from .failures import Failure
from .flows import Context, Flow
from .ladder import Climb, Structured
from .provider import CallFailed, Completion, Router, to_model

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")


_GRACE = 0.25


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

    Raises:
        ConfigurationError: ``model`` is none of these.
    """

    def __init__(
        self,
        model: "str | ChatModel | Router | Completion",
        settings: LLMSettings = LLMSettings(),  # noqa: B008  frozen
        *,
        abilities: Abilities | None = None,
    ) -> None:
        self._model = to_model(model, settings)
        self.settings = settings
        self.abilities = abilities or (SHARED if isinstance(model, str) else Abilities())
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """What errors and logs call the model."""
        return self._model.name

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
            InvalidInputError: there are no messages.
        """
        if not messages:
            raise InvalidInputError("messages is empty: a model needs at least one")
        ends = asyncio.get_running_loop().time() + self.settings.deadline
        context = self._context(ends)
        climb = Climb(context, messages, schema, max_tokens or self.settings.max_tokens)
        return await self._drive(climb.run(), ends)

    def _context(self, ends: float) -> Context:
        loop = asyncio.get_running_loop()
        key = (self.name, self.settings.api_base or "")
        return Context(self.name, key, self.settings, self.abilities, lambda: ends - loop.time())

    async def _drive(self, flow: Flow[R], ends: float) -> R:
        """Send what the flow asks for until it returns."""
        try:
            step = next(flow)
            while True:
                if step.after:
                    await asyncio.sleep(step.after)
                step = flow.send(await self._send(step.request, ends))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    async def _send(self, request: ChatRequest, ends: float) -> ChatReply | Failure:
        """The reply, or the facts of the failure: no foreign exception goes further than this."""
        try:
            # three bounds: the operation's deadline, also while waiting in line, then the one request's; a model
            # that keeps the time-out itself is given the chance to end its call in order
            grown = None if request.timeout is None else request.timeout + _GRACE
            async with asyncio.timeout_at(ends), self._gate(), asyncio.timeout(grown):
                return await self._model.complete(request)
        except AssertionError:
            raise  # a test double says that it was not to be called
        except CallFailed as failed:
            return failed.failure
        except Exception as error:  # noqa: BLE001  a model of the user's own may raise anything
            return Failure.of(error)

    def _gate(self) -> asyncio.Semaphore:
        """One semaphore for each event loop: beyond some calls at once, litellm only gets slower."""
        loop = asyncio.get_running_loop()
        gate = self._gates.get(loop)
        if gate is None:
            gate = self._gates[loop] = asyncio.Semaphore(self.settings.concurrency)
        return gate
