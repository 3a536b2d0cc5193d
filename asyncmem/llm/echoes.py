"""Telling what a provider says from what it merely repeats of our request. Pure, linear in both texts.

Some servers answer a request that they refuse with the request itself. Its words must not be shown, since they are
somebody's memories; and they say nothing about what was refused, since all parameters are named in them.
"""

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .folding import Folded, fold, folded
from .vocabulary import is_standard

LONG = 16
"""Characters, white space left out, that two texts have in common only if one was copied from the other."""
SHORT = 8
"""The same for what is shown, if a word of somebody's own is among them, or four words of anybody's."""
MAX_TEXT = 16_000
"""Characters at each end of a provider's answer that are looked at: a body may be of any size."""

_MAX_DEPTH = 64
_SENTENCE = 4
_MARK = "…"
# scripts that put no spaces between words: each sign is a word
_SIGNS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_WORD = re.compile(rf"[{_SIGNS}]|[^\W{_SIGNS}]+")
_SIGN = re.compile(rf"[{_SIGNS}]")

_OBJECTS = (
    "response_format|json_schema|output_format|output_config|format|options|generation_?config|inference_?config"
    r"|tool_?config|output_?config|system_?instruction|response_(?:json_)?schema|response_?(?:json)?schema"
    "|guided_json|tool_?choice|stream_options|extra_body|functions?|parameters|text_?format|schema"
)
_ARRAYS = "messages|contents|tools|system|functions|stop|input"
_NUMBERS = (
    "temperature|seed|top_p|top_k|n|stream|max_tokens|max_?completion_?tokens|max_?output_?tokens|max_?new_?tokens"
    "|num_predict|parallel_?tool_?calls|strict|additional_?properties|(?:presence|frequency)_penalty|max_retries"
)
_NAMES = "model|tool_?choice|response_?mime_?type|reasoning_?effort|grammar|format"
_GAP = r"(?:\s|\\+[nrt])*+"
_PAIR = re.compile(
    rf"""(?<!\\)(?P<slashes>\\*+)(?P<quote>["'])(?:
        (?:{_NUMBERS})(?P=slashes)(?P=quote){_GAP}:{_GAP}(?:-?\d[\d.eE+-]*|true|false|null|none)
        |(?:{_NAMES})(?P=slashes)(?P=quote){_GAP}:{_GAP}
            (?:(?P=slashes)(?P=quote)[\w./:@-]{{1,80}}(?P=slashes)(?P=quote)|null|none)
        |type(?P=slashes)(?P=quote){_GAP}:{_GAP}(?P=slashes)(?P=quote)json_(?:schema|object)(?P=slashes)(?P=quote)
        |(?:{_OBJECTS})(?P=slashes)(?P=quote){_GAP}:{_GAP}(?:null|none|(?=\{{))
        |(?:{_ARRAYS})(?P=slashes)(?P=quote){_GAP}:{_GAP}(?:null|none|(?=\[))
    )|\b(?:
        (?:{_NUMBERS})=(?:-?\d[\d.eE+-]*|true|false|none)(?=\s*[,)])
        |(?:{_NAMES})=(?:["'][\w./:@-]{{1,80}}["']|none)(?=\s*[,)])
        |(?:{_OBJECTS})=(?:none(?=\s*[,)])|(?:\w+)?(?=[({{]))
        |(?:{_ARRAYS})=(?:none(?=\s*[,)])|(?=\[))
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""A parameter with a value of its kind, as JSON or Python write it; whoever complains of one words it otherwise."""
_QUOTE_OR_BRACKET = re.compile(r"(?<!\\)(\\*+)([\"'])|[\[\](){}]")
_CLOSED_BY = {"[": "]", "(": ")", "{": "}"}


@dataclass(frozen=True, slots=True)
class Counts:
    """Whether a run is more than words that anybody uses: it holds one of somebody's own, or is a sentence.

    Attributes:
        spans: where the words of the text are.
        own: which of them are no standard ones.
    """

    spans: Sequence[tuple[int, int]]
    own: Sequence[bool]

    def __call__(self, first: int, last: int) -> bool:
        """Of the run from ``first`` to ``last``."""
        low = bisect_left(self.spans, (first, 0))
        high = bisect_right(self.spans, (last, 0))
        within = [i for i in range(low, high) if self.spans[i][1] <= last]
        return any(self.own[i] for i in within) or len(within) >= _SENTENCE


def without_words(text: str, told: Sequence[str]) -> str:
    """The text without any words out of what was told.

    A word that stands there too is taken out, whatever its case, unless providers' own sentences use it; so is any
    run of letters that was copied. What remains are the provider's words.
    """
    ours, theirs = folded("\n".join(told)), fold(text)
    masked = bytearray(len(theirs.text))
    words = list(_WORD.finditer(theirs.text))
    own = [not is_standard(text[theirs.starts[w.start()] : theirs.ends[w.end() - 1]]) for w in words]
    _mask_words(words, own, ours, masked)
    _mask_runs(theirs, ours, SHORT, masked, Counts([word.span() for word in words], own))
    return _replaced(text, theirs, masked)


def own_words(text: str, told: Sequence[str]) -> str:
    """What the provider says itself: the text without the request that it repeats, as a whole or in parts.

    What was told goes wherever 16 characters of it stand together, and so does every parameter that stands with a
    value as in a request. Decisions are made on what remains: it may be nothing.
    """
    if len(text) > 2 * MAX_TEXT:
        text = f"{text[:MAX_TEXT]}{_MARK}{text[-MAX_TEXT:]}"
    if "&" in text:
        text = html.unescape(text)
    text = _without_parameters(text)
    theirs = fold(text)
    masked = bytearray(len(theirs.text))
    if len(theirs.text) >= LONG:
        _mask_runs(theirs, folded("\n".join(told)), LONG, masked)
    return _replaced(text, theirs, masked)


def _common(ours: str, theirs: str, width: int) -> set[str]:
    """The stretches of that length that both texts have; in neither of them is there a space.

    What both have covers one of ours at every half width, so only there ours is looked at: it may be a long prompt.
    """
    wanted = {theirs[i : i + width] for i in range(len(theirs) - width + 1)}
    half = width // 2
    parts = {theirs[i : i + half] for i in range(len(theirs) - half + 1)} if wanted else set[str]()
    hits = [i for i in range(0, len(ours) - half + 1, half) if ours[i : i + half] in parts] if parts else []
    near = {ours[j : j + width] for i in hits for j in range(max(0, i - half), i + 1)}
    return near & wanted


def _mask_words(words: list[re.Match[str]], own: list[bool], ours: str, masked: bytearray) -> None:
    """Mask words of one's own that were told, and halves of words that follow or precede one, cut where a text was."""
    mine = [word[0] for word, is_own in zip(words, own, strict=True) if is_own]
    if not any(word in ours for word in mine):
        return  # nothing of a long prompt has to be taken apart
    told: list[str] = _WORD.findall(ours)
    known = set(told)
    after: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}
    spoken = {word[0] for word in words}
    pairs = {pair for pair in pairwise(told) if pair[0] in spoken or pair[1] in spoken}
    for one, other in pairs:
        if one in spoken:
            after.setdefault(one, set()).add(other)
        if other in spoken:
            before.setdefault(other, set()).add(one)
    hit = [mine and len(word[0]) > 1 and word[0] in known for word, mine in zip(words, own, strict=True)]
    for i in range(len(words) - 1):
        one, other = words[i][0], words[i + 1][0]
        if _SIGN.match(one) and (one, other) in pairs:
            hit[i] = hit[i + 1] = True
        if hit[i] and _is_cut(other, after.get(one, ()), head=True):
            hit[i + 1] = True
        if hit[i + 1] and _is_cut(one, before.get(other, ()), head=False):
            hit[i] = True
    for word, is_hit in zip(words, hit, strict=True):
        if is_hit:
            masked[word.start() : word.end()] = b"\1" * len(word[0])


def _is_cut(part: str, wholes: Iterable[str], *, head: bool) -> bool:
    return any(whole != part and (whole.startswith(part) if head else whole.endswith(part)) for whole in wholes)


def _mask_runs(theirs: Folded, ours: str, width: int, masked: bytearray, counts: Counts | None = None) -> None:
    """Mask runs of ``width`` characters or more that were told, as far as they count."""
    squeezed, places = theirs.squeezed()
    grams = _common(ours.replace(" ", ""), squeezed, width)
    for begin, end in _runs(squeezed, grams, width):
        first, last = places[begin], places[end - 1] + 1
        if counts is None or counts(first, last):
            masked[first:last] = b"\1" * (last - first)


def _runs(text: str, grams: set[str], width: int) -> Iterator[tuple[int, int]]:
    """Where stretches begin and end whose every ``width`` characters are among the grams."""
    begin = None
    for i in range(len(text) - width + 1):
        if text[i : i + width] in grams:
            begin = i if begin is None else begin
        elif begin is not None:
            yield begin, i + width - 1
            begin = None
    if begin is not None:
        yield begin, len(text)


def _replaced(text: str, theirs: Folded, masked: bytearray) -> str:
    """The original, a mark in the place of what is masked."""
    for i in range(1, len(masked) - 1):
        if masked[i - 1] and masked[i + 1] and theirs.text[i] in " '’-":
            masked[i] = 1
    kept: list[str] = []
    at = 0
    for run in re.finditer(rb"\x01+", bytes(masked)):
        kept += [text[at : theirs.starts[run.start()]], _MARK]
        at = theirs.ends[run.end() - 1]
    return "".join([*kept, text[at:]])


def _without_parameters(text: str) -> str:
    kept: list[str] = []
    at = 0
    for pair in _PAIR.finditer(text):
        if pair.start() < at:
            continue
        kept.append(text[at : pair.start()])
        at = pair.end()
        if text[at : at + 1] in _CLOSED_BY:
            at = _end(text, at, pair["quote"] or "'", len(pair["slashes"] or ""))
    return "".join([*kept, text[at:]])


def _end(text: str, begin: int, quote: str, depth: int) -> int:
    """Behind the bracket that closes the one at ``begin``; the text's end where it was cut before.

    Brackets in strings don't count. A quotation mark that begins or ends one has ``depth`` backslashes before it, as
    it stands in JSON within JSON, and further ones of which each stands for one of the string's own.
    """
    waiting: list[str] = []
    inside = ""
    for token in _QUOTE_OR_BRACKET.finditer(text, begin):
        slashes, mark = token.groups()
        if mark:
            if inside == mark and (len(slashes) - depth) % (2 * depth + 2) == 0:
                inside = ""
            elif not inside and (mark == quote or quote == "'"):
                inside = mark
        elif not inside and not _follow(waiting, token[0]):
            return token.end()
        if len(waiting) > _MAX_DEPTH:
            break
    return len(text)


def _follow(waiting: list[str], bracket: str) -> bool:
    """Note a bracket; whether some are still open."""
    if bracket in _CLOSED_BY:
        waiting.append(_CLOSED_BY[bracket])
    elif bracket in waiting:
        del waiting[_last(waiting, bracket) :]
    return bool(waiting)


def _last(waiting: list[str], bracket: str) -> int:
    return len(waiting) - 1 - waiting[::-1].index(bracket)
