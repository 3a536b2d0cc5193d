"""Parts: memories cut into requests, summaries into memories."""

from hypothesis import given
from hypothesis import strategies as st

from asyncmem.cleaning import MAX_TEXT
from asyncmem.optimize.clustering import clusters_of
from asyncmem.optimize.parts import parts_of, storable
from asyncmem.types import UserMemory


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(50, 400))
def test_parts_hold_everything_within_the_budget(costs: list[int], budget: int) -> None:
    """Every memory once, in order; no part exceeds the budget but one of a single memory."""
    parts = parts_of(costs, budget)
    assert [place for part in parts for place in part] == list(range(len(costs)))
    assert all(len(part) == 1 or sum(costs[i] for i in part) <= budget for part in parts)
    assert all(parts)


def test_parts_are_of_about_one_size() -> None:
    """No small rest is left over: eleven of ten where ten fit are six and five."""
    assert [len(part) for part in parts_of([10] * 11, 100)] in ([6, 5], [7, 4])
    assert parts_of([], 100) == []


def test_a_long_text_is_cut_between_sentences() -> None:
    """Pieces that a memory holds, with everything in them; what fits stays whole, whatever its sentences."""
    assert storable("One. Two.") == ["One. Two."]
    text = " ".join(f"Sentence {i} is here." for i in range(900))
    pieces = storable(text)
    assert len(pieces) == 3
    assert all(len(piece) <= MAX_TEXT for piece in pieces)
    assert " ".join(pieces) == text
    assert storable("x" * 9000) == ["x" * 9000]


def _memory(text: str, *topics: str) -> UserMemory:
    return UserMemory(memory=text, topics=list(topics))


def test_clusters_follow_the_most_frequent_topic() -> None:
    """Each memory is where most of its topics' memories are, case apart; the first where it is a tie."""
    memories = [_memory("a", "Tea", "x"), _memory("b", "y", "tea"), _memory("c", "y"), _memory("d", "z", "w")]
    assert [[m.memory for m in cluster] for cluster in clusters_of(memories)] == [["a", "b"], ["c"], ["d"]]


def test_without_topics_words_decide() -> None:
    """Memories that share their rare words are one cluster; one that is like no other is alone."""
    texts = ["Plays the violin in a trio", "Owns a violin", "Allergic to peanuts", "👍", "Has a peanuts allergy"]
    clusters = [[m.memory for m in cluster] for cluster in clusters_of([_memory(t) for t in texts])]
    assert ["👍"] in clusters
    assert sorted(t for cluster in clusters for t in cluster) == sorted(texts)
    assert ["Allergic to peanuts", "Has a peanuts allergy"] in clusters
    assert clusters_of([]) == []
