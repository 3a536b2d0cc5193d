"""What a strategy returned, judged: what is new, what lives on, and what may retire without losing a fact (pure)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from pydantic import ValidationError

from ..errors import InvalidMemoryError, MixedUsersError, OptimizationError
from ..types import UserMemory
from .parts import cost
from .preserving import Lost, carriers, counted_facts, lost
from .supporting import invented
from .words import FactKind

USELESS = "what the strategy made carries the facts of no memory that it replaces"
SAME = "there is nothing to fold"


@dataclass(frozen=True, slots=True)
class Settled:
    """What is to be done.

    Attributes:
        new: memories to be added.
        revised: memories that live on, as they were and as they become.
        retired: memories to go: each of their facts stands in what stays.
        kept: memories that stay as they are.
        resting: those of them that say what others said which go: without them, or with other words, it would be lost.
        checked: how many facts were looked for, by kind.
        missing: what of them stands nowhere.
        reason: why nothing is to be done; "" when something is.
    """

    new: list[UserMemory] = field(default_factory=list[UserMemory])
    revised: list[tuple[UserMemory, UserMemory]] = field(default_factory=list[tuple[UserMemory, UserMemory]])
    retired: list[UserMemory] = field(default_factory=list[UserMemory])
    kept: list[UserMemory] = field(default_factory=list[UserMemory])
    resting: list[UserMemory] = field(default_factory=list[UserMemory])
    checked: dict[FactKind, int] = field(default_factory=dict[FactKind, int])
    missing: list[Lost] = field(default_factory=list[Lost])
    reason: str = ""


def settle(sources: Sequence[UserMemory], returned: object, strategy: str) -> Settled:
    """Judge what a strategy made of one user's memories.

    Args:
        sources: the memories that it was given, each with its id.
        returned: what it gave back.
        strategy: its name, for errors.

    Raises:
        OptimizationError: it returned something else than memories, nothing, something blank, longer than the
            sources, made up, or of ids that are not the sources'.
        MixedUsersError: it returned another user's memory.
    """
    memories = _valid(returned, sources, strategy)
    known = {str(m.memory_id): m for m in sources}
    living = {m.memory_id: m for m in memories if m.memory_id}
    new = [m for m in memories if not m.memory_id]
    revised = [(known[i], m) for i, m in living.items() if _said(known[i]) != _said(m)]
    _refuse_longer(sources, memories, strategy)
    _refuse_invented(sources, [*new, *(after for _, after in revised)], strategy)
    # a fact must stay as long as it did: what expires neither carries another's nor is carried on by what lasts
    lasting = [m for m in new if m.expires_at is None]
    revised = [(before, after) for before, after in revised if before.expires_at is None]
    revised, staying, lacking = _revisable(revised, lasting, [known[i] for i in living])
    carrying = [*lasting, *(after for _, after in revised), *staying]
    befores = [before for before, _ in revised]
    retiring = [m for m in sources if m.memory_id not in living and m.expires_at is None]
    missing = lost(retiring, carrying)
    retired = [m for m in retiring if m.memory_id not in _ids(missing)]
    checked, every = counted_facts([*retiring, *befores]), [*lacking, *missing]
    if not retired and not revised:
        reason = USELESS if new or every else SAME
        return Settled(kept=list(sources), checked=checked, missing=every, reason=reason)
    gone = {m.memory_id for m in (*retired, *befores)}
    kept = [m for m in sources if m.memory_id not in gone]
    resting = _resting([*retired, *befores], carrying, len(carrying) - len(staying))
    return Settled(new, revised, retired, kept, resting, checked, every)


_Pairs = list[tuple[UserMemory, UserMemory]]


def _revisable(
    revised: _Pairs, lasting: Sequence[UserMemory], lives: Sequence[UserMemory]
) -> tuple[_Pairs, list[UserMemory], list[Lost]]:
    """What of this may be revised, what stays as it is beside it, and what the rest of the new words lack.

    A memory whose facts its new words lack stays as it is, and so may one that rested on those words.
    """
    lacking: list[Lost] = []
    while True:
        touched = {before.memory_id for before, _ in revised}
        staying = [m for m in lives if m.memory_id not in touched and m.expires_at is None]
        worse = lost([b for b, _ in revised], [*lasting, *(after for _, after in revised), *staying])
        if not worse:
            return revised, staying, lacking
        lacking += worse
        revised = [(before, after) for before, after in revised if before.memory_id not in _ids(worse)]


def _resting(gone: Sequence[UserMemory], carrying: Sequence[UserMemory], made: int) -> list[UserMemory]:
    """What stays and alone says something of what goes; the first of ``carrying`` are made, and come with the swap."""
    if made == len(carrying):
        return []
    first = {min(places) for places in carriers(gone, carrying)}
    return [carrying[place] for place in sorted(first) if place >= made]


def _ids(missing: Sequence[Lost]) -> set[str | None]:
    return {each.memory_id for each in missing}


def _said(memory: UserMemory) -> tuple[object, ...]:
    return memory.memory, memory.topics, memory.agent_id, memory.team_id


def _valid(returned: object, sources: Sequence[UserMemory], strategy: str) -> list[UserMemory]:
    if not isinstance(returned, Sequence) or isinstance(returned, str | bytes):
        raise OptimizationError(_bad(strategy, f"a {type(returned).__name__} instead of a list of memories"))
    memories = [_one(each, strategy) for each in cast("Sequence[object]", returned)]
    if not memories:
        raise OptimizationError(_bad(strategy, "no memory at all"))
    owner = sources[0].user_id
    if any(m.user_id not in (None, owner) for m in memories):
        raise MixedUsersError(_bad(strategy, "a memory of another user"))
    counts = Counter(m.memory_id for m in memories if m.memory_id)
    if any(count > 1 for count in counts.values()):
        raise OptimizationError(_bad(strategy, "two memories with one memory_id"))
    if not counts.keys() <= {m.memory_id for m in sources}:
        raise OptimizationError(_bad(strategy, "a memory_id that is none of the memories' (new ones have none)"))
    return memories


def _one(memory: object, strategy: str) -> UserMemory:
    if not isinstance(memory, UserMemory):
        raise OptimizationError(_bad(strategy, f"a {type(memory).__name__} among the memories"))
    try:  # it may have been made by model_construct
        return UserMemory.model_validate(dict(memory.__dict__))
    except (InvalidMemoryError, ValidationError):
        raise OptimizationError(_bad(strategy, "a memory that is blank or can't be stored")) from None


def _refuse_longer(sources: Sequence[UserMemory], memories: Sequence[UserMemory], strategy: str) -> None:
    before, after = (sum(cost(m.memory) for m in each) for each in (sources, memories))
    if after > before:
        raise OptimizationError(_bad(strategy, "more text than the memories had"))


def _refuse_invented(sources: Sequence[UserMemory], made: Sequence[UserMemory], strategy: str) -> None:
    kinds = sorted({fact.kind for fact in invented(sources, made)})
    if kinds:
        raise OptimizationError(_bad(strategy, f"facts that no memory has (of kind {', '.join(kinds)})"))


def _bad(strategy: str, what: str) -> str:
    return f"the strategy {strategy!r} returned {what}: nothing was touched"
