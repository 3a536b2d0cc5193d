"""Whether the sources say what a result says (pure)."""

import re
from collections.abc import Iterator, Sequence

from ..claims import unsaid_name
from ..numbers import Said, said_numbers, unsaid_number
from ..operations import fold
from ..types import UserMemory
from ..wording import common, content, language_of, scripts, tokens
from .carrying import carries
from .phrases import Clause, View, sentences, split_sentences
from .preserving import QUOTED, Fact
from .words import plain

_MOST = 8
"""Names or numbers that are reported of one kind."""
_FAMILIAR = 0.3
"""Share of a result's words that the sources must have; below, it is about something else or in another language."""
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
        *(Fact("name", name) for name in _names(text, said)),
        *(Fact("quoted", words) for words in _quotations(text, fold(plain(said)))),
        *(Fact("negation", words) for words in _negations(text, sources)),
    ]


def is_foreign(sources: Sequence[UserMemory], text: str) -> bool:
    """Whether the text is in another language or script than the sources, or about something else."""
    said = "\n".join(source.memory for source in sources)
    if scripts(text) - scripts(said):
        return True
    spoken = language_of(text)
    if spoken is not None and spoken != language_of(said) and all(language_of(s.memory) != spoken for s in sources):
        return True
    words = content(text)
    return len(common(words, tokens(said))) < _FAMILIAR * len(words)


def supported(sources: Sequence[UserMemory], text: str) -> str:
    """The text without sentences that don't say what a source says, or give its number or name to another thing."""
    claims = [clause.claim for source in sources for sentence in sentences(source.memory) for clause in sentence]
    kept = [sentence for sentence in split_sentences(text) if _is_supported(sentence, claims)]
    return " ".join(kept) if "\n" not in text else "\n".join(kept)


def _is_supported(sentence: str, claims: Sequence[View]) -> bool:
    clauses = [clause for part in sentences(sentence) for clause in part]
    return bool(clauses) and all(_rests_on(clause, claims) for clause in clauses)


def _rests_on(clause: Clause, claims: Sequence[View]) -> bool:
    own = [t for t in clause.alone.tokens if t.needed]
    if not own:
        return True
    carried = [claim for claim in claims if carries(clause, claim)]
    keys = {key for claim in carried for token in claim.tokens for key in (*token.keys, *token.also)}
    return bool(carried) and all(t.keys & keys for t in own if t.kind in _CERTAIN)


def _numbers(text: str, said: Said) -> Iterator[str]:
    for _ in range(_MOST):
        number = unsaid_number(text, said)
        if number is None:
            return
        yield number
        text = re.sub(re.escape(number), " ", text, flags=re.IGNORECASE)


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
