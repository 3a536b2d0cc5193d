"""Memories that say what another one says as well (pure)."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..operations import fold
from ..types import UserMemory
from .carrying import says_all
from .lexicon import words
from .phrases import Clause, sentences
from .preserving import QUOTED
from .words import plain

_CANDIDATES = 64
"""Memories that one is compared with: those that have its rarest word."""
_CALENDAR = words(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august"
    " september october november december"
)
"""Written with a capital, and no names."""


@dataclass(frozen=True)
class _Said:
    """What a memory says, as far as it is compared."""

    memory: UserMemory
    folded: str
    clauses: tuple[Clause, ...]
    words: frozenset[str]
    keys: frozenset[str]
    exact: tuple[object, ...]


def duplicate_groups(memories: Sequence[UserMemory]) -> list[list[UserMemory]]:
    """Memories that say the same, or less than another one does, each group led by the one that says most.

    Equal texts (case, white space and punctuation apart) are duplicates, whichever agent wrote them. A text is one of
    another if the other has all it says and both have the same numbers, dates, names, quotations and negations:
    "Plays chess" of "Plays chess on Sundays", never of "Doesn't play chess". Memories that expire at different times,
    or of which one is suspect, never are.

    It takes time in proportion to the number of memories, and blocks: use a worker thread.
    """
    said = sorted((_read(memory) for memory in memories if not memory.pinned), key=_fullness)
    counts = Counter(word for each in said for word in each.words)
    first: dict[tuple[str, object], int] = {}
    holding: dict[str, list[int]] = {}
    groups: list[list[_Said]] = []
    for each in said:
        same = (each.folded, each.exact[0])
        place = first.get(same)
        if place is None:
            place = _fuller(each, groups, holding, counts)
        if place is not None:
            groups[place].append(each)
            continue
        first[same] = len(groups)
        for key in each.keys:
            holding.setdefault(key, []).append(len(groups))
        groups.append([each])
    return [[each.memory for each in group] for group in groups if len(group) > 1]


def _fullness(said: _Said) -> tuple[int, int, str, float, str]:
    """The fullest first; it doesn't depend on anything that folding changes, so that folding twice changes nothing."""
    at = said.memory.created_at
    return (
        -len(said.words), -len(said.folded), said.folded, at.timestamp() if at else 0.0, str(said.memory.memory_id)
    )  # fmt: skip


def _fuller(
    said: _Said, groups: Sequence[Sequence[_Said]], holding: dict[str, list[int]], counts: Counter[str]
) -> int | None:
    """The group whose first memory says all of it."""
    if not said.words:
        return None
    rarest = min(said.words, key=lambda word: (counts[word], word))
    for place in itertools.islice(holding.get(rarest, ()), _CANDIDATES):
        other = groups[place][0]
        if said.exact == other.exact and said.words <= other.keys and says_all(other.clauses, said.clauses):
            return place
    return None


def _read(memory: UserMemory) -> _Said:
    clauses = tuple(clause for sentence in sentences(memory.memory) for clause in sentence)
    tokens = [token for clause in clauses for token in clause.claim.needed]
    held = frozenset("|".join(sorted(token.keys)) for token in tokens)
    keys = frozenset(
        key
        for clause in clauses
        for token in clause.alone.tokens
        for key in ("|".join(sorted(token.keys)), *token.also)
    )
    return _Said(memory, fold(memory.memory), clauses, held, keys | held, _exact(memory, clauses))


def _exact(memory: UserMemory, clauses: Sequence[Clause]) -> tuple[object, ...]:
    """What both of two memories must have: when they expire, and the facts that are never near."""
    kept = (memory.expires_at, bool(memory.metadata.get("suspect")))
    tokens = [token for clause in clauses for token in clause.alone.tokens]
    facts = frozenset(t.keys for t in tokens if t.kind in ("number", "date") or (t.kind == "name" and _is_name(t.text)))
    quoted = frozenset(fold(plain(each)) for each in QUOTED.findall(memory.memory))
    marks = frozenset((c.claim.marks.negations, c.claim.marks.averse, c.claim.marks.uncertain) for c in clauses)
    return kept, facts, quoted, marks


def _is_name(word: str) -> bool:
    return word.casefold().removesuffix("s") not in _CALENDAR
