"""Whether results still say all that their sources said (pure).

Strict on purpose: a source that is wrongly called lost stays as a memory of its own, and nothing but room is lost.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..operations import fold
from ..types import UserMemory
from .carrying import carries, unsaid
from .phrases import Clause, View, sentences
from .words import FactKind, Token, plain

QUOTED = re.compile(r"[\"“„«「『《]([^\"“”„«»「」『』《》\n]{1,200})[\"”“»」』》]")
_ONE_UNIT = 3
"""Sentences of a source that must stand in one result together; a longer source's may be spread."""
_CANDIDATES = 100
"""Clauses of the results that a claim is compared with; those that share its rarest word come first."""
_YEAR = re.compile(r"1[89]\d\d|2[01]\d\d")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a text says.

    Attributes:
        kind: what it is.
        value: as it stands in the text; a date in ISO 8601.
    """

    kind: FactKind
    value: str


@dataclass(frozen=True, slots=True)
class Lost:
    """What no result says any more.

    Attributes:
        memory_id: of which source.
        facts: what is missing; where all of it is there but not together, everything the source says.
    """

    memory_id: str | None
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class PreservationReport:
    """What was checked, and what came of it.

    Attributes:
        checked: how many facts of the sources were looked for, by kind.
        missing: what the model left out.
        asked_again: the model was asked once more, naming what was missing.
        kept: ids of sources that stayed as memories of their own since it was still missing.
    """

    checked: Mapping[FactKind, int] = field(default_factory=dict[FactKind, int])
    missing: tuple[Lost, ...] = ()
    asked_again: bool = False
    kept: tuple[str, ...] = ()


def facts_of(text: str) -> list[Fact]:
    """What the text says, in order, each once: numbers, dates, names, quotations, negations, units, other words."""
    found = [Fact("quoted", quoted) for quoted in QUOTED.findall(text)]
    for sentence in sentences(text):
        for clause in sentence:
            found += _facts(t for t in clause.alone.tokens if t.needed or t.kind == "negation")
            if clause.alone.marks.negations and not any(fact.kind == "negation" for fact in found):
                found.append(Fact("negation", clause.text))
    return list(dict.fromkeys(found))


def counted_facts(memories: Iterable[UserMemory]) -> dict[FactKind, int]:
    """How many facts the memories have, by kind."""
    counts: dict[FactKind, int] = {}
    for memory in memories:
        for fact in facts_of(memory.memory):
            counts[fact.kind] = counts.get(fact.kind, 0) + 1
    return counts


def lost(sources: Sequence[UserMemory], results: Sequence[UserMemory]) -> list[Lost]:
    """The sources that no result says any more, with what is missing of each.

    A source is preserved when one result carries all of its clauses, each in a clause of its own: the same words
    (their endings and a few verbs apart), numbers with what they count, names in their order, and as often negated.
    Of a source of more than three sentences each may stand in another result.

    It takes time in proportion to what there is to read, not to its square. It blocks: use a worker thread.

    Args:
        sources: what was there.
        results: what is there instead, unchanged sources included.
    """
    return [found for found in preserved(sources, results) if found is not None]


def preserved(sources: Sequence[UserMemory], results: Sequence[UserMemory]) -> list[Lost | None]:
    """The same, one a source, in order: ``None`` where nothing is lost."""
    known = {fold(plain(result.memory)) for result in results}
    changed = [fold(plain(source.memory)) not in known for source in sources]
    index = _Index(results) if any(changed) else None
    pairs = zip(sources, changed, strict=True)
    return [index.missing(source) if index and is_changed else None for source, is_changed in pairs]


def carriers(sources: Sequence[UserMemory], results: Sequence[UserMemory]) -> list[frozenset[int]]:
    """For each thing that the sources say, where among the results it stands. All of it must stand there."""
    index = _Index(results)
    return [places for source in sources for places in index.carrying(source)]


def _facts(tokens: Iterable[Token]) -> list[Fact]:
    return [Fact(_kind(token), token.text) for token in tokens]


def _kind(token: Token) -> FactKind:
    if token.kind == "number" and _YEAR.fullmatch(token.text):
        return "date"
    return token.kind


class _Index:
    """The clauses of the results, by their words."""

    def __init__(self, results: Sequence[UserMemory]) -> None:
        self.texts = [fold(plain(result.memory)) for result in results]
        self.whole = "\n".join(self.texts)
        self.placed: dict[str, list[int]] = {}
        self.clauses: list[tuple[int, Clause]] = []
        self.holding: dict[str, list[int]] = {}
        self.saying: dict[str, set[int]] = {}
        self.found: dict[str, frozenset[int]] = {}
        for i, result in enumerate(results):
            self.placed.setdefault(self.texts[i], []).append(i)
            for clause in (clause for sentence in sentences(result.memory) for clause in sentence):
                self._add(i, clause)

    def _add(self, result: int, clause: Clause) -> None:
        place = len(self.clauses)
        self.clauses.append((result, clause))
        self.saying.setdefault(_print(clause.claim), set()).add(result)
        for key in (clause.shared or clause.alone).places.keys() | clause.alone.places.keys():
            self.holding.setdefault(key, []).append(place)

    def missing(self, source: UserMemory) -> Lost | None:
        """What no result says of the source."""
        units = _units(source.memory)
        if not units:
            return None if fold(source.memory) in self.whole else Lost(source.memory_id, (Fact("word", source.memory),))
        facts = [fact for clauses in units for fact in self._unsaid(clauses)]
        facts += self._unquoted(source.memory)
        return Lost(source.memory_id, tuple(dict.fromkeys(facts))) if facts else None

    def carrying(self, source: UserMemory) -> Iterator[frozenset[int]]:
        """The results that say each thing which the source says."""
        whole = fold(plain(source.memory))
        if whole in self.placed:
            yield frozenset(self.placed[whole])
            return
        for clauses in _units(source.memory):
            there = [self._where(clause.claim) for clause in clauses]
            yield there[0].intersection(*there[1:])
        for words in QUOTED.findall(source.memory) if _units(source.memory) else [source.memory]:
            yield frozenset(i for i, text in enumerate(self.texts) if fold(plain(words)) in text)

    def _unquoted(self, text: str) -> list[Fact]:
        quoted = (words for words in QUOTED.findall(text) if fold(plain(words)) not in self.whole)
        return [Fact("quoted", words) for words in quoted]

    def _unsaid(self, clauses: Sequence[Clause]) -> list[Fact]:
        """The facts of clauses that must stand in one result."""
        where: frozenset[int] | None = None
        missing: list[Fact] = []
        for clause in clauses:
            there = self._where(clause.claim)
            if there:
                where = there if where is None else where & there
            else:
                missing += self._absent(clause.claim)
        if missing or where:
            return missing
        return _facts(token for clause in clauses for token in clause.claim.needed)

    def _where(self, claim: View) -> frozenset[int]:
        """The results that say the claim."""
        key = _print(claim)
        if key not in self.found:
            same = self.saying.get(key)
            said = same or {i for i, clause in self._candidates(claim) if carries(clause, claim)}
            self.found[key] = frozenset(said)
        return self.found[key]

    def _candidates(self, claim: View) -> list[tuple[int, Clause]]:
        """Clauses that have the claim's rarest word; without any there can be none."""
        rarest = min((self._holding(token) for token in claim.needed), key=_size)
        places = itertools.islice(itertools.chain.from_iterable(rarest), _CANDIDATES)
        return [self.clauses[place] for place in places]

    def _holding(self, token: Token) -> list[list[int]]:
        return [self.holding[key] for key in token.keys if key in self.holding]

    def _absent(self, claim: View) -> list[Fact]:
        """What the nearest clause doesn't have; all of it where every word is there, but not together."""
        held = [places for token in claim.needed if (places := self._holding(token))]
        rarest = min(held, key=_size) if held else list[list[int]]()
        near = itertools.islice(itertools.chain.from_iterable(rarest), _CANDIDATES)
        lacking = [unsaid(self.clauses[place][1], claim) for place in near]
        best = min(lacking, key=len, default=()) or list(claim.needed)
        is_turned = len(best) == len(claim.needed) and claim.marks.negations
        return _facts(best) + ([Fact("negation", "not")] if is_turned else [])


def _units(text: str) -> list[list[Clause]]:
    """The clauses of a text, those together that must stand in one result."""
    parts = sentences(text)
    if len(parts) > _ONE_UNIT:
        return [list(part) for part in parts]
    return [[clause for part in parts for clause in part]] if parts else []


def _size(postings: list[list[int]]) -> int:
    return sum(map(len, postings))


def _print(view: View) -> str:
    """Equal for claims that say the same in the same words."""
    keys = " ".join("|".join(sorted(token.keys)) for token in view.tokens)
    return f"{keys}\x1f{view.marks.negations}{view.marks.averse}{view.marks.uncertain}"
