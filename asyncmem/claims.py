"""Names and negations that a memory claims: whether the user's words hold them (pure)."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from .wording import alike, common, content, tokens

# --------------------------------------------------------------------------------------------------------- names

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_STARTS = frozenset(".!?:;\"'“”„«»()[]·•/\n")
_KATAKANA = re.compile(r"[ァ-ヺー]{2,}")
_CALLED = re.compile(r"(?:叫做?|名叫|名为|名字是)([^\s，。、,.!？！；的和]{1,6})")
_GERMAN = re.compile(
    r"\b(?:ist|und|wohnt|lebt|arbeitet|eine[nmr]?|der|das|dem|nicht|keine?[nmr]?|mag|trinkt|spricht|seit|als|heißt"
    r"|möchte|studiert|isst|fährt|liebt|hasst|bevorzugt|besitzt|hat|bei|nach|hatte|war|zieht|zog)\b"
)
_GERMAN_NAME = re.compile(r"\b(?:in|bei|aus|nach|namens|heißt|name ist)\s+([A-ZÄÖÜ][\w'’-]+)", re.IGNORECASE)
_CAPITALISED_ANYWAY = (
    "user i tv pc ai it ok id january february march april may june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday"
)
_NO_NAMES = frozenset(_CAPITALISED_ANYWAY.split())


def unsaid_name(text: str, said: Iterable[str]) -> str | None:
    """The first name in the text that is in nothing that was said, or ``None``.

    Names are what is written with a capital inside a sentence; in German what stands where names do, since every
    noun has one; in Japanese what is written in katakana; in Chinese what somebody is called.
    """
    text, there = _compatible(text), _compatible("\n".join(said)).casefold()
    words = {word for piece in _WORD.findall(there) for word in (piece, *re.split(r"['’-]", piece))}
    initials = "".join(word[0] for word in re.findall(r"\w+", there))
    for run in _capitalised(text):
        if len(run) > 1 and "".join(word[0] for word in run).casefold() in words:  # New York City, who lives in NYC
            continue
        for name in run:
            folded = re.sub(r"['’]s?$", "", name.casefold())
            known = folded in _NO_NAMES or folded in words or _is_ending_of(folded, words)
            if not known and not (name.isupper() and folded in initials):
                return name
    wide = (*_KATAKANA.findall(text), *_CALLED.findall(text))
    return next((name for name in wide if name.casefold() not in there), None)


def _is_ending_of(name: str, words: Iterable[str]) -> bool:
    """Whether a word is the name with another ending; names of two letters have none."""
    return len(name) > 2 and any(alike(name, word) for word in words if len(word) > 2)


def _compatible(text: str) -> str:
    """In Unicode's compatibility form, without characters that only format."""
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


def _capitalised(text: str) -> Iterator[list[str]]:
    """Runs of neighbouring words that are written like names."""
    if _GERMAN.search(text.casefold()):
        yield from ([name] for name in _GERMAN_NAME.findall(text) if name[0].isupper())
        return
    run: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word, between = match[0], text[end : match.start()]
        first = not text[: match.start()].strip() or any(c in _STARTS for c in between)
        end = match.end()
        is_name = word[0].isupper() and (not first or (word.isupper() and len(word) > 1))
        if run and (not is_name or between.strip()):
            yield run
            run = []
        if is_name:
            run.append(word)
    if run:
        yield run


# ----------------------------------------------------------------------------------------------------- negations

_NOT = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|neither|nor|without|cannot|can't|cant|dont|doesnt|isnt|wont)\b|\b\w+n't\b"
    r"|\b(?:nicht|kein\w*|nie|niemals|ohne|nein|weder)\b"
    r"|\b(?:nunca|jamás|sin|ningun\w*|ningún|tampoco|nada|ne|pas|jamais|sans|aucun\w*|non|não|nem)\b|\bn'"
    r"|\b(?:не|нет|никогда|без|ни|нельзя)\b|\b(?:لا|ليس|ليست|لست|لم|لن|بدون|أبدا|أبدًا)\b"
    r"|[不没沒无無勿]|ない|なく|なかっ|ません|ずに|(?:^|\s)[안못]\s|않|없|아니",
    re.IGNORECASE,
)
_AVERSE = re.compile(
    r"\b(?:hat(?:e|es|ed|ing)|dislik\w+|avoid\w*|allerg\w*|intoleran\w*|refus\w*|quit\w*|stop\w*|g[ai]ve\w* up|gone off"
    r"|used to|was|were|had|until|before|previously|former\w*|ex|anymore|instead|rather|lack\w*|free|left|sold|lost"
    r"|unable|unwilling|afraid|fear\w*|scared|missing|ended|broke|cancel\w*|fail\w*|abstain\w*|teetotal\w*|non"
    r"|wrong|mistake|against|hardly|rarely|seldom|skip\w*|drop\w*"
    r"|bis|früher|vorher|hasst?|vermeide\w*|aufgehört|frei|statt|allergi\w*"
    r"|odi[ao]\w*|detest\w*|evit\w*|dej[óé]\w*|antes|era|hasta|alergi\w*"
    r"|ненави\w*|избега\w*|аллерги\w*|бросил\w*|раньше|перестал\w*|был[аио]?|до"
    r"|أكره|يكره|تكره|حساسية|توقف\w*|كان|كانت)\b"
    r"|讨厌|討厭|避免|过敏|過敏|戒|以前|曾|停止|嫌い|苦手|やめ|アレルギ|前は|싫|알레르기|끊|전에",
    re.IGNORECASE,
)
_IMPLIES_NOT = re.compile(
    r"\b(?:only|vegan\w*|vegetarian\w*|vegetarisch|prefer\w*|over|less|lieber|nur|prefier\w*|solo|sólo|только)\b|素食|只|だけ|만\s",
    re.IGNORECASE,
)
"""What lets one conclude that something else is not so."""
_IDIOM = re.compile(
    r"\b(?:can't wait|can not wait|cannot wait|don't (?:forget|worry|mind)|never mind|no (?:doubt|problem|worries)"
    r"|not only|why (?:not|don't \w+)|couldn't be (?:happier|better)|isn't it|aren't (?:you|they)|didn't you|don't you"
    r"|not to mention|if not|nicht nur|nicht wahr|no solo|no sólo|не только|nothing beats)\b"
    r"|不错|不過|不过|不但|不仅|不僅|不管|无论|無論|没关系|不好意思|差不多|对不起"
    r"|なければならな|なくちゃ|かもしれな|かもしれません|すみません|じゃないですか|少ない|危ない|안녕|안내|안전|안경",
    re.IGNORECASE,
)
_NO_LONGER = re.compile(
    r"\b(?:no longer|not anymore|anymore|any more|instead of|rather than|nicht mehr|ya no|больше не)\b|不再|もう",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:before|previously|formerly|used to|was|were|had|until|früher|vorher|bis|zuvor|antes|era|hasta|раньше"
    r"|прежде|до|سابقا|كان|كانت)\b|之前|以前|曾|前は|전에",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:.!?()\n，；：。！？、،؛؟–—]+|\b(?:but|and|so|because|though|although|aber|und|sondern|denn|pero|sino|porque|y|но|а|и"
    r"|потому|لكن|ولكن|لأن)\b|但是?|而是?|所以|けど|けれど|のに|지만",
    re.IGNORECASE,
)
_ANSWER = re.compile(r"^\W*(?:no|nope|nah|nein|нет|لا|いいえ|いや|不是?|没有|아니요?|아뇨)\W*$", re.IGNORECASE)


def is_negated(text: str) -> bool:
    """Whether the text says that something is not so, idioms such as "can't wait" apart."""
    return _NOT.search(_IDIOM.sub(" ", text.replace("’", "'"))) is not None


def is_averse(text: str) -> bool:
    """Whether the text negates, or says it in other words: hates, stopped, was once."""
    return is_negated(text) or _AVERSE.search(text) is not None


def clauses(text: str) -> list[str]:
    """The text's clauses, as far as punctuation and common conjunctions tell."""
    return [clause.strip() for clause in _CLAUSE.split(text) if clause and clause.strip()]


def denies(memory: str, words: str) -> bool:
    """Whether the user's clause that carries the memory says that it is not so, while the memory says that it is."""
    spoken = [clause for clause in clauses(words) if not _ANSWER.match(clause)]
    return any(_is_denied(content(claim), spoken) for claim in clauses(memory) if not is_averse(claim))


def _is_denied(wanted: set[str], spoken: Iterable[str]) -> bool:
    carrying = [(len(common(wanted, tokens(clause))), not is_negated(clause)) for clause in spoken]
    hits, affirms = max(carrying, default=(0, True))
    return 2 * hits >= max(1, len(wanted)) and not affirms


def backdates(memory: str, known: str, words: str) -> bool:
    """Whether a memory's new text says of the past what the user says of now."""
    spoken = clauses(words)
    for claim in clauses(memory):
        if not _PAST.search(claim):
            continue
        news = content(_PAST.sub(" ", claim)) - content(known)
        holding = [clause for clause in spoken if common(news, tokens(clause))]
        if holding and not any(_PAST.search(clause) for clause in holding):
            return True
    return False


def unsaid_negation(memory: str, known: str, said: Iterable[str]) -> bool:
    """Whether the memory negates something new although nothing that was said does.

    That what was known no longer holds follows from what holds now, and needs no word of its own.
    """
    if any(is_averse(text) or _IMPLIES_NOT.search(text) for text in said):
        return False
    return any(_negates_news(clause, known) for clause in clauses(memory))


def _negates_news(clause: str, known: str) -> bool:
    if not is_negated(clause):
        return False
    rest = content(_NOT.sub(" ", _NO_LONGER.sub(" ", clause)))
    return not known or len(common(rest, tokens(known))) < len(rest)
