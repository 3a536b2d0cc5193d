"""A text as clauses of tokens, each clause with what it is about (pure)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from ..claims import is_averse, is_negated
from . import lexicon
from .words import KOREAN, WIDE, Token, plain, tokens_of

_SENTENCE = re.compile(rf"[.!?]+(?=[\s\"”»)\]{WIDE}]|$)|[。！？؟\n;；•।]+")
_SOFT = re.compile(
    rf",(?=[\s{WIDE}]|$)|[，、،()\[\]:：]|\s[–—-]\s|(?<![\w'])(?:and|und|y|и|or|oder|o|или|&)(?![\w'])|以及|그리고|そして",
    re.IGNORECASE,
)
_CONTRARY = re.compile(
    r"(?<![\w'])(?:but|because|though|although|while|whereas|aber|sondern|weil|pero|sino|porque|но|а|потому|لكن|ولكن|لأن)(?![\w'])"
    r"|但是?|而是|因为|けど|けれど|지만",
    re.IGNORECASE,
)
_VERBLIKE = re.compile(r"[a-z]{2,}(?:[^s\W]s|ed)|[a-zäöüß]{3,}t|[а-яё]+(?:ет|ёт|ит|ут|ют|ат|ят|ал|ала|ил|ила|ся)")
_RELATIVE = re.compile(r"(?:who|which|that)\b", re.IGNORECASE)
_WIDE_NOT = re.compile(rf"[不没沒无無勿]|ない|なく|なかっ|ません|ずに|않|없|아니|(?<![{KOREAN}])[안못](?=\s)")


@dataclass(frozen=True, slots=True)
class Marks:
    """What turns a statement around.

    Attributes:
        negations: how often it says "not".
        averse: it says that something is disliked, left, or was once.
        uncertain: it says that something may be, will be or only sometimes is.
    """

    negations: int
    averse: bool
    uncertain: bool

    def __add__(self, other: "Marks") -> "Marks":
        return Marks(self.negations + other.negations, self.averse or other.averse, self.uncertain or other.uncertain)


@dataclass(frozen=True)
class View:
    """A clause's tokens, in order, after those that it shares with the clause before it."""

    tokens: tuple[Token, ...]
    own: int
    marks: Marks

    @cached_property
    def needed(self) -> tuple[Token, ...]:
        """The tokens that carry its facts; all of them where none does."""
        return tuple(t for t in self.tokens if t.needed) or self.tokens

    @cached_property
    def repeated(self) -> tuple[tuple[Token, int], ...]:
        """Those that come more than once, and how often: 弟弟 is a brother, 弟 is half of the word."""
        counts = Counter(token.keys for token in self.needed)
        return tuple((t, counts[t.keys]) for t in self.needed if counts[t.keys] > 1)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where each key stands."""
        found: dict[str, list[int]] = {}
        for place, token in enumerate(self.tokens):
            for key in (*token.keys, *token.also):
                found.setdefault(key, []).append(place)
        return found

    @cached_property
    def around(self) -> dict[int, tuple[int, int]]:
        """For each number's place those of the numbers before and after it, as far as there are any."""
        numbers = [i for i, token in enumerate(self.tokens) if token.kind == "number"]
        bounds = zip([-1, *numbers], [*numbers[1:], len(self.tokens)], strict=False)
        return dict(zip(numbers, bounds, strict=False))

    @cached_property
    def following(self) -> list[int]:
        """For each place the next one that matters; -1 where there is none."""
        found, after = list[int](), -1
        for place in range(len(self.tokens) - 1, -1, -1):
            found.append(after)
            after = place if self.tokens[place].needed else after
        return found[::-1]

    @cached_property
    def own_needed(self) -> tuple[Token, ...]:
        """Those that are not shared with the clause before it."""
        return tuple(t for t in self.tokens[self.own :] if t.needed)


@dataclass(frozen=True)
class Clause:
    """A part of a sentence.

    Attributes:
        text: as it stands.
        alone: what it says by itself, with its subject.
        shared: the same with what it leaves out since the clause before says it, if it may.
        elliptic: it says nothing without that.
    """

    text: str
    alone: View
    shared: View | None = None
    elliptic: bool = False

    @property
    def claim(self) -> View:
        """What a result must say."""
        return self.shared if self.elliptic and self.shared is not None else self.alone


@dataclass(slots=True)
class _Before:
    """The clause before, as far as the next one may share it."""

    view: View | None = None
    subject: tuple[Token, ...] = ()
    clauses: list[Clause] = field(default_factory=list[Clause])
    unclear: frozenset[str] = frozenset()


def split_sentences(text: str) -> list[str]:
    """The text's sentences as they stand, each with what ends it."""
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    places = zip([0, *ends], [*ends, len(text)], strict=True)
    return [sentence for start, end in places if (sentence := text[start:end].strip())]


@lru_cache(maxsize=16_384)
def sentences(text: str) -> tuple[tuple[Clause, ...], ...]:
    """The text's sentences, each as its clauses; those without any word are left out."""
    found: list[tuple[Clause, ...]] = []
    for sentence in _SENTENCE.split(plain(text)):
        clauses = _clauses(sentence, found[-1] if found else ())
        if clauses:
            found.append(tuple(clauses))
    return tuple(found)


def _clauses(sentence: str, last: tuple[Clause, ...]) -> list[Clause]:
    before = _Before(unclear=frozenset[str]().union(*map(_unclear, last)))
    for contrary, part in _parts(sentence):
        tokens = tuple(tokens_of(part, begins=not before.clauses, pronouns=before.unclear))
        if tokens:
            before.clauses.append(_clause(part, tokens, before, contrary=contrary))
            before.unclear |= _unclear(before.clauses[-1])
    return before.clauses


def _unclear(clause: Clause) -> frozenset[str]:
    """The pronouns that may stand for somebody other than the user, after this clause."""
    tokens = clause.alone.tokens
    named = {token.text.casefold().removesuffix("'s") for token in tokens}
    about = {token.text.casefold() for token in _subject(tokens)[0]}
    plural = {word for word in named if word.endswith("s") and word[:-1] in lexicon.PERSONS}
    if plural or (named & lexicon.SEVERAL) or (about & lexicon.THEY):
        return lexicon.PRONOUNS
    return lexicon.PRONOUNS - lexicon.THEY if about or named & lexicon.PERSONS else frozenset()


def _parts(sentence: str) -> Iterator[tuple[bool, str]]:
    for i, whole in enumerate(_CONTRARY.split(sentence)):
        for j, part in enumerate(_SOFT.split(whole)):
            yield i > 0 and j == 0, part.strip()


def _clause(text: str, tokens: tuple[Token, ...], before: _Before, *, contrary: bool) -> Clause:
    marks = _marks(text, tokens)
    subject, stands = _subject(tokens)
    if before.view is None:
        before.subject = subject
        before.view = View(tokens, 0, marks)
        return Clause(text, before.view)
    led = () if subject else before.subject if stands else ()
    if _RELATIVE.match(text):
        led, stands = tuple(t for t in before.view.tokens if t.needed)[-1:], True
    alone = View((*led, *tokens), len(led), marks)
    shared = None if contrary else _shared(tokens, before.view, marks)
    before.subject = subject or before.subject
    before.view = alone if stands or shared is None else shared
    return Clause(text, alone, shared, elliptic=not stands)


def _shared(tokens: tuple[Token, ...], before: View, marks: Marks) -> View:
    """The clause after what it has in common with the one before: "plays chess and (plays) tennis"."""
    needed = sum(t.needed for t in tokens)
    if tokens[0].kind == "number" or tokens[0].text.casefold() in lexicon.DETERMINERS:
        common = before.tokens[:1] if before.tokens[0].needed else ()
    else:
        # the head stays, however much follows: "likes hiking and (likes) cooking Thai food"
        common = _without_last(before.tokens, min(needed, sum(t.needed for t in before.tokens) - 1))
    return View((*common, *tokens), len(common), marks + before.marks)


def _without_last(tokens: Sequence[Token], count: int) -> tuple[Token, ...]:
    """The tokens before the last ``count`` of those that matter."""
    end = len(tokens)
    while end and count:
        end -= 1
        count -= tokens[end].needed
    return tuple(tokens[:end])


def _subject(tokens: Sequence[Token]) -> tuple[tuple[Token, ...], bool]:
    """What stands before the verb, and whether there is something like a verb at all."""
    for i, token in enumerate(tokens):
        word = token.text.casefold()
        is_verb = word in lexicon.CLASS_OF or word in ("is", "are", "ist", "sind", "es", "son")
        if is_verb or (token.kind == "word" and _VERBLIKE.fullmatch(token.text if i else word)):
            return tuple(t for t in tokens[:i] if t.needed), True
        if i > 3:
            break
    return (), False


def _marks(text: str, tokens: Sequence[Token]) -> Marks:
    """What turns the clause around: negations, aversion or past, uncertainty."""
    negations = sum(token.kind == "negation" for token in tokens) + len(_WIDE_NOT.findall(text))
    return Marks(negations or int(is_negated(text)), is_averse(text), lexicon.is_uncertain(text))
