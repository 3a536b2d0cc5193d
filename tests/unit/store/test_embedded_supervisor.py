"""What the supervisor says to the process that started it."""

import os
import subprocess
import sys

import pytest

from asyncmem.errors import AsyncMemError, ConfigurationError, EmbeddedServerError, EmbeddedUnavailableError
from asyncmem.store.supervisor import read_report, report_to


@pytest.mark.parametrize(
    "failure",
    [ConfigurationError("one"), EmbeddedServerError("two\nlines"), EmbeddedUnavailableError('db="embedded"')],
)
def test_a_failure_arrives_as_what_it_is(failure: AsyncMemError) -> None:
    """An error crosses the pipe with its class and its text."""
    read, write = os.pipe()
    report_to(write)(failure)
    arrived = read_report(os.read(read, 10_000))
    os.close(read)
    assert type(arrived) is type(failure)
    assert str(arrived) == str(failure)
    # Nobody listens any more: that is no error of the server's.
    report_to(write)(None)
    os.close(write)


def test_success_arrives() -> None:
    """No failure crosses the pipe as none."""
    read, write = os.pipe()
    report_to(write)(None)
    assert read_report(os.read(read, 10_000)) is None
    os.close(read)
    os.close(write)


def test_the_supervisor_starts_light() -> None:
    """Importing the supervisor loads neither PyMongo nor pydantic, which take longer than the rest of it."""
    code = (
        "import asyncmem.store.supervisor, sys; print({'pymongo', 'pydantic', 'beanie', 'litellm'} & set(sys.modules))"
    )
    python = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert python.stdout == "set()\n"
