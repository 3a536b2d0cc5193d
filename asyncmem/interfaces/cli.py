"""The ``asyncmem`` command. It needs the extra ``cli``, and says so where that is missing."""

import sys

_NEEDED = ("click", "rich", "typer")


def main() -> None:
    """Run the command that the arguments name."""
    try:
        from .commands import app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _NEEDED:
            raise
        sys.exit(f'asyncmem: the commands need {error.name}, which is not installed: pip install "asyncmem[cli]"')
    app()
