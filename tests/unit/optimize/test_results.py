"""What optimizations and curations tell of themselves."""

from datetime import UTC, datetime, timedelta

from asyncmem import CurationResult, OptimizationResult, UserMemory
from asyncmem.optimize.pruning import to_prune

ONE, TWO = UserMemory(memory="Plays chess"), UserMemory(memory="Likes tea")


def test_results_are_sequences_that_say_what_happened() -> None:
    """Both are sequences of memories; as text they say what was done, or why nothing was."""
    done = OptimizationResult([ONE], "summarize", applied=True, retired=[TWO, TWO], tokens_before=9, tokens_after=4)
    assert (len(done), done[0], done[:], list(done)) == (1, ONE, [ONE], [ONE])
    assert str(done) == "summarize: 2 to 1 memories, 9 to 4 tokens, 0 model calls (applied)"
    assert str(OptimizationResult([ONE], "topics")).endswith("(preview)")
    assert str(OptimizationResult(strategy="topics", reason="too few")) == "topics: nothing changed, too few"
    gone = CurationResult([ONE, TWO], "lin", kept=3)
    assert (len(gone), gone.removed, gone[1], gone[:1], list(gone)) == (2, 2, TWO, [ONE], [ONE, TWO])


def test_what_has_no_time_is_not_too_old() -> None:
    """A memory of other software that has no time never goes for its age, but counts, and goes when it is too many."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    old = UserMemory(memory="Old", memory_id="o", updated_at=now - timedelta(days=9))
    timeless = UserMemory.model_construct(memory="Timeless", memory_id="t", updated_at=None, pinned=False)
    assert to_prune([timeless, old], now, timedelta(days=1), None, keep_pinned=True) == [old]
    assert to_prune([timeless, old], now, timedelta(days=1), 0, keep_pinned=True) == [timeless, old]
    assert to_prune([timeless, old], now, timedelta(days=99), 1, keep_pinned=True) == [timeless]
