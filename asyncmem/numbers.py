"""Numbers and dates in texts: which are said, in digits or in words, and which nobody said (pure)."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

Numbers = frozenset[Decimal]

_UNITS = (
    ("zero", 0), ("one", 1), ("two", 2), ("three", 3), ("four", 4), ("five", 5), ("six", 6), ("seven", 7),
    ("eight", 8), ("nine", 9), ("ten", 10), ("eleven", 11), ("twelve", 12), ("thirteen", 13), ("fourteen", 14),
    ("fifteen", 15), ("sixteen", 16), ("seventeen", 17), ("eighteen", 18), ("nineteen", 19), ("twenty", 20),
    ("thirty", 30), ("forty", 40), ("fifty", 50), ("sixty", 60), ("seventy", 70), ("eighty", 80), ("ninety", 90),
    ("zwei", 2), ("drei", 3), ("vier", 4), ("fünf", 5), ("sechs", 6), ("sieben", 7), ("acht", 8), ("neun", 9),
    ("zehn", 10), ("elf", 11), ("zwölf", 12), ("zwanzig", 20), ("dreißig", 30), ("vierzig", 40), ("fünfzig", 50),
    ("sechzig", 60), ("siebzig", 70), ("achtzig", 80), ("neunzig", 90),
    ("dos", 2), ("tres", 3), ("cuatro", 4), ("cinco", 5), ("seis", 6), ("siete", 7), ("ocho", 8), ("nueve", 9),
    ("diez", 10), ("doce", 12), ("trece", 13), ("catorce", 14), ("quince", 15), ("veinte", 20), ("treinta", 30),
    ("cuarenta", 40), ("cincuenta", 50), ("sesenta", 60), ("setenta", 70), ("ochenta", 80), ("noventa", 90),
    ("два", 2), ("две", 2), ("двое", 2), ("три", 3), ("трое", 3), ("четыре", 4), ("пять", 5), ("шесть", 6),
    ("семь", 7), ("восемь", 8), ("девять", 9), ("десять", 10), ("двадцать", 20), ("тридцать", 30), ("сорок", 40),
    ("пятьдесят", 50), ("шестьдесят", 60), ("семьдесят", 70), ("восемьдесят", 80), ("девяносто", 90),
    ("اثنان", 2), ("اثنين", 2), ("ثلاثة", 3), ("ثلاث", 3), ("أربعة", 4), ("أربع", 4), ("خمسة", 5), ("خمس", 5),
    ("ستة", 6), ("سبعة", 7), ("سبع", 7), ("ثمانية", 8), ("تسعة", 9), ("تسع", 9), ("عشرة", 10), ("عشرون", 20),
    ("عشرين", 20), ("ثلاثين", 30), ("أربعين", 40), ("خمسين", 50),
)  # fmt: skip
_CLAIMED = {word.casefold(): value for word, value in _UNITS if value > 1}
"""Words that are nothing but a number: where one stands in a memory, it must have been said."""
_MAYBE = {
    **_CLAIMED, "zero": 0, "one": 1,
    "a": 1, "single": 1, "once": 1, "first": 1, "ein": 1, "eine": 1, "uno": 1, "una": 1, "один": 1, "одна": 1,
    "couple": 2, "both": 2, "pair": 2, "twice": 2, "twins": 2, "double": 2, "second": 2, "zweite": 2, "beide": 2,
    "ambos": 2, "segundo": 2, "оба": 2, "обе": 2, "второй": 2, "third": 3, "triplets": 3, "dritte": 3,
    "tercer": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
    "dozen": 12, "twelfth": 12, "dutzend": 12, "docena": 12, "fourteenth": 14, "fortnight": 14,
    "twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50,
}  # fmt: skip
"""Words that may say a number, to those who look for one."""
_TIMES = {
    "hundred": 100, "hundert": 100, "cien": 100, "cientos": 100, "сто": 100, "百": 100,
    "k": 1000, "thousand": 1000, "tausend": 1000, "mil": 1000, "тысяч": 1000, "тысячи": 1000, "тыс": 1000,
    "万": 10_000, "萬": 10_000, "만": 10_000, "千": 1000, "천": 1000, "億": 10**8, "亿": 10**8, "억": 10**8,
    "million": 10**6, "millions": 10**6, "mio": 10**6, "millón": 10**6, "millones": 10**6, "млн": 10**6,
}  # fmt: skip
_KOREAN = {
    "하나": 1, "한 ": 1, "둘": 2, "두 ": 2, "셋": 3, "세 ": 3, "넷": 4, "네 ": 4, "다섯": 5, "여섯": 6, "일곱": 7,
    "여덟": 8, "아홉": 9, "열": 10, "스무": 20, "스물": 20, "서른": 30, "마흔": 40, "쉰": 50,
}  # fmt: skip
_HAN = {c: i for i, c in enumerate("零一二三四五六七八九十")} | {"〇": 0, "两": 2, "兩": 2}
_HAN_RUN = re.compile(r"[零〇一二两兩三四五六七八九十百千万萬]+")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_WORDS = re.compile(r"[^\W\d_]+")
_COUNT = re.compile(r"(?<!\d)(?<!\d[.,])(\d++(?:[.,]\d++)*+)\s*+([^\W\d_]+|[万萬千百億亿만천억])")

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan ene янв", "feb фев", "mar mär мар", "apr abr апр", "may mai мая май", "jun июн", "jul июл",
            "aug ago авг", "sep сен", "oct okt окт", "nov ноя", "dec dez dic дек",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = r"(?P<month>(?:" + "|".join(_MONTHS) + r")[^\W\d_]*)"
_YEAR = r"(?P<year>(?:1[89]|20|21)\d\d)"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}[-/.](?P<m>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}))?(?!\d)",
        rf"{_YEAR}\s*[年년]\s*(?P<m>\d{{1,2}})\s*[月월](?:\s*(?P<day>\d{{1,2}})\s*[日号號일])?",
        rf"(?<!\d)(?P<day>\d{{1,2}})[./](?P<m>\d{{1,2}})[./]{_YEAR}",
        rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:de\s+|of\s+)?{_MONTH}\.?,?\s+(?:de\s+)?{_YEAR}",
        rf"\b{_MONTH}\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{_YEAR}",
        rf"\b{_MONTH}\.?,?\s+(?:de\s+|of\s+)?{_YEAR}",
        rf"(?<!\d){_YEAR}(?!\d)",
    )
]
_CLOCK = re.compile(r"(?<!\d)([01]?\d|2[0-4]):([0-5]\d)(?!\d)")
_WEEKS = 62
"""Days between a message and a date in it that is counted from it ("yesterday", "in three weeks")."""
_MONTHS_AWAY = 13
"""The same in months ("last spring", "next year in May")."""


@dataclass(frozen=True, slots=True)
class Said:
    """What numbers were said, and on which days.

    Attributes:
        numbers: in digits and in words, as far as a text may mean them.
        days: when it was said; dates are counted from these.
    """

    numbers: Numbers
    days: tuple[date, ...] = ()


def said_numbers(text: str) -> Numbers:
    """Every number that the text may mean, in digits or in words of eight languages. Rather too many."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    found = {value for digits in _DIGITS.findall(plain) for value in _readings(digits)}
    for digits, word in _COUNT.findall(plain):
        found |= {value * _TIMES[word] for value in _readings(digits) if word in _TIMES}
    found |= set(_in_words(_WORDS.findall(plain)))
    found |= {Decimal(_han(run)) for run in _HAN_RUN.findall(plain)}
    found |= {Decimal(value) for word, value in _KOREAN.items() if word in plain}
    return frozenset(found)


def unsaid_number(text: str, said: Said) -> str | None:
    """The first number or date in the text that nobody said, or ``None``.

    A date passes if it can be counted from a day on which something was said, since dates are made absolute.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    for pattern in _DATES:
        for match in pattern.finditer(plain):
            if not _is_date_said(match, said):
                return match[0]
        plain = pattern.sub(" ", plain)
    for match in _CLOCK.finditer(plain):
        if not _is_hour_said(int(match[1]), int(match[2]), said.numbers):
            return match[0]
    plain = _CLOCK.sub(" ", plain)
    return next((number for number, values in _claimed(plain) if not values & said.numbers), None)


def without_dates(text: str) -> str:
    """The text without its dates: they are counted, and say nothing by themselves."""
    for pattern in _DATES:
        text = pattern.sub(" ", text)
    return text


def replace_dates(text: str, write: Callable[[str, str], str]) -> str:
    """The text with its dates written in another way; a year alone is none.

    Args:
        text: what holds them.
        write: gets the date's words and its ISO 8601 form, as far as it is given: ``2021-03-13`` or ``2021-03``.
    """

    def written(match: re.Match[str]) -> str:
        parts = match.groupdict()
        name = parts.get("month")
        month = int(parts["m"]) if parts.get("m") else _MONTHS[str(name).casefold()[:3]]
        day = f"-{int(parts['day']):02}" if parts.get("day") else ""
        return write(match[0], f"{parts['year']}-{month:02}{day}")

    for pattern in _DATES[:-1]:
        text = pattern.sub(written, text)
    return text


def _claimed(plain: str) -> Iterator[tuple[str, set[Decimal]]]:
    """Numbers that the text claims, each with its readings. A one claims nothing."""
    for match in _DIGITS.finditer(plain):
        values = _readings(match[0])
        if Decimal(1) not in values:
            counted = _COUNT.match(plain, match.start())
            times = _TIMES.get(counted[2], 1) if counted else 1
            yield match[0], values | {value * times for value in values}
    words = _WORDS.findall(plain)
    for i, word in enumerate(words):
        value = _CLAIMED.get(word) or _german(word)
        if value:
            yield word, {Decimal(value), *_in_words(words[max(0, i - 1) : i + 2])} - {Decimal(1)}


def _readings(digits: str) -> set[Decimal]:
    """What digits with points and commas may mean: 4,100 and 4.100 are a thousand to some, a fraction to others."""
    parts = re.split("[.,]", digits)
    values = {Decimal("".join(parts))} if all(len(part) == 3 for part in parts[1:]) else set[Decimal]()
    if len(parts) == 2:
        values.add(Decimal(f"{parts[0]}.{parts[1]}"))
    return values or set(map(Decimal, parts))


def _in_words(words: Sequence[str]) -> Iterator[Decimal]:
    """Numbers that words say, each alone and as a row: thirty, four and thirty-four."""
    row = 0
    for word in words:
        value = _MAYBE.get(word) or _german(word)
        if value is None and word in _TIMES and len(word) > 1:
            row = max(row, 1) * _TIMES[word]
            yield Decimal(row)
        elif value is not None:
            yield Decimal(value)
            row = row + value if row and value < 100 and row % 10 == 0 else value
            yield Decimal(row)
        elif word not in ("and", "y", "und"):
            row = 0


def _german(word: str) -> int | None:
    """Vierunddreißig."""
    unit, und, tens = word.partition("und")
    ones, many = {"ein": 1, **_CLAIMED}.get(unit), _CLAIMED.get(tens)
    return ones + many if und and ones and many and ones < 10 <= many else None


def _han(run: str) -> int:
    total = section = digit = 0
    for c in run:
        if c in "万萬":
            total, section, digit = (total + section + digit or 1) * 10_000, 0, 0
        elif c in "十百千":
            section += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[c]
            digit = 0
        else:
            digit = digit * 10 + _HAN[c] if len(run) > 1 and not set(run) & set("十百千万萬") else _HAN[c]
    return total + section + digit


def _is_date_said(match: re.Match[str], said: Said) -> bool:
    parts = match.groupdict()
    year, day = int(parts["year"]), int(parts.get("day") or 0)
    name = parts.get("month")
    month = int(parts.get("m") or 0) or (_MONTHS[name[:3]] if name else 0)
    if Decimal(year) in said.numbers or Decimal(year % 100) in said.numbers:
        return not day or Decimal(day) in said.numbers or _is_near(year, month, day, said.days)
    return _is_near(year, month, day, said.days) or any(_is_counted(year, day, on, said.numbers) for on in said.days)


def _is_near(year: int, month: int, day: int, days: Collection[date]) -> bool:
    """Whether it is so near to a day that somebody may have counted from it."""
    if day:
        try:
            return any(abs((date(year, month, day) - on).days) <= _WEEKS for on in days)
        except ValueError:
            return False
    if month:
        return any(abs(12 * (year - on.year) + month - on.month) <= _MONTHS_AWAY for on in days)
    return any(abs(year - on.year) <= 1 for on in days)


def _is_counted(year: int, day: int, on: date, numbers: Numbers) -> bool:
    """Whether so many years were said, or the day of a month of about this year."""
    if day:
        return Decimal(day) in numbers and abs(year - on.year) <= 1
    return Decimal(abs(year - on.year)) in numbers


def _is_hour_said(hour: int, minute: int, numbers: Numbers) -> bool:
    hours = {Decimal(h) for h in (hour, hour % 12, hour + 12, hour % 12 + 1)}
    return bool(hours & numbers) and (minute in (0, 15, 30, 45) or Decimal(minute) in numbers)
