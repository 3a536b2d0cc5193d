"""Words as they are compared: folded, without endings, without those that say nothing by themselves (pure)."""

import re
from collections.abc import Iterable

from .operations import fold

_WIDE_LETTERS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""Scripts that are written without spaces, or (Korean) whose words take endings that a prefix doesn't show."""
_WORD = re.compile(rf"[{_WIDE_LETTERS}]+|[^\W{_WIDE_LETTERS}]+")
_WIDE = re.compile(f"[{_WIDE_LETTERS}]")
_SHORT_NAME = re.compile(r"(?<=[\w,] )[A-ZÀ-Þ][a-zß-ÿ]\b")
"""A name of two letters: Bo, Li, Al. At the beginning of a sentence it can't be told from other words."""
_MARKS = re.compile(r"[\u064b-\u065f\u0670\u0640]")
"""Arabic vowel signs and stretching, which may be written or left out."""

_FRAME_WORDS = (
    # en
    "the and for with that this these those from was were has have had are not but you your his her its their they"
    " him she who whom what which when where will would can could may now also very just than then there here into"
    " about over user users name named called like likes does did don't doesn't didn't isn't aren't been being still"
    " them before after again already used"
    " own owns use uses get gets got some any all more most much many other since until ago former formerly"
    # de
    " der die das den dem des ein eine einen einem einer und oder ist sind war hat haben nicht kein keine mit von"
    " für auf aus bei als sie ich mein meine sein seine ihr ihre nutzer nutzerin benutzer heißt"
    # es
    " los las una unos unas con por para que del sus está son fue tiene han mis usuario usuaria llama"
    # fr, it, pt
    " les des une est pour avec dans qui son ses sur pas nom utilisateur il è del della per nome dos das com"
    # ru
    " это как что для его она они был была есть нет при или пользователь пользователя зовут"
    # ar
    " في من على هذا هذه التي الذي كان أن المستخدم اسمه اسمها"
)
_EMPTY = frozenset(_FRAME_WORDS.split())
"""Words of a memory's frame, in any script with spaces: they carry no fact, and are no evidence for one."""
_FRAMES = re.compile(r"用户的?|使用者的?|ユーザーの?|利用者の?|사용자(?:는|의|가)?")


def tokens(text: str) -> set[str]:
    """The words and numbers of a text; of scripts without spaces each two neighbouring characters."""
    found: set[str] = set()
    for word in _WORD.findall(_MARKS.sub("", fold(text))):
        if _WIDE.match(word):
            found |= {word[i : i + 2] for i in range(max(1, len(word) - 1))}
        elif len(word) > 2 or any(c.isdigit() for c in word):
            found.add(word)
    return found | {name.casefold() for name in _SHORT_NAME.findall(text)}


def content(text: str) -> set[str]:
    """Those of a text's words that carry a fact; all of them where none does."""
    words = tokens(_FRAMES.sub(" ", text)) or tokens(text)
    return words - _EMPTY or words


def alike(token: str, other: str, least: int = 3) -> bool:
    """The same word but for its ending: at least so many letters stay; numbers must be equal."""
    if token == other or any(c.isdigit() for c in token):
        return token == other
    shortest = min(len(token), len(other))
    stem = max(min(least, shortest), shortest - 2)
    return token[:stem] == other[:stem]


def common(words: Iterable[str], there: Iterable[str], least: int = 3) -> set[str]:
    """Those of the words that are there, endings apart."""
    others = set(there)
    return {word for word in words if word in others or any(alike(word, other, least) for other in others)}


def share(text: str, words: str, known: str = "") -> float:
    """Which share of the text's words stands in ``words``; those in ``known`` don't count either way."""
    wanted = tokens(text) - tokens(known)
    return len(common(wanted, tokens(words))) / len(wanted) if wanted else 0.0


def share_words(one: str, other: str) -> bool:
    """Whether the texts have a word in common, its ending apart; texts without words have all in common."""
    words, others = tokens(one), tokens(other)
    return not words or not others or bool(common(words, others, 4))


def is_wide(text: str) -> bool:
    """Whether any letter is of a script without spaces, or Korean."""
    return _WIDE.search(text) is not None


_SCRIPTS = (
    ("latin", re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")),
    ("greek", re.compile(r"[\u0370-\u03ff]")),
    ("cyrillic", re.compile(r"[\u0400-\u052f]")),
    ("hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff\u0750-\u077f]")),
    ("indic", re.compile(r"[\u0900-\u0dff]")),
    ("thai", re.compile(r"[\u0e00-\u0eff]")),
    ("east asian", re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")),
    ("korean", re.compile(r"[\uac00-\ud7af]")),
)


def scripts(text: str) -> set[str]:
    """Which scripts the text's letters are of."""
    return {name for name, letters in _SCRIPTS if letters.search(text)}


_NAMED = (
    ("Japanese", re.compile(r"[\u3040-\u30ff]")),
    ("Korean", re.compile(r"[\uac00-\ud7af]")),
    ("Chinese", re.compile(r"[\u4e00-\u9fff]")),
    ("Ukrainian", re.compile(r"[іїєґ]", re.IGNORECASE)),
    ("Russian", re.compile(r"[\u0400-\u052f]")),
    ("Persian", re.compile(r"[پچژگ]")),
    ("Arabic", re.compile(r"[\u0600-\u06ff]")),
    ("Hindi", re.compile(r"[\u0900-\u097f]")),
    ("Greek", re.compile(r"[\u0370-\u03ff]")),
    ("Hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("Thai", re.compile(r"[\u0e00-\u0e7f]")),
)
_SPOKEN = {
    "German": re.compile(
        r"\b(?:ich|und|nicht|ist|ein|eine|einen|der|die|das|mein|meine|wie|mit|für|habe|bin|auf|zu)\b"
    ),
    "Spanish": re.compile(r"\b(?:el|los|las|una|que|y|con|por|para|mi|mis|me|soy|estoy|tengo|muy|pero|lo|del|es|yo)\b"),
    "French": re.compile(r"\b(?:je|le|les|une|des|et|est|suis|pas|pour|avec|mon|ma|mes|que|dans|du|au|j'|c'est)\b"),
    "Italian": re.compile(r"\b(?:il|gli|una|che|sono|non|per|con|mio|mia|della|di|ho|e|lavoro|anche)\b"),
    "Portuguese": re.compile(r"\b(?:eu|os|as|uma|que|não|sou|com|meu|minha|em|um|tenho|para|muito|e|é)\b"),
    "English": re.compile(r"\b(?:i|the|and|is|my|you|to|i'm|a|of|it|in|that|for|have|not|can|please|with|what|are)\b"),
}


def language_of(text: str) -> str | None:
    """The language that a text is plainly in, by its letters or its everyday words; ``None`` where it isn't plain."""
    letters = [c for c in text if c.isalpha()]
    for name, script in _NAMED:
        if script.search(text):
            foreign = sum(c.isascii() for c in letters)
            return name if 2 * foreign < len(letters) else None
    folded = text.casefold().replace("’", "'")
    counted = sorted(((len(spoken.findall(folded)), name) for name, spoken in _SPOKEN.items()), reverse=True)
    (most, name), (second, _) = counted[0], counted[1]
    return name if most >= 2 and most > second and name != "English" else None
