"""Whether a clause of a result says what a clause of a source says (pure)."""

import itertools
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from .lexicon import CLASSES, DIRECTED
from .phrases import Clause, View
from .words import Token

_IN_ORDER = 0.6
"""Share of neighbouring characters that must still be neighbours, in scripts without spaces."""
_BETWEEN = 2
"""How far apart they may have moved."""

_NO_SUBJECT = re.compile("[가-힣](?<![은는이가])$")
"""A Korean word without the particle of a subject or a topic."""


def carries(clause: Clause, claim: View) -> bool:
    """Whether the clause says the whole claim: all of it, about the same, and not turned around.

    What a clause leaves out because the clause before says it ("plays chess and tennis") is taken from there, if
    the clause brings nothing else: "speaks German and learns French" doesn't say that anybody speaks French.
    """
    if _says(clause.alone, claim):
        return True
    shared = clause.shared
    if shared is None or not _says(shared, claim):
        return False
    wanted = _keys(claim.needed)
    return all(token.keys & wanted for token in shared.own_needed)


def says_all(said: Sequence[Clause], claimed: Sequence[Clause]) -> bool:
    """Whether each clause that is claimed is said by one of the others."""
    return all(any(carries(clause, each.claim) for clause in said) for each in claimed)


def unsaid(clause: Clause, claim: View) -> list[Token]:
    """The claim's tokens that the clause has nowhere."""
    there = clause.shared or clause.alone
    return [t for t in claim.needed if not _has(there, t) and not _has(clause.alone, t)]


def _says(view: View, claim: View) -> bool:
    return (
        view.marks == claim.marks
        and all(_has(view, token) for token in claim.needed)
        and all(len(_places(view, token)) >= times for token, times in claim.repeated)
        and _same_subject(view, claim)
        and all(_bound(view, number, noun) for number, noun in _counted(claim))
        and all(_follows(view, one, other) for one, other in _directed(claim))
        and _in_turn(view, claim.leading)
        and _in_order(view, claim)
    )


def _keys(tokens: tuple[Token, ...]) -> set[str]:
    return {key for token in tokens for key in (*token.keys, *token.also)}


def _has(view: View, token: Token) -> bool:
    return any(key in view.places for key in token.keys)


def _places(view: View, token: Token) -> list[int]:
    """Where it stands, in order."""
    return sorted(place for key in token.keys for place in view.places.get(key, ()))


def _same_subject(view: View, claim: View) -> bool:
    """Nothing that the claim doesn't name stands before it: that might be somebody else whom it is about."""
    wanted = _keys(claim.needed)
    before = itertools.takewhile(lambda token: not token.keys & wanted, view.tokens)
    return not any(_may_be_subject(token) for token in before)


def _may_be_subject(token: Token) -> bool:
    return token.needed and token.kind != "number" and "own" not in token.keys and not _NO_SUBJECT.search(token.text)


def _in_turn(view: View, wanted: Sequence[Token]) -> bool:
    """Whether these stand one after the other; "Ben's" is not Ben."""
    end = -1
    for token in wanted:
        places = [p for p in _places(view, token) if _is_owner(view.tokens[p]) == _is_owner(token)]
        at = bisect_right(places, end)
        if at == len(places):
            return False
        end = places[at]
    return True


def _is_owner(token: Token) -> bool:
    return token.text.endswith("'s")


def _counted(claim: View) -> Iterator[tuple[Token, Token]]:
    """Numbers with what they count: the words before and after, but for a verb that says the same as others."""
    tokens = [t for t in claim.tokens if t.needed]
    for i, token in enumerate(tokens):
        if token.kind == "number":
            beside = (*tokens[max(0, i - 1) : i], *tokens[i + 1 : i + 2])
            nouns = [t for t in beside if t.kind != "number"]
            yield from ((token, noun) for noun in nouns if len(nouns) < 2 or not _is_frame(noun))


def _is_frame(token: Token) -> bool:
    return not token.keys.isdisjoint(CLASSES)


def _bound(view: View, number: Token, noun: Token) -> bool:
    """Whether the number stands with the word, and no other number between them."""
    nouns = _places(view, noun)
    return any(_any_between(nouns, *view.around[at]) for at in _places(view, number))


def _any_between(places: Sequence[int], after: int, before: int) -> bool:
    """Whether one of the places, which are in order, lies between these two."""
    first = bisect_right(places, after)
    return first < len(places) and places[first] < before


def _directed(claim: View) -> Iterator[tuple[Token, Token]]:
    """Words that say which way round it is with what they belong to, and names that follow one another."""
    tokens = [t for t in claim.tokens if t.needed]
    yield from ((a, b) for a, b in itertools.pairwise(tokens) if _is_directed(a))
    names = [t for t in tokens if t.kind == "name"]
    yield from itertools.pairwise(names)


def _is_directed(token: Token) -> bool:
    return token.text.casefold() in DIRECTED or _is_owner(token)


def _follows(view: View, one: Token, other: Token) -> bool:
    """Whether the other stands after the one; directly after it where the one says which way round it is."""
    earlier, later = _places(view, one), _places(view, other)
    if not _is_directed(one):
        return bool(earlier and later) and min(earlier) < max(later)
    there = set(later)
    return any(view.following[place] in there for place in earlier)


def _in_order(view: View, claim: View) -> bool:
    """Whether enough neighbouring characters are still neighbours."""
    letters = [
        t for t in claim.tokens if t.needed and t.kind == "word" and not t.text[0].isascii() and len(t.text) <= 2
    ]
    pairs = Counter((a, b) for a, b in itertools.pairwise(letters) if _is_wide(a) and _is_wide(b))
    near = sum(times for (a, b), times in pairs.items() if _are_near(view, a, b))
    return near >= _IN_ORDER * pairs.total()


def _is_wide(token: Token) -> bool:
    return token.text in token.keys and "\u3400" <= token.text[0] <= "\u9fff"


def _are_near(view: View, one: Token, other: Token) -> bool:
    later = _places(view, other)
    return any(_any_between(later, place, place + _BETWEEN + 1) for place in _places(view, one))
