"""Dates in texts, in numbers and in words of some languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.dates import Date, dates_in
from asyncmem.tokens import query_dates, query_tokens, tokenize

DAY = Date(5, 2023, 8)


@pytest.mark.parametrize(
    "text",
    [
        "(1:56 pm on 8 May, 2023)",
        "May 8th, 2023 at 10:30",
        "the 8th of May 2023.",
        "8-May-2023",
        "2023-05-08",
        "2023-05-08T10:30:00Z",
        "2023/5/8, at noon",
        "2023年5月8日",
        "2023년 5월 8일",
        "am 8. Mai 2023",
        "8 de mayo de 2023",
        "8 maggio 2023",
        "8 мая 2023 года",
        "8 مايو 2023",
    ],
)
def test_a_day_in_any_form(text: str) -> None:
    """A full date is the same day in whatever form and language it is written."""
    assert query_dates(text) == [DAY]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in June", [Date(6)]),
        ("last March 3 times", [Date(3, None, 3)]),
        ("Since April.2023", [Date(4, 2023)]),
        ("July 2023 or August 2024", [Date(7, 2023), Date(8, 2024)]),
        ("im März", [Date(3)]),
        ("в мае", [Date(5)]),
        ("en août", [Date(8)]),
        ("5月", [Date(5)]),
        ("2023年5月", [Date(5, 2023)]),
        ("2023-05", [Date(5, 2023)]),
        ("on 3 December", [Date(12, None, 3)]),
        ("5 March 10:30", [Date(3, None, 5)]),
        ("from July to 2024-01-02", [Date(7), Date(1, 2024, 2)]),
    ],
)
def test_months_and_days_without_a_year(text: str, expected: list[Date]) -> None:
    """What is missing stays missing; several dates are all found, those in words first."""
    assert query_dates(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ask June",
        "You may go, August said",
        "they march at 10:30",
        "in 2023",
        "5个月",
        "ORD-2023-05",
        "v2023.05.08.1",
        "2023-13",
        "2023-05-32",
        "2023-00-10",
        "12,345-06",
        "marching",
        "32 July",
    ],
)
def test_what_is_no_date(text: str) -> None:
    """Names and verbs that look like months, years alone, versions, ids and days that no month has are no dates."""
    assert query_dates(text) == []


def test_a_date_is_found_by_itself_and_by_what_it_lies_in() -> None:
    """Month and day, each with and without the year."""
    assert DAY.tokens == ["--05", "--05-08", "2023-05", "2023-05-08"]
    assert Date(5, 2023).tokens == ["--05", "2023-05"]
    assert Date(5).tokens == ["--05"]
    assert Date(5, None, 8).tokens == ["--05", "--05-08"]


def test_a_query_by_words_meets_a_memory_by_numbers() -> None:
    """A month in the words of one language finds a memory with an ISO date, and another month does not."""
    memory = set(tokenize("Started at Oakline on 2023-05-08"))
    assert "2023-05" in memory.intersection(query_tokens("¿Qué pasó en mayo de 2023?"))
    assert "--05" in memory.intersection(query_tokens("what happened in May"))
    assert not memory.intersection(query_tokens("what happened in June 2024"))


def test_an_iso_date_is_no_more_often_there_than_it_was_written() -> None:
    """A token that the text has already is not added for its date."""
    assert tokenize("2023-05-08").count("2023-05-08") == 1


@given(st.text(alphabet="0123456789-/. ,maydejun月日年th:"))
def test_dates_are_real(text: str) -> None:
    """Whatever stands around them, months are 1 to 12 and days 1 to 31."""
    for date in dates_in(text):
        assert 1 <= date.month <= 12
        assert date.day is None or 1 <= date.day <= 31
