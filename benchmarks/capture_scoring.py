"""What a capture should have done, and how far it did: cases as data, checks that a program decides (pure)."""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("capture_cases.json")
SCRIPTS = {
    "zh": "CJK UNIFIED",
    "ja": "CJK UNIFIED|HIRAGANA|KATAKANA",
    "ko": "HANGUL",
    "ru": "CYRILLIC",
    "ar": "ARABIC",
    "de": "LATIN",
    "es": "LATIN",
}
"""What the names of a language's letters begin with."""
_ENGLISH = re.compile(
    r"\b(?:is|the|and|from|user|lives|works|likes|with|drinks|named|name|prefers|doesn?|eats?|drinks?|lived?|works?)\b"
)

Pattern = Sequence[str]
"""Regular expressions that one memory must all match for a fact to be held."""


@dataclass(frozen=True)
class Case:
    """A conversation and what memory should be like afterwards.

    Attributes:
        id: its name.
        category: what it is an example of.
        set: ``dev``, for prompt and guards to be improved on, or ``held-out``, which is only reported.
        turns: a dict of role and text each.
        before: memories that exist already, in order.
        at: when it was said.
        delete: whether the model may delete.
        facts: each must be held by one memory in the end.
        keeps: what was known and must still be held.
        may_hold: what may be written besides.
        never: what no memory may match, save one that is marked suspect.
        dates: what some memory must match; dates that were made absolute.
        changed: which memories of ``before`` must have a new text.
        may_change: which may.
        gone: which must be gone. All others must stay as they are.
        count: how many memories there should be in the end, at least and at most.
        language: what texts must be written in.
        refused: whether a wish to forget must be reported as refused.
    """

    id: str
    category: str
    set: str
    turns: Sequence[Mapping[str, str]]
    before: Sequence[str] = ()
    at: str = "2026-03-02T18:00:00Z"
    delete: bool = False
    facts: Sequence[Pattern] = ()
    keeps: Sequence[Pattern] = ()
    may_hold: Sequence[str] = ()
    never: Sequence[str] = ()
    dates: Sequence[str] = ()
    changed: Sequence[int] = ()
    may_change: Sequence[int] = ()
    gone: Sequence[int] = ()
    count: Sequence[int] = ()
    language: str = ""
    refused: bool = False

    def messages(self) -> list[dict[str, Any]]:
        """The turns as messages in OpenAI's shape, with their time."""
        at = datetime.fromisoformat(self.at)
        return [{"role": role, "content": text, "at": at} for turn in self.turns for role, text in turn.items()]


def load_cases(path: Path = CASES) -> list[Case]:
    """The cases of a file, in its order."""
    return [Case(**case) for case in json.loads(path.read_text("utf-8"))]


@dataclass(frozen=True)
class Written:
    """One change that was applied: ``index`` is the place in ``before``, or ``None`` for a new memory."""

    kind: str
    text: str
    index: int | None = None
    suspect: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a capture left.

    Attributes:
        written: the applied changes, in order.
        after: the texts of the memories that are not marked suspect.
        refused: whether the result says that a wish to forget was refused.
        failed: the error, when the model could not be used.
    """

    written: Sequence[Written] = ()
    after: Sequence[str] = ()
    refused: bool = False
    failed: str = ""


@dataclass
class Score:
    """Counts that add up.

    Attributes:
        cases: how many.
        perfect: those in which every check holds.
        facts: expected, and how many of them are ``held``.
        writes: applied, and how many of them are ``right``.
        texts: of those with a language, and how many are ``in_language``.
        dates: expected, and how many are ``dated``.
        wrong: what is not as it should be, in words.
    """

    cases: int = 0
    perfect: int = 0
    facts: int = 0
    held: int = 0
    writes: int = 0
    right: int = 0
    texts: int = 0
    in_language: int = 0
    dates: int = 0
    dated: int = 0
    wrong: list[str] = field(default_factory=list)

    def __add__(self, other: "Score") -> "Score":
        return Score(**{name: getattr(self, name) + getattr(other, name) for name in vars(self)})


def matches(pattern: Pattern, text: str) -> bool:
    """Whether the text matches all the expressions, case and Unicode form apart."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return all(re.search(unicodedata.normalize("NFKC", part), plain, re.IGNORECASE) for part in pattern)


def is_in_language(text: str, language: str) -> bool:
    """Whether most letters are of the language's script; for Latin ones, also without an everyday English word."""
    letters = [unicodedata.name(c, "") for c in text if c.isalpha()]
    own = sum(bool(re.match(SCRIPTS[language], name)) for name in letters)
    english = SCRIPTS[language] == "LATIN" and _ENGLISH.search(text.casefold())
    return 2 * own > len(letters) and not english


def score(case: Case, outcome: Outcome) -> Score:
    """How far the outcome is what the case expects."""
    if outcome.failed:
        return Score(1, facts=len(case.facts), dates=len(case.dates), wrong=[f"failed: {outcome.failed}"])
    counted = [w for w in outcome.written if not w.suspect]
    right, wrong = _writes(case, counted)
    missing = [f for f in case.facts if not _holds(outcome.after, f)]
    undated = [d for d in case.dates if not _holds(outcome.after, [d])]
    texts = [w.text for w in counted if w.kind != "delete"] if case.language else []
    foreign = [text for text in texts if not is_in_language(text, case.language)]
    wrong += [f"not held: {' & '.join(f)}" for f in missing] + [f"no date {d}" for d in undated]
    wrong += [f"not in {case.language}: {text}" for text in foreign] + _state(case, outcome)
    return Score(
        cases=1,
        perfect=int(not wrong),
        facts=len(case.facts),
        held=len(case.facts) - len(missing),
        writes=len(counted),
        right=right,
        texts=len(texts),
        in_language=len(texts) - len(foreign),
        dates=len(case.dates),
        dated=len(case.dates) - len(undated),
        wrong=wrong,
    )


def _holds(texts: Sequence[str], pattern: Pattern) -> bool:
    return any(matches(pattern, text) for text in texts)


def _writes(case: Case, written: Sequence[Written]) -> tuple[int, list[str]]:
    """How many writes are right, and the others in words. A text that brings no fact for the first time is wrong."""
    told = list(case.before)
    right, wrong = 0, list[str]()
    for write in written:
        if write.kind == "delete":
            good = write.index in case.gone
        else:
            wanted = [*case.facts, *([part] for part in case.may_hold)]
            news = any(matches(f, write.text) and not _holds(told, f) for f in wanted)
            barred = any(matches([part], write.text) for part in case.never)
            may = write.index is None or write.index in (*case.changed, *case.may_change)
            good = news and may and not barred
            told.append(write.text)
        right += good
        wrong += [] if good else [f"wrong {write.kind}: {write.text}"]
    return right, wrong


def _state(case: Case, outcome: Outcome) -> list[str]:
    """What of the memories' state is wrong, beside facts, dates and languages."""
    changed = {w.index for w in outcome.written if w.kind == "update"}
    gone = {w.index for w in outcome.written if w.kind == "delete"}
    wrong = [f"not changed: {case.before[i]}" for i in case.changed if i not in changed]
    wrong += [f"not gone: {case.before[i]}" for i in case.gone if i not in gone]
    wrong += [f"lost: {' & '.join(k)}" for k in case.keeps if not _holds(outcome.after, k)]
    wrong += [f"holds {part}" for part in case.never if _holds(outcome.after, [part])]
    if case.count and not case.count[0] <= len(outcome.after) <= case.count[1]:
        wrong.append(f"{len(outcome.after)} memories instead of {case.count[0]} to {case.count[1]}")
    if case.refused and not outcome.refused:
        wrong.append("the wish to forget is not reported")
    return wrong
