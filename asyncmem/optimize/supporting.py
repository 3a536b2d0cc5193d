"""Whether the sources say what a result says (pure)."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

from ..claims import unsaid_name
from ..numbers import Said, said_numbers, unsaid_number
from ..operations import fold
from ..types import UserMemory
from ..wording import common, content, language_of, scripts, tokens
from .carrying import carries
from .lexicon import JOINING, WIDE_JOINING
from .phrases import Clause, View, sentences, sentences_after
from .preserving import QUOTED, Fact
from .separators import split_sentences
from .words import KOREAN, Token, plain

_MOST = 8
"""Names or numbers that are reported of one kind."""
_FAMILIAR = 0.3
"""Share of a result's words that the sources must have; below, it is about something else or in another language."""
_KOREAN = re.compile(f"[{KOREAN}]")
_OWN_WORDS = 0.7
"""The same where the result is plainly in a language, but the sources are too short to tell theirs."""
_HOUR = re.compile(r"(?<![\d:.,])(\d{1,2})(?::\d\d)?\s?([ap])(?:\.\s?m\.?|m)(?!\w)", re.IGNORECASE)
_CLOCK = re.compile(r"(?<!\d)([01]?\d|2[0-4]):[0-5]\d(?!\d)")
_CERTAIN = ("number", "date", "name", "unit")
"""Kinds that must be a part of something that a source says, not only stand somewhere in the sources."""


def invented(sources: Sequence[UserMemory], results: Sequence[UserMemory]) -> list[Fact]:
    """Numbers, dates, names, quotations and negations in the results that no source has.

    Takes time in proportion to the texts. Results that are sources as they were are not looked at.
    """
    known = {fold(source.memory) for source in sources}
    texts = [result.memory for result in results if fold(result.memory) not in known]
    if not texts:
        return []
    said = "\n".join(source.memory for source in sources)
    text = ".\n".join(texts)
    return [
        *(Fact("number", number) for number in _numbers(text, Said(said_numbers(f"{said}\n{plain(said)}")))),
        *(Fact("number", hour) for hour in _hours(text, said)),
        *(Fact("name", name) for name in _names(text, said)),
        *(Fact("quoted", words) for words in _quotations(text, fold(plain(said)))),
        *(Fact("negation", words) for words in _negations(text, sources)),
    ]


def is_foreign(sources: Sequence[UserMemory], text: str) -> bool:
    """Whether the text is in another language or script than the sources, or about something else."""
    said = "\n".join(source.memory for source in sources)
    if scripts(text) - scripts(said):
        return True
    words = content(text)
    share = len(common(words, tokens(said))) / len(words) if words else 1.0
    spoken, known = language_of(text), language_of(said)
    if spoken is None or spoken == known or any(language_of(source.memory) == spoken for source in sources):
        return share < _FAMILIAR
    return known is not None or share < _OWN_WORDS


def supported(sources: Sequence[UserMemory], text: str) -> str:
    """The text without sentences that don't say what a source says, bring words that no source has, or give a
    source's number or name to another thing.
    """
    kept = [sentence for sentence, is_kept in _supported(sources, text) if is_kept]
    return " ".join(kept) if "\n" not in text else "\n".join(kept)


def added(sources: Sequence[UserMemory], text: str) -> list[str]:
    """The sentences that ``supported`` leaves out."""
    return [sentence for sentence, is_kept in _supported(sources, text) if not is_kept]


def _supported(sources: Sequence[UserMemory], text: str) -> Iterator[tuple[str, bool]]:
    """Each sentence, and whether it stays; "he" may be whom the last one that stays is about."""
    claims = [clause.claim for source in sources for sentence in sentences(source.memory) for clause in sentence]
    rarest = _by_rarest(claims)
    said = {form for claim in claims for token in claim.tokens for form in _forms(token)}
    last: tuple[Clause, ...] = ()
    for sentence in split_sentences(text):
        told = sentences_after(last, sentence)
        is_kept = bool(told) and all(_rests_on(clause, rarest, said) for part in told for clause in part)
        yield sentence, is_kept
        last = told[-1] if is_kept else last


def _rests_on(clause: Clause, claims: Mapping[str, Sequence[View]], said: Set[str]) -> bool:
    own = [t for t in clause.alone.tokens if t.needed]
    if not own:
        return True
    near = (claim for key in (clause.shared or clause.alone).places for claim in claims.get(key, ()))
    carried = [claim for claim in near if carries(clause, claim)]
    keys = {key for claim in carried for token in claim.tokens for key in (*token.keys, *token.also)}
    certain = all(t.keys & keys for t in own if t.kind in _CERTAIN)
    return bool(carried) and certain and all(_is_joining(t) or said & _forms(t) for t in own)


def _by_rarest(claims: Sequence[View]) -> dict[str, list[View]]:
    """The claims, by the keys of the word that the fewest claims have: what carries it has one of these."""
    counts = Counter(key for claim in claims for key in claim.places)
    found: dict[str, list[View]] = {}
    for claim in claims:
        token = min(claim.needed, key=lambda token: sum(counts[key] for key in token.keys))
        for key in token.keys:
            found.setdefault(key, []).append(claim)
    return found


def _is_joining(token: Token) -> bool:
    return token.text.casefold() in JOINING or token.text in WIDE_JOINING or not token.keys.isdisjoint(("own", "call"))


def _forms(token: Token) -> set[str]:
    """What a word is recognised by, whatever its ending."""
    word = token.text.casefold().removesuffix("'s")
    if _KOREAN.match(word):
        return {word[0]}
    starts = {word[:end] for end in range(max(4, len(word) - 2), len(word))}
    return {word, *starts, *(key.strip("=<") for key in token.keys)}


def _numbers(text: str, said: Said) -> Iterator[str]:
    for _ in range(_MOST):
        number = unsaid_number(text, said)
        if number is None:
            return
        yield number
        text = re.sub(re.escape(number), " ", text, flags=re.IGNORECASE)


def _hours(text: str, said: str) -> Iterator[str]:
    """Hours before or after noon, where no source says which of these."""
    there = {_noon(match) for match in _HOUR.finditer(said)}
    there |= {(int(match[1]) % 12, "p" if int(match[1]) > 11 else "a") for match in _CLOCK.finditer(said)}
    yield from (match[0] for match in _HOUR.finditer(text) if _noon(match) not in there)


def _noon(match: re.Match[str]) -> tuple[int, str]:
    return int(match[1]) % 12, match[2].casefold()


def _names(text: str, said: str) -> Iterator[str]:
    for _ in range(_MOST):
        name = unsaid_name(text, (said,))
        if name is None:
            return
        yield name
        text = text.replace(name, " ")


def _quotations(text: str, said: str) -> Iterator[str]:
    yield from (words for words in QUOTED.findall(text) if fold(plain(words)) not in said)


def _negations(text: str, sources: Sequence[UserMemory]) -> Iterator[str]:
    """Clauses that say "not" of something of which no source says it."""
    negated = [clause for part in sentences(text) for clause in part if clause.alone.marks.negations]
    if not negated:
        return
    views = [clause.claim for source in sources for part in sentences(source.memory) for clause in part]
    averse = {key for v in views if v.marks.averse or v.marks.negations for t in v.needed for key in t.keys}
    for clause in negated:
        keys = {key for token in clause.alone.needed for key in token.keys}
        if not keys & averse:
            yield clause.text
