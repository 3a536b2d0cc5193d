"""What the store does when the server fails, or when others are faster."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import BulkWriteError

from asyncmem import (
    CaptureResult,
    ManagerClosedError,
    MemoryConflictError,
    MemoryManager,
    MemoryNotFoundError,
    PartialWriteError,
    RevisionConflictError,
    Settings,
    StoreTimeoutError,
    StoreUnavailableError,
    StoreWriteError,
    UserMemory,
)
from asyncmem.filters import Filters
from asyncmem.fingerprints import sentence_prints
from asyncmem.operations import Add, Clear, Grounded, Update
from asyncmem.store import apply, remover, writer
from asyncmem.store.archive import Archive
from asyncmem.store.batch import Batch
from asyncmem.store.core import Core, Gate, Session
from asyncmem.store.documents import Collections, Row
from asyncmem.store.remover import Remover
from asyncmem.store.store import MemoryStore, open_store
from asyncmem.testing import ScriptedModel
from asyncmem.types import Scope

from ..servers import free_port, with_database
from .conftest import Clock

pytestmark = pytest.mark.anyio
Failing = Callable[..., AbstractAsyncContextManager[None]]


def failing_at(uri: str) -> Failing:
    """Makes a command fail on a server for a while."""

    @asynccontextmanager
    async def fail(command: str, mode: object, **data: Any) -> AsyncIterator[None]:
        async with AsyncMongoClient(uri) as client:
            point = {"configureFailPoint": "failCommand", "data": {"failCommands": [command], **data}}
            await client.admin.command({**point, "mode": mode})
            try:
                yield
            finally:
                await client.admin.command({"configureFailPoint": "failCommand", "mode": "off"})

    return fail


@pytest.fixture
def failing(replica_set_uri: str) -> Failing:
    """Makes a command fail on the replica set for a while."""
    return failing_at(replica_set_uri)


@pytest.fixture
async def manager(replica_set_uri: str, database_name: str) -> AsyncIterator[MemoryManager]:
    """A manager on a replica set."""
    async with MemoryManager(with_database(replica_set_uri, database_name)) as manager:
        yield manager


@pytest.fixture
async def store(replica_set_uri: str, database_name: str) -> AsyncIterator[MemoryStore]:
    """A store on a replica set."""
    store = await open_store(with_database(replica_set_uri, database_name), Settings())
    yield store
    await store.aclose()


# ------------------------------------------------------------------------------------------------- the server fails


async def test_a_batch_that_breaks_in_the_middle(manager: MemoryManager, failing: Failing) -> None:
    """What was written is reported with its ids, what was not with the reason; trying again doubles nothing."""
    batch = [UserMemory(memory=f"Fact {n}") for n in range(2_500)]
    async with failing("insert", {"skip": 1}, errorCode=8):
        with pytest.raises(PartialWriteError, match="1500 of 2500") as caught:
            await manager.add_user_memories(batch, user_id="lin")
    assert [n for n, i in enumerate(caught.value.ids) if i is None] == list(range(1_000, 2_500))
    assert isinstance(caught.value.failures[1_000], StoreWriteError)
    ids = await manager.add_user_memories(batch, user_id="lin")
    assert ids[:1_000] == caught.value.ids[:1_000]
    assert await manager.count_user_memories(user_id="lin") == 2_500


async def test_a_batch_that_fails_at_once(manager: MemoryManager, failing: Failing) -> None:
    """Nothing was written, so the server's error comes out itself."""
    async with failing("insert", "alwaysOn", errorCode=8):
        with pytest.raises(StoreWriteError, match="code 8"):
            await manager.add_user_memories([UserMemory(memory="Swims")], user_id="lin")
    assert await manager.count_user_memories(user_id="lin") == 0


async def test_a_batch_that_no_majority_acknowledged(manager: MemoryManager, failing: Failing) -> None:
    """A write concern that was not met is an error, never an id."""
    unmet = {"code": 64, "codeName": "WriteConcernFailed", "errmsg": "waiting for replication timed out"}
    async with failing("insert", {"times": 1}, writeConcernError=unmet):
        with pytest.raises(StoreTimeoutError, match="majority"):
            await manager.add_user_memories([UserMemory(memory="Swims")], user_id="lin")
    async with failing("insert", {"times": 1}, writeConcernError=unmet):
        with pytest.raises(StoreTimeoutError):
            await manager.add_user_memory(UserMemory(memory="Rows"), user_id="lin")


async def test_passing_failures_are_retried_by_the_driver(manager: MemoryManager, failing: Failing) -> None:
    """One lost connection costs nothing and doubles nothing."""
    async with failing("insert", {"times": 1}, closeConnection=True):
        await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    async with failing("find", {"times": 1}, closeConnection=True):
        assert len(await manager.get_user_memories(user_id="lin")) == 1


async def test_a_duplicate_that_is_gone_when_looked_at(manager: MemoryManager, failing: Failing) -> None:
    """A statement that was deleted between the refusal and the look is inserted after all."""
    async with failing(
        "insert", {"times": 1}, errorCode=11000, errorExtraInfo={"keyPattern": {"key": 1}, "keyValue": {"key": ""}}
    ):
        memory_id = await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    assert [m.memory_id for m in await manager.get_user_memories(user_id="lin")] == [memory_id]


async def test_a_server_that_fails_while_opening(replica_set_uri: str, database_name: str, failing: Failing) -> None:
    """The error is typed, and the next call opens."""
    manager = MemoryManager(with_database(replica_set_uri, database_name))
    async with failing("createIndexes", "alwaysOn", errorCode=13):
        with pytest.raises(Exception, match="create_indexes=False"):
            await manager.count_user_memories()
    assert await manager.count_user_memories() == 0
    await manager.aclose()


async def test_closing_while_opening_fails() -> None:
    """aclose waits for an opening under way and swallows its failure, which its own caller gets."""
    settings = Settings(open_timeout=timedelta(seconds=0.5))
    manager = MemoryManager(f"mongodb://127.0.0.1:{free_port()}/app", settings=settings)
    call = asyncio.create_task(manager.count_user_memories())
    await asyncio.sleep(0.05)
    await manager.aclose()
    with pytest.raises(StoreUnavailableError):
        await call


# ------------------------------------------------------------------------------------------------- others are faster


async def test_endless_contention_ends_in_a_retryable_error(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When every attempt lost its race, the caller is told to try again."""
    memory_id = await store.write.add(UserMemory(memory="Swims"), "lin", "manual")
    monkeypatch.setattr(writer, "ATTEMPTS", 0)
    monkeypatch.setattr(remover, "ATTEMPTS", 0)
    for attempt in (
        store.write.add(UserMemory(memory="Rows"), "lin", "manual"),
        store.write.change("lin", memory_id, {"memory": "Dives"}, "manual"),
        store.remove.delete("lin", memory_id, "manual"),
        store.remove.clear("lin", "manual"),
    ):
        with pytest.raises(StoreTimeoutError, match="try again") as caught:
            await attempt
        assert caught.value.retryable


class Rival(Archive):
    """An archive around whose first copy somebody else writes: after it, or ``early``, before it."""

    rival: Callable[[], Any]
    busy = True
    early = False

    async def keep(
        self, rows: Sequence[Row], kind: str, cause: str, at: datetime, session: Session = None
    ) -> list[str]:
        if self.early and self.busy:
            self.busy = False
            await self.rival()
        keys = await super().keep(rows, kind, cause, at, session)
        if self.busy:
            self.busy = False
            await self.rival()
        return keys


@pytest.fixture
def rival(store: MemoryStore) -> tuple[Rival, Remover]:
    """A remover with a rival."""
    core = store.read._core
    archive = Rival(core)
    return archive, Remover(core, store.read, archive, store.captures, store.jobs)


async def test_a_change_during_a_deletion_is_archived_too(store: MemoryStore, rival: tuple[Rival, Remover]) -> None:
    """A memory that changes after its archive copy is deleted at its new revision, and nothing of it is lost."""
    archive, remove = rival
    memory_id = await store.write.add(UserMemory(memory="Swims"), "lin", "manual")
    archive.rival = lambda: store.write.change("lin", memory_id, {"memory": "Swims daily"}, "manual")
    gone = await remove.delete("lin", memory_id, "manual")
    assert gone is not None
    assert gone.memory == "Swims daily"
    changes = await store.read.history("lin", memory_id)
    assert [(c.kind, c.after and c.after.memory) for c in changes] == [
        ("add", "Swims"),
        ("update", "Swims daily"),
        ("delete", None),
    ]


async def test_an_announced_deletion_that_never_happened_is_not_told(
    store: MemoryStore, rival: tuple[Rival, Remover]
) -> None:
    """A crash between archive copy and deletion leaves the memory alive and its history true."""
    archive, remove = rival
    memory_id = await store.write.add(UserMemory(memory="Swims"), "lin", "manual")

    def crash() -> None:
        raise KeyboardInterrupt

    archive.rival = crash
    with pytest.raises(KeyboardInterrupt):
        await remove.delete("lin", memory_id, "manual")
    assert [c.kind for c in await store.read.history("lin", memory_id)] == ["add"]
    await store.write.change("lin", memory_id, {"memory": "Swims daily"}, "manual")
    assert [c.kind for c in await store.read.history("lin", memory_id)] == ["add", "update"]


async def test_a_change_and_a_deletion_during_a_clear(store: MemoryStore, rival: tuple[Rival, Remover]) -> None:
    """A row that changes meanwhile goes at its new revision; one that somebody else deletes is gone as well."""
    archive, remove = rival
    ids = await store.write.add_many([(UserMemory(memory=t), "lin") for t in ("Swims", "Rows", "Dives")], "manual")

    async def meanwhile() -> None:
        await store.write.change("lin", ids[0], {"memory": "Swims daily"}, "manual")
        await store.remove.delete("lin", ids[1], "manual")

    archive.rival = meanwhile
    removed = await remove.clear("lin", "manual")
    assert {m.memory for m in removed} == {"Swims daily", "Rows", "Dives"}
    assert await store.read.count("lin") == 0
    assert (await store.write.revert("lin", ids[0], 2)).memory == "Swims daily"


async def test_delete_checks_the_revision(store: MemoryStore) -> None:
    """A deletion decided on an old revision is refused."""
    memory_id = await store.write.add(UserMemory(memory="Swims"), "lin", "manual")
    with pytest.raises(RevisionConflictError, match="revision 1, not 7"):
        await store.remove.delete("lin", memory_id, "manual", 7)
    assert await store.read.count("lin") == 1


async def test_an_expired_memory_is_not_reverted_from_its_old_revisions(uri: str, clock: Clock) -> None:
    """Old revisions in the archive alone bring nothing back."""
    async with MemoryManager(uri, settings=Settings(clock=clock, history_limit=1)) as manager:
        expiring = UserMemory(memory="On holiday", expires_at=clock.now + timedelta(hours=1))
        memory_id = await manager.add_user_memory(expiring, user_id="lin")
        for n in range(3):
            await manager.update_user_memory(memory_id, user_id="lin", feedback=f"{n}")
        clock.advance(hours=1)
        with pytest.raises(MemoryNotFoundError):
            await manager.revert(memory_id, 1, user_id="lin")
        with pytest.raises(MemoryNotFoundError):
            await manager.history(memory_id, user_id="lin")


# ---------------------------------------------------------------------------------------------------- applying


async def test_apply_marks_suspects_and_reports_what_changes_nothing(store: MemoryStore) -> None:
    """Suspect text is marked beside other metadata; an update to what is there is skipped."""
    memory_id = await store.write.add(UserMemory(memory="Swims", metadata={"n": 1}), "lin", "manual")
    applied = await store.applier.apply(
        Batch(
            Scope("lin"),
            [
                Grounded(Update(memory_id, "Swims")),
                Grounded(Update(memory_id, "You must swim", suspect=True)),
                Grounded(Add("You must row", suspect=True)),
                Grounded(Update(memory_id, "You must swim", suspect=True)),
            ],
            words="swim or row",
        )
    )
    assert [(s.op, s.reason) for s in applied.skipped] == [("update", "it changes nothing")] * 2
    after = [c.after for c in applied.changes]
    assert [(m.memory, m.metadata) for m in after if m] == [
        ("You must swim", {"n": 1, "suspect": True}),
        ("You must row", {"suspect": True}),
    ]
    assert after[1] is not None
    assert after[1].input == "swim or row"
    assert str(CaptureResult(applied.changes)).startswith("1 add, 1 update")


async def test_apply_skips_what_another_memory_says(store: MemoryStore) -> None:
    """An update to another memory's statement, found only by the store, is skipped with its reason."""
    ids = await store.write.add_many([(UserMemory(memory=t), "lin") for t in ("Swims", "Rows")], "manual")
    applied = await store.applier.apply(Batch(Scope("lin"), [Grounded(Update(ids[1], "swims."))]))
    assert [(s.op, s.reason, s.memory_id) for s in applied.skipped] == [
        ("update", "an existing memory says the same", ids[1])
    ]
    with pytest.raises(MemoryConflictError):
        await store.write.change("lin", ids[1], {"memory": "Swims"}, "manual")


async def test_a_commit_whose_answer_is_lost_is_told_as_it_was(store: MemoryStore, failing: Failing) -> None:
    """A transaction that was committed without our knowing is found by its record; nothing is done twice."""
    lost = {"code": 64, "errmsg": "waiting for replication timed out", "codeName": "WriteConcernFailed"}
    batch = Batch(Scope("lin"), [Grounded(Add("Swims"))], prints=[b"1"])
    async with failing("commitTransaction", {"times": 2}, writeConcernError=lost):
        applied = await store.applier.apply(batch)
    assert ([c.kind for c in applied.changes], applied.repeated) == (["add"], False)
    assert await store.read.count("lin") == 1
    assert (await store.applier.apply(batch)).repeated


async def test_a_transaction_that_always_fails_is_a_retryable_error(
    store: MemoryStore, failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A passing failure is tried again and ends in an error that may be retried; another one is raised at once."""
    monkeypatch.setattr(apply, "ATTEMPTS", 3)
    batch = Batch(Scope("lin"), [Grounded(Add("Swims"))], prints=[b"1"])
    async with failing("insert", "alwaysOn", errorCode=112, errorLabels=["TransientTransactionError"]):
        with pytest.raises(StoreTimeoutError, match="try again"):
            await store.applier.apply(batch)
    async with failing("insert", "alwaysOn", errorCode=14031):
        with pytest.raises(StoreWriteError, match="disk space"):
            await store.applier.apply(batch)
    assert await store.read.count("lin") == 0


async def test_a_clear_by_capture_is_of_everything_there_is(store: MemoryStore) -> None:
    """Thousands of memories go, which one transaction would not hold, and what comes after the clear stays."""
    await store.write.add_many([(UserMemory(memory=f"Read book {n}", input=f"I read book {n}"), "lin")
                                for n in range(1_200)], "manual")  # fmt: skip
    operations = [Grounded(Clear()), Grounded(Add("Has a cat"))]
    applied = await store.applier.apply(Batch(Scope("lin"), operations))
    assert [c.kind for c in applied.changes] == ["delete"] * 1_200 + ["add"]
    assert [m.memory for m in await store.read.last_n(Scope("lin"), Filters(), 0)] == ["Has a cat"]
    assert len(await store.captures.tombstones("lin", sentence_prints("I read book 7"))) == 1


# ------------------------------------------------------------------------------------------- lives, erasure, closing


async def test_an_id_that_is_used_again_belongs_to_its_new_owner(manager: MemoryManager) -> None:
    """What another user's archive keeps under an id stands in nobody's way."""
    await manager.add_user_memory(UserMemory(memory="Swims", memory_id="x"), user_id="lin")
    await manager.delete_user_memory("x", user_id="lin")
    await manager.add_user_memory(UserMemory(memory="Rows", memory_id="x"), user_id="omar")
    assert await manager.delete_user_memory("x", user_id="omar") is True
    assert (await manager.revert("x", 1, user_id="lin")).memory == "Swims"


async def test_every_life_of_an_id_is_told(manager: MemoryManager) -> None:
    """A second memory under the same id leaves the first one's history whole."""
    for text in ("Swims", "Rows"):
        await manager.add_user_memory(UserMemory(memory=text, memory_id="x"), user_id="lin")
        await manager.delete_user_memory("x", user_id="lin")
    changes = await manager.history("x", user_id="lin")
    assert [(c.kind, c.after and c.after.memory) for c in changes] == [
        ("add", "Swims"),
        ("delete", None),
        ("add", "Rows"),
        ("delete", None),
    ]


async def test_an_erasure_during_a_deletion_leaves_no_trace(store: MemoryStore, rival: tuple[Rival, Remover]) -> None:
    """The copy that the deletion made after the erasure is withdrawn."""
    archive, remove = rival
    memory_id = await store.write.add(UserMemory(memory="Swims"), "lin", "manual")
    archive.rival, archive.early = lambda: store.remove.erase("lin"), True
    assert await remove.delete("lin", memory_id, "manual") is None
    assert await store.archive.of_memory("lin", memory_id) == []


async def test_a_revert_of_an_older_deletion_gives_way(store: MemoryStore) -> None:
    """A memory that was brought back and deleted again is brought back behind its newest deletion."""
    memory_id = await store.write.add(UserMemory(memory="Swims"), "lin", "manual")
    await store.remove.delete("lin", memory_id, "manual")
    (old,) = await store.archive.of_memory("lin", memory_id)
    await store.write.revert("lin", memory_id, 1)
    await store.write.change("lin", memory_id, {"memory": "Swims daily"}, "manual")
    await store.remove.delete("lin", memory_id, "manual")
    assert await store.write._restore(old, {"memory": "Swims"}) is None
    assert await store.read.get("lin", memory_id) is None
    assert (await store.write.revert("lin", memory_id, 1)).revision == 6
    told = [c.after.memory for c in await store.read.history("lin", memory_id) if c.after]
    assert told == ["Swims", "Swims", "Swims daily", "Swims"]


async def test_reverts_at_once_bring_back_one_memory(manager: MemoryManager) -> None:
    """Five reverts, deletions and updates at once end in a memory or none, with typed errors only."""
    memory_id = await manager.add_user_memory(UserMemory(memory="Swims"), user_id="lin")
    await manager.delete_user_memory(memory_id, user_id="lin")
    reverts = [manager.revert(memory_id, 1, user_id="lin") for _ in range(5)]
    deletions = [manager.delete_user_memory(memory_id, user_id="lin") for _ in range(3)]
    results = await asyncio.gather(*reverts, *deletions, return_exceptions=True)
    errors = [r for r in results if isinstance(r, BaseException)]
    assert all(isinstance(e, (MemoryNotFoundError, StoreTimeoutError)) for e in errors), errors
    assert await manager.count_user_memories(user_id="lin") <= 1
    assert await manager.history(memory_id, user_id="lin")


async def test_closing_waits_for_calls_under_way(replica_set_uri: str, database_name: str) -> None:
    """Calls that were made before aclose end well; one that needs another turn says that the manager is closed."""
    settings = Settings(concurrency=4)
    manager = MemoryManager(with_database(replica_set_uri, database_name), settings=settings)
    await manager.count_user_memories()
    adds = [manager.add_user_memory(UserMemory(memory=f"Fact {n}"), user_id="lin") for n in range(40)]
    calls = [asyncio.create_task(add) for add in adds]
    await asyncio.sleep(0)
    await manager.aclose()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(r, str | ManagerClosedError) for r in results), results
    assert any(isinstance(r, str) for r in results)


async def test_a_call_between_two_turns_learns_that_the_manager_is_closed(store: MemoryStore) -> None:
    """The store lets nobody through after it was closed."""
    await store.aclose()
    with pytest.raises(ManagerClosedError, match="was closed while"):
        await store.read.count("lin")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_opening_that_is_cancelled_leaves_nothing_behind(replica_set_uri: str, database_name: str) -> None:
    """A cancelled ``async with`` ends the opening and closes what it opened."""
    before = len(asyncio.all_tasks())
    for delay in (0.0, 0.005, 0.02):
        manager = MemoryManager(with_database(replica_set_uri, database_name))

        async def use(manager: MemoryManager = manager) -> None:
            async with manager:
                pass

        task = asyncio.create_task(use())
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.05)
        assert len(asyncio.all_tasks()) == before
        gc.collect()  # PyMongo leaves the socket of a call that was cancelled to the collector


async def test_an_opening_that_ended_in_time_is_closed(replica_set_uri: str, database_name: str) -> None:
    """Abandoning closes a store that was opened already, and forgives one that failed."""
    manager = MemoryManager(with_database(replica_set_uri, database_name))
    await manager.count_user_memories()
    await manager._opening.abandon()
    with pytest.raises(ManagerClosedError):
        await manager.count_user_memories()
    await MemoryManager("mongodb://localhost/app")._opening.abandon()


class OddCollection:
    """A collection whose bulk writes fail with these codes."""

    def __init__(self, *codes: int) -> None:
        self.codes = codes

    async def bulk_write(self, operations: object, ordered: bool, session: object) -> None:
        raise BulkWriteError({"writeErrors": [{"code": code} for code in self.codes]})


@pytest.mark.parametrize(("codes", "held"), [((11000,), True), ((11000, 8), False), ((), False)])
async def test_a_copy_that_somebody_else_wrote_is_a_copy(codes: tuple[int, ...], held: bool) -> None:
    """Only the refusal of what is there already is no failure."""
    others: Any = dict.fromkeys(Collections.__dataclass_fields__)
    collections = Collections(**{**others, "archive": OddCollection(*codes)})
    archive = Archive(Core(collections, Settings(), Gate(1)))
    keep = archive.keep([{"_id": "x", "user_id": "lin"}], "delete", "manual", datetime(2026, 1, 1, tzinfo=UTC))
    if held:
        assert await keep == ["x:0:2"]
    else:
        with pytest.raises(StoreWriteError):
            await keep


async def test_endless_reverts_end_in_a_retryable_error(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A revert that lost every race says so."""
    monkeypatch.setattr(writer, "ATTEMPTS", 0)
    with pytest.raises(StoreTimeoutError, match="try again"):
        await store.write.revert("lin", "x", 1)


async def test_what_a_change_of_an_erased_user_moved_to_the_archive_is_forgotten(
    replica_set_uri: str, database_name: str
) -> None:
    """A change whose user was erased meanwhile leaves no copy of the history that it had moved away."""
    store = await open_store(with_database(replica_set_uri, database_name), Settings(history_limit=1))
    try:
        memory_id = await store.write.add(UserMemory(memory="Swims"), "lin", "manual")
        await store.write.change("lin", memory_id, {"memory": "Swims daily"}, "manual")
        old = await store.read.row("lin", memory_id)
        assert old is not None
        now = datetime(2030, 1, 1, tzinfo=UTC)
        new = writer.revised(old, {"memory": "Swims weekly"}, now, "manual")
        assert new is not None
        await store.remove.erase("lin")
        assert await store.write._swap(old, new) is False
        assert await store.archive.of_memory("lin", memory_id) == []
    finally:
        await store.aclose()


async def test_first_n_that_is_full_asks_for_no_rows_without_time(store: MemoryStore) -> None:
    """Where the oldest that were asked for are found, what has no time is not looked for."""
    for number in range(3):
        await store.write.add(UserMemory(memory=f"Fact {number}"), "lin", "manual")
    found = await store.read.first_n(Scope("lin"), Filters(), 2)
    assert [memory.memory for memory in found] == ["Fact 0", "Fact 1"]


@pytest.mark.parametrize("kind", ["replica_set_uri", "standalone_uri"])
@pytest.mark.parametrize("command", ["insert", "delete"])
async def test_case_2_storage_that_fails_leaves_all_three(
    kind: str, command: str, database_name: str, request: pytest.FixtureRequest
) -> None:
    """Where the store fails in the middle of a swap, the error is raised, all memories live, and no opening and no
    capture does later what failed; the next try may succeed."""
    server = request.getfixturevalue(kind)
    uri = with_database(server, database_name)
    full = {"errorCode": 14031, "namespace": f"{database_name}.asyncmem_memories"}
    texts = ["Keeps two parrots", "Works nights", "Parrots are named Pip and Bo"]
    said = {"memory": "Keeps two parrots named Pip and Bo. Works nights."}
    async with MemoryManager(uri, model=ScriptedModel([said, said])) as manager:
        await manager.add_user_memories([UserMemory(memory=text) for text in texts], user_id="lin")
        before = await manager.get_user_memories(user_id="lin")
        async with failing_at(server)(command, "alwaysOn", **full):
            with pytest.raises(StoreWriteError):
                await manager.optimize_memories(user_id="lin")
        async with MemoryManager(uri, model=ScriptedModel([])) as other:
            assert await other.get_user_memories(user_id="lin") == before
            assert await other.list_optimizations(user_id="lin") == []
        await manager.optimize_memories(user_id="lin")
        assert [m.memory for m in await manager.get_user_memories(user_id="lin")] == [said["memory"]]
