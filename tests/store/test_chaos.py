"""A minute under fire: a replica set of three, workers and servers that die, networks that break, models that fail."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import chaos

pytestmark = pytest.mark.anyio

SECONDS = 40.0
"""Of faults; with the start of servers and workers and the wait for the last captures about a minute."""


async def test_promises_are_kept_under_fire() -> None:
    """After every kind of fault, each acknowledged addition and each scheduled capture is there, once, with its own
    user, and nobody else's memories were touched."""
    found = await chaos.replica_set(SECONDS)
    assert all(found["recovery"].values())
    for kind in ("add", "schedule"):
        assert found[kind]["acknowledged"] > 20
        assert (found[kind]["lost"], found[kind]["doubled"]) == (0, 0)
    assert (found["with another user"], found["still users touched"]) == (0, 0)
