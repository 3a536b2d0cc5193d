"""Words such as "yesterday" as the dates that they mean (pure)."""

import re
from datetime import date, timedelta
from functools import partial

_SPACED = {
    -1: r"yesterday|last night|gestern|ayer|вчера|أمس|hier",
    0: r"today|tonight|this (?:morning|afternoon|evening)|heute|hoy|сегодня|اليوم|aujourd'hui",
    1: r"tomorrow|завтра|غدا|غدًا|demain",
}
_DENSE = {
    -2: r"前天|一昨日|그저께",
    -1: r"昨天|昨日|어제",
    0: r"今天|今日|오늘",
    1: r"明天|明日|내일",
    2: r"后天|後天|明後日|모레",
}
_ENGLISH = re.compile(r"y|last|to|this", re.IGNORECASE)


def make_absolute(text: str, day: date) -> str:
    """The text with days that are named from the day it was said written as dates.

    Named days alone: "last week" or "soon" is no date, and words that mean something else as well stay.
    """
    for away, words in _SPACED.items():
        pattern = re.compile(rf"(\bon )?\b(?:{words})\b(?!['’]s)", re.IGNORECASE)
        text = pattern.sub(partial(_written, day=_day(day, away)), text)
    for away, words in _DENSE.items():
        text = re.sub(words, _day(day, away), text)
    return text


def _written(match: re.Match[str], *, day: str) -> str:
    word = match[0]
    if match[1] is not None or _ENGLISH.match(word) is None:
        return (match[1] or "") + day
    return ("On " if word[0].isupper() else "on ") + day


def _day(day: date, away: int) -> str:
    try:
        return str(day + timedelta(days=away))
    except OverflowError:
        return str(day)
