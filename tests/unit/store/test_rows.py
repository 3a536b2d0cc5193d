"""Rows: what search reads of them."""

import random

from asyncmem.store.rows import next_stamp


def test_stamps_differ_whatever_an_application_seeds() -> None:
    """Two processes that seed ``random`` alike don't give their rows the same stamps; each fits 45 bits."""
    stamps: set[int] = set()
    for _ in range(2):
        random.seed(7)
        stamps |= {next_stamp() for _ in range(1_000)}
    assert len(stamps) == 2_000
    assert all(0 < stamp <= 2**44 for stamp in stamps)
