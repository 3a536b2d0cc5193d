"""Optimization on each kind of server: from a strategy's result to the swap, and what goes wrong on the way."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from asyncmem import (
    ChatReply,
    ChatRequest,
    ConfigurationError,
    Curator,
    DeduplicateStrategy,
    InvalidIdError,
    InvalidQueryError,
    MemoryManager,
    MemoryOptimizationStrategy,
    MixedUsersError,
    ModelUnavailableError,
    OptimizationConflictError,
    OptimizationError,
    OptimizationModel,
    OptimizationNotFoundError,
    Settings,
    StoreUnavailableError,
    UserMemory,
)
from asyncmem.testing import ScriptedModel

from .conftest import Clock

pytestmark = pytest.mark.anyio

PARROTS = ("Keeps two parrots", "Works nights", "Parrots are named Pip and Bo")
SUMMARY = "Keeps two parrots named Pip and Bo. Works nights."


async def fill(manager: MemoryManager, texts: Sequence[str] = PARROTS, user_id: str = "lin") -> list[str]:
    """Memories of one user; their ids."""
    return await manager.add_user_memories([UserMemory(memory=text) for text in texts], user_id=user_id)


async def texts(manager: MemoryManager, user_id: str = "lin") -> list[str]:
    """A user's memories as text, sorted."""
    return sorted(m.memory for m in await manager.get_user_memories(user_id=user_id))


class Said(MemoryOptimizationStrategy):
    """Returns what it was told to, after something else has happened."""

    def __init__(self, result: object, meanwhile: Callable[[], Any] | None = None) -> None:
        self.result = result
        self.meanwhile = meanwhile

    @property
    def name(self) -> str:
        return "said"

    async def optimize(self, memories: Sequence[UserMemory], model: OptimizationModel) -> list[UserMemory]:
        if self.meanwhile is not None:
            await self.meanwhile()
        return self.result(memories) if callable(self.result) else self.result  # type: ignore[return-value]


class Summarizing:
    """A model that gives a summary, after something else has happened."""

    name = "summarizing"

    def __init__(self, summary: str, meanwhile: Callable[[], Any] | None = None) -> None:
        self.summary = summary
        self.meanwhile = meanwhile

    async def complete(self, request: ChatRequest) -> ChatReply:
        if self.meanwhile is not None:
            await self.meanwhile()
        return ChatReply(content='{"memory": "' + self.summary + '"}')


# ------------------------------------------------------------------------------------------------ reference case 2


async def test_case_2_what_is_added_meanwhile_lives(uri: str) -> None:
    """The summary and what was added while the model worked both live; the sources retired, and undo brings them
    back as they were."""
    async with MemoryManager(uri, model=Summarizing(SUMMARY)) as manager:
        ids = await fill(manager)
        before = {m.memory_id: m for m in await manager.get_user_memories(user_id="lin")}
        history = [await manager.history(i, user_id="lin") for i in ids]

        async def move() -> None:
            await manager.add_user_memory(UserMemory(memory="Moved to Tromsø"), user_id="lin")

        manager_of_model = MemoryManager(uri, model=Summarizing(SUMMARY, move))
        async with manager_of_model as optimizing:
            result = await optimizing.optimize_memories(user_id="lin")
        assert await texts(manager) == sorted([SUMMARY, "Moved to Tromsø"])
        assert [m.memory for m in result] == [SUMMARY]
        assert sorted(m.memory for m in result.retired) == sorted(PARROTS)
        assert (result.applied, result.reason, result.usage.calls, result.report.missing) == (True, "", 1, ())
        assert result.tokens_after < result.tokens_before
        (run,) = await manager.list_optimizations(user_id="lin")
        assert (run.run_id, run.strategy, run.status) == (result.run_id, "summarize", "applied")
        undone = await manager.undo_optimization(run.run_id, user_id="lin")
        assert (sorted(m.memory for m in undone.restored), undone.removed) == (sorted(PARROTS), 1)
        after = {m.memory_id: m for m in await manager.get_user_memories(user_id="lin")}
        assert {i: after[i] for i in ids} == before
        assert [await manager.history(i, user_id="lin") for i in ids] == history


async def test_case_2_blank_and_empty_leave_everything(uri: str) -> None:
    """A blank summary, and a strategy that returns nothing, raise; all three memories are as they were."""
    async with MemoryManager(uri, model=Summarizing("  ")) as manager:
        await fill(manager)
        before = await manager.get_user_memories(user_id="lin")
        with pytest.raises(OptimizationError, match="blank"):
            await manager.optimize_memories(user_id="lin")
        with pytest.raises(OptimizationError, match="no memory at all"):
            await manager.optimize_memories(user_id="lin", strategy=Said([]))
        assert await manager.get_user_memories(user_id="lin") == before
        assert await manager.list_optimizations(user_id="lin") == []


# ---------------------------------------------------------------------------------------------------- other results


async def test_what_others_rest_on_must_still_be_there(uri: str) -> None:
    """A memory that stays, and alone says what retires, stops the swap when it is changed or deleted meanwhile."""
    for how in ("changed", "deleted"):
        async with MemoryManager(uri, model=ScriptedModel([])) as manager:
            user = f"lin-{how}"
            one, two, _ = await fill(manager, ["Keeps two parrots", "Keeps two parrots at home", "Works nights"], user)
            before = await texts(manager, user)

            async def meddle(
                manager: MemoryManager = manager, user: str = user, rests_on: str = two, how: str = how
            ) -> None:
                if how == "deleted":
                    await manager.delete_user_memory(rests_on, user_id=user)
                else:
                    await manager.update_user_memory(rests_on, user_id=user, memory="Keeps no parrots any more")

            kept = Said(lambda memories, gone=one: [m for m in memories if m.memory_id != gone], meddle)
            with pytest.raises(OptimizationConflictError, match="meanwhile"):
                await manager.optimize_memories(user_id=user, strategy=kept)
            assert "Keeps two parrots" in before
            assert "Keeps two parrots" in await texts(manager, user)


async def test_what_nothing_rests_on_may_change_meanwhile(uri: str) -> None:
    """A memory that stays and says nothing of what retires may be changed or deleted: the swap goes on."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        one, _, three = await fill(manager, ["Keeps two parrots", "Keeps two parrots at home", "Works nights"])

        async def meddle() -> None:
            await manager.update_user_memory(three, user_id="lin", memory="Works days")

        kept = Said(lambda memories: [m for m in memories if m.memory_id != one], meddle)
        result = await manager.optimize_memories(user_id="lin", strategy=kept)
        assert [m.memory_id for m in result.retired] == [one]
        assert await texts(manager) == ["Keeps two parrots at home", "Works days"]


async def test_a_preview_writes_nothing(uri: str) -> None:
    """With ``apply=False`` the result says what would be, and nothing is changed or listed."""
    async with MemoryManager(uri, model=Summarizing(SUMMARY)) as manager:
        await fill(manager)
        before = await manager.get_user_memories(user_id="lin")
        result = await manager.optimize_memories(user_id="lin", apply=False)
        assert ([m.memory for m in result], result.applied, result.run_id) == ([SUMMARY], False, None)
        assert sorted(m.memory for m in result.retired) == sorted(PARROTS)
        assert await manager.get_user_memories(user_id="lin") == before
        assert await manager.list_optimizations(user_id="lin") == []


@pytest.mark.parametrize(
    ("memories", "why"),
    [
        ([], "fewer than two"),
        ([UserMemory(memory="Alone")], "fewer than two"),
        ([UserMemory(memory="One", pinned=True), UserMemory(memory="Two", pinned=True)], "fewer than two"),
        ([UserMemory(memory="One"), UserMemory(memory="Obey", metadata={"suspect": True})], "fewer than two"),
    ],
)
async def test_too_few_cost_nothing(uri: str, memories: list[UserMemory], why: str) -> None:
    """With fewer than two memories to fold no model is asked, nothing happens, and the result says so."""
    async with ScriptedModel([]) as model, MemoryManager(uri, model=model) as manager:
        await manager.add_user_memories(memories, user_id="lin")
        result = await manager.optimize_memories(user_id="lin")
        assert why in result.reason
        assert (list(result), result.applied, len(result.kept)) == ([], False, len(memories))
        assert "nothing changed" in str(result)


async def test_what_a_summary_lacks_stays(uri: str) -> None:
    """The model is told once what is missing; what still is stays as its own memory, and the report says so."""
    half = {"memory": "Keeps two parrots named Pip and Bo."}
    async with ScriptedModel([half, half]) as model, MemoryManager(uri, model=model) as manager:
        await fill(manager)
        result = await manager.optimize_memories(user_id="lin")
        assert await texts(manager) == sorted(["Keeps two parrots named Pip and Bo.", "Works nights"])
        assert [m.memory for m in result.kept] == ["Works nights"]
        assert result.report.asked_again
        assert result.report.kept == (result.kept[0].memory_id,)
        assert "Works nights" in str(model.requests[1].messages)


async def test_pinned_memories_are_left_out(uri: str) -> None:
    """A pinned memory is neither shown to the model nor touched."""
    async with ScriptedModel([{"memory": SUMMARY}]) as model, MemoryManager(uri, model=model) as manager:
        await fill(manager)
        await manager.add_user_memory(UserMemory(memory="Is allergic to penicillin", pinned=True), user_id="lin")
        result = await manager.optimize_memories(user_id="lin")
        assert await texts(manager) == sorted(["Is allergic to penicillin", SUMMARY])
        assert [m.memory for m in result.kept] == ["Is allergic to penicillin"]
        assert "penicillin" not in str(model.requests)


@pytest.mark.parametrize(
    ("returned", "error", "why"),
    [
        ("a text", OptimizationError, "instead of a list"),
        (None, OptimizationError, "instead of a list"),
        (["a text"], OptimizationError, "a str among"),
        ([UserMemory.model_construct(memory="  ")], OptimizationError, "blank"),
        ([UserMemory(memory="Fine", user_id="omar")], MixedUsersError, "another user"),
        ([UserMemory(memory="Fine", memory_id="made-up")], OptimizationError, "memory_id that is none"),
        ([UserMemory(memory="word " * 300)], OptimizationError, "more text"),
        ([UserMemory(memory="Keeps 7 parrots in Lisbon")], OptimizationError, "no memory has"),
        (lambda given: [given[0], given[0]], OptimizationError, "one memory_id"),
    ],
)
async def test_what_can_not_be_used_touches_nothing(
    uri: str, returned: object, error: type[Exception], why: str
) -> None:
    """Whatever else a strategy returns is refused by name, and the memories are as they were."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        await fill(manager)
        before = await manager.get_user_memories(user_id="lin")
        with pytest.raises(error, match=why):
            await manager.optimize_memories(user_id="lin", strategy=Said(returned))
        assert await manager.get_user_memories(user_id="lin") == before


async def test_a_strategy_that_raises_touches_nothing(uri: str) -> None:
    """An error of one's own strategy comes out as ours, which says whose it was; a model's error as it is."""

    async def burst() -> None:
        raise ZeroDivisionError("oops")

    class Down:
        name = "down"

        async def complete(self, request: ChatRequest) -> ChatReply:
            raise ConnectionError("no network")

    async with MemoryManager(uri, model=Down()) as manager:
        await fill(manager)
        before = await manager.get_user_memories(user_id="lin")
        with pytest.raises(OptimizationError, match="failed with ZeroDivisionError") as caught:
            await manager.optimize_memories(user_id="lin", strategy=Said([], burst))
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        with pytest.raises(ModelUnavailableError):
            await manager.optimize_memories(user_id="lin")
        assert await manager.get_user_memories(user_id="lin") == before


async def test_a_result_that_says_nothing_of_the_sources_changes_nothing(uri: str) -> None:
    """What carries the facts of no source replaces none: nothing is done, and the result says why."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        await fill(manager)
        result = await manager.optimize_memories(user_id="lin", strategy=Said([UserMemory(memory="Keeps parrots")]))
        assert "carries the facts of no memory" in result.reason
        assert await texts(manager) == sorted(PARROTS)
        same = await manager.optimize_memories(user_id="lin", strategy=Said(list))
        assert (same.reason, same.applied) == ("there is nothing to fold", False)


async def test_a_memory_that_lives_on_gets_what_the_strategy_gave_it(uri: str) -> None:
    """A returned source keeps its id and gets its new topics; new words that lack its facts are not taken."""

    def topical(given: list[UserMemory]) -> list[UserMemory]:
        first, second, third = given
        return [
            first.model_copy(update={"topics": ["pets"]}),
            second,
            third.model_copy(update={"memory": "Parrots are named Pip"}),
        ]

    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        ids = await fill(manager)
        result = await manager.optimize_memories(user_id="lin", strategy=Said(topical))
        assert [(m.memory_id, m.topics) for m in result] == [(ids[0], ["pets"])]
        assert await texts(manager) == sorted(PARROTS)
        assert result.report.kept == (ids[2],)
        await manager.undo_optimization(str(result.run_id), user_id="lin")
        first = await manager.get_user_memory(ids[0], user_id="lin")
        assert first is not None
        assert (first.topics, first.revision) == ([], 1)


async def test_what_is_changed_meanwhile_stays(uri: str) -> None:
    """A memory that somebody corrects while the strategy works stays with its correction, and the result has it."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        ids = await fill(manager)

        async def correct() -> None:
            await manager.update_user_memory(ids[1], memory="Works days", user_id="lin")

        result = await manager.optimize_memories(user_id="lin", strategy=Said([UserMemory(memory=SUMMARY)], correct))
        assert [m.memory for m in result.stayed] == ["Works days"]
        assert "Works days" in await texts(manager)


async def test_what_is_deleted_meanwhile_does_not_come_back(uri: str) -> None:
    """If a source is deleted while the strategy works, nothing is swapped: the new text might say it."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        ids = await fill(manager)

        async def delete() -> None:
            await manager.delete_user_memory(ids[1], user_id="lin")

        with pytest.raises(OptimizationConflictError):
            await manager.optimize_memories(user_id="lin", strategy=Said([UserMemory(memory=SUMMARY)], delete))
        assert await texts(manager) == sorted([PARROTS[0], PARROTS[2]])


async def test_one_optimization_of_a_user_at_a_time(uri: str) -> None:
    """Of two at once one runs, the other is refused; another user's runs beside it."""
    began, go = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        began.set()
        await go.wait()

    async with MemoryManager(uri, model=ScriptedModel([])) as manager, MemoryManager(uri) as other:
        await fill(manager)
        await fill(manager, user_id="omar")
        summary = [UserMemory(memory=SUMMARY)]
        task = asyncio.create_task(manager.optimize_memories(user_id="lin", strategy=Said(summary, wait)))
        await began.wait()
        with pytest.raises(OptimizationConflictError):
            await other.optimize_memories(user_id="lin", strategy=Said(summary))
        assert (await other.optimize_memories(user_id="omar", strategy=Said(summary))).applied
        go.set()
        assert (await task).applied
        assert await texts(manager) == [SUMMARY]


async def test_runs_are_their_users_own(uri: str) -> None:
    """Another user's run, and one that there is not, can't be undone; twice says that it was."""
    async with MemoryManager(uri, model=Summarizing(SUMMARY)) as manager:
        await fill(manager)
        run = str((await manager.optimize_memories(user_id="lin")).run_id)
        for user, name in (("omar", run), ("lin", "none")):
            with pytest.raises(OptimizationNotFoundError):
                await manager.undo_optimization(name, user_id=user)
        await manager.undo_optimization(run, user_id="lin")
        with pytest.raises(OptimizationConflictError, match="undone"):
            await manager.undo_optimization(run, user_id="lin")
        assert await manager.list_optimizations(user_id="omar") == []
        assert (await manager.erase_user("lin")).counts["optimizations"] >= 1
        assert await manager.list_optimizations(user_id="lin") == []


async def test_bad_arguments_are_named(uri: str) -> None:
    """Strategies that there are not, flags and ids of another type are refused."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        for strategy in ("shrink", DeduplicateStrategy, 3, None):
            with pytest.raises(ConfigurationError, match="summarize"):
                await manager.optimize_memories(user_id="lin", strategy=strategy)  # type: ignore[arg-type]
        with pytest.raises(InvalidQueryError, match="apply"):
            await manager.optimize_memories(user_id="lin", apply="no")  # type: ignore[arg-type]
        with pytest.raises(InvalidIdError):
            await manager.undo_optimization("", user_id="lin")


async def test_the_window_goes_by_the_settings_clock(uri: str, clock: Clock) -> None:
    """``time_window`` summarises what is older than its days by ``Settings.clock``, and leaves the newest."""
    model = Summarizing(SUMMARY)
    async with MemoryManager(uri, model=model, settings=Settings(clock=clock)) as manager:
        await fill(manager)
        clock.advance(days=60)
        await manager.add_user_memory(UserMemory(memory="Moved to Tromsø"), user_id="lin")
        await manager.optimize_memories(user_id="lin", strategy="TIME_WINDOW")
        assert await texts(manager) == sorted([SUMMARY, "Moved to Tromsø"])


# ---------------------------------------------------------------------------------------------------------- curator


async def test_prune_by_age_and_count(uri: str, clock: Clock) -> None:
    """What is too old goes, then the oldest beyond the count; pinned ones stay and count; a dry run only tells."""
    async with MemoryManager(uri, settings=Settings(clock=clock), model=ScriptedModel([])) as manager:
        curator = Curator(manager)
        await manager.add_user_memory(UserMemory(memory="Pinned", pinned=True), user_id="lin")
        for number in range(6):
            clock.advance(days=1)
            await manager.add_user_memory(UserMemory(memory=f"Fact {number}"), user_id="lin")
        limits: dict[str, Any] = {"user_id": "lin", "max_age": timedelta(days=4, hours=1), "max_count": 3}
        dry = await curator.prune(**limits, dry_run=True)
        assert ([m.memory for m in dry], dry.removed, dry.kept, dry.dry_run) == (
            ["Fact 0", "Fact 1", "Fact 2", "Fact 3"],
            4,
            3,
            True,
        )
        assert await manager.count_user_memories(user_id="lin") == 7
        done = await curator.prune(**limits)
        assert [m.memory for m in done[:]] == [m.memory for m in dry]
        assert (done[0].memory, len(done)) == ("Fact 0", 4)
        assert await texts(manager) == ["Fact 4", "Fact 5", "Pinned"]
        assert (await curator.prune(**limits)).removed == 0
        assert (await curator.prune(user_id="lin", max_count=0, keep_pinned=False)).removed == 3
        back = await manager.revert(str(done[0].memory_id), 1, user_id="lin")
        assert back.memory == "Fact 0"


async def test_prune_keeps_what_was_changed_meanwhile(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory that is corrected between reading and removing stays."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        ids = await fill(manager)
        store = await manager._opening.store()
        snapshot = store.swaps.snapshot

        async def then_correct(user_id: str) -> list[UserMemory]:
            memories = await snapshot(user_id)
            await manager.update_user_memory(ids[0], memory="Keeps three parrots", user_id="lin")
            await manager.delete_user_memory(ids[1], user_id="lin")
            return memories

        monkeypatch.setattr(type(store.swaps), "snapshot", lambda _, user_id: then_correct(user_id))
        result = await manager.curator.prune(user_id="lin", max_count=0)
        assert [m.memory for m in result] == ["Parrots are named Pip and Bo"]
        assert await texts(manager) == ["Keeps three parrots"]


@pytest.mark.parametrize(
    "limits",
    [{}, {"max_age": 3}, {"max_age": timedelta(-1)}, {"max_count": -1}, {"max_count": True}, {"max_count": "5"}],
)
async def test_prune_wants_limits_that_make_sense(uri: str, limits: dict[str, Any]) -> None:
    """No limit, a negative one, or one of another type is refused."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        with pytest.raises(InvalidQueryError):
            await manager.curator.prune(user_id="lin", **limits)
        with pytest.raises(InvalidQueryError):
            manager.curator.every(timedelta(days=1), **limits)


async def test_deduplicate_folds_and_can_be_undone(uri: str) -> None:
    """The same said twice is one memory with the topics of both; undo brings the other one back."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        await manager.add_user_memory(UserMemory(memory="Plays chess", topics=["games"], agent_id="a"), user_id="lin")
        await manager.add_user_memory(UserMemory(memory="plays chess!", topics=["fun"], agent_id="b"), user_id="lin")
        await manager.add_user_memory(UserMemory(memory="Does not play chess"), user_id="lin")
        dry = await manager.curator.deduplicate(user_id="lin", dry_run=True)
        assert (dry.removed, dry.kept, await manager.count_user_memories(user_id="lin")) == (1, 2, 3)
        result = await manager.curator.deduplicate(user_id="lin")
        assert (result.removed, result.kept) == (1, 2)
        chess = [m for m in await manager.get_user_memories(user_id="lin") if "not" not in m.memory]
        assert [sorted(m.topics) for m in chess] == [["fun", "games"]]
        await manager.undo_optimization(str(result.run_id), user_id="lin")
        assert await manager.count_user_memories(user_id="lin") == 3


async def test_a_schedule_curates_every_user(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    """It begins at once, goes on when one user's memories are being optimized, and ends with the manager."""
    caplog.set_level(logging.WARNING)
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        for user in ("ann", "bob"):
            await fill(manager, user_id=user)
        store = await manager._opening.store()
        async with store.swaps.reserving("ann"):
            task = asyncio.get_running_loop().create_task(asyncio.sleep(0))
            await task
            scheduled = await _elsewhere(uri, "bob")
        assert scheduled == 1
        assert "OptimizationConflictError" in caplog.text
        assert "parrots" not in caplog.text
        with pytest.raises(InvalidQueryError, match="interval"):
            manager.curator.every(timedelta(0), max_count=1)
        task = manager.curator.every(timedelta(days=1), user_id="ann", max_count=1)
        while await manager.count_user_memories(user_id="ann") > 1:
            await asyncio.sleep(0.01)
    assert task.done()


async def _elsewhere(uri: str, user: str) -> int:
    """Curate everybody from another process's manager; how many memories a user has left when it has done so."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        manager.curator.every(timedelta(days=1), max_count=1, deduplicate=True)
        while (count := await manager.count_user_memories(user_id=user)) > 1:
            await asyncio.sleep(0.01)
        return count


async def test_expired_memories_are_no_sources(uri: str, clock: Clock) -> None:
    """What has expired is not shown to a strategy, even before the server's sweep; what will expire stays itself."""
    seen: list[str] = []

    def note(given: list[UserMemory]) -> list[UserMemory]:
        seen.extend(m.memory for m in given)
        return given

    async with MemoryManager(uri, model=ScriptedModel([]), settings=Settings(clock=clock)) as manager:
        await fill(manager)
        soon = clock.now + timedelta(hours=1)
        await manager.add_user_memory(UserMemory(memory="In town today", expires_at=soon), user_id="lin")
        clock.advance(hours=2)
        await manager.optimize_memories(user_id="lin", strategy=Said(note))
        assert sorted(seen) == sorted(PARROTS)


async def test_what_expires_carries_nothing_that_lasts(uri: str, clock: Clock) -> None:
    """A strategy's memory that expires takes the place of none that doesn't; one that will expire retires for none."""
    soon = clock.now + timedelta(hours=1)
    brief = [UserMemory(memory=SUMMARY, expires_at=soon)]
    async with MemoryManager(uri, model=ScriptedModel([]), settings=Settings(clock=clock)) as manager:
        await fill(manager)
        await manager.add_user_memory(UserMemory(memory="Parks in lot 7", expires_at=soon), user_id="lin")
        assert not (await manager.optimize_memories(user_id="lin", strategy=Said(brief))).applied
        longer = [UserMemory(memory=f"{SUMMARY} Parks in lot 7.")]
        result = await manager.optimize_memories(user_id="lin", strategy=Said(longer))
        assert [m.memory for m in result.kept] == ["Parks in lot 7"]


async def test_a_strategy_that_changes_what_it_was_given_changes_nothing(uri: str) -> None:
    """The check compares with what was read, whatever a strategy does to its copies."""

    def forging(given: list[UserMemory]) -> list[UserMemory]:
        for memory in given[1:]:
            memory.__dict__["memory"] = given[0].memory
        return given[:1]

    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        await fill(manager)
        assert not (await manager.optimize_memories(user_id="lin", strategy=Said(forging))).applied
        assert await texts(manager) == sorted(PARROTS)


async def test_runs_that_rest_on_each_other_are_undone_newest_first(uri: str) -> None:
    """What a later run folded can't be taken back before that run is; then both can, and all is as before."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        await fill(manager)
        first = await manager.optimize_memories(user_id="lin", strategy=Said([UserMemory(memory=SUMMARY)]))
        await fill(manager, ["Moved to Tromsø"])
        both = [UserMemory(memory=f"{SUMMARY} Moved to Tromsø.")]
        second = await manager.optimize_memories(user_id="lin", strategy=Said(both))
        with pytest.raises(OptimizationConflictError, match=str(second.run_id)):
            await manager.undo_optimization(str(first.run_id), user_id="lin")
        assert await texts(manager) == [both[0].memory]
        await manager.undo_optimization(str(second.run_id), user_id="lin")
        await manager.undo_optimization(str(first.run_id), user_id="lin")
        assert await texts(manager) == sorted([*PARROTS, "Moved to Tromsø"])


@pytest.mark.parametrize("flag", [None, "", "no", 0])
async def test_flags_are_not_guessed(uri: str, flag: Any) -> None:
    """What decides whether something is removed is True or False, nothing else."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        await fill(manager)
        for options in ({"max_count": 0, "dry_run": flag}, {"max_count": 0, "keep_pinned": flag}):
            with pytest.raises(InvalidQueryError, match="True or False"):
                await manager.curator.prune(user_id="lin", **options)
        with pytest.raises(InvalidQueryError, match="True or False"):
            await manager.curator.deduplicate(user_id="lin", dry_run=flag)
        with pytest.raises(InvalidQueryError, match="True or False"):
            manager.curator.every(timedelta(days=1), deduplicate=flag)
        assert await texts(manager) == sorted(PARROTS)


async def test_cancelled_after_the_manager_closed_is_cancelled(uri: str) -> None:
    """An optimization that is cancelled once its manager is closed ends as cancelled, not with another error."""
    began = asyncio.Event()

    async def wait() -> None:
        began.set()
        await asyncio.sleep(60)

    manager = MemoryManager(uri, model=ScriptedModel([]))
    await fill(manager)
    task = asyncio.create_task(manager.optimize_memories(user_id="lin", strategy=Said([], wait)))
    await began.wait()
    await manager.aclose()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_round_that_can_not_read_the_users_is_told_and_tried_again(
    uri: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A schedule outlives a database that is away for a while; pruning alone, and folding alone, are schedules too."""
    caplog.set_level(logging.WARNING)
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        await fill(manager)
        reader = type((await manager._opening.store()).read)
        users, away = reader.users, [True]

        async def sometimes(self: Any, limit: int, after: str | None) -> list[str]:
            if away and away.pop():
                raise StoreUnavailableError("away")
            return await users(self, limit, after)

        monkeypatch.setattr(reader, "users", sometimes)
        folding = manager.curator.every(timedelta(milliseconds=10), deduplicate=True, user_id="lin")
        pruning = manager.curator.every(timedelta(milliseconds=10), max_count=1)
        while await manager.count_user_memories(user_id="lin") > 1:
            await asyncio.sleep(0.01)
        assert "curating stopped with StoreUnavailableError" in caplog.text
        assert not folding.done()
        assert not pruning.done()


@pytest.mark.parametrize("user", [None, "lin"])
async def test_a_schedule_ends_when_its_manager_was_closed_under_it(uri: str, user: str | None) -> None:
    """A round that meets a closed manager ends the schedule rather than trying for ever."""
    manager = MemoryManager(uri, model=ScriptedModel([]))
    await fill(manager)
    await manager._opening.aclose()
    await manager.curator.every(timedelta(milliseconds=1), max_count=1, user_id=user)
