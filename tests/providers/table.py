"""Print the provider matrix, or write its page: ``python -m tests.providers.table [--write]``."""

import asyncio
import sys
import warnings
from pathlib import Path

from asyncmem.llm.loading import load_litellm
from asyncmem.testing import ProviderSimulator

from .matrix import CASES, ERRORS, cell, fail, page, play
from .paths import PATHS

PAGE = Path(__file__).parents[2] / "docs" / "providers.md"


async def measured() -> str:
    """The page, measured now."""
    await load_litellm()
    async with ProviderSimulator() as provider:
        outcomes = {str(case): await play(case, provider) for case in CASES}
        errors = {(kind, p.model): (await fail(kind, p, provider)).__name__ for kind in ERRORS for p in PATHS}
    cells = {name: cell(outcome.tiers[0], outcome.sent[0]) for name, outcome in outcomes.items()}
    return page(cells, errors)


def main() -> None:
    """Run it."""
    warnings.simplefilter("ignore")
    text = asyncio.run(measured())
    if "--write" in sys.argv:
        PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
