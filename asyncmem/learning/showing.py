"""Tables on standard output, for people: by rich where it is installed, else as plain text."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table to standard output."""
    try:
        table, text, console = (import_module(f"rich.{name}") for name in ("table", "text", "console"))
    except ModuleNotFoundError:
        sys.stdout.write(plain(title, columns, rows))
        return
    made: Any = table.Table(*columns, title=text.Text(title))
    for row in rows:
        made.add_row(*(text.Text(cell) for cell in row))  # as it is: brackets in a memory are no markup
    console.Console().print(made)


def plain(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table as lines of text."""
    lines = [title, *("  ".join(cell for cell in row if cell) for row in rows)]
    return "\n".join([*lines, "" if rows else f"(no {columns[0]})\n"])
