"""Messages or a task in, decided operations out: one model call a window, then the guards."""

import reprlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Literal

import anyio.to_thread

from .deciding import ToolDecisions
from .errors import ConfigurationError
from .fingerprints import evidence_prints
from .guards import MAX_OPERATIONS, TOO_MANY, UNKNOWN, Judged, judge_plan
from .llm import LLM
from .messages import Turn
from .operations import Grounded, Operation
from .plan import OPERATION_NAMES, Plan, plan_model
from .prompts import capture_prompt, estimate_tokens, told_unknown
from .staging import Staged
from .tokens import tokenize
from .types import CaptureEnd, Skipped, Tier, Usage, UserMemory
from .windows import Window, windows

SHOWN_TOKENS = 2_000
"""Estimated tokens that the memories shown to the model may have."""
REPLY_TOKENS = 1_200
REMOVED = "an operation before it removed the memory"
MAX_ROUNDS = 4
"""Replies that a model which calls tools may give on one window."""


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """What a model may do, and what it is told.

    Attributes:
        add: whether it may add.
        update: whether it may update.
        delete: whether it may delete.
        clear: whether it may remove everything of the one user at hand.
        system_message: replaces the whole prompt; may use ``{existing_memories}`` and ``{operations}``.
        memory_capture_instructions: replaces the part that says what to capture.
        additional_instructions: comes after the memories.
        evidence: ``"off"`` takes what the model decides without the user's words for it.

    Raises:
        ConfigurationError: ``evidence`` is neither.
    """

    add: bool = True
    update: bool = True
    delete: bool = False
    clear: bool = False
    system_message: str | None = None
    memory_capture_instructions: str | None = None
    additional_instructions: str | None = None
    evidence: Literal["strict", "off"] = "strict"

    def __post_init__(self) -> None:
        if self.evidence not in ("strict", "off"):
            raise ConfigurationError(f"evidence must be 'strict' or 'off', not {reprlib.repr(self.evidence)}")

    @property
    def enabled(self) -> tuple[str, ...]:
        """Names of the operations that are switched on."""
        return tuple(name for name in OPERATION_NAMES if getattr(self, name))


@dataclass(slots=True)
class Decision:
    """What a model decided, after the guards.

    Attributes:
        operations: to be applied, with the memories' real ids.
        skipped: what was decided and must not be applied.
        usage: model calls, tokens and cost.
        tier: which step of the ladder answered last; ``None`` when no model was asked.
        tools: the model decided by tool calls.
        windows: parts that the conversation was read in.
        ended: which limit stopped the model, if one did.
        words: what the user said, to be recorded where an operation brings no evidence of its own.
    """

    operations: list[Grounded] = field(default_factory=list[Grounded])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    usage: Usage = field(default_factory=Usage)
    tier: Tier | None = None
    tools: bool = False
    windows: int = 0
    ended: CaptureEnd = "done"
    words: str | None = None


async def decide(
    llm: LLM,
    turns: Sequence[Turn],
    existing: Sequence[UserMemory],
    options: CaptureOptions,
    *,
    now: datetime,
    task: bool = False,
    known: int = 0,
) -> Decision:
    """What a model wants changed, as far as the guards let it.

    A conversation that exceeds a window is read in several, each of which knows what the ones before it decided.

    Args:
        llm: the model.
        turns: what ``read_messages`` gave. Without any, or with every operation switched off, no model is asked.
        existing: what is known of the user, oldest update first.
        options: what the model may do, and what it is told.
        now: the date of messages without a time.
        task: the messages ask for a change of memories.
        known: so many of the first turns were captured before.

    Raises:
        InvalidMessageError: the conversation is too long for one capture.
        ModelError: the model could not be asked, or not be understood.
    """
    decision = Decision()
    if not options.enabled:
        return decision
    staged = Staged(existing, now)
    reader = _Reader(llm, staged, options, decision, now, task)
    for window in await anyio.to_thread.run_sync(windows, turns, known):
        await reader.read(window)
    if not decision.windows:
        return decision
    decision.operations = staged.operations
    for grounded in staged.dropped:
        name, text = type(grounded.operation).__name__.casefold(), getattr(grounded.operation, "memory", None)
        decision.skipped.append(Skipped(name, "a clear after it removed it", text))
    decision.words = "\n".join(turn.content for turn in turns[known:] if turn.role == "user")
    return decision


@dataclass(frozen=True, slots=True)
class _Reader:
    """Has a model decide on windows, and stages what the guards let through."""

    llm: LLM
    staged: Staged
    options: CaptureOptions
    decision: Decision
    now: datetime
    task: bool

    async def read(self, window: Window) -> None:
        """Decide on one window."""
        # the words of hundreds of memories take longer than the event loop may be held up
        shown = await anyio.to_thread.run_sync(choose_shown, self.staged.memories, window)
        self.decision.windows += 1
        # a plan is one call, with bounds that small models need; tools are for those who ask for them
        if self.llm.settings.tools:
            await self._by_tools(window, shown)
        else:
            await self._by_plan(window, shown)

    async def _by_plan(self, window: Window, shown: Sequence[UserMemory]) -> None:
        prompt = self._prompt(window, shown)
        plan, judged = await self._plan(prompt, window, shown)
        unknown = [s for s in judged.skipped if s.reason == UNKNOWN]
        if unknown:  # told once, as a model that calls tools is
            _, mended = await self._plan([*prompt, *told_unknown(plan)], window, shown)
            judged.skipped.extend(s for s in mended.skipped if s not in judged.skipped)
        self.decision.skipped += judged.skipped

    async def _plan(
        self, prompt: list[dict[str, str]], window: Window, shown: Sequence[UserMemory]
    ) -> tuple[Plan, Judged]:
        """Ask for a plan, and stage what of it may be applied."""
        enabled = self.options.enabled
        reply = await self.llm.structured(prompt, plan_model(enabled), max_tokens=REPLY_TOKENS)
        judge = partial(
            judge_plan,
            reply.value,
            shown=shown,
            existing=self.staged.memories,
            messages=window.evident,
            enabled=enabled,
            now=self.now,
            indexes=[turn.index for turn in window.evident],
            evidence=self.options.evidence,
        )
        judged = await anyio.to_thread.run_sync(judge)  # hundreds of memories take longer than a loop may wait
        for operation in judged.operations:
            self._accept(operation, window)
        self.decision.usage += reply.usage
        self.decision.tier = reply.tier
        if any(s.reason == TOO_MANY for s in judged.skipped):
            self.decision.ended = "operations"
        return reply.value, judged

    async def _by_tools(self, window: Window, shown: Sequence[UserMemory]) -> None:
        decisions = ToolDecisions(
            window,
            shown,
            self.staged,
            self.options.enabled,
            self.now,
            self.options.evidence,
            lambda operation: self._accept(operation, window),
        )
        run = await self.llm.run_tools(
            self._prompt(window, shown, tools=True),
            decisions.tools(),
            max_rounds=MAX_ROUNDS,
            max_calls=MAX_OPERATIONS,
            max_tokens=REPLY_TOKENS,
            enough=decisions.is_enough,
        )
        await decisions.finish()
        self.decision.skipped += decisions.skipped
        self.decision.usage += run.usage
        self.decision.tools = True
        # calls that reached no operation: of tools that there are not, with arguments that make no sense, too many
        self.decision.skipped += [Skipped(r.name, r.answer) for r in run.results if r.arguments is None]
        if run.stopped != "answer":
            self.decision.ended = "rounds" if run.stopped == "rounds" else "operations"

    def _prompt(self, window: Window, shown: Sequence[UserMemory], *, tools: bool = False) -> list[dict[str, str]]:
        return capture_prompt(
            self.options.enabled,
            system_message=self.options.system_message,
            memory_capture_instructions=self.options.memory_capture_instructions,
            additional_instructions=self.options.additional_instructions,
            memories=shown,
            messages=window.turns,
            now=self.now,
            task=self.task,
            earlier=window.earlier,
            tools=tools,
        )

    def _accept(self, operation: Operation, window: Window) -> bool:
        """Stage an operation, unless an earlier one removed its memory."""
        taken = self.staged.take(ground(operation, window.evident, self.now if self.task else None))
        if not taken:
            name, memory_id = type(operation).__name__.casefold(), getattr(operation, "memory_id", None)
            self.decision.skipped.append(Skipped(name, REMOVED, getattr(operation, "memory", None), memory_id))
        return taken


def ground(operation: Operation, turns: Sequence[Turn], at: datetime | None = None) -> Grounded:
    """The operation with the fingerprints of the sentences that its evidence stands in.

    Args:
        operation: what is to be done.
        turns: the conversation.
        at: when it was said, where the turns don't say.
    """
    evidence: str = getattr(operation, "evidence", None) or ""
    held = [turn for turn in turns if turn.index in getattr(operation, "sources", ())]
    times = [turn.at or at for turn in held]
    said_at = max((t for t in times if t is not None), default=None) if all(times) else None
    return Grounded(operation, frozenset(evidence_prints(evidence, [t.content for t in held])), said_at)


def choose_shown(memories: Sequence[UserMemory], window: Window) -> list[UserMemory]:
    """The memories to show: all when they fit, else those that share words with what was said, and the newest.

    They stand in the order of their making: an update then moves no line, and caches stay warm. Text that was
    stored as suspect is not shown to a model.
    """
    candidates = [m for m in memories if not m.metadata.get("suspect")]
    tokens = {id(m): estimate_tokens(m.memory) + 3 for m in candidates}
    if sum(tokens.values()) > SHOWN_TOKENS:
        candidates = _fitting(candidates, tokens, " ".join(turn.content for turn in (*window.earlier, *window.turns)))
    return sorted(candidates, key=lambda m: (m.created_at is not None, m.created_at, str(m.memory_id)))


def rank_by_words(texts: Sequence[str], words: str) -> list[int]:
    """Which texts share words with ``words``, by their rarity among the texts, the best first."""
    wanted = set(tokenize(words))
    held = [wanted.intersection(tokenize(text)) for text in texts]
    count = Counter(word for tokens in held for word in tokens)
    scores = [sum(1 / count[word] for word in tokens) for tokens in held]
    return sorted((i for i, score in enumerate(scores) if score), key=lambda i: (-scores[i], -i))


def _fitting(memories: Sequence[UserMemory], tokens: dict[int, int], words: str) -> list[UserMemory]:
    """Half of the room goes to what the words are about, the rest to the newest."""
    ranked = rank_by_words([m.memory for m in memories], words)
    chosen: dict[int, UserMemory] = {}
    room = SHOWN_TOKENS
    for order, least in (([memories[i] for i in ranked], SHOWN_TOKENS // 2), (list(reversed(memories)), 0)):
        for memory in order:
            if id(memory) in chosen:
                continue
            if room - tokens[id(memory)] < least:
                break
            chosen[id(memory)] = memory
            room -= tokens[id(memory)]
    return list(chosen.values())
