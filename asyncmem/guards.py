"""The rules that a model's decisions pass before anything is written (pure)."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from .aliases import resolve_alias
from .answers import Turn, user_turns
from .cleaning import MAX_TEXT, MAX_TOPIC, MAX_TOPICS, clean_text
from .days import make_absolute
from .errors import InvalidMemoryError
from .evidence import UNSAID, Evidence, find_evidence, find_sources, objection, says_the_same
from .forgetting import wishes_to_forget
from .operations import Add, Clear, Delete, Operation, Update, fold
from .plan import Plan, PlannedOperation
from .sentences import sentences_of
from .types import Message, Skipped, UserMemory
from .wording import common, content, share, share_words, tokens

MAX_OPERATIONS = 32
"""Operations that one capture may apply; what a model plans beyond is skipped."""
TOO_MANY = f"one capture applies at most {MAX_OPERATIONS} operations"
UNKNOWN = "this user has no memory under that alias"
FORGETTING_OFF = "forgetting is switched off (delete_memories=False)"
"""Why a wish to forget was not granted."""

_INSTRUCTING = re.compile(
    r"</?\s*(?:user_memory|system|assistant|user)\b|<\|\w+\|>|\[/?INST\]|^\s*(?:system|assistant|developer)\s*:"
    r"|\b(?:ignore|disregard|override|forget)\b.{0,40}\b(?:instruction|prompt|rule|guideline|polic)"
    r"|\b(?:system|developer)\s+(?:prompt|message)\b"
    r"|\b(?:reveal|print|output|leak|send)\b.{0,40}\b(?:prompt|password|api.?key|secret|credential)"
    r"|\b(?:you are now|you must|from now on,? you|act as|pretend to be|do not tell the user)\b"
    r"|\b(?:ignorier\w*|vergiss)\b.{0,40}\banweisung|\b(?:ignora|olvida)\b.{0,40}\binstruccion"
    r"|\b(?:ignore[sz]?|oublie[sz]?)\b.{0,40}\bconsignes?\b|(?:忽略|无视|忘记).{0,20}(?:指令|提示|规则)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def looks_like_instructions(text: str) -> bool:
    """Whether a memory's text talks to a model rather than about a user. It may be wrong in either direction."""
    return _INSTRUCTING.search(text) is not None


def _is_suspect(text: str, evidence: str | None) -> bool:
    return looks_like_instructions(text) or looks_like_instructions(evidence or "")


_TELLS_ON = 0.5
"""Share of a memory's words that an update of it is expected to have, where the alias is wrong."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What is left of a plan.

    Attributes:
        operations: what may be applied, with the memories' real ids.
        skipped: the rest, each with its reason.
    """

    operations: list[Operation] = field(default_factory=list[Operation])
    skipped: list[Skipped] = field(default_factory=list[Skipped])


class _Refused(Exception):  # noqa: N818  raised and caught in this module only
    def __init__(self, reason: str, memory_id: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.memory_id = memory_id


@dataclass(slots=True)
class _Judge:
    """One plan being judged: what it may use, and what it used already."""

    shown: Sequence[UserMemory]
    turns: Sequence[Turn]
    enabled: Collection[str]
    texts: dict[str, UserMemory | None]
    strict: bool = True
    touched: set[str] = field(default_factory=set[str])
    told: list[set[str]] = field(default_factory=list[set[str]])
    allowed: int = MAX_OPERATIONS

    def judge(self, planned: PlannedOperation) -> Operation:
        if self.allowed <= 0:
            raise _Refused(TOO_MANY)
        name = _operation_name(planned)
        handlers: dict[str, Callable[[PlannedOperation], Operation]] = {
            "add": self.add,
            "update": self.update,
            "delete": self.delete,
            "clear": self.clear,
        }
        if name not in handlers:
            raise _Refused("there is no such operation")
        if name not in self.enabled:
            raise _Refused(FORGETTING_OFF if name == "delete" else "this operation is switched off")
        operation = handlers[name](planned)
        self.allowed -= 1
        return operation

    def add(self, planned: PlannedOperation) -> Operation:
        text = self.text(planned)
        told_on = self.meant(text) if planned.op.strip().casefold().startswith("update") else None
        if told_on is not None and "update" in self.enabled:
            return self.replace(planned, told_on, text)
        same = next((m for m in self.texts.values() if m is not None and says_the_same(text, m.memory)), None)
        if same is not None:
            raise _Refused("an existing memory says the same", same.memory_id)
        evidence = self.evidence(planned, text, "")
        text = self.dated(text, evidence)
        self.texts[fold(text)] = None
        return Add(text, _topics(planned.topics), evidence.words, _is_suspect(text, evidence.words), evidence.sources)

    def update(self, planned: PlannedOperation) -> Operation:
        memory = self.target(planned)
        if fold(planned.memory) == fold(memory.memory):
            raise _Refused("the memory says this already", memory.memory_id)
        text = self.text(planned)
        if not share_words(text, memory.memory):
            found = self.meant(text)
            if found is None:
                return self.misplaced(planned, memory)
            memory = found
        return self.replace(planned, memory, text)

    def replace(self, planned: PlannedOperation, memory: UserMemory, text: str) -> Update:
        if not tokens(text) - tokens(memory.memory):
            raise _Refused("it adds nothing to the memory", memory.memory_id)
        evidence = self.evidence(planned, text, memory.memory, memory.memory_id)
        text = self.dated(text, evidence)
        self.touched.add(str(memory.memory_id))
        self.texts[fold(text)] = memory
        topics, suspect = _topics(planned.topics) or None, _is_suspect(text, evidence.words)
        return Update(str(memory.memory_id), text, topics, evidence.words, suspect, evidence.sources)

    def meant(self, text: str) -> UserMemory | None:
        """The untouched memory that the text tells on, where the alias names another: most of its words are there."""
        free = [m for m in self.shown if str(m.memory_id) not in self.touched]
        best = max(free, key=lambda m: share(m.memory, text), default=None)
        return best if best is not None and share(best.memory, text) >= _TELLS_ON else None

    def misplaced(self, planned: PlannedOperation, memory: UserMemory) -> Operation:
        """An update that has no word of the memory would replace one fact by another: it is an addition."""
        if "add" not in self.enabled:
            raise _Refused("it is about something else than the memory", memory.memory_id)
        return self.add(planned)

    def clear(self, planned: PlannedOperation) -> Clear:
        self.wish(planned)
        return Clear()

    def wish(self, planned: PlannedOperation) -> None:
        """A removal needs no evidence; what is given for it must have been said all the same."""
        claimed = planned.evidence.strip()
        if claimed and self.strict and not find_sources(claimed, self.turns).sources:
            raise _Refused(UNSAID)

    def delete(self, planned: PlannedOperation) -> Delete:
        memory = self.target(planned)
        self.wish(planned)
        wished = " ".join(s for t in self.turns for s in sentences_of(t.text) if wishes_to_forget(s))
        if self.strict and wished and not _about(memory, wished) and any(_about(m, wished) for m in self.shown):
            raise _Refused("the wish is about another memory", memory.memory_id)
        self.touched.add(str(memory.memory_id))
        return Delete(str(memory.memory_id))

    def target(self, planned: PlannedOperation) -> UserMemory:
        memory = resolve_alias(planned.memory_id, self.shown)
        if memory is None:
            raise _Refused(UNKNOWN)
        if str(memory.memory_id) in self.touched:
            raise _Refused("an operation before it changes the same memory", memory.memory_id)
        return memory

    def text(self, planned: PlannedOperation) -> str:
        if not planned.memory.strip():
            raise _Refused("the text is blank")
        try:
            text = clean_text(planned.memory)
        except InvalidMemoryError as error:
            too_long = len(planned.memory) > MAX_TEXT
            raise _Refused(f"the text exceeds {MAX_TEXT:,} characters" if too_long else str(error)) from None
        if fold(text) in self.texts:
            same = self.texts[fold(text)]
            raise _Refused("an existing memory says the same", same.memory_id if same else None)
        return text

    def evidence(self, planned: PlannedOperation, text: str, known: str, memory_id: str | None = None) -> Evidence:
        if not self.strict:
            return find_sources(planned.evidence, self.turns)
        found = find_evidence(planned.evidence, text, self.turns, known)
        if found is None:
            raise _Refused(UNSAID, memory_id)
        if wishes_to_forget(str(found.words)):
            raise _Refused("a wish to forget is nothing to remember", memory_id)
        reason = objection(found, text, self.turns, known, [m.memory for m in self.shown])
        if reason is not None:
            raise _Refused(reason, memory_id)
        news = content(text) - content(known)
        about_it = common(content(known), tokens(str(found.words)))
        if not about_it and any(news <= told for told in self.told):
            raise _Refused("an operation before it says the same", memory_id)
        self.told.append(news)
        return found

    def dated(self, text: str, evidence: Evidence) -> str:
        """The text with "yesterday" and its like as dates, counted from when its evidence was said."""
        day = next((turn.day for turn in self.turns if turn.index in evidence.sources), None)
        return make_absolute(text, day) if day else text


def judge_plan(
    plan: Plan,
    *,
    shown: Sequence[UserMemory],
    existing: Sequence[UserMemory],
    messages: Sequence[Message],
    enabled: Collection[str],
    now: datetime | None = None,
    indexes: Sequence[int] | None = None,
    evidence: Literal["strict", "off"] = "strict",
) -> Judged:
    """What of a plan may be applied.

    Skipped, with a reason, is what names an unknown or switched-off operation or an unknown alias, has a blank or
    too long text, says what a memory says already, rests on words that the user didn't say or that don't carry it,
    or changes a memory a second time. The same operation again counts once. What looks like instructions to a model
    is marked suspect. A wish to forget that can't be granted is reported as a skipped deletion.

    Args:
        plan: what the model decided.
        shown: the memories that it was shown, in order: the first has alias 1.
        existing: all that are known of the user, shown or not.
        messages: the conversation. Only the user's words count; the assistant's show what they answer.
        enabled: names of the operations that are switched on.
        now: when messages without a time were said; by default now.
        indexes: the messages' places in what was given, for the operations' ``sources``; by default 0, 1, 2…
        evidence: ``"off"`` writes what the model decided without asking whether the user said it.
    """
    today = now or datetime.now(UTC)
    places = range(len(messages)) if indexes is None else indexes
    turns = user_turns([(m.role, m.content, (m.at or today).date(), i) for m, i in zip(messages, places, strict=True)])
    judge = _Judge(shown, turns, enabled, {fold(m.memory): m for m in existing}, evidence == "strict")
    judged, seen = Judged(), list[PlannedOperation]()
    for planned in plan.operations:
        if planned in seen:
            continue
        seen.append(planned)
        try:
            judged.operations.append(judge.judge(planned))
        except _Refused as refused:
            text = planned.memory.strip() or None
            judged.skipped.append(Skipped(_operation_name(planned), refused.reason, text, refused.memory_id))
    if _is_wish_refused(turns, enabled) and all(s.reason != FORGETTING_OFF for s in judged.skipped):
        judged.skipped.append(Skipped("delete", FORGETTING_OFF))
    return judged


def _about(memory: UserMemory, words: str) -> bool:
    return bool(common(content(memory.memory), tokens(words)))


def _is_wish_refused(turns: Sequence[Turn], enabled: Collection[str]) -> bool:
    can_forget = "delete" in enabled or "clear" in enabled
    return not can_forget and any(wishes_to_forget(turn.text) for turn in turns)


def _operation_name(planned: PlannedOperation) -> str:
    """The operation's name. An update of no memory at all is an addition: small models confuse the two."""
    name = planned.op.strip().casefold().removesuffix("_memory")
    return "add" if name == "update" and not planned.memory_id.strip() else name


def _topics(topics: Sequence[str]) -> tuple[str, ...]:
    """The topics that can be stored, in order."""
    clean = dict.fromkeys(" ".join(topic.split()) for topic in topics if 0 < len(topic.strip()) <= MAX_TOPIC)
    return tuple(clean)[:MAX_TOPICS]
