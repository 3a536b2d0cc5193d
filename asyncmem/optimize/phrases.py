"""A text as clauses of tokens, each clause with what it is about (pure)."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from ..claims import is_averse, is_negated
from . import lexicon
from .separators import SENTENCE, Part, parts
from .words import KOREAN, WIDE, Token, plain, tokens_of

_VERBLIKE = re.compile(r"[a-z]{2,}(?:[^s\W]s|ed)|[a-zäöüß]{3,}t|[а-яё]+(?:ет|ёт|ит|ут|ют|ат|ят|ал|ала|ил|ила|ся)")
_SPACED = re.compile(rf"[^\W\d_{WIDE}{KOREAN}]")
_RELATIVE = re.compile(r"(?:who|which|that)\b", re.IGNORECASE)
_RELATIVE_COMMA = re.compile(r"(?:der|die|das|que|qui)\b", re.IGNORECASE)
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
    def leading(self) -> tuple[Token, ...]:
        """Its subject, verb and the word after, which must keep that order; without a subject the first two."""
        if not _SPACED.match(self.needed[0].text):
            return ()
        subject, _ = _subject(self.tokens)
        needed = [t for t in self.needed if t.kind != "negation" and t.text.casefold() not in lexicon.ASIDE]
        at = needed.index(subject[-1]) if subject else 0
        return tuple(needed[at : at + (3 if subject else 2)])

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
    outside: View | None = None


@lru_cache(maxsize=16_384)
def sentences(text: str) -> tuple[tuple[Clause, ...], ...]:
    """The text's sentences, each as its clauses; those without any word are left out."""
    return tuple(sentences_after((), text))


def sentences_after(last: tuple[Clause, ...], text: str) -> list[tuple[Clause, ...]]:
    """The same for a text that goes on after a sentence of these clauses."""
    found = [last]
    for sentence in SENTENCE.split(plain(text)):
        clauses = _clauses(sentence, found[-1])
        if clauses:
            found.append(tuple(clauses))
    return found[1:]


def _clauses(sentence: str, last: tuple[Clause, ...]) -> list[Clause]:
    before = _Before(unclear=frozenset[str]().union(*map(_unclear, last)))
    person = _person(last)
    for part in parts(sentence):
        if part.after == "closing" and before.outside is not None:
            before.view, before.outside = before.outside, None
        tokens = tuple(tokens_of(part.text, begins=not before.clauses, pronouns=before.unclear))
        if tokens and person and tokens[0].text.casefold() in lexicon.ONE_PERSON:
            tokens = (person, *tokens[1:])
        if tokens:
            before.clauses.append(_clause(part, tokens, before))
            before.unclear |= _unclear(before.clauses[-1])
    return [_placed(*pair) for pair in itertools.zip_longest(before.clauses, before.clauses[1:])]


def _placed(clause: Clause, after: Clause | None) -> Clause:
    """The clause with the next one's place: "lives (in Leeds) and works in Leeds"."""
    verb = clause.alone.tokens[-1]
    rest = after.alone.tokens[after.alone.own :] if after else ()
    if verb.keys.isdisjoint(lexicon.PLACED) or len(rest) < 2 or rest[0].keys.isdisjoint(lexicon.PLACED):
        return clause
    alone = clause.alone
    return replace(clause, alone=replace(alone, tokens=(*alone.tokens, *rest[1:])))


def _person(last: tuple[Clause, ...]) -> Token | None:
    """Whom "he" or "she" is, where the sentence before is about one person and names no other."""
    subject = _subject(last[0].alone.tokens)[0] if last else ()
    if len(subject) != 1 or not subject[0].text[0].isupper() or _is_about_persons(subject[0]):
        return None
    for clause in last:
        for i, token in enumerate(clause.alone.tokens):
            earlier = clause.alone.tokens[i - 1].text.casefold() if i else ""
            is_name = token.kind == "name" and earlier not in lexicon.PLACING
            if (is_name or _is_about_persons(token)) and token.text != subject[0].text:
                return None
    return subject[0]


def _is_about_persons(token: Token) -> bool:
    return token.text.casefold().removesuffix("'s") in lexicon.ABOUT_PERSONS


def _unclear(clause: Clause) -> frozenset[str]:
    """The pronouns that may stand for somebody other than the user, after this clause."""
    tokens = clause.alone.tokens
    named = {token.text.casefold().removesuffix("'s") for token in tokens}
    about = {token.text.casefold() for token in _subject(tokens)[0]}
    plural = {word for word in named if word.endswith("s") and word[:-1] in lexicon.PERSONS}
    if plural or (named & lexicon.SEVERAL) or (about & lexicon.THEY):
        return lexicon.PRONOUNS
    return lexicon.PRONOUNS - lexicon.THEY if about or named & lexicon.PERSONS else frozenset()


def _clause(part: Part, tokens: tuple[Token, ...], before: _Before) -> Clause:
    marks = _marks(part.text, tokens)
    subject, stands = _subject(tokens)
    if before.view is None:
        before.subject = subject
        before.view = View(tokens, 0, marks)
        return Clause(part.text, before.view)
    if before.outside is not None or _is_bound(part, tokens):
        return _bound(part, tokens, before, before.outside or before.view)
    led = () if subject else before.subject if stands else ()
    alone = View((*led, *tokens), len(led), marks)
    is_apart = part.after == "contrary" and (stands or not marks.negations or before.view.marks.negations)
    shared = None if is_apart else _shared(tokens, before.view, marks)
    before.subject = subject or before.subject
    before.view = alone if stands or shared is None else shared
    return Clause(part.text, alone, shared, elliptic=not stands)


def _is_bound(part: Part, tokens: tuple[Token, ...]) -> bool:
    """Whether a part belongs to the word right before it."""
    if part.after in ("opening", "colon") or _RELATIVE.match(part.text):
        return True
    if part.after == "comma" and _RELATIVE_COMMA.match(part.text):
        last = tokens[-1].text
        is_german = tokens[0].text.casefold() in lexicon.DETERMINERS
        return not is_german or _is_verb(tokens[-1], last)
    needed = [t for t in tokens if t.needed]
    is_age = bool(needed) and needed[0].kind == "number" and all(map(_is_age, needed))
    return is_age and not _subject(tokens)[1]


def _is_age(token: Token) -> bool:
    return token.kind == "number" or token.text.casefold() in lexicon.AGES


def _bound(part: Part, tokens: tuple[Token, ...], before: _Before, view: View) -> Clause:
    """The part after the word that it belongs to, whatever else that word's clause says."""
    led = view.own_needed if part.after == "colon" else view.needed[-1:]
    if _RELATIVE_COMMA.match(part.text):
        tokens = (replace(tokens[0], needed=False), *tokens[1:])
    made = View((*led, *tokens), len(led), _marks(part.text, tokens))
    if part.after == "opening":
        before.outside = view
    if part.after == "colon":
        before.view = made
    return Clause(part.text, made)


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
        if _is_verb(token, token.text if i else token.text.casefold()):
            before = (t for t in tokens[:i] if t.needed and t.kind != "negation")
            return tuple(t for t in before if t.text.casefold() not in lexicon.ASIDE), True
        if i > 3:
            break
    return (), False


def _is_verb(token: Token, written: str) -> bool:
    word = token.text.casefold()
    is_known = word in lexicon.CLASS_OF or word in lexicon.BEING
    return is_known or (token.kind == "word" and _VERBLIKE.fullmatch(written) is not None)


def _marks(text: str, tokens: Sequence[Token]) -> Marks:
    """What turns the clause around: negations, aversion or past, uncertainty."""
    negations = sum(token.kind == "negation" for token in tokens) + len(_WIDE_NOT.findall(text))
    return Marks(negations or int(is_negated(text)), is_averse(text), lexicon.is_uncertain(text))
