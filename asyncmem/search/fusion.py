"""How keyword and semantic scores become one (pure): replace what is here with what measures better.

All arrays have a value a slot: ``keyword`` is 0 where no word matches, ``semantic`` minus infinity where there is no
vector, ``updated`` minus infinity where the time is not known. The result is minus infinity for what neither found.
"""

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
RANKS = 60
"""What dampens the first ranks. Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (SIGIR 2009)."""
SHARE = 0.5
"""Weight of the keyword score in the mix; the semantic one has the rest."""
NEIGHBOUR = 0.2
"""How much of its better neighbour's score a memory gets."""
NEAR = 3600.0
"""Seconds between two updates that belong to one conversation."""


def fuse(
    keyword: Scores,
    semantic: Scores,
    updated: NDArray[np.float64],
    inserted: NDArray[np.int64],
    allowed: NDArray[np.bool_],
) -> Scores:
    """One score a slot: the mix of both, plus what neighbours in time add."""
    found = allowed & ((keyword > 0) | np.isfinite(semantic))
    mixed = mix(keyword, semantic, found)
    lent = NEIGHBOUR * neighbours(mixed, updated, inserted, found)
    return np.where(found, mixed + lent, np.float32(-np.inf)).astype(np.float32)


def mix(keyword: Scores, semantic: Scores, found: NDArray[np.bool_]) -> Scores:
    """Both scores, each stretched to 0 to 1 over what was found, and added up by weight."""
    return (SHARE * _stretched(keyword, found) + (1 - SHARE) * _stretched(semantic, found)).astype(np.float32)


def _stretched(scores: Scores, found: NDArray[np.bool_]) -> Scores:
    told = found & np.isfinite(scores)
    stretched = np.zeros(len(scores), np.float32)
    if told.any():
        low, high = scores[told].min(), scores[told].max()
        stretched[told] = (scores[told] - low) / (high - low) if high > low else (high > 0)
    return stretched


def reciprocal_ranks(scores: Scores, found: NDArray[np.bool_]) -> Scores:
    """``1 / (RANKS + rank)`` for what was found, the best first; 0 for the rest."""
    given = np.zeros(len(scores), np.float32)
    (slots,) = np.nonzero(found)
    order = slots[np.argsort(-scores[slots], kind="stable")]
    given[order] = 1 / (RANKS + 1 + np.arange(len(order)))
    return given


def neighbours(
    scores: Scores, updated: NDArray[np.float64], inserted: NDArray[np.int64], found: NDArray[np.bool_]
) -> Scores:
    """The better score of the two memories next to each in time, if they are near enough."""
    (slots,) = np.nonzero(found & np.isfinite(updated))
    order = slots[np.lexsort((inserted[slots], updated[slots]))]
    better = np.zeros(len(scores), np.float32)
    if len(order) > 1:
        near = np.diff(updated[order]) <= NEAR
        before, after = order[:-1][near], order[1:][near]
        better[after] = np.maximum(better[after], scores[before])
        better[before] = np.maximum(better[before], scores[after])
    return better
