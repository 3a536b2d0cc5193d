"""Numbers and dates: what was said, and what nobody said."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asyncmem.numbers import Said, replace_dates, said_numbers, unsaid_number, without_dates

DAY = date(2026, 3, 2)


def unsaid(text: str, *said: str) -> str | None:
    """The first number of the text that is not in what was said on a day in March."""
    return unsaid_number(text, Said(said_numbers(" ".join(said)), (DAY,)))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("I have 12 cats", "12"),
        ("twelve", "12"),
        ("a dozen eggs", "12"),
        ("thirty-four years", "34"),
        ("one hundred twenty", "120"),
        ("5 thousand", "5000"),
        ("4k a month", "4000"),
        ("4,100 euros", "4100"),
        ("4.100 Euro", "4100"),
        ("1.5 litres", "1.5"),
        ("1,5 Liter", "1.5"),
        ("vierunddreißig Jahre", "34"),
        ("treinta y cuatro", "34"),
        ("тридцать четыре", "34"),
        ("三十四岁", "34"),
        ("二〇二一年", "2021"),
        ("一万二千", "12000"),
        ("万", "10000"),
        ("3万", "30000"),
        ("두 마리", "2"),
        ("أربعة", "4"),
        ("٤ قطط", "4"),
        ("１２人", "12"),
        ("both of them", "2"),
        ("1.2.3", "2"),
    ],
)
def test_numbers_are_heard_in_digits_and_words(text: str, number: str) -> None:
    """A number is heard however it is written."""
    assert Decimal(number) in said_numbers(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Has 4 ovens", "four ovens"),
        ("Has four ovens", "4 ovens"),
        ("Has one oven", "an oven"),
        ("Earns 4,100 euros", "4.100 Euro"),
        ("Earns 4,000", "4k"),
        ("Earns 4k", "four thousand"),
        ("Is thirty-four", "34"),
        ("Ist vierunddreißig", "34"),
        ("Lives on the 3rd floor", "the third floor"),
        ("Gets up at 06:30", "half past six"),
        ("Gets up at 18:00", "at 6"),
        ("Gets up at 6:05", "6:05"),
        ("Born in 1990", "born in 90"),
        ("Moved on 2026-02-27", "last Friday"),
        ("Moves on 2 April 2026", "next month"),
        ("Moves on April 2nd, 2026", "soon"),
        ("Moves in May 2026", "in spring"),
        ("Zieht am 2. April 2026 um", "bald"),
        ("Se muda el 2 de abril de 2026", "pronto"),
        ("2026年4月2日搬家", "下个月"),
        ("Moves on 02.04.2026", "soon"),
        ("Moved in 2021", "five years ago"),
        ("Married since 2025", "last year"),
        ("Wedding on 2027-02-14", "on the 14th of February"),
        ("Born on 1990-05-14", "on 14 May 1990"),
        ("Born in 1990-05", "in 1990"),
        ("No numbers here", ""),
    ],
)
def test_what_was_said_or_can_be_counted_passes(text: str, said: str) -> None:
    """The same number in another form, and a date that can be counted from the day, was said."""
    assert unsaid(text, said) is None


@pytest.mark.parametrize(
    ("text", "said", "number"),
    [
        ("Has 4 ovens", "five ovens", "4"),
        ("Has three cats and 2 dogs", "2 dogs", "three"),
        ("Earns 4,100", "4,200", "4,100"),
        ("Gets up at 06:30", "early", "06:30"),
        ("Gets up at 6:05", "at 6", "6:05"),
        ("Moved on 2025-05-05", "recently", "2025-05-05"),
        ("Moved on 2026-02-31", "recently", "2026-02-31"),
        ("Moved in June 2019", "long ago", "june 2019"),
        ("Born in 1990", "I'm not that old", "1990"),
        ("Born on 1990-05-14", "in 1990", "1990-05-14"),
    ],
)
def test_what_nobody_said_is_found(text: str, said: str, number: str) -> None:
    """A number or date that can't come from what was said is named."""
    assert unsaid(text, said) == number


def test_dates_are_taken_out() -> None:
    """Without its dates a text has the rest."""
    assert without_dates("Moved on 2026-02-27 to Graz").split() == ["Moved", "on", "to", "Graz"]


@given(st.integers(2, 10**9))
def test_a_number_is_said_by_itself(number: int) -> None:
    """A number that stands in what was said is no invention, and reads the same with thousands marked."""
    assume(not 1800 <= number < 2200)
    assert unsaid(f"Has {number}", f"{number:,}") is None
    assert unsaid(f"Has {number:,}", str(number)) is None


@given(st.dates(date(2026, 1, 1), date(2026, 5, 1)))
def test_near_days_can_be_counted(day: date) -> None:
    """Any day within two months of the conversation may be what "last week" or "soon" means."""
    assert unsaid(f"Moved on {day}", "I moved") is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_answered(text: str, said: str) -> None:
    """Whatever the texts, an answer comes, and nothing is unsaid in what was said itself."""
    unsaid(text, said)
    assert all(number >= 0 for number in said_numbers(text))


def test_digits_without_end_are_a_number() -> None:
    """A row of digits that is too long for an int is read all the same."""
    assert said_numbers("7" * 5000) == {Decimal("7" * 5000)}
    assert unsaid_number("7" * 5000, Said(frozenset())) == "7" * 5000


def test_dates_are_rewritten() -> None:
    """Dates in any form get the words and the ISO form; a year alone and a clock stay."""
    text = "On March 13, 2021 and 2021-03-13, in May 2019, 13.03.2021, 2021年3月; 1990 at 7:30"
    assert replace_dates(text, lambda words, iso: f"<{iso}>") == (
        "On <2021-03-13> and <2021-03-13>, in <2019-05>, <2021-03-13>, <2021-03>; 1990 at 7:30"
    )
    assert replace_dates("2021-00", lambda words, iso: iso) == "2021-00"
