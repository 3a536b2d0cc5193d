"""How one score is made of words, meaning, neighbours in time and dates (pure). ``docs/why.md`` has the reasons.

All arrays have a value a slot: ``keyword`` is 0 where no word matches, ``meaning`` minus infinity where there is no
vector, ``updated`` minus infinity where the time is not known. The result is minus infinity for what neither found.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..dates import Date

Scores = NDArray[np.float32]
Slots = NDArray[np.intp]
SHARE = 0.5
"""Weight of the keyword score in the mix; meaning has the rest."""
NEIGHBOUR = 0.6
"""How much of its best neighbour's score a memory gets, where neighbours are alike."""
REACH = 2
"""How many memories before and after are neighbours."""
FADING = 0.8
"""What a step further away leaves of it."""
NEAR = 3600.0
"""Seconds between two updates that belong to one conversation."""
DATED = 0.3
"""What a memory gets that was updated on the date, or in the month, that the query names."""
SOON = 0.2
"""The least part of it in the right month, on another day."""


def fuse(
    keyword: Scores,
    meaning: Scores,
    updated: NDArray[np.float64],
    inserted: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    *,
    kinship: float = 1.0,
    dates: Sequence[Date] = (),
) -> Scores:
    """One score a slot: the mix of words and meaning, what neighbours lend, and what the query's dates add.

    ``kinship`` says how much neighbours have to do with each other, from 0 to 1.
    """
    found = allowed & ((keyword > 0) | np.isfinite(meaning))
    score = mix(keyword, meaning, found)
    if kinship > 0:
        score = score + np.float32(NEIGHBOUR * kinship) * neighbours(score, updated, inserted, found)
    if dates:
        score = score + np.float32(DATED) * dated(updated, dates)
    return np.where(found, score, np.float32(-np.inf)).astype(np.float32)


def mix(keyword: Scores, meaning: Scores, found: NDArray[np.bool_]) -> Scores:
    """Both scores, each stretched to 0 to 1 over what was found, and added up by weight."""
    return (SHARE * _stretched(keyword, found) + (1 - SHARE) * _stretched(meaning, found)).astype(np.float32)


def _stretched(scores: Scores, found: NDArray[np.bool_]) -> Scores:
    told = found & np.isfinite(scores)
    stretched = np.zeros(len(scores), np.float32)
    if told.any():
        low, high = scores[told].min(), scores[told].max()
        stretched[told] = (scores[told] - low) / (high - low) if high > low else (high > 0)
    return stretched


def pairs(
    updated: NDArray[np.float64], inserted: NDArray[np.int64], among: NDArray[np.bool_], step: int = 1
) -> tuple[Slots, Slots]:
    """The slots that are so many steps apart in time and belong to one conversation: the earlier, and the later."""
    (slots,) = np.nonzero(among & np.isfinite(updated))
    order = slots[np.lexsort((inserted[slots], updated[slots]))]
    breaks = np.concatenate(([0], np.cumsum(np.diff(updated[order]) > NEAR)))[: len(order)]
    together = breaks[step:] == breaks[:-step]
    return order[:-step][together], order[step:][together]


def neighbours(
    scores: Scores, updated: NDArray[np.float64], inserted: NDArray[np.int64], found: NDArray[np.bool_]
) -> Scores:
    """The best score of the memories next to each in time, less the further away they are."""
    best = np.zeros(len(scores), np.float32)
    for step in range(1, REACH + 1):
        before, after = pairs(updated, inserted, found, step)
        fading = np.float32(FADING ** (step - 1))
        best[after] = np.maximum(best[after], fading * scores[before])
        best[before] = np.maximum(best[before], fading * scores[after])
    return best


def dated(updated: NDArray[np.float64], dates: Sequence[Date]) -> Scores:
    """How well each time fits the best of the dates: 1 for its day or month, less for other days of its month."""
    known = np.isfinite(updated)
    moments = np.where(known, updated, 0).astype("datetime64[s]")
    months = moments.astype("datetime64[M]")
    days = (moments.astype("datetime64[D]") - months.astype("datetime64[D]")).astype(np.int64) + 1
    count = months.astype(np.int64)
    best = np.zeros(len(updated), np.float32)
    for date in dates:
        in_month = known & (count % 12 == date.month - 1)
        if date.year is not None:
            in_month &= count // 12 == date.year - 1970
        fit = 1.0 if date.day is None else np.maximum(SOON, 1 / (1 + np.abs(days - date.day)))
        best = np.maximum(best, np.where(in_month, fit, 0)).astype(np.float32)
    return best
