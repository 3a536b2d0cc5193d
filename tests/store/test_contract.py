"""What every verb does by hand, on every kind of server."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from asyncmem import (
    InvalidIdError,
    InvalidMemoryError,
    InvalidMessageError,
    InvalidQueryError,
    MemoryConflictError,
    MemoryManager,
    MemoryNotFoundError,
    PartialWriteError,
    RevisionConflictError,
    Settings,
    UserMemory,
)
from asyncmem.testing import ScriptedModel

from .conftest import Clock

pytestmark = pytest.mark.anyio


async def texts(manager: MemoryManager, user_id: str = "lin") -> list[str]:
    return [m.memory for m in await manager.get_user_memories(user_id=user_id)]


# ------------------------------------------------------------------------------------------------------ adding


async def test_add_stores_verbatim_and_keeps_what_the_caller_gave(manager: MemoryManager) -> None:
    """Text, id, times and every other field come back as they were given."""
    given = UserMemory(
        memory="Drinks oolong — «daily»\n\ttwice",
        memory_id="m-1",
        topics=["drinks", "Tea"],
        agent_id="tea-bot",
        team_id="kitchen",
        input="i love oolong",
        feedback="right",
        created_at="2020-02-03T04:05:06.789Z",
        updated_at=1_600_000_000,
        metadata={"source": {"page": 3, "tags": ["a", None, 1.5, True]}},
        pinned=True,
        expires_at=datetime(2199, 1, 1, tzinfo=UTC),
    )
    assert await manager.add_user_memory(given, user_id="lin") == "m-1"
    assert await manager.get_user_memory("m-1", user_id="lin") == given.model_copy(update={"user_id": "lin"})
    assert given.user_id is None


async def test_missing_times_become_now(manager: MemoryManager, clock: Clock) -> None:
    """What has no times is created and updated now."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
    memory = await manager.get_user_memory(memory_id, user_id="lin")
    assert memory is not None
    assert (memory.created_at, memory.updated_at, memory.revision) == (clock.now, clock.now, 1)


async def test_created_at_is_never_after_updated_at(manager: MemoryManager) -> None:
    """A memory that comes with an old update time was not created after it."""
    old = UserMemory(memory="Plays chess", updated_at="2001-01-01")
    memory_id = await manager.add_user_memory(old, user_id="lin")
    memory = await manager.get_user_memory(memory_id, user_id="lin")
    assert memory is not None
    assert memory.created_at == memory.updated_at == datetime(2001, 1, 1, tzinfo=UTC)


async def test_same_statement_is_stored_once(manager: MemoryManager, clock: Clock) -> None:
    """Case, white space, punctuation and Unicode form apart, the same text gives the id that exists."""
    first = await manager.add_user_memory(UserMemory(memory="Lives in Zürich", topics=["place"]), user_id="lin")
    clock.advance(hours=1)
    again = UserMemory(memory="lives  in Zu\u0308rich.", topics=["Place", "home"])
    assert await manager.add_user_memory(again, user_id="lin") == first
    memory = await manager.get_user_memory(first, user_id="lin")
    assert memory is not None
    assert (memory.memory, memory.topics) == ("Lives in Zürich", ["place", "home"])
    assert (memory.updated_at, memory.revision) == (clock.now, 2)
    clock.advance(hours=1)
    await manager.add_user_memory(UserMemory(memory="Lives in Zürich", topics=["place"]), user_id="lin")
    memory = await manager.get_user_memory(first, user_id="lin")
    assert memory is not None
    assert (memory.updated_at, memory.revision) == (clock.now, 2)


async def test_same_statement_of_another_user_agent_or_team_is_another_memory(manager: MemoryManager) -> None:
    """Only the same user, agent and team share a statement."""
    plain = UserMemory(memory="Plays chess")
    variants = [
        (plain, "lin"),
        (plain, "omar"),
        (plain.model_copy(update={"agent_id": "a"}), "lin"),
        (plain.model_copy(update={"team_id": "a"}), "lin"),
    ]
    ids = {await manager.add_user_memory(memory, user_id=user) for memory, user in variants}
    assert len(ids) == 4


async def test_topics_beyond_the_limit_are_left_out_when_folding(manager: MemoryManager) -> None:
    """Folding adds new topics up to the limit and never fails for them."""
    full = UserMemory(memory="Likes lists", topics=[f"t{n}" for n in range(32)])
    memory_id = await manager.add_user_memory(full, user_id="lin")
    more = UserMemory(memory="Likes lists", topics=["one more"])
    assert await manager.add_user_memory(more, user_id="lin") == memory_id
    memory = await manager.get_user_memory(memory_id, user_id="lin")
    assert memory is not None
    assert memory.topics == full.topics


async def test_taken_id_is_a_conflict_and_a_retry_is_not(manager: MemoryManager) -> None:
    """An id in use, by this user or another, is refused; the very same memory again is not."""
    memory = UserMemory(memory="Plays chess", memory_id="m-1")
    await manager.add_user_memory(memory, user_id="lin")
    assert await manager.add_user_memory(memory, user_id="lin") == "m-1"
    other = UserMemory(memory="Plays go", memory_id="m-1")
    for user in ("lin", "omar"):
        with pytest.raises(MemoryConflictError, match="m-1"):
            await manager.add_user_memory(other, user_id=user)
    assert (await texts(manager), await texts(manager, "omar")) == (["Plays chess"], [])


async def test_same_text_at_once_from_two_managers(uri: str) -> None:
    """40 tasks that add 20 distinct texts and 20 copies of one leave 21 memories and no error (case 5)."""
    async with MemoryManager(uri) as one, MemoryManager(uri) as two:
        adds = [
            manager.add_user_memory(UserMemory(memory=text), user_id="lin")
            for n in range(20)
            for manager, text in ((one, f"Fact number {n}"), (two, "Vegetarian since 2019"))
        ]
        ids = await asyncio.gather(*adds)
        assert len(set(ids)) == 21
        assert await one.count_user_memories(user_id="lin") == 21
        assert {m.memory_id for m in await two.get_user_memories(user_id="lin")} == set(ids)


# ------------------------------------------------------------------------------------------------ adding many


async def test_add_many_gives_ids_in_order_and_folds_within_the_batch(manager: MemoryManager) -> None:
    """Duplicates inside a batch and of what is stored share an id; order is kept."""
    chess = await manager.add_user_memory(UserMemory(memory="Plays chess"), user_id="lin")
    batch = [UserMemory(memory=text) for text in ("Plays go", "plays chess!", "Plays go", "Swims")]
    ids = await manager.add_user_memories(batch, user_id="lin")
    assert ids[1] == chess
    assert ids[0] == ids[2]
    assert await texts(manager) == ["Plays chess", "Plays go", "Swims"]


async def test_add_many_writes_thousands(manager: MemoryManager) -> None:
    """2,500 memories are stored in order."""
    batch = [UserMemory(memory=f"Fact {n}") for n in range(2_500)]
    ids = await manager.add_user_memories(batch, user_id="lin")
    stored = await manager.get_user_memories(user_id="lin")
    assert [m.memory_id for m in stored] == ids
    assert [m.memory for m in stored] == [m.memory for m in batch]


async def test_add_many_reports_what_was_not_written(manager: MemoryManager) -> None:
    """A taken id fails alone; the rest is stored, and the error says which is which."""
    await manager.add_user_memory(UserMemory(memory="Plays chess", memory_id="taken"), user_id="omar")
    batch = [UserMemory(memory="Swims"), UserMemory(memory="Runs", memory_id="taken"), UserMemory(memory="Rows")]
    with pytest.raises(PartialWriteError, match="1 of 3") as caught:
        await manager.add_user_memories(batch, user_id="lin")
    assert [i is None for i in caught.value.ids] == [False, True, False]
    assert isinstance(caught.value.failures[1], MemoryConflictError)
    assert await texts(manager) == ["Swims", "Rows"]


async def test_add_many_checks_all_before_it_writes_any(manager: MemoryManager) -> None:
    """One value that can't be stored keeps the whole batch out."""
    bad = UserMemory(memory="fine")
    bad.topics.extend(["x" * 65])
    with pytest.raises(InvalidMemoryError, match="65 characters"):
        await manager.add_user_memories([UserMemory(memory="Swims"), bad], user_id="lin")
    assert await texts(manager) == []
    assert await manager.add_user_memories([], user_id="lin") == []


# ----------------------------------------------------------------------------------------------------- reading


async def test_list_filters_in_the_server(manager: MemoryManager) -> None:
    """Agent, team and any of the topics narrow the list."""
    rows = [
        UserMemory(memory="one", topics=["a"], agent_id="x"),
        UserMemory(memory="two", topics=["a", "b"], team_id="t"),
        UserMemory(memory="three", topics=["c"], agent_id="x", team_id="t"),
    ]
    await manager.add_user_memories(rows, user_id="lin")

    async def found(**filters: object) -> list[str]:
        return [m.memory for m in await manager.get_user_memories(user_id="lin", **filters)]  # type: ignore[arg-type]

    assert await found(agent_id="x") == ["one", "three"]
    assert await found(team_id="t") == ["two", "three"]
    assert await found(agent_id="x", team_id="t") == ["three"]
    assert await found(topics=["b", "c"]) == ["two", "three"]
    assert await found(topics=[]) == ["one", "two", "three"]
    assert await found(limit=2) == ["one", "two"]
    for everything in (None, 0, -1):
        assert len(await found(limit=everything)) == 3


async def test_pages_are_stable_while_others_write(manager: MemoryManager, clock: Clock) -> None:
    """Pages join to the whole list; a row that moved or went does not derail the next page."""
    ids = []
    for n in range(10):
        clock.advance(seconds=n % 2)  # pairs share a time
        ids.append(await manager.add_user_memory(UserMemory(memory=f"Fact {n}", memory_id=f"{9 - n}"), user_id="lin"))
    seen: list[str | None] = []
    page = await manager.get_user_memories(user_id="lin", limit=4)
    while page:
        seen += [m.memory_id for m in page]
        page = await manager.get_user_memories(user_id="lin", limit=4, after=page[-1])
    assert seen == ids
    by_id = await manager.get_user_memories(user_id="lin", limit=4, after=ids[3])
    assert [m.memory_id for m in by_id] == ids[4:8]
    last = (await manager.get_user_memories(user_id="lin", limit=4))[-1]
    clock.advance(hours=1)
    await manager.update_user_memory(ids[3], user_id="lin", memory="moved to the end")
    assert [m.memory_id for m in await manager.get_user_memories(user_id="lin", limit=4, after=last)] == ids[4:8]
    await manager.delete_user_memory(ids[3], user_id="lin")
    assert [m.memory_id for m in await manager.get_user_memories(user_id="lin", limit=4, after=last)] == ids[4:8]


async def test_cursor_of_nobody_is_an_error(manager: MemoryManager) -> None:
    """A cursor that is no memory of this user is refused."""
    foreign = await manager.add_user_memory(UserMemory(memory="Swims"), user_id="omar")
    for after in (foreign, "no such id", UserMemory(memory="never stored")):
        with pytest.raises(InvalidQueryError, match="after="):
            await manager.get_user_memories(user_id="lin", after=after)


async def test_count_topics_and_users_are_paged(manager: MemoryManager) -> None:
    """Counts, topics and users are exact and page by their last value."""
    await manager.add_user_memories(
        [UserMemory(memory="one", topics=["b", "a"]), UserMemory(memory="two", topics=["c", "a"])], user_id="lin"
    )
    await manager.add_user_memory(UserMemory(memory="one", topics=["z"]), user_id="omar")
    assert await manager.count_user_memories(user_id="lin") == 2
    assert await manager.count_user_memories(user_id="nobody") == 0
    assert await manager.get_topics(user_id="lin") == ["a", "b", "c"]
    assert await manager.get_topics(user_id="lin", limit=2) == ["a", "b"]
    assert await manager.get_topics(user_id="lin", limit=2, after="b") == ["c"]
    assert await manager.get_users() == ["lin", "omar"]
    assert await manager.get_users(limit=1) == ["lin"]
    assert await manager.get_users(limit=1, after="lin") == ["omar"]


async def test_expired_memories_are_gone_before_the_sweep(manager: MemoryManager, clock: Clock) -> None:
    """From its expiry on, no verb sees a memory, and its statement can be made anew."""
    expiring = UserMemory(memory="On holiday", topics=["now"], expires_at=clock.now + timedelta(hours=1))
    old = await manager.add_user_memory(expiring, user_id="lin")
    assert await texts(manager) == ["On holiday"]
    clock.advance(hours=1)
    assert await texts(manager) == []
    assert await manager.get_user_memory(old, user_id="lin") is None
    assert await manager.count_user_memories(user_id="lin") == 0
    assert await manager.get_topics(user_id="lin") == []
    assert len(await manager.search_user_memories(user_id="lin")) == 0
    assert len(await manager.search_user_memories(user_id="lin", retrieval_method="first_n")) == 0
    assert await manager.build_context(user_id="lin") == ""
    assert await manager.delete_user_memory(old, user_id="lin") is False
    with pytest.raises(MemoryNotFoundError):
        await manager.update_user_memory(old, user_id="lin", memory="Back")
    new = await manager.add_user_memory(UserMemory(memory="On holiday"), user_id="lin")
    assert new != old
    assert await texts(manager) == ["On holiday"]


# ---------------------------------------------------------------------------------------------------- changing


async def test_update_changes_what_is_passed(manager: MemoryManager, clock: Clock) -> None:
    """What is not passed stays, None clears, and updated_at moves with text and topics only."""
    made = UserMemory(memory="Plays chess", topics=["hobby"], agent_id="a", input="chess!", metadata={"n": 1})
    memory_id = await manager.add_user_memory(made, user_id="lin")
    born = clock.now
    clock.advance(days=1)
    noted = await manager.update_user_memory(memory_id, user_id="lin", feedback="true", pinned=True)
    assert (noted.feedback, noted.pinned, noted.updated_at, noted.revision) == ("true", True, born, 2)
    said = await manager.update_user_memory(memory_id, user_id="lin", memory="Plays chess on Sundays")
    assert (said.updated_at, said.created_at, said.topics, said.agent_id) == (clock.now, born, ["hobby"], "a")
    cleared = await manager.update_user_memory(
        memory_id, user_id="lin", topics=None, feedback=None, metadata=None, pinned=None, expires_at=None
    )
    assert (cleared.topics, cleared.feedback, cleared.metadata, cleared.pinned) == ([], None, {}, False)
    assert cleared.input == "chess!"
    assert cleared == await manager.get_user_memory(memory_id, user_id="lin")


async def test_update_that_changes_nothing_writes_nothing(manager: MemoryManager) -> None:
    """The same values again leave revision and history alone."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Swims", topics=["sport"]), user_id="lin")
    memory = await manager.update_user_memory(memory_id, user_id="lin", memory=" Swims ", topics=["sport"])
    assert memory.revision == 1
    assert len(await manager.history(memory_id, user_id="lin")) == 1


async def test_stale_revision_is_refused(manager: MemoryManager) -> None:
    """An update that was made from an old revision changes nothing."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    await manager.update_user_memory(memory_id, user_id="lin", memory="Swims daily", expected_revision=1)
    with pytest.raises(RevisionConflictError, match="revision 2, not 1"):
        await manager.update_user_memory(memory_id, user_id="lin", memory="Dives", expected_revision=1)
    assert await texts(manager) == ["Swims daily"]


async def test_concurrent_updates_lose_nothing(manager: MemoryManager) -> None:
    """Ten updates of different fields at once are all there afterwards, one revision each."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    await asyncio.gather(
        *(manager.update_user_memory(memory_id, user_id="lin", feedback=f"note {n}") for n in range(8)),
        manager.update_user_memory(memory_id, user_id="lin", topics=["sport"]),
        manager.update_user_memory(memory_id, user_id="lin", pinned=True),
    )
    memory = await manager.get_user_memory(memory_id, user_id="lin")
    assert memory is not None
    assert (memory.revision, memory.topics, memory.pinned) == (11, ["sport"], True)
    assert len(await manager.history(memory_id, user_id="lin")) == 11


async def test_replace_keeps_created_at_and_identity(manager: MemoryManager, clock: Clock) -> None:
    """The whole value is replaced; created_at stays and the revision is one more."""
    made = UserMemory(memory="Swims", topics=["sport"], agent_id="a", metadata={"n": 1})
    memory_id = await manager.add_user_memory(made, user_id="lin")
    born = clock.now
    clock.advance(days=1)
    assert await manager.replace_user_memory(memory_id, UserMemory(memory="Rows"), user_id="lin") == memory_id
    memory = await manager.get_user_memory(memory_id, user_id="lin")
    assert memory is not None
    assert (memory.memory, memory.topics, memory.agent_id, memory.metadata) == ("Rows", [], None, {})
    assert (memory.created_at, memory.updated_at, memory.revision) == (born, clock.now, 2)


async def test_two_memories_never_come_to_say_the_same(manager: MemoryManager) -> None:
    """An update, a replacement or a revert into another memory's statement is a conflict."""
    await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    memory_id = await manager.add_user_memory(UserMemory(memory="Rows"), user_id="lin")
    with pytest.raises(MemoryConflictError, match="says the same"):
        await manager.update_user_memory(memory_id, user_id="lin", memory="swims!")
    with pytest.raises(MemoryConflictError, match="says the same"):
        await manager.replace_user_memory(memory_id, UserMemory(memory="Swims"), user_id="lin")
    assert await texts(manager) == ["Swims", "Rows"]


# ---------------------------------------------------------------------------------------------------- removing


async def test_delete_says_whether_there_was_one(manager: MemoryManager) -> None:
    """True once, then False."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    assert await manager.delete_user_memory(memory_id, user_id="lin") is True
    assert await manager.delete_user_memory(memory_id, user_id="lin") is False
    assert await manager.get_user_memory(memory_id, user_id="lin") is None


async def test_clear_is_of_one_user(manager: MemoryManager) -> None:
    """A user's memories go, the others' stay, and the count is exact."""
    await manager.add_user_memories([UserMemory(memory=f"Fact {n}") for n in range(1_200)], user_id="lin")
    await manager.add_user_memory(UserMemory(memory="Swims"), user_id="omar")
    assert await manager.clear_user_memories(user_id="lin") == 1_200
    assert await manager.clear_user_memories(user_id="lin") == 0
    assert (await texts(manager), await texts(manager, "omar")) == ([], ["Swims"])


async def test_clear_everybody(manager: MemoryManager) -> None:
    """The one unscoped verb removes every user's memories."""
    for user in ("lin", "omar"):
        await manager.add_user_memory(UserMemory(memory="Swims"), user_id=user)
    assert await manager.clear() == 2
    assert await manager.get_users() == []


async def test_concurrent_adds_are_in_or_out_of_a_clear(manager: MemoryManager) -> None:
    """Every add that ran during a clear is either counted by it or still there."""
    await manager.add_user_memories([UserMemory(memory=f"Old {n}") for n in range(300)], user_id="lin")
    adds = [manager.add_user_memory(UserMemory(memory=f"New {n}"), user_id="lin") for n in range(40)]
    count, *ids = await asyncio.gather(manager.clear_user_memories(user_id="lin"), *adds)
    left = await manager.get_user_memories(user_id="lin")
    assert count + len(left) == 340
    assert {m.memory_id for m in left} <= set(ids)


async def test_erase_removes_every_trace(manager: MemoryManager) -> None:
    """Memories and archive go, the receipt counts them, other users keep theirs, nothing can be reverted."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    await manager.add_user_memory(UserMemory(memory="Rows"), user_id="lin")
    await manager.add_user_memory(UserMemory(memory="Swims"), user_id="omar")
    await manager.delete_user_memory(memory_id, user_id="lin")
    receipt = await manager.erase_user("lin")
    assert (receipt.user_id, receipt.counts, receipt.total) == (
        "lin",
        {
            "memories": 1,
            "archive": 1,
            "captures": 0,
            "optimizations": 0,
            "jobs": 0,
            "profiles": 0,
            "sessions": 0,
            "proposals": 0,
        },
        2,
    )
    with pytest.raises(MemoryNotFoundError):
        await manager.revert(memory_id, 1, user_id="lin")
    assert await manager.get_users() == ["omar"]


# ----------------------------------------------------------------------------------------------------- history


async def test_history_tells_every_change(manager: MemoryManager, clock: Clock) -> None:
    """Each change has what was before, what is after, its cause and its time, the deletion included."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    born = clock.now
    clock.advance(hours=1)
    await manager.update_user_memory(memory_id, user_id="lin", memory="Swims daily")
    clock.advance(hours=1)
    await manager.delete_user_memory(memory_id, user_id="lin")
    changes = await manager.history(memory_id, user_id="lin")
    assert [(c.kind, c.cause, c.at) for c in changes] == [
        ("add", "manual", born),
        ("update", "manual", born + timedelta(hours=1)),
        ("delete", "manual", born + timedelta(hours=2)),
    ]
    assert [c.before and c.before.memory for c in changes] == [None, "Swims", "Swims daily"]
    assert [c.after and c.after.memory for c in changes] == ["Swims", "Swims daily", None]
    assert {c.memory_id for c in changes} == {memory_id}


async def test_history_outgrows_the_document(uri: str, clock: Clock) -> None:
    """Revisions that the document has no room for are still told, and can be reverted to."""
    settings = Settings(clock=clock, history_limit=3)
    async with MemoryManager(uri, model=ScriptedModel([]), settings=settings) as manager:
        memory_id = await manager.add_user_memory(UserMemory(memory="Version 1"), user_id="lin")
        for n in range(2, 13):
            await manager.update_user_memory(memory_id, user_id="lin", memory=f"Version {n}")
        changes = await manager.history(memory_id, user_id="lin")
        assert [c.after.memory for c in changes if c.after] == [f"Version {n}" for n in range(1, 13)]
        assert (await manager.revert(memory_id, 2, user_id="lin")).memory == "Version 2"


async def test_revert_makes_an_earlier_revision_the_newest(manager: MemoryManager) -> None:
    """Every field goes back, as a new revision; the current revision changes nothing; an unknown one is an error."""
    made = UserMemory(memory="Swims", topics=["sport"], feedback="ok", metadata={"n": 1}, pinned=True)
    memory_id = await manager.add_user_memory(made, user_id="lin")
    first = await manager.get_user_memory(memory_id, user_id="lin")
    await manager.replace_user_memory(memory_id, UserMemory(memory="Rows"), user_id="lin")
    back = await manager.revert(memory_id, 1, user_id="lin")
    assert first is not None
    assert back == first.model_copy(update={"revision": 3, "updated_at": back.updated_at})
    assert (await manager.revert(memory_id, 3, user_id="lin")).revision == 3
    with pytest.raises(MemoryNotFoundError, match="no revision 9: there are 1, 2, 3"):
        await manager.revert(memory_id, 9, user_id="lin")
    assert [c.cause for c in await manager.history(memory_id, user_id="lin")] == ["manual", "manual", "revert"]


async def test_revert_brings_a_deleted_memory_back(manager: MemoryManager, clock: Clock) -> None:
    """A deletion can be undone, with the whole history, unless the statement was made anew."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Swims", topics=["sport"]), user_id="lin")
    born = clock.now
    await manager.update_user_memory(memory_id, user_id="lin", memory="Swims daily")
    clock.advance(hours=1)
    await manager.delete_user_memory(memory_id, user_id="lin")
    back = await manager.revert(memory_id, 1, user_id="lin")
    assert (back.memory_id, back.memory, back.topics, back.created_at) == (memory_id, "Swims", ["sport"], born)
    changes = await manager.history(memory_id, user_id="lin")
    assert [c.kind for c in changes] == ["add", "update", "delete", "add"]
    assert [c.after.revision if c.after else 0 for c in changes] == [1, 2, 0, 4]
    await manager.clear_user_memories(user_id="lin")
    await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    with pytest.raises(MemoryConflictError, match="can't come back"):
        await manager.revert(memory_id, 1, user_id="lin")


# ------------------------------------------------------------------------------------------------------- scope


async def test_other_users_memories_are_out_of_reach(manager: MemoryManager) -> None:
    """No verb reads, changes or deletes a memory through another user's id."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Swims"), user_id="omar")
    assert await manager.get_user_memory(memory_id, user_id="lin") is None
    assert await manager.delete_user_memory(memory_id, user_id="lin") is False
    for attempt in (
        manager.update_user_memory(memory_id, user_id="lin", memory="Dives"),
        manager.replace_user_memory(memory_id, UserMemory(memory="Dives"), user_id="lin"),
        manager.history(memory_id, user_id="lin"),
        manager.revert(memory_id, 1, user_id="lin"),
    ):
        with pytest.raises(MemoryNotFoundError):
            await attempt
    memory = await manager.get_user_memory(memory_id, user_id="omar")
    assert memory is not None
    assert (memory.memory, memory.revision) == ("Swims", 1)


async def test_query_operators_are_not_ids(manager: MemoryManager) -> None:
    """Operators in ids, topics and filters are refused before anything is asked of the server."""
    await manager.add_user_memory(UserMemory(memory="Swims", topics=["sport"]), user_id="lin")
    operator: object = {"$ne": None}
    for attempt in (
        lambda: manager.get_user_memories(user_id=operator),  # type: ignore[arg-type]
        lambda: manager.get_user_memory(operator, user_id="lin"),  # type: ignore[arg-type]
        lambda: manager.delete_user_memory(operator, user_id="lin"),  # type: ignore[arg-type]
        lambda: manager.clear_user_memories(user_id=operator),  # type: ignore[arg-type]
        lambda: manager.erase_user(operator),  # type: ignore[arg-type]
        lambda: manager.get_user_memories(user_id="lin", agent_id=operator),  # type: ignore[arg-type]
        lambda: manager.search_user_memories(user_id="lin", team_id=operator),  # type: ignore[arg-type]
        lambda: manager.get_user_memories(user_id="lin", after=operator),  # type: ignore[arg-type]
        lambda: manager.count_user_memories(user_id="a\0b"),
        lambda: manager.count_user_memories(user_id="  "),
    ):
        with pytest.raises(InvalidIdError):
            await attempt()
    for filters in ({"topics": [operator]}, {"topics": operator}, {"topics": "sport"}, {"limit": operator}):
        with pytest.raises(InvalidQueryError):
            await manager.get_user_memories(user_id="lin", **filters)  # type: ignore[arg-type]
    for after in (operator, "\ud800"):
        with pytest.raises(InvalidQueryError):
            await manager.get_users(after=after)  # type: ignore[arg-type]
    assert await manager.get_user_memories(user_id="$ne") == []
    assert await texts(manager) == ["Swims"]


async def test_values_of_the_wrong_kind_are_refused(manager: MemoryManager) -> None:
    """An empty user id is nobody, never the default; revisions are numbers; memories come in a list."""
    memory = UserMemory(memory="Swims")
    for attempt in (
        lambda: manager.add_user_memory(memory, user_id=""),
        lambda: manager.add_user_memories([memory], user_id=""),
        lambda: manager.replace_user_memory("x", memory, user_id=""),
    ):
        with pytest.raises(InvalidIdError):
            await attempt()
    with pytest.raises(InvalidMemoryError, match="in a list"):
        await manager.add_user_memories(None)  # type: ignore[arg-type]
    for revision in ("1", True, 0, [1], 2**63):
        with pytest.raises(InvalidQueryError, match="int from 1 on"):
            await manager.revert("x", revision, user_id="lin")  # type: ignore[arg-type]
        with pytest.raises(InvalidQueryError, match="expected_revision"):
            await manager.update_user_memory("x", user_id="lin", expected_revision=revision)  # type: ignore[arg-type]
    with pytest.raises(InvalidQueryError, match="surrogate"):
        await manager.search_user_memories("\ud800", user_id="lin", retrieval_method="agentic")
    with pytest.raises(InvalidMessageError, match="surrogate"):
        await manager.create_user_memories("I like \ud800", user_id="lin")
    assert await manager.get_users() == []


async def test_hostile_content_is_stored_as_it_is(manager: MemoryManager) -> None:
    """Operators, dots and other scripts in text, topics and metadata values are data."""
    hostile = UserMemory(
        memory="$where: function() { return 1 }",
        topics=["$topic.with.dots", "日本語"],
        agent_id="$agent.id",
        metadata={"text": "$set", "nested": {"list": ["$inc", {"k": "a.b"}]}},
    )
    memory_id = await manager.add_user_memory(hostile, user_id="$user.id")
    await manager.update_user_memory(memory_id, user_id="$user.id", memory="$$ROOT", feedback="$memory")
    memory = await manager.get_user_memory(memory_id, user_id="$user.id")
    assert memory is not None
    assert (memory.memory, memory.feedback, memory.metadata) == ("$$ROOT", "$memory", hostile.metadata)
    assert [m.memory_id for m in await manager.get_user_memories(user_id="$user.id", topics=["日本語"])] == [memory_id]


async def test_longest_texts_in_many_revisions_fit(manager: MemoryManager) -> None:
    """8,000 characters of four bytes each, with the largest input and metadata, through 60 revisions."""
    big = UserMemory(memory="𝕏" * 8_000, input="𝕐" * 20_000, metadata={"k": "z" * 65_000})
    memory_id = await manager.add_user_memory(big, user_id="lin")
    for n in range(60):
        await manager.update_user_memory(memory_id, user_id="lin", feedback=f"{n}" + "𝕫" * 19_990)
    memory = await manager.get_user_memory(memory_id, user_id="lin")
    assert memory is not None
    assert (memory.memory, memory.input, memory.revision) == (big.memory, big.input, 61)
    assert len(await manager.history(memory_id, user_id="lin")) == 61


async def test_default_user_and_missing_user(uri: str) -> None:
    """user_id=None is the default user; without a default it is an error; a memory's own user counts."""
    async with MemoryManager(uri) as manager:
        await manager.add_user_memory(UserMemory(memory="Swims"))
        await manager.add_user_memory(UserMemory(memory="Rows", user_id="lin"))
        assert await texts(manager, "default") == ["Swims"]
        assert await texts(manager) == ["Rows"]
        with pytest.raises(InvalidIdError, match="another user_id"):
            await manager.add_user_memory(UserMemory(memory="Dives", user_id="lin"), user_id="omar")
        with pytest.raises(InvalidMemoryError, match="UserMemory"):
            await manager.add_user_memory("Dives")  # type: ignore[arg-type]
    async with MemoryManager(uri, default_user_id=None) as strict:
        with pytest.raises(InvalidIdError, match="user_id is missing"):
            await strict.get_user_memories()
        with pytest.raises(InvalidIdError, match="user_id is missing"):
            await strict.add_user_memory(UserMemory(memory="Dives"))
