"""``Agent``: the public verbs. Wiring only."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Never, TextIO
from weakref import WeakValueDictionary

from ..cleaning import clean_id, encodable, no_option, utc_now
from ..errors import ConfigurationError, InvalidMessageError, StoreError
from ..learning import LearningMachine
from ..llm import LLM, Abilities, ChatModel, Tool, ToolRun, UsageObserver
from ..llm.events import RunFinished
from ..llm.provider import Completion, Router
from ..manager import DEFAULT_MODEL, MemoryManager
from ..session_values import MAX_SAID
from ..settings import LLMSettings
from ..types import Message
from .answering import Answering
from .functions import AsyncFunction
from .options import OnContextFailure, Options, check_llm, check_names, to_source, to_tools
from .printing import at_once, show
from .remembering import Place
from .results import AgentEvent, AnswerFinished, RunResult
from .running import Run
from .sources import Source


class Agent:
    """Answers messages with what is remembered of the user, in sessions, with tools.

    It holds nothing open: the manager, which stays the caller's to close, does. One agent serves any number of users
    and sessions at once.

    Args:
        model: what answers: a litellm model name, a ``litellm.Router``, a completion function or a ``ChatModel``. It
            is apart from the manager's, which may be a cheaper one. By default what ``ASYNCMEM_MODEL`` says, else
            ``"openai/gpt-4o"``.
        llm: how that model is called.
        memory_manager: whose memories stand in the prompt, and where sessions are stored.
        learning: in the place of ``memory_manager`` and its switches: memories and profile stand in the prompt, and the
            machine's modes decide what is captured behind answers, and which tools the model has.
        enable_agentic_memory: the model has the tool ``update_user_memory(task)``.
        memory_tools: the model has the memory tools that the manager's four flags allow, and may search and list.
        update_memory_on_run: each run is captured in the background, after its answer.
        instructions: stand at the beginning of the prompt.
        tools: async functions with type hints and a docstring, or ``Tool`` values, that the model may call.
        max_rounds: replies that the model may give in one run.
        max_calls: tool calls that are carried out in one run.
        history_tokens: estimated tokens of a session that a prompt shows; what is older is summarised.
        context_tokens: estimated tokens of the memories in a prompt; a learning machine has its own.
        on_context_failure: what becomes of a run whose memories can't be read: ``"answer"`` goes on without, and says
            so in ``RunResult.context_error``; ``"raise"`` raises the error.
        agent_id: recorded on what this agent adds to the memories.
        team_id: recorded on what this agent adds to the memories.
        observers: told about every call of the agent's model; of the manager's, the manager's own are told.
        abilities: where to keep what is learned about the agent's model.

    Raises:
        ConfigurationError: an option is unknown, can't be used or needs another one.
        InvalidIdError: ``agent_id`` or ``team_id`` can't be used.
    """

    def __init__(
        self,
        model: "str | ChatModel | Router | Completion | None" = None,
        *,
        llm: LLMSettings | None = None,
        memory_manager: MemoryManager | None = None,
        learning: LearningMachine[Any] | None = None,
        enable_agentic_memory: bool = False,
        memory_tools: bool = False,
        update_memory_on_run: bool = False,
        instructions: str | None = None,
        tools: Sequence[AsyncFunction | Tool[Any]] = (),
        max_rounds: int = 8,
        max_calls: int = 32,
        history_tokens: int = 4000,
        context_tokens: int = 1000,
        on_context_failure: OnContextFailure = "answer",
        agent_id: str | None = None,
        team_id: str | None = None,
        observers: Sequence[UsageObserver] = (),
        abilities: Abilities | None = None,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise ConfigurationError(no_option(Agent, unknown))
        named = model or os.environ.get("ASYNCMEM_MODEL") or DEFAULT_MODEL
        self._llm = LLM(named, check_llm(llm), abilities=abilities, observers=observers)
        self._options = Options(
            instructions, to_tools(tools), max_rounds, max_calls, history_tokens, on_context_failure
        )
        self._source: Source | None = to_source(
            memory_manager,
            learning,
            enable_agentic_memory=enable_agentic_memory,
            memory_tools=memory_tools,
            update_memory_on_run=update_memory_on_run,
            context_tokens=context_tokens,
            agent_id=agent_id,
            team_id=team_id,
        )
        if self._source is not None:
            check_names([*self._options.tools, *self._source.tools("anybody")])
        self._answering = Answering(self._llm, max_rounds, max_calls)
        self._writing: WeakValueDictionary[tuple[str | None, str], asyncio.Lock] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"Agent({self._llm.name!r})"

    async def run(self, message: str, *, user_id: str | None = None, session_id: str | None = None) -> RunResult:
        """The answer to a message, and what came of everything around it.

        A run that fails, or is cancelled before its answer is there, leaves nothing behind.

        Args:
            message: what the user says.
            user_id: whose memories; the manager's ``default_user_id`` by default.
            session_id: a conversation that goes on: what was said in it before stands in the prompt. A session belongs
                to its user; another user's of the same name is another one. Without, the run stands for itself.

        Raises:
            InvalidMessageError: the message is blank, too long or no text.
            InvalidIdError: an id can't be used, or is missing.
            ConfigurationError: a session needs a manager to store it.
            ModelError: the model could not answer.
            StoreError: the session can't be read.
        """
        run = await self._begin(message, user_id, session_id)
        prompt, tools = await run.prepare(), run.tools()
        return await self._finish(run, await self._answering.whole(prompt, tools))

    async def stream(
        self, message: str, *, user_id: str | None = None, session_id: str | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """The same as it happens: words as they come, calls of tools, and last ``AnswerFinished`` with the result.

        The exchange is stored and its capture scheduled before that last event. Leaving the generator early
        (``async with contextlib.aclosing(agent.stream(...)) as events`` does so at once) leaves nothing behind.

        Args:
            message: what the user says.
            user_id: as for ``run``.
            session_id: as for ``run``.

        Raises:
            AsyncMemError: as ``run``, when it is iterated.
        """
        run = await self._begin(message, user_id, session_id)
        prompt, tools = await run.prepare(), run.tools()
        done = ToolRun(None, [], prompt)
        async with aclosing(self._answering.pieces(prompt, tools)) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    done = event.run
                else:
                    yield event
        yield AnswerFinished(await self._finish(run, done))

    async def print_response(
        self,
        message: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        stream: bool = True,
        file: TextIO | None = None,
    ) -> RunResult:
        """Print the answer, and what went wrong around it; the result.

        Args:
            message: what the user says.
            user_id: as for ``run``.
            session_id: as for ``run``.
            stream: print words as they come; else all at once.
            file: where to, as plain text; by default the terminal, as Markdown where rich is installed (extra ``cli``).

        Raises:
            AsyncMemError: as ``run``.
        """
        if stream:
            return await show(self.stream(message, user_id=user_id, session_id=session_id), file)
        return await show(at_once(await self.run(message, user_id=user_id, session_id=session_id)), file)

    async def get_messages(self, session_id: str, *, user_id: str | None = None) -> list[Message]:
        """What was said in a session, oldest first; nothing for one that never was, or is another user's."""
        place = await self._place(user_id, session_id)
        stored = await place.sessions.between(place.user_id, session_id, 1, 2**31)
        return [message for exchange in stored for message in exchange.said.messages()]

    async def list_sessions(self, *, user_id: str | None = None) -> list[str]:
        """The ids of a user's sessions, in order of code points."""
        source = self._stored()
        store = await source.manager.opened()
        return await store.sessions.names(source.manager.owner(user_id))

    async def delete_session(self, session_id: str, *, user_id: str | None = None) -> bool:
        """Delete a session; whether there was one. What was remembered from it stays."""
        place = await self._place(user_id, session_id)
        return await place.sessions.delete(place.user_id, session_id) > 0

    # ------------------------------------------------------------------------------------------------ the steps

    async def _begin(self, message: object, user_id: str | None, session_id: str | None) -> Run:
        text, source = _clean_message(message), self._source
        if source is None:
            if session_id is not None:
                self._stored()
            owner = None if user_id is None else clean_id(user_id, "user_id")
            return Run(self._llm, self._options, None, text, owner, None, utc_now)
        owner, clock = source.manager.owner(user_id), source.manager.settings.clock
        place: Place | None = None
        lost: StoreError | None = None
        try:
            if session_id is not None or source.captures:
                place = await self._place(owner, session_id)
        except StoreError as error:
            if session_id is not None or self._options.on_context_failure == "raise":
                raise
            lost = error
        return Run(self._llm, self._options, source, text, owner, place, clock, lost)

    async def _place(self, user_id: str | None, session_id: str | None) -> Place:
        source = self._stored()
        owner = source.manager.owner(user_id)
        session = None if session_id is None else clean_id(session_id, "session_id")
        sessions = (await source.manager.opened()).sessions
        return Place(sessions, owner, session, await sessions.begun(owner))

    def _stored(self) -> Source:
        if self._source is None:
            raise ConfigurationError(
                "a session needs a place to be stored: pass memory_manager= or learning= to the Agent"
            )
        return self._source

    async def _finish(self, run: Run, done: ToolRun) -> RunResult:
        if run.place is None or run.place.session_id is None:
            return await run.finish(done)
        key = (run.user_id, run.place.session_id)
        async with self._writing.setdefault(key, asyncio.Lock()):  # of one session's runs here none loses a race
            return await run.finish(done)


def _clean_message(message: object) -> str:
    if not isinstance(message, str):
        raise InvalidMessageError(f"message must be a str, not {type(message).__name__}")
    text = message.strip()
    if not text:
        raise InvalidMessageError("message is blank: say something")
    if len(text) > MAX_SAID:
        raise InvalidMessageError(f"message has {len(text):,} characters: at most {MAX_SAID:,} are allowed")
    if not encodable(text):
        raise InvalidMessageError("message holds a lone surrogate, which no encoding can hold: remove it")
    return text
