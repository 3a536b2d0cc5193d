"""Advisory file locks: who uses the embedded server, and who runs it.

The kernel drops a lock when the process that holds it ends, however it ends. So what locks say is never stale.
"""

import contextlib
import fcntl
import os
import threading
from enum import Enum
from pathlib import Path


class Mode(Enum):
    """How a lock is held."""

    SHARED = fcntl.LOCK_SH
    EXCLUSIVE = fcntl.LOCK_EX


class FileLock:
    """A lock on a file. Two of them on one file are independent, in one process as in two.

    Safe to use from several threads. Once released it can't be taken again, so a thread that comes late finds out.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._released = False
        self._guard = threading.Lock()

    def take(self, mode: Mode) -> bool:
        """Take the lock, or change how it is held, without waiting. Whether that worked.

        A change that doesn't work may cost the lock that was held.

        Raises:
            OSError: the file can't be opened.
        """
        with self._guard:
            if self._released:
                return False
            try:
                fcntl.flock(self._descriptor(), mode.value | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def wait_exclusive(self) -> None:
        """Wait, without end, until nobody else holds the lock in either mode."""
        with self._guard:
            fd = self._descriptor()
        fcntl.flock(fd, fcntl.LOCK_EX)

    def descriptor(self) -> int:
        """The open file. A child process that inherits it holds the lock as well, until it ends."""
        with self._guard:
            return self._descriptor()

    def release(self) -> None:
        """Let go. May be called again."""
        with self._guard:
            self._released = True
            fd, self._fd = self._fd, None
        if fd is None:
            return
        with contextlib.suppress(OSError):
            # Explicitly, since a forked child may hold a copy of the descriptor.
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)

    def _descriptor(self) -> int:
        if self._fd is None:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd


def is_held(path: Path, mode: Mode) -> bool:
    """Whether somebody holds the lock in a mode that shuts this one out."""
    lock = FileLock(path)
    try:
        return not lock.take(mode)
    finally:
        lock.release()
