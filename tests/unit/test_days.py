"""Days named from the day of the conversation become dates."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.days import make_absolute

DAY = date(2024, 7, 19)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Adopted a greyhound yesterday", "Adopted a greyhound on 2024-07-18"),
        ("Yesterday adopted a greyhound", "On 2024-07-18 adopted a greyhound"),
        ("Marries tomorrow", "Marries on 2024-07-20"),
        ("Is tired on today", "Is tired on 2024-07-19"),
        ("Hat gestern einen Hund adoptiert", "Hat 2024-07-18 einen Hund adoptiert"),
        ("Ayer vendió su coche", "2024-07-18 vendió su coche"),
        ("昨天开始在书店上班", "2024-07-18开始在书店上班"),
        ("明日京都へ行く", "2024-07-20京都へ行く"),
        ("明後日京都へ行く", "2024-07-21京都へ行く"),
        ("어제 이사했다", "2024-07-18 이사했다"),
        ("Вчера купил машину", "2024-07-18 купил машину"),
        ("Reads yesterday's papers", "Reads yesterday's papers"),
        ("Moved last week", "Moved last week"),
        ("Steht am Morgen früh auf", "Steht am Morgen früh auf"),
    ],
)
def test_named_days_become_dates(text: str, written: str) -> None:
    """Yesterday, today and tomorrow are dates; what isn't a day stays."""
    assert make_absolute(text, DAY) == written


def test_the_ends_of_time_are_no_error() -> None:
    """The day before the first one is not counted."""
    assert make_absolute("Moved yesterday", date.min) == "Moved on 0001-01-01"


@given(st.text(max_size=60), st.dates())
def test_once_is_enough(text: str, day: date) -> None:
    """What was made absolute stays as it is."""
    once = make_absolute(text, day)
    assert make_absolute(once, date(2000, 1, 1)) == once
