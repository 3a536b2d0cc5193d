"""What is said about an engine that does not start."""

from pathlib import Path

import pytest

from asyncmem.store.embedded_engines import Engine
from asyncmem.store.embedded_folder import Folder
from asyncmem.store.embedded_process import start_failure

ENGINE = Engine("mongod", ("/mongod",))
FOLDER = Folder(Path("/data"))


@pytest.mark.parametrize(
    ("code", "free", "words", "retryable"),
    [
        (None, 10**12, "does not come to listen after 300 s", False),
        (-4, 10**12, "not made for this processor", False),
        (-9, 10**12, "was killed", True),
        (62, 10**12, "too new, or too old", False),
        (100, 10**12, "ended with exit code 100", False),
        (14, 5_000_000, "The disk has only 5 MB left", False),
    ],
)
def test_a_failed_start_is_explained(code: int | None, free: int, words: str, retryable: bool) -> None:
    """What an exit code and the disk tell is said, and where the engine's own log is."""
    error = start_failure(ENGINE, code, FOLDER, free)
    assert words in str(error)
    assert "/data/engine.log" in str(error)
    assert ("disk" in str(error)) == (free < 10**9)
    assert error.retryable is retryable
