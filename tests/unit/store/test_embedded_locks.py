"""File locks: shared by many or held alone, dropped at the end."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from asyncmem.store.embedded_locks import FileLock, Mode, is_held


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file to lock."""
    return tmp_path / "lock"


def test_many_share_one_is_alone(path: Path) -> None:
    """Many may share a lock; whoever holds it alone shuts out everybody."""
    first, second, third = FileLock(path), FileLock(path), FileLock(path)
    assert first.take(Mode.SHARED)
    assert second.take(Mode.SHARED)
    assert not third.take(Mode.EXCLUSIVE)
    assert is_held(path, Mode.EXCLUSIVE)
    assert not is_held(path, Mode.SHARED)
    first.release()
    second.release()
    assert third.take(Mode.EXCLUSIVE)
    assert is_held(path, Mode.SHARED)
    third.release()
    assert not is_held(path, Mode.EXCLUSIVE)


def test_a_released_lock_stays_released(path: Path) -> None:
    """A lock that was released can't be taken again, so one that was given up early is never held."""
    lock = FileLock(path)
    lock.release()
    lock.release()
    assert not lock.take(Mode.SHARED)
    assert not is_held(path, Mode.EXCLUSIVE)


def test_waiting_ends_when_the_last_one_leaves(path: Path) -> None:
    """Waiting for everybody to leave ends when the last one does, not before."""
    users = [FileLock(path), FileLock(path)]
    assert all(user.take(Mode.SHARED) for user in users)
    waiting = FileLock(path)
    thread = threading.Thread(target=waiting.wait_exclusive)
    thread.start()
    users[0].release()
    thread.join(0.1)
    assert thread.is_alive()
    users[1].release()
    thread.join(10)
    assert is_held(path, Mode.SHARED)
    waiting.release()


def test_a_child_that_inherits_a_lock_holds_it(path: Path) -> None:
    """A lock is held until the process that inherited it ends too."""
    lock = FileLock(path)
    assert lock.take(Mode.EXCLUSIVE)
    with subprocess.Popen(["sleep", "30"], pass_fds=[lock.descriptor()]) as child:
        os.close(lock.descriptor())
        assert is_held(path, Mode.SHARED)
        child.kill()
    assert not is_held(path, Mode.SHARED)
