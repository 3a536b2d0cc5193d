"""Dates that a text names, in numbers or words of some languages (pure).

The text must be folded (lower case, no accents, as tokens are made of it), and so are the names of months here.
"""

import re
from dataclasses import dataclass

_MONTHS = """
january jan januar enero janvier gennaio janeiro январь января январе يناير
february feb februar febrero fevrier febbraio fevereiro февраль февраля феврале فبراير
march mar marz marzo mars marco март марта марте مارس
april apr abril avril aprile апрель апреля апреле ابريل
may mai mayo maggio maio май мая мае مايو
june jun juni junio juin giugno junho июнь июня июне يونيو
july jul juli julio juillet luglio julho июль июля июле يوليو
august aug agosto aout август августа августе اغسطس
september sept sep septiembre septembre settembre setembro сентябрь сентября сентябре سبتمبر
october oct oktober octubre octobre ottobre outubro октябрь октября октябре اكتوبر
november nov noviembre novembre novembro ноябрь ноября ноябре نوفمبر
december dec dezember diciembre decembre dicembre dezembro декабрь декабря декабре ديسمبر
"""
_NUMBER_OF = {name: n for n, names in enumerate(_MONTHS.strip().splitlines(), 1) for name in names.split()}
# Names of people and planets, verbs, short forms: months only beside a number, or after a word that a month follows.
_DOUBTFUL_NAMES = "jan feb mar march marco mars apr april may mai maio jun june aug august sep oct nov dec"
_DOUBTFUL = frozenset(_DOUBTFUL_NAMES.split())
_WORD = re.compile(r"[^\W\d_]{3,}")
_DAY = r"\d{1,2}(?:st|nd|rd|th|\.|er)?"
_LOOK_BACK = 24
_BEFORE = re.compile(
    rf"(?:(?<![\w.:/-])(?P<day>{_DAY})[\s-]+(?:(?:of|de)\s+)?"
    r"|\b(?P<word>in|of|since|during|until|till|by|last|this|next|early|late|mid|im|seit|en|desde|depuis)\s+)$"
)
_AFTER = re.compile(
    rf"(?:\.?[\s-]+(?P<day>{_DAY})(?![\w:/-]|[.,]\d))?"
    r"(?:(?:[,.]?[\s-]+|\.)(?:(?:of|de)\s+)?(?P<year>[12]\d{3})(?!\w))?"
)
_NUMERIC = re.compile(
    r"(?<![\w.,:/-])(?P<y>[12]\d{3})[-/.](?P<m>\d{1,2})(?:[-/.](?P<d>\d{1,2})(?:t\d[\d:.z+-]*)?)?(?![\w:/-]|[.,]\d)"
    r"|(?:(?<!\d)(?P<cy>[12]\d{3})\s*[年년]\s*)?(?<!\d)(?P<cm>\d{1,2})\s*[月월](?:\s*(?P<cd>\d{1,2})\s*[日号號일])?"
)

_MAYBE_NUMERIC = re.compile(r"\d[-/.]\d|[月월]")  # sought first: it takes a sixth of the time


@dataclass(frozen=True, slots=True)
class Date:
    """A month, perhaps of a year, perhaps a day of it."""

    month: int
    year: int | None = None
    day: int | None = None

    @property
    def tokens(self) -> list[str]:
        """What it is found by: itself and what it lies in, with and without the year.

        Source: ISO 8601, and XML Schema's ``gMonth`` and ``gMonthDay`` for those without a year.
        """
        given = [f"--{self.month:02}"]
        if self.day is not None:
            given.append(f"{given[0]}-{self.day:02}")
        return given + [f"{self.year}{each[1:]}" for each in given if self.year is not None]


def dates_in(folded: str) -> list[Date]:
    """The dates that a folded text names, those in words first; a year alone is none."""
    named = (_around(match, folded) for match in _WORD.finditer(folded) if match[0] in _NUMBER_OF)
    numeric = map(_numeric, _NUMERIC.finditer(folded) if _MAYBE_NUMERIC.search(folded) else ())
    return [date for found in (named, numeric) for date in found if date is not None]


def _around(name: re.Match[str], folded: str) -> Date | None:
    """The date that a month's name belongs to."""
    before = _BEFORE.search(folded[max(0, name.start() - _LOOK_BACK) : name.start()])
    year, later = next(_AFTER.finditer(folded, name.end())).group("year", "day")  # all of it may be missing
    day = (before["day"] if before else None) or later
    if name[0] in _DOUBTFUL and not (before or day or year):
        return None
    return _date(year, str(_NUMBER_OF[name[0]]), day and re.sub(r"\D", "", day))


def _numeric(match: re.Match[str]) -> Date | None:
    return _date(match["y"] or match["cy"], match["m"] or match["cm"], match["d"] or match["cd"])


def _date(year: str | None, month: str, day: str | None) -> Date | None:
    in_year, on_day = int(month), int(day) if day else None
    if not 1 <= in_year <= 12 or not (on_day is None or 1 <= on_day <= 31):
        return None
    return Date(in_year, int(year) if year else None, on_day)
