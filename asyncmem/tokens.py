"""The tokens that keyword search matches: folded words, CJK uni- and bigrams, numbers, ids and dates whole.

They are written with a memory, so ``SCHEME`` changes whenever a text would give other tokens than before; rows of
another scheme are tokenised again when they are read.
"""

import importlib
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import anyio.to_thread

from .dates import Date, dates_in

SCHEME = 2
"""Of which rules a row's tokens are."""
LONGEST = 64
"""Characters of a token; what is longer is cut."""
_LONG = 500
"""Characters from which a text may take milliseconds: a word that was never stemmed takes up to 0.1."""

_INVISIBLE = re.compile("[\u00ad\u0640\u200b-\u200f\u2060\ufeff]")
# Accents of Latin, Greek and Cyrillic (but "й" is a letter of its own), vowel signs of Arabic and of Hebrew.
_MARKS = re.compile("(?<!\u0438)[\u0300-\u036f]+|[\u064b-\u065f\u0670\u0591-\u05c7]+")
# Scripts written without spaces, or (Hangul) with endings glued on: Han, Kana, Hangul, Thai, Lao, Burmese, Khmer.
_RUN = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecf\u1000-\u109f\u1780-\u17dd"
)
_LETTER = rf"(?:[^\W{_RUN}]|[\u0900-\u0963\u0966-\u0dff])"  # Indic vowel signs are no \w, yet part of the word
_PIECE = re.compile(
    rf"(?P<run>[{_RUN}]+)"
    rf"|(?P<chunk>{_LETTER}(?:{_LETTER}|['._@/:+&-](?={_LETTER})|(?<=\d),(?=\d{{3}}(?!\d)))*[+#]*)"
)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_PARTS = re.compile(rf"{_LETTER}+")
_APOSTROPHES = str.maketrans("‘’ʼ`´", "'''''")
_LABEL = re.compile(rf"\s*([^\W\d][^\n:]{{0,39}}):(?=[\s{_RUN}])")


def tokenize(text: str) -> list[str]:
    """The tokens of a memory's text, in order, repeated ones too.

    An id such as ``ORD-4711`` gives itself and its parts; a number is one token however its thousands are marked;
    ``C``, ``C#`` and ``C++`` are three. A date gives what ``Date.tokens`` has, in whatever form it is written. The
    words of a label before a colon ("Anna: likes tea") are there once more, each with a colon: a text is about its
    label.
    """
    folded = _fold(text)
    tokens = _plain(folded)
    if label := _LABEL.match(folded):
        tokens += [_labelled(token) for token in _plain(label[1])]
    return tokens


async def warm_up(text: str) -> None:
    """Stem a long text's words in a worker thread, so that ``tokenize`` finds them and does not stall the loop."""
    if len(text) > _LONG:
        await anyio.to_thread.run_sync(tokenize, text)


def query_tokens(query: str) -> list[str]:
    """The tokens that a query asks for: without function words, unless it has nothing else; all as labels, too."""
    tokens = _plain(_fold(query))
    asked = [token for token in tokens if token not in _FUNCTION_WORDS] or tokens
    return asked + [_labelled(token) for token in asked]


def query_dates(query: str) -> list[Date]:
    """The dates that a query names."""
    return dates_in(_fold(query))


def _plain(folded: str) -> list[str]:
    tokens: list[str] = []
    for match in _PIECE.finditer(folded):
        run = match["run"]
        tokens += _grams(run) if run else _words(match["chunk"])
    if dates := dates_in(folded):
        written = frozenset(tokens)
        tokens += [token for date in dates for token in date.tokens if token not in written]
    return tokens


def _labelled(token: str) -> str:
    return f"{token[: LONGEST - 1]}:"


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold())
    plain = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", plain)))
    return re.sub(r"\d", lambda digit: str(unicodedata.decimal(digit[0])), plain)


def _grams(run: str) -> Iterator[str]:
    """Every character, and every two neighbours: no dictionary is needed, and no word is missed."""
    yield from run
    for i in range(len(run) - 1):
        yield run[i : i + 2]


def _words(chunk: str) -> Iterator[str]:
    if chunk.isalpha():
        yield stem(chunk)
    elif _NUMBER.fullmatch(chunk):
        yield chunk.replace(",", "")[:LONGEST]
    else:
        yield from _compound(chunk.removesuffix("'s"))


def _compound(chunk: str) -> Iterator[str]:
    """The parts of what signs join, and the whole, unless an apostrophe joins it: "e-mail" gives "email" as well."""
    parts = [part for found in _PARTS.findall(chunk) for part in found.split("_") if part]
    if len(parts) > 1:
        yield from map(stem, parts)
    joined = chunk.replace("-", "")
    if joined.isalpha():
        yield stem(joined)
    elif "'" not in chunk:
        yield chunk[:LONGEST]


# First the word, then its irregular forms; not those that more often are another word (rose, lives, leaves, ground).
_FORMS = """
become became; begin began begun; bend bent; bite bit bitten; bleed bled; blow blew blown; break broke broken
bring brought; build built; buy bought; catch caught; choose chose chosen; come came; deal dealt; dig dug
draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed
feel felt; fight fought; find found; fly flew flown; forget forgot forgotten; forgive forgave forgiven
freeze froze frozen; get got gotten; give gave given; go goes went gone; grow grew grown; hang hung; hear heard
hide hid hidden; hold held; keep kept; know knew known; lead led; learn learnt; leave left; lend lent; light lit
lose lost; make made; mean meant; meet met; pay paid; prove proven; ride rode ridden; ring rang rung; rise risen
run ran; say said; see saw seen; seek sought; sell sold; send sent; shake shook shaken; shine shone; shoot shot
show shown; sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken; spend spent
spin spun; stand stood; steal stole stolen; stick stuck; strike struck; swear swore sworn; sweep swept
swim swam swum; take took taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown
understand understood; wake woke woken; wear wore worn; weave wove woven; win won; write wrote written
child children; foot feet; knife knives; man men; mouse mice; person people; tooth teeth; wife wives; woman women
"""
_IRREGULAR = {form: word for word, *forms in map(str.split, re.split("[;\n]", _FORMS.strip())) for form in forms}

_local = threading.local()
_snowball: Any = importlib.import_module("snowballstemmer")  # it has no types


def _stemmer(language: str) -> Callable[[str], str]:
    """A stemmer of this thread: one holds the word that it is at."""
    made: dict[str, Callable[[str], str]] = _local.__dict__
    if language not in made:
        made[language] = _snowball.stemmer(language).stemWord
    return made[language]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The word without its endings, by its script: Cyrillic as Russian, Arabic as Arabic, Latin as English.

    Irregular English forms, which no rule finds, are looked up. A language can't be told from one word; a stemmer of
    the wrong one cuts the same from query and memory.
    Source: the Snowball stemmers, https://snowballstem.org.
    """
    word = _IRREGULAR.get(word, word)[:LONGEST]
    first = word[0]
    if first.isascii() or first < "\u0250":
        return _stemmer("english")(word) if len(word) > 2 else word
    if "\u0400" <= first <= "\u04ff":
        return _stemmer("russian")(word)
    if "\u0600" <= first <= "\u06ff":
        return _stemmer("arabic")(word)
    return word


# What a question is made of rather than about: the most frequent words of some languages.
_WORDS = """
a an the and or of in on at to for from with by about as is are was were be been am do does did has have had
i me my you your he him his she her it its we us our they them their this that these those there here
what which who whom whose when where why how can could will would should shall may might must not no s t
der die das ein eine einen einem einer den dem des und oder in im am zu von mit ist sind war hat haben
ich du er sie es wir ihr sein seine ihre was wer wo wann wie welche welcher nicht auf für
el la los las un una unos unas y o de del en al con por para es son fue ha su sus se le lo que qué
quién cuál cuándo dónde cómo no yo tú él ella
le les une des du et ou dans à au aux avec pour est sont a son sa ses qui que quoi quand où comment je tu il
elle nous vous ne pas
и в во на с со к ко у о об от до по за из не что кто где когда как какой какая какие это он она они его
её их я ты мы вы
في من على إلى عن ما ماذا هل هو هي أين متى كيف و أو مع هذا هذه كان
"""
_CHARACTERS = "的了是在和有我你他她它们吗呢什么哪谁のはがをにでとものかな은는이가을를에의"
_FUNCTION_WORDS = frozenset([*tokenize(_WORDS), *_CHARACTERS])
