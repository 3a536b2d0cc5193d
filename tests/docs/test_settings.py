"""The tables of settings say what there is, and what it is by default."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from pydantic import BaseModel

from asyncmem import LLMSettings, Settings

from .examples import ROOT

ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| \S.* \|$", re.MULTILINE)


def rows(page: str, first: str) -> dict[str, str]:
    """The table of a page whose first field that is: each field with its default, as written."""
    tables = (ROOT / "docs" / page).read_text().split("| field | default | what it says |\n")[1:]
    found = [dict(ROW.findall(table.split("\n\n")[0])) for table in tables]
    return next(table for table in found if next(iter(table)) == first)


@pytest.mark.parametrize(("page", "kind"), [("models.md", LLMSettings), ("settings.md", Settings)])
def test_tables_of_settings_are_those_of_the_classes(page: str, kind: type[BaseModel]) -> None:
    """Every field of a class is in its table, in its order and with its default, and no other is."""
    told = rows(page, next(iter(kind.model_fields)))
    assert list(told) == list(kind.model_fields)
    for name, field in kind.model_fields.items():
        default: object = field.get_default(call_default_factory=True)
        if isinstance(default, Callable):  # its row says what it gives
            continue
        assert eval(told[name].strip("`"), {"timedelta": timedelta}) == default, name


@pytest.mark.parametrize("kind", [LLMSettings, Settings])
def test_docstrings_of_settings_name_the_same_fields(kind: type[BaseModel]) -> None:
    """So do the docstrings, which editors show."""
    assert re.findall(r"^        (\w+): ", str(kind.__doc__), re.MULTILINE)[: len(kind.model_fields)] == list(
        kind.model_fields
    )
