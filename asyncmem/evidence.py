"""Whether the user's own words carry what a model wants to remember (pure)."""

import re
from collections.abc import Sequence

from .operations import fold

_ELISION = re.compile(r"\s*(?:\.\.\.|…)\s*")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_WIDE_LETTERS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""Scripts that are written without spaces, or (Korean) whose words take endings that a prefix doesn't show."""
_WORD = re.compile(rf"[{_WIDE_LETTERS}]+|\w+")
_WIDE = re.compile(f"[{_WIDE_LETTERS}]")
_NEAR = 0.75
"""Share of the claimed words that the user must have said for evidence that was not copied exactly."""
_CARRIES = 0.6
"""Share of a memory's words that the user must have said to stand for missing evidence."""


def find_evidence(claimed: str, memory: str, said: Sequence[str], known: str = "") -> str | None:
    """The user's words that a memory rests on, or ``None`` when there are none.

    Words that stand in what the user said, case, white space, quotes and Unicode form apart, are taken as they are.
    Missing or inexactly copied ones are replaced by the sentence that carries the memory best, if one clearly does.
    Words that the user did not say are no evidence.

    Args:
        claimed: what the model says the memory rests on.
        memory: the text to be written.
        said: what the user said, message by message.
        known: the text that is there already, where the memory updates one; it needs no evidence.
    """
    if claimed.strip():
        if any(_is_in(claimed, words) for words in said):
            return claimed.strip()
        if max((_share(claimed, words) for words in said), default=0.0) < _NEAR:
            return None
    return _best_sentence(memory, said, known)


def new_words(text: str, known: str) -> set[str]:
    """The words and numbers of a text that are not in ``known``."""
    return _tokens(text) - _tokens(known)


def any_heard(words: set[str], heard: Sequence[str]) -> bool:
    """Whether any of the words was said, endings apart; true where only numbers or another script are to compare."""
    there = {token for text in heard for token in _tokens(text)}
    compared = {word for word in words if not any(c.isdigit() for c in word)}
    if not compared or any(map(_WIDE.match, compared)) != any(map(_WIDE.match, there)):
        return True
    return any(_alike(word, other) for word in compared for other in there)


def share_words(one: str, other: str) -> bool:
    """Whether the texts have a word in common, its ending apart; texts without words have all in common."""
    words, others = _tokens(one), _tokens(other)
    return not words or not others or any(_alike(word, other, 4) for word in words for other in others)


def coverage(memory: str, text: str) -> float:
    """Which share of a memory's words stands in the text, their endings apart."""
    return _share(memory, text)


def _is_in(claimed: str, words: str) -> bool:
    folded = f" {fold(words)} "
    parts = [fold(part) for part in _ELISION.split(claimed) if part.strip()]
    return bool(parts) and all(_bounded(part, folded) for part in parts)


def _bounded(part: str, folded: str) -> bool:
    """Whether the part stands in the text as whole words; scripts without spaces have none."""
    if not part:
        return False
    return part in folded if _WIDE.search(part) else f" {part} " in folded


def _best_sentence(memory: str, said: Sequence[str], known: str) -> str | None:
    sentences = [match[0].strip() for words in said for match in _SENTENCE.finditer(words)]
    scored = [(_share(memory, sentence, known), sentence) for sentence in sentences if sentence]
    best = max(scored, key=lambda pair: pair[0], default=(0.0, ""))
    return best[1] if best[0] >= _CARRIES else None


def _share(text: str, words: str, known: str = "") -> float:
    """Which share of the text's words stands in ``words``; those in ``known`` don't count either way."""
    wanted = _tokens(text) - _tokens(known)
    if not wanted:
        return 0.0
    there = _tokens(words)
    return sum(any(_alike(token, other) for other in there) for token in wanted) / len(wanted)


def _tokens(text: str) -> set[str]:
    tokens: set[str] = set()
    for word in _WORD.findall(fold(text)):
        if _WIDE.match(word):
            tokens |= {word[i : i + 2] for i in range(max(1, len(word) - 1))}
        elif len(word) > 2 or any(c.isdigit() for c in word):
            tokens.add(word)
    return tokens


def _alike(token: str, other: str, least: int = 3) -> bool:
    """The same word but for its ending: at least so many letters stay; numbers must be equal."""
    if token == other or any(c.isdigit() for c in token):
        return token == other
    shortest = min(len(token), len(other))
    stem = max(min(least, shortest), shortest - 2)
    return token[:stem] == other[:stem]
