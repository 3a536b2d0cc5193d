"""When two texts say the same."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.operations import fold, identity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Runs a bakery with 4 ovens", "runs  a bakery, with 4 ovens."),
        ("Can't swim", "can’t swim!"),
        ('Calls her dog "Rex"', "Calls her dog «Rex»"),
        ("Lives in Zürich", "lives in Zu\u0308rich"),
        ("Straße 5", "STRASSE 5"),
        ("(Vegetarian) since 2019", "Vegetarian — since 2019…"),
        ("我下个月要搬到 苏州，养了 3 只猫。", "我下个月要搬到苏州养了3只猫"),
        ("−5 °C is fine", "-5 °C is fine"),
        ("Ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("zero\u200bwidth", "zerowidth"),
    ],
)
def test_same_statements_fold_together(one: str, other: str) -> None:
    """Case, white space, punctuation and Unicode form don't matter."""
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Runs a bakery with 4 ovens", "Runs a bakery with 5 ovens"),
        ("Ran 1.5 km", "Ran 15 km"),
        ("Feels fine at -5 degrees", "Feels fine at 5 degrees"),
        ("Likes C", "Likes C#"),
        ("Likes C", "Likes C++"),
        ("Writes .NET", "Writes net"),
        ("Earns <50k", "Earns 50k"),
        ("Saves 10%", "Saves 10"),
        ("Pays $5", "Pays €5"),
        ("Sees a nowhere man", "Sees a now here man"),
        ("Does eat meat", "Doesn't eat meat"),
        ("重3.5公斤", "重35公斤"),
    ],
)
def test_different_statements_stay_apart(one: str, other: str) -> None:
    """Numbers, signs, names and negations matter."""
    assert fold(one) != fold(other)


@given(st.text(min_size=1, max_size=80))
def test_folding_twice_is_folding_once(text: str) -> None:
    """Fold is idempotent on what it gives, and never turns something into nothing."""
    folded = fold(text)
    assert fold(folded) == folded
    printable = [c for c in text if not c.isspace() and unicodedata.category(c) not in ("Cf", "Cc", "Cs")]
    if printable and unicodedata.normalize("NFKC", "".join(printable)).strip():
        assert folded


@given(st.text("ab .,!4-", max_size=30), st.text("ab .,!4-", max_size=30))
def test_numbers_survive_folding(one: str, other: str) -> None:
    """Texts whose digits differ never fold together."""
    digits = [[c for c in text if c.isdigit()] for text in (one, other)]
    if digits[0] != digits[1]:
        assert fold(one) != fold(other)


def test_identity_tells_agents_and_teams_apart() -> None:
    """The same words of another agent or team are another statement."""
    keys = {identity("x", a, t) for a in (None, "a", "b") for t in (None, "a", "b")}
    assert len(keys) == 9
    assert identity("Plays chess", None, None) == identity("plays  chess.", None, None)
    assert len(identity("x", None, None)) == 16
