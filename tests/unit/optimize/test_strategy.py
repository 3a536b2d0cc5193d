"""Strategies: how they are chosen, what they may return, and what each of ours does."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asyncmem.errors import ConfigurationError, MixedUsersError, ModelRefusedError
from asyncmem.llm import LLM, ChatReply, ChatRequest
from asyncmem.optimize import (
    DeduplicateStrategy,
    MemoryOptimizationStrategy,
    MemoryOptimizationStrategyType,
    OptimizationModel,
    SummarizeStrategy,
    TimeWindowStrategy,
    TopicsStrategy,
    to_strategy,
)
from asyncmem.optimize.strategy import MemoryOptimizationStrategyType as FromThere
from asyncmem.testing import ScriptedModel
from asyncmem.types import UserMemory

pytestmark = pytest.mark.anyio

OURS = [SummarizeStrategy, TimeWindowStrategy, TopicsStrategy, DeduplicateStrategy]


class Mine(MemoryOptimizationStrategy):
    """A strategy of somebody's own."""

    async def optimize(self, memories: Sequence[UserMemory], model: OptimizationModel) -> list[UserMemory]:
        return list(memories)


def memories(*texts: str, **fields: Any) -> list[UserMemory]:
    """Memories of lin's, each a day newer than the one before."""
    return [
        UserMemory(memory=t, memory_id=str(i), user_id="lin", updated_at=datetime(2026, 1, 1 + i, tzinfo=UTC), **fields)
        for i, t in enumerate(texts)
    ]


def joiner(count: int) -> ScriptedModel:
    """A model that joins its notes, so often."""

    def join(request: ChatRequest) -> ChatReply:
        notes = re.findall(r'^"(.*)"$', str(request.messages[1]["content"]), re.MULTILINE)
        return ChatReply(content=json.dumps({"memory": ". ".join(notes)}))

    return ScriptedModel([join] * count)


# ------------------------------------------------------------------------------------------------------- choosing


@pytest.mark.parametrize("kind", list(MemoryOptimizationStrategyType))
def test_ours_are_chosen_by_name(kind: MemoryOptimizationStrategyType) -> None:
    """By the enum, by its string in any case, and each says its name."""
    for value in (kind, kind.value, f" {kind.value.upper()} "):
        assert to_strategy(value).name == kind.value
    assert isinstance(to_strategy(kind), MemoryOptimizationStrategy)
    assert FromThere is MemoryOptimizationStrategyType


def test_instances_are_taken_as_they_are() -> None:
    """An instance of ours or of somebody's own is used; its name is its class's unless it says otherwise."""
    mine, window = Mine(), TimeWindowStrategy(keep_count=3)
    assert to_strategy(mine) is mine
    assert to_strategy(window) is window
    assert mine.name == "Mine"


def test_a_name_is_an_attribute_of_class_or_instance() -> None:
    """What a class or an instance sets counts, and is inherited; a class that sets none is called by its own name."""

    class Short(Mine):
        name = "short"

    class Shorter(Short):
        pass

    class Other(Mine):
        pass

    single = Other()
    single.name = "single"
    assert [s.name for s in (Short(), Shorter(), Other(), single)] == ["short", "short", "Other", "single"]


@pytest.mark.parametrize("value", ["sumarize", "", None, 3, SummarizeStrategy, Mine, object()])
def test_anything_else_is_refused(value: object) -> None:
    """A typing error, a class or another type: the error lists what there is."""
    with pytest.raises(ConfigurationError, match="'summarize', 'time_window', 'topics', 'deduplicate'"):
        to_strategy(value)


def test_a_class_is_told_to_be_an_instance() -> None:
    """Who passes a class learns what to do."""
    with pytest.raises(ConfigurationError, match="class Mine: pass an instance"):
        to_strategy(Mine)


# ----------------------------------------------------------------------------------------------------------- ours


@pytest.mark.parametrize("strategy", OURS)
async def test_users_are_never_mixed(strategy: type[MemoryOptimizationStrategy]) -> None:
    """Memories of two users raise before any model is asked."""
    mixed = [*memories("Likes tea"), UserMemory(memory="Likes tea", memory_id="x", user_id="omar")]
    with pytest.raises(MixedUsersError):
        await strategy().optimize(mixed, OptimizationModel(None))


@pytest.mark.parametrize("strategy", [SummarizeStrategy, TimeWindowStrategy, TopicsStrategy])
async def test_without_a_model(strategy: type[MemoryOptimizationStrategy]) -> None:
    """A strategy that needs a model says so; one that has nothing to do needs none."""
    with pytest.raises(ConfigurationError, match="model="):
        await strategy().optimize(memories("Likes tea", "Likes tea daily"), OptimizationModel(None))
    assert await strategy().optimize([], OptimizationModel(None)) == []


async def test_the_newest_stay_by_time() -> None:
    """What was changed within the time stays as it is; the rest is summarised."""
    sources = memories("Owns maps", "Likes tea", "Plays chess", "Runs daily")
    async with joiner(1) as scripted:
        strategy = TimeWindowStrategy(timedelta(days=2), clock=lambda: datetime(2026, 1, 5, tzinfo=UTC))
        results = await strategy.optimize(sources[::-1], OptimizationModel(LLM(scripted)))
    assert [memory.memory for memory in results] == ["Owns maps. Likes tea", "Runs daily", "Plays chess"]


async def test_the_newest_stay_by_count() -> None:
    """So many of the newest stay; a memory without a time is old."""
    sources = [
        *memories("Owns maps", "Likes tea", "Plays chess"),
        UserMemory(memory="Runs", memory_id="x", user_id="lin"),
    ]
    async with joiner(1) as scripted:
        results = await TimeWindowStrategy(keep_count=2).optimize(sources, OptimizationModel(LLM(scripted)))
    assert [memory.memory for memory in results] == ["Runs. Owns maps", "Likes tea", "Plays chess"]
    assert await TimeWindowStrategy(keep_count=9).optimize(sources, OptimizationModel(None)) == sources


async def test_by_default_a_month_stays() -> None:
    """Without any setting what is younger than 30 days stays."""
    new = [UserMemory(memory=t, memory_id=t, updated_at=datetime.now(UTC)) for t in ("Likes tea", "Owns maps")]
    assert await TimeWindowStrategy().optimize(new, OptimizationModel(None)) == new


@pytest.mark.parametrize(
    "wrong", [{"keep": timedelta(1), "keep_count": 1}, {"keep": timedelta(-1)}, {"keep_count": -1}]
)
def test_windows_that_make_no_sense(wrong: dict[str, Any]) -> None:
    """Both settings, or a negative one."""
    with pytest.raises(ConfigurationError):
        TimeWindowStrategy(**wrong)


async def test_topics_are_summarised_apart() -> None:
    """One memory a topic; a memory alone in its cluster, and those that stay, are as they were."""
    tea = memories("Likes green tea", "Drinks tea daily", topics=["tea"])
    others = [
        UserMemory(memory="Works nights", memory_id="w", user_id="lin", topics=["work"]),
        UserMemory(memory="Pinned", memory_id="p", user_id="lin", topics=["tea"], pinned=True),
    ]
    async with joiner(1) as scripted:
        results = await TopicsStrategy().optimize([*others, *tea], OptimizationModel(LLM(scripted)))
    assert [(m.memory_id, m.memory) for m in results] == [
        ("w", "Works nights"),
        (None, "Likes green tea. Drinks tea daily"),
        ("p", "Pinned"),
    ]
    assert results[1].topics == ["tea"]


async def test_a_failed_cluster_ends_all() -> None:
    """An error of one cluster is raised as it is."""
    async with ScriptedModel([ChatReply(content=None, refusal="no")]) as scripted:
        model = OptimizationModel(LLM(scripted))
        with pytest.raises(ModelRefusedError):
            await TopicsStrategy().optimize(memories("Likes tea", "Likes tea daily", topics=["t"]), model)
