"""A text's words, numbers, dates and characters, as they are compared (pure)."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from ..claims import is_negated
from ..dates import dates_in
from ..numbers import Said, replace_dates, said_numbers, unsaid_number
from ..tokens import stem
from . import lexicon
from .lexicon import words

FactKind = Literal["number", "date", "name", "quoted", "negation", "unit", "word"]

WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
KOREAN = "\uac00-\ud7af"
_TOKEN = re.compile(
    r"(?P<date>[\ue000-\ue00a]+)|(?P<ratio>\d+(?::\d+)+)|(?P<digits>(?:(?<![\w.,:)\]%°€$£])-)?\d+(?:[.,]\d+)*)"
    r"|(?P<half>(?:(?<=\d)|(?<=\d ))[AaPp](?:\.\s?[Mm]\.?|[Mm])(?!\w))"
    rf"|(?P<korean>[{KOREAN}]+)|(?P<wide>[{WIDE}]+)"
    rf"|(?P<word>[^\W\d_{WIDE}{KOREAN}\ue000-\ue00a]+(?:'[^\W\d_]+)*[+#]*)|(?P<sign>[%€$£¥°+#&@])"
)
_SIGN = re.compile(r"(?<![\w.,:)\]%°€$£])[−–](?=\d)")
_MINUS = re.compile(r"(?:(?<=\b[A-Z0-9])|(?<=\b[A-Z]{2}))[-−–](?![\w>])|(?<!\S)[-−–](?=[€$£¥]\d)")
"""A sign that isn't right before its number: the blood group "0-", "-€5"."""
_GROUPED = re.compile(r"([1-9]\d{0,2}([.,])\d{3}(?:\2\d{3})*)(?:(?!\2)[.,](\d+))?")
"""Digits in groups of three: 1,200 and 1.200 are a thousand and more, 1.2 and 0.125 are none."""
_RUNS = re.compile(
    r"(?P<kana>[゠-ヿ]{2,})|(?P<han>[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff゠-ヿ])|(?P<other>[^\s゠-ヿ\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)"
)
_PLAIN_NOT = words("not no dont doesnt isnt nicht kein keine keinen keinem keiner keines не нет ni لا ليس ليست")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "ʼ": "'", "`": "'", "´": "'"})
_NOBODY = Said(frozenset())
_DATE = "0123456789-"
_PRIVATE = {ord(c): 0xE000 + i for i, c in enumerate(_DATE)}
_PUBLIC = {0xE000 + i: c for i, c in enumerate(_DATE)}


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, date or character.

    Attributes:
        keys: what it is compared by; a number has one for each of its readings.
        kind: of which kind of fact it is.
        text: as it stands in the text.
        needed: a result that carries the clause must have it.
        also: what it answers to besides, in a result.
    """

    keys: frozenset[str]
    kind: FactKind
    text: str
    needed: bool = True
    also: tuple[str, ...] = ()


def plain(text: str) -> str:
    """In Unicode's compatibility form, without characters that only format, its dates as one token each."""
    if not text.isascii():
        normal = unicodedata.normalize("NFKC", text.translate(_QUOTES))
        text = "".join(c for c in normal if c.isascii() or unicodedata.category(c) not in ("Cf", "Co"))
    return replace_dates(_MINUS.sub(" minus ", _SIGN.sub("-", text)), _one_token)


def _one_token(words: str, iso: str) -> str:
    if not words[0].isdigit() or not words[-1].isdigit() or any(c.isalpha() for c in words):
        bare = unicodedata.normalize("NFD", words.casefold())
        if not dates_in("".join(c for c in bare if not unicodedata.combining(c) or c == "\u0306")):
            return words  # "marathon 2019" begins like a month
    return f" {iso.translate(_PRIVATE)} "


def tokens_of(part: str, *, begins: bool, pronouns: frozenset[str]) -> Iterator[Token]:
    """The tokens of a clause, in order.

    Args:
        part: the clause, in the form of ``plain``.
        begins: it begins a sentence, so that its first word's capital says nothing.
        pronouns: those that may stand for somebody who was named before.
    """
    counted: list[str] = []
    for match in _TOKEN.finditer(part):
        text, kind = match[0], match.lastgroup
        if counted and not (kind == "word" and _continues(" ".join(counted), text)):
            yield _number(counted)
            counted = []
        if counted or kind == "digits" or (kind == "word" and _is_number(text.casefold())):
            counted.append(text)
        elif kind == "word":
            yield _word(text, begins=begins and not part[: match.start()].strip(" \"'“„«¿¡"), pronouns=pronouns)
        elif kind == "wide":
            yield from _wide(text)
        elif kind == "ratio":
            yield _ratio(text)
        elif kind == "half":
            yield Token(frozenset({f"{text[0].casefold()}.m."}), "unit", text)
        elif kind == "date":
            iso = text.translate(_PUBLIC)
            yield Token(frozenset({f"d{iso}"}), "date", iso)
        elif kind == "korean":
            word = lexicon.korean_stem(text)
            yield Token(frozenset({word}), "word", text, bool(lexicon.WIDE_FRAMES.sub("", text)))
        else:
            yield Token(frozenset({text}), "unit" if text in lexicon.UNITS else "word", text)
    if counted:
        yield _number(counted)


@lru_cache(maxsize=4096)
def _is_number(word: str) -> bool:
    return unsaid_number(word, _NOBODY) is not None


@lru_cache(maxsize=4096)
def _continues(number: str, word: str) -> bool:
    """Whether the word makes it a greater number: "thirty" and "four", "5" and "thousand", but not "7" and "two"."""
    alone = said_numbers(word)
    return max(said_numbers(f"{number} {word}")) > max(alone | said_numbers(number))


def _number(words: Sequence[str]) -> Token:
    text = " ".join(words)
    bare = text.lstrip("-")
    grouped = _GROUPED.fullmatch(bare)
    if grouped is not None:
        values = frozenset({Decimal(f"{re.sub('[.,]', '', grouped[1])}.{grouped[3] or 0}")})
    else:
        readings = said_numbers(bare)
        values = readings if len(words) == 1 and bare[0].isdigit() else frozenset({max(readings)})
    sign = "" if bare == text else "-"
    return Token(frozenset(f"#{sign}{_canonical(value)}" for value in values), "number", text)


def _ratio(text: str) -> Token:
    """A clock's time or a result; "6:00" is "6" as well."""
    first, *others = (part.lstrip("0") or "0" for part in text.split(":"))
    whole = {f"#{first}"} if others == ["0"] else set[str]()
    return Token(frozenset({f"#{':'.join((first, *others))}", *whole}), "number", text)


def _canonical(value: Decimal) -> str:
    return f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"


@lru_cache(maxsize=65_536)
def _word(text: str, *, begins: bool, pronouns: frozenset[str]) -> Token:
    owner = text.removesuffix("'s")
    word = owner.casefold()
    also = (f"={word}", "own") if owner != text or word in lexicon.OWNING else (f"={word}",)
    if word.replace("'", "") in _PLAIN_NOT or word.endswith("n't"):
        return Token(frozenset({word}), "negation", text, needed=False, also=also)
    if word in lexicon.CLASS_OF:
        return Token(frozenset({lexicon.CLASS_OF[word]}), "word", text, also=also)
    needed = word not in lexicon.EMPTY and (word in pronouns or word not in lexicon.PRONOUNS)
    key = stem(word) + ("<" if _is_past(word) else "")
    kind: FactKind = "unit" if word in lexicon.UNITS else "negation" if is_negated(word) else "word"
    if _is_name(owner, begins=begins) and needed:
        exact = key if "\u0400" <= word[0] <= "\u052f" else f"={word}"
        return Token(frozenset({exact}), "name", text, also=(*also, key))
    return Token(frozenset({key}), kind, text, needed, also)


def _is_name(word: str, *, begins: bool) -> bool:
    return word[0].isupper() and (not begins or (len(word) > 1 and word.isupper())) and word != "I"


def _is_past(word: str) -> bool:
    """Whether a word is said of the past; what is so now must not become what was."""
    if "\u0400" <= word[0] <= "\u052f":
        return word.endswith(("л", "ла", "ло", "ли", "лся", "лась"))
    return word[0].isascii() and ((len(word) > 4 and word.endswith("ed")) or not word.startswith(stem(word)[:3]))


def _wide(run: str) -> Iterator[Token]:
    """Characters of Han, words of Katakana, pairs of other letters; what a summary may vary by its class."""
    end = 0
    for match in lexicon.WIDE_CLASSES.finditer(run):
        yield from _characters(run, end, match.start())
        yield Token(frozenset({lexicon.wide_class(match[0])}), "word", match[0])
        end = match.end()
    yield from _characters(run, end, len(run))


def _characters(run: str, start: int, end: int) -> Iterator[Token]:
    for match in _RUNS.finditer(lexicon.WIDE_FRAMES.sub("", run[start:end])):
        text, kind = match[0], match.lastgroup
        if kind == "kana":
            yield Token(frozenset({text}), "name", text)
        elif kind == "han":
            yield _character(text, match.string[match.start() : match.start() + 3])
        else:
            for piece in re.split(f"[{''.join(lexicon.WIDE_EMPTY)}]", text):
                pairs = [piece[i : i + 2] for i in range(len(piece) - 1)] or ([piece] if piece else [])
                yield from (Token(frozenset({pair}), "word", pair, len(pair) > 1) for pair in pairs)


def _character(text: str, after: str) -> Token:
    """A character; a number together with what it counts."""
    if text in lexicon.HAN_NUMBERS:
        return Token(frozenset({f"{after} "}), "number", after, also=(text,))
    return Token(frozenset({text}), "word", text, text not in lexicon.WIDE_EMPTY)
