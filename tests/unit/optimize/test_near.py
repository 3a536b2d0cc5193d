"""Near duplicates: what another memory says as well is one, what differs in a fact never is."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncmem.optimize import DeduplicateStrategy, OptimizationModel, duplicate_groups, lost, phrases
from asyncmem.types import UserMemory

from ..work import work

pytestmark = pytest.mark.anyio


def memories(*texts: str) -> list[UserMemory]:
    """Memories with the ids 0, 1, 2…"""
    return [UserMemory(memory=text, memory_id=str(i), user_id="lin") for i, text in enumerate(texts)]


def groups(*texts: str) -> list[list[str]]:
    """The groups' texts."""
    return [[memory.memory for memory in group] for group in duplicate_groups(memories(*texts))]


@pytest.mark.parametrize(
    ("fuller", "other"),
    [
        ("Enjoys tea", "Likes tea"),
        ("Plays chess on Sundays", "Plays chess"),
        ("Has two cats", "Has 2 cats"),
        ("Runs a bakery with four ovens.", "Runs a bakery with 4 ovens"),
        ("Works as a nurse in Oslo at night", "Works as a nurse in Oslo"),
        ("Born in Leeds on March 13, 2021", "Born on 2021-03-13 in Leeds"),
        ("喜欢在山里登山", "喜欢登山"),
    ],
)
def test_near_duplicates(fuller: str, other: str) -> None:
    """The one that says all the other says comes first, in whatever order they are given."""
    assert groups(fuller, other) == [[fuller, other]]
    assert groups(other, "Owns maps", fuller) == [[fuller, other]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Likes tea", "Likes coffee"),
        ("Plays chess", "Doesn't play chess"),
        ("Plays chess", "Plays chess with Anna"),
        ("Works with Anna", "Works with Anna and Ben"),
        ("Has 2 cats", "Has 3 cats"),
        ("Has cats", "Has 3 cats"),
        ("Likes tea", "Used to like tea"),
        ("Likes tea", "Likes tea but not coffee"),
        ("Born on 2021-03-13", "Born on 2021-03-14"),
        ('Says "no"', 'Says "no way"'),
        ("Moved from Leeds to Porto", "Moved from Porto to Leeds"),
        ("Lives in Leeds", "Lived in Leeds"),
        ("喜欢猫", "喜欢狗"),
        ("👍", "👎"),
    ],
)
def test_never_near(one: str, other: str) -> None:
    """Another thing, number, date, name, quotation, time or negation."""
    assert groups(one, other) == []
    assert groups(other, one) == []


def test_what_keeps_memories_apart() -> None:
    """Pinned memories, other times to expire and suspicion keep even equal texts apart; another agent doesn't."""
    text = "Likes tea"
    odd = [
        UserMemory(memory=text, memory_id="a"),
        UserMemory(memory=text, memory_id="b", pinned=True),
        UserMemory(memory=text, memory_id="c", expires_at=datetime(2030, 1, 1, tzinfo=UTC)),
        UserMemory(memory=text, memory_id="d", metadata={"suspect": True}),
    ]
    assert duplicate_groups(odd) == []
    agents = [UserMemory(memory=text, memory_id=agent, agent_id=agent) for agent in "ab"]
    assert duplicate_groups(agents) == [agents]


def test_equal_texts_are_duplicates() -> None:
    """Case, white space and punctuation apart."""
    assert groups("Likes tea.", "likes  tea", "LIKES TEA!") == [["Likes tea.", "likes  tea", "LIKES TEA!"]]


def test_the_oldest_of_equals_survives() -> None:
    """Of equal texts the one that was made first leads."""
    newer, older = (UserMemory(memory="Likes tea", memory_id=str(at), created_at=at) for at in (20, 10))
    assert duplicate_groups([newer, older]) == [[older, newer]]


TEXTS = [
    memory
    for pairs in json.loads((Path(__file__).parents[2] / "data" / "languages.json").read_text()).values()
    for memory, _ in pairs
]
_SAID = st.sampled_from(["Likes", "Enjoys", "Plays", "Has 2", "Has two", "Doesn't like", "Used to like"])
_WHAT = st.sampled_from(["tea", "chess", "cats"])
_MORE = st.sampled_from(["", " on Sundays", " at home", " with Anna", " daily"])


@given(
    st.lists(st.tuples(_SAID, _WHAT, _MORE).map(lambda t: f"{t[0]} {t[1]}{t[2]}") | st.sampled_from(TEXTS), max_size=12)
)
def test_folding_loses_nothing_and_is_done_once(texts: list[str]) -> None:
    """Without its duplicates a set says all it said, and has none any more."""
    sources = memories(*texts)
    gone = {id(memory) for group in duplicate_groups(sources) for memory in group[1:]}
    left = [memory for memory in sources if id(memory) not in gone]
    assert lost(sources, left) == []
    assert duplicate_groups(left) == []
    assert len(duplicate_groups(sources)) <= len(sources) / 2


async def test_the_strategy_asks_no_model() -> None:
    """Survivors keep id and text, and get the topics and the time span of all; the others stay as they are."""
    sources = [
        UserMemory(memory="Likes tea", memory_id="a", user_id="lin", topics=["tea"], created_at=1, updated_at=2),
        UserMemory(memory="Owns maps", memory_id="b", user_id="lin"),
        UserMemory(memory="Enjoys tea daily", memory_id="c", user_id="lin", topics=["day"], created_at=3, updated_at=4),
    ]
    maps, tea = await DeduplicateStrategy().optimize(sources, OptimizationModel(None))
    assert maps == sources[1]
    assert (tea.memory_id, tea.memory, tea.topics) == ("c", "Enjoys tea daily", ["day", "tea"])
    assert (tea.created_at, tea.updated_at) == (sources[0].created_at, sources[2].updated_at)


def test_many_memories_take_work_in_proportion() -> None:
    """Four times the memories take some four times the work, also when most share their words."""

    def needed(count: int) -> int:
        texts = [f"Collects red maps of town{i // 2} with friends{' daily' if i % 2 else ''}" for i in range(count)]
        sources = memories(*texts)
        assert len(duplicate_groups(sources)) == count // 2
        phrases.sentences.cache_clear()
        return work(lambda: duplicate_groups(sources))

    assert needed(800) < 6 * needed(200)
