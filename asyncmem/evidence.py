"""Whether the user's own words carry what a model wants to remember (pure)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .answers import Turn
from .claims import backdates, denies, is_averse, is_negated, unsaid_name, unsaid_negation
from .numbers import Said, said_numbers, unsaid_number, without_dates
from .operations import fold
from .sentences import parts_of, sentences_of
from .wording import common, content, is_wide, scripts, share, tokens

UNSAID = "the user's words don't say it"
ECHO = "it says what the assistant said"
NO_NEWS = "nothing that was said is new in it"
FOREIGN = "it is in another script than the user's words"
NUMBER = "it holds a number or date that nobody said"
NAME = "it holds a name that nobody said"
PAST = "it says of the past what the user says of now"
NEGATED = "the user's words negate it"
NOT_NEGATED = "the user's words don't negate it"

_NEAR = 0.75
"""Share of the claimed words that the user must have said for evidence that was not copied exactly."""
_CARRIES = 0.6
"""Share of a memory's words that the user must have said to stand for missing evidence."""
_SAME = 0.6
"""Share of a known text's words that a text without any new word must have, to say the same."""
_LEAST = 0.25
"""Share of a new memory's words that must stand around its evidence."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a memory rests on.

    Attributes:
        words: the user's words; ``None`` where none were asked for.
        sources: indexes of the messages that hold them.
    """

    words: str | None
    sources: tuple[int, ...] = ()


def find_evidence(claimed: str, memory: str, turns: Sequence[Turn], known: str = "") -> Evidence | None:
    """The user's words that a memory rests on, or ``None`` when there are none.

    Words that stand in what the user said, case, white space, quotes and Unicode form apart, are taken as they are.
    Missing or inexactly copied ones are replaced by the sentence that carries the memory best, if one clearly does;
    words of a question by the answer to it. Words that nobody said are no evidence.

    Args:
        claimed: what the model says the memory rests on.
        memory: the text to be written.
        turns: what the user said.
        known: the text that is there already, where the memory updates one; it needs no evidence.
    """
    if claimed.strip():
        quoted = _quoted(claimed, turns)
        if quoted:
            return Evidence(claimed.strip(), quoted)
        answer = next((t for t in turns if t.assents and _is_in(claimed, t.question)), None)
        if answer is not None:
            return Evidence(answer.text, (answer.index,))
        if max((share(claimed, turn.text) for turn in turns), default=0.0) < _NEAR:
            return None
    return _best_sentence(memory, turns, known)


def find_sources(claimed: str, turns: Sequence[Turn]) -> Evidence:
    """What a model claims, unchecked, with the messages that hold it if there are any."""
    return Evidence(claimed.strip() or None, _quoted(claimed, turns))


def says_the_same(text: str, known: str) -> bool:
    """Whether a text only repeats a known one: no word that carries a fact is new, and few are missing.

    Texts that differ in a number or in a negation never say the same; a number in words is the same number.
    """
    (words, _), (there, beginnings) = _facts(text), _facts(known)
    if not _beginnings_needed(text) <= beginnings:
        return False  # most pairs end here: what is alike begins alike
    common_words = common(words, there) | _counted(words, known)
    return (
        len(common_words) == len(words)
        and len(common(there, words) | _counted(there, text)) >= _SAME * len(there)
        and is_negated(text) == is_negated(known)
    )


@lru_cache(maxsize=2048)
def _facts(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a text that carry a fact, and how they begin. Each addition is compared with all that is known."""
    words = frozenset(content(text))
    return words, frozenset(word[0] for word in words)


@lru_cache(maxsize=256)
def _beginnings_needed(text: str) -> frozenset[str]:
    """How the words begin that another text must have to say the same; numbers may be said in other words."""
    return frozenset(word[0] for word in _facts(text)[0] if not said_numbers(word))


def objection(
    evidence: Evidence, memory: str, turns: Sequence[Turn], known: str = "", names: Sequence[str] = ()
) -> str | None:
    """Why the evidence doesn't carry the memory, or ``None`` when it does.

    Some of what the memory says anew must stand in the evidence or in the user's words around it, or in a question
    that they answer. Its numbers, names and negations must have been said; dates may be counted from a day.

    Args:
        evidence: what ``find_evidence`` gave.
        memory: the text to be written.
        turns: what the user said.
        known: the text that it replaces.
        names: texts whose names are known of the user: "she" may be one of them.
    """
    resting = [turn for turn in turns if turn.index in evidence.sources]
    around = " ".join(_around(str(evidence.words), turn.text) for turn in resting)
    asked = " ".join(turn.question for turn in resting)
    heard = [text for turn in turns for text in (turn.text, turn.question)]
    said = Said(said_numbers("\n".join((*heard, known))), tuple(turn.day for turn in turns))
    news = content(without_dates(memory)) - content(known)
    reason = _carried(memory, known, news, around, asked, assents=any(turn.assents for turn in resting))
    if reason is not None:
        return reason
    if _is_echo(news, f"{around} {asked}", " ".join(turn.told for turn in resting)):
        return ECHO
    if unsaid_number(memory, said) is not None:
        return NUMBER
    if known and not scripts(memory) & scripts(around):
        return None
    if unsaid_name(memory, (*heard, known, *names)) is not None:
        return NAME
    if unsaid_negation(memory, known, (around, asked)):
        return NOT_NEGATED
    if known and backdates(memory, known, f"{around} {asked}"):
        return PAST
    return NEGATED if denies(memory, around) else None


def _is_echo(news: set[str], heard: str, told: str) -> bool:
    """Whether as much of what is new was told by the assistant, unasked, as the user said."""
    own = common(news, tokens(heard))
    return len(common(news - own, tokens(told))) >= max(1, len(own))


def _carried(memory: str, known: str, news: set[str], around: str, asked: str, *, assents: bool) -> str | None:
    if not news and known:
        return NO_NEWS
    own = common(news, tokens(around)) | _counted(news, around)
    heard = own | common(news, tokens(asked)) | _counted(news, asked)
    if not own and not (assents and heard):
        if scripts(memory) & scripts(around):
            return NO_NEWS if known else UNSAID
        return None if known else FOREIGN  # what is known may be in another script, where words can't be compared
    if not own and is_negated(around) and not is_averse(memory):
        return NEGATED
    return None if known or len(heard) >= _LEAST * len(news) else UNSAID


def _counted(words: Collection[str], text: str) -> set[str]:
    """Those of the words that are numbers which the text says in another way."""
    said = said_numbers(text)
    return {word for word in words if said_numbers(word) & said}


def _around(words: str, text: str) -> str:
    """The sentences of the text that the words stand in, and those beside them."""
    sentences = sentences_of(text)
    parts = [folded for part in parts_of(words) if (folded := fold(part))]
    holding = [i for i, s in enumerate(sentences) if any(p in fold(s) or fold(s) in p for p in parts if fold(s))]
    if not holding:
        return text
    return " ".join(s for i, s in enumerate(sentences) if any(abs(i - j) <= 1 for j in holding))


def _quoted(claimed: str, turns: Sequence[Turn]) -> tuple[int, ...]:
    """The first turn that holds all of the words, or those that hold them together."""
    whole = next((turn for turn in turns if _is_in(claimed, turn.text)), None)
    if whole is not None:
        return (whole.index,)
    parts = parts_of(claimed)
    found = [next((turn.index for turn in turns if _is_in(part, turn.text)), None) for part in parts]
    return tuple(sorted({i for i in found if i is not None})) if parts and None not in found else ()


def _is_in(claimed: str, words: str) -> bool:
    folded = f" {fold(words)} "
    parts = [fold(part) for part in parts_of(claimed)]
    return bool(parts) and all(_bounded(part, folded) for part in parts)


def _bounded(part: str, folded: str) -> bool:
    """Whether the part stands in the text as whole words; scripts without spaces have none."""
    if not part:
        return False
    return part in folded if is_wide(part) else f" {part} " in folded


def _best_sentence(memory: str, turns: Sequence[Turn], known: str) -> Evidence | None:
    scored = [(share(memory, s, known), -i, s, turn) for turn in turns for i, s in enumerate(sentences_of(turn.text))]
    best = max(scored, key=lambda found: found[:2], default=None)
    return Evidence(best[2], (best[3].index,)) if best is not None and best[0] >= _CARRIES else None
