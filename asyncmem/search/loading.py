"""numpy, and what is written with it, imported by the first search that ranks, in a worker thread."""

import importlib
import sys

import anyio.to_thread

_MODULES = tuple(f"{__package__}.{name}" for name in ("index", "fusion", "embedding"))


async def load() -> None:
    """Import the modules that need numpy; importing them afterwards costs nothing."""
    for name in _MODULES:
        if name not in sys.modules:
            await anyio.to_thread.run_sync(importlib.import_module, name)
