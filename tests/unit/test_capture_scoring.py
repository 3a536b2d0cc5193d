"""The quality benchmark's scoring: its cases are well made, and its checks fail what is wrong."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "capture_scoring.py"


@pytest.fixture(scope="module")
def scoring() -> Iterator[ModuleType]:
    """The module, which belongs to no package."""
    spec = importlib.util.spec_from_file_location("capture_scoring", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def case(scoring: ModuleType) -> Any:
    """A move, with a date, beside a memory that must stay."""
    return scoring.Case(
        id="x",
        category="updates",
        set="dev",
        turns=[{"user": "x"}],
        before=["Lives in Leeds", "Has a cat"],
        facts=[["porto"]],
        changed=[0],
        dates=["2026-03-01"],
        never=["lisbon"],
        count=[2, 2],
        language="es",
    )


def test_there_are_sixty_cases(scoring: ModuleType) -> None:
    """40 to develop on and 20 held out, each with an id of its own and checks that are expressions."""
    cases = scoring.load_cases()
    assert (len(cases), sum(c.set == "dev" for c in cases), len({c.id for c in cases})) == (60, 40, 60)
    assert {c.set for c in cases} == {"dev", "held-out"}
    for one in cases:
        assert one.messages()[0]["at"].tzinfo is not None
        for pattern in [*(p for f in (*one.facts, *one.keeps) for p in f), *one.never, *one.dates, *one.may_hold]:
            re.compile(pattern)
        assert all(i < len(one.before) for i in (*one.changed, *one.may_change, *one.gone))
        assert not any(scoring.matches(f, text) for f in one.facts for text in one.before if not one.keeps)


def test_no_case_names_what_the_prompt_names(scoring: ModuleType) -> None:
    """Names of the prompt's examples leak into small models' answers, and so occur in no case."""
    told = scoring.CASES.read_text("utf-8").casefold()
    names = ("ana", "moss", "halden", "corner bakery", "ivo", "cello", "oslo", "奥斯陆")
    assert not [name for name in names if re.search(rf"\b{name}\b", told)]


def test_what_is_right_is_perfect(scoring: ModuleType, case: Any) -> None:
    """A case whose checks all hold counts fully."""
    text = "Vive en Porto desde el 2026-03-01"
    done = scoring.Outcome([scoring.Written("update", text, 0)], [text, "Has a cat"])
    assert vars(scoring.score(case, done)) == {
        **dict.fromkeys(("cases", "perfect", "facts", "held", "writes", "right", "texts", "in_language"), 1),
        **dict.fromkeys(("dates", "dated"), 1),
        "wrong": [],
    }


@pytest.mark.parametrize(
    ("written", "after", "wrong"),
    [
        ([], ["Lives in Leeds", "Has a cat"], "not held: porto"),
        ([("update", "Vive en Porto", 0)], ["Vive en Porto", "Has a cat"], "no date 2026-03-01"),
        ([("update", "Lives in Porto", 0)], ["Lives in Porto", "Has a cat"], "not in es: Lives in Porto"),
        (
            [("add", "Vive en Porto", None)],
            ["Lives in Leeds", "Has a cat", "Vive en Porto"],
            "not changed: Lives in Leeds",
        ),
        (
            [("add", "Vive en Porto", None)],
            ["Lives in Leeds", "Has a cat", "Vive en Porto"],
            "3 memories instead of 2 to 2",
        ),
        ([("update", "Porto", 1)], ["Lives in Leeds", "Porto"], "wrong update: Porto"),
        ([("delete", "Has a cat", 1)], ["Lives in Leeds"], "wrong delete: Has a cat"),
        ([("add", "Likes Lisbon", None)], ["Likes Lisbon"], "holds lisbon"),
        ([("add", "Porto, Lisbon", None)], ["Porto, Lisbon"], "wrong add: Porto, Lisbon"),
    ],
)
def test_what_is_wrong_is_said(
    scoring: ModuleType, case: Any, written: list[tuple[str, str, int | None]], after: list[str], wrong: str
) -> None:
    """Every kind of check can fail, and says what."""
    found = scoring.score(case, scoring.Outcome([scoring.Written(*w) for w in written], after))
    assert wrong in found.wrong
    assert found.perfect == 0


def test_a_fact_counts_once(scoring: ModuleType, case: Any) -> None:
    """The same fact written twice is one right write and one wrong."""
    twice = [scoring.Written("add", "Vive en Porto"), scoring.Written("add", "Está en Porto")]
    found = scoring.score(case, scoring.Outcome(twice, []))
    assert (found.writes, found.right) == (2, 1)


def test_what_is_marked_suspect_is_not_counted(scoring: ModuleType, case: Any) -> None:
    """A text that was stored as suspect is no write, right or wrong."""
    found = scoring.score(case, scoring.Outcome([scoring.Written("add", "Is an admin", None, suspect=True)], []))
    assert (found.writes, [w for w in found.wrong if "admin" in w]) == (0, [])


def test_forgetting_is_checked(scoring: ModuleType, case: Any) -> None:
    """What must be gone, what must be kept and a refusal that must be reported."""
    wish = replace(case, gone=[1], refused=True, keeps=[["leeds"]])
    found = scoring.score(wish, scoring.Outcome([scoring.Written("delete", "Has a cat", 1)], ["x"], refused=True))
    assert "lost: leeds" in found.wrong
    assert not [w for w in found.wrong if "gone" in w or "forget" in w]
    found = scoring.score(wish, scoring.Outcome())
    assert {"not gone: Has a cat", "the wish to forget is not reported"} <= set(found.wrong)


def test_a_failed_call_holds_nothing(scoring: ModuleType, case: Any) -> None:
    """A model error counts every fact as missing."""
    found = scoring.score(case, scoring.Outcome(failed="TimeoutError"))
    assert (found.cases, found.perfect, found.facts, found.held) == (1, 0, 1, 0)
    assert found.wrong == ["failed: TimeoutError"]


@pytest.mark.parametrize(
    ("text", "language", "right"),
    [
        ("住在成都", "zh", True),
        ("Lives in 成都", "zh", False),
        ("猫のミケ", "ja", True),
        ("부산에 산다", "ko", True),
        ("Живёт в Казани", "ru", True),
        ("مهندس", "ar", True),
        ("Wohnt in Rostock", "de", True),
        ("Doesn't drink Kaffee", "de", False),
        ("Lives in Cuenca", "es", False),
    ],
)
def test_languages_are_told_apart(scoring: ModuleType, text: str, language: str, right: bool) -> None:
    """A text is in a language when its letters are, without everyday English words."""
    assert scoring.is_in_language(text, language) == right


def test_scores_add_up(scoring: ModuleType) -> None:
    """Counts add, and so do the words on what is wrong."""
    one = scoring.Score(1, 1, 2, 2, wrong=["a"])
    total = one + scoring.Score(1, 0, 1, wrong=["b"])
    assert (total.cases, total.perfect, total.facts, total.wrong) == (2, 1, 3, ["a", "b"])
