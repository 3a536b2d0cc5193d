"""Memories by what they are about (pure)."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..search.bm25 import Bm25
from ..tokens import query_tokens, tokenize
from ..types import UserMemory

_ALIKE = 0.3
"""Share of a memory's own score that another must reach to be about the same."""


def clusters_of(memories: Sequence[UserMemory]) -> list[list[UserMemory]]:
    """The memories by their most frequent topic; those without any by the words that they share.

    Every memory is in one cluster, in its order; a memory that is like no other is a cluster of its own.
    """
    counts = Counter(topic.casefold() for memory in memories for topic in memory.topics)
    order = {topic: place for place, topic in enumerate(counts)}
    by_topic: dict[str, list[UserMemory]] = {}
    without: list[UserMemory] = []
    for memory in memories:
        topics = [topic.casefold() for topic in memory.topics]
        if topics:
            by_topic.setdefault(max(topics, key=lambda topic: (counts[topic], -order[topic])), []).append(memory)
        else:
            without.append(memory)
    return [*by_topic.values(), *_by_words(without)]


def _by_words(memories: Sequence[UserMemory]) -> list[list[UserMemory]]:
    """Each that is in no cluster yet leads one of all that are like it."""
    index = Bm25()
    for place, memory in enumerate(memories):
        index.put(place, tokenize(memory.memory))
    free = np.ones(len(memories), bool)
    clusters: list[list[UserMemory]] = []
    for place, memory in enumerate(memories):
        if not free[place]:
            continue
        scores = index.scores(query_tokens(memory.memory))
        alike = free & (scores >= _ALIKE * scores[place]) & (scores > 0)
        alike[place] = True
        free &= ~alike
        clusters.append([memories[i] for i in map(int, np.flatnonzero(alike))])
    return clusters
