"""Captures on each kind of server: together or not at all, once, in order, and forgotten when it is wished."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from asyncmem import (
    ChatReply,
    ChatRequest,
    InvalidIdError,
    LLMSettings,
    MemoryManager,
    ModelError,
    Settings,
    UserMemory,
)
from asyncmem.operations import Add, Delete, Grounded, Update
from asyncmem.store.batch import Batch
from asyncmem.store.steps import Insert, Remove, Revise, pack, to_step, unpack
from asyncmem.store.store import MemoryStore, open_store
from asyncmem.store.taking import Taker
from asyncmem.testing import ScriptedModel
from asyncmem.types import Scope

from ..servers import with_database
from .conftest import Clock
from .rivals import STATEMENTS

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(uri: str) -> AsyncIterator[MemoryStore]:
    """A store on each kind of server."""
    store = await open_store(uri, Settings())
    yield store
    await store.aclose()


def plan(*operations: dict[str, Any]) -> dict[str, Any]:
    """What a model answers."""
    return {"operations": list(operations)}


def add(memory: str, evidence: str) -> dict[str, Any]:
    """One addition."""
    return {"op": "add", "memory": memory, "evidence": evidence}


def manager_of(uri: str, model: object, clock: Clock | None = None, **options: Any) -> MemoryManager:
    """A manager with this model."""
    settings = Settings(clock=clock) if clock else Settings()
    return MemoryManager(uri, model=model, settings=settings, **options)  # type: ignore[arg-type]


async def texts(manager: MemoryManager, user_id: str = "lin") -> list[str]:
    """A user's memories as text, oldest update first."""
    return [m.memory for m in await manager.get_user_memories(user_id=user_id)]


class Listener:
    """A model that adds each of the user's last words that it hears, after something else has happened."""

    name = "listener"

    def __init__(self, meanwhile: Callable[[int], Any] | None = None) -> None:
        self.calls = 0
        self.meanwhile = meanwhile

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.calls += 1
        if self.meanwhile is not None:
            await self.meanwhile(self.calls)
        await asyncio.sleep(0)
        lines = str(request.messages[-1]["content"]).splitlines()
        said = [json.loads(line)["user"] for line in lines if line.startswith('{"user"')]
        return ChatReply(content=json.dumps(plan(*(add(text, text) for text in said))))


# -------------------------------------------------------------------------------------------------------- repeating


async def test_the_same_messages_are_captured_once(uri: str, clock: Clock) -> None:
    """Again is nothing while it is remembered, for that user, agent and team only; afterwards it is asked again."""
    model = ScriptedModel([plan(add("Likes tea", "I like tea"))])
    async with model, manager_of(uri, model, clock) as manager:
        first = await manager.create_user_memories("I like tea", user_id="lin")
        assert (len(first.changes), first.repeated, first.windows) == (1, False, 1)
        again = await manager.create_user_memories("I like tea", user_id="lin")
        assert (again.changes, again.repeated, again.usage.calls) == ([], True, 0)
        assert [s.reason for s in again.skipped] == ["it was captured before"]
        model.add(plan(), plan(), plan())
        assert not (await manager.create_user_memories("I like tea", user_id="omar")).repeated
        assert not (await manager.create_user_memories("I like tea", user_id="lin", agent_id="pip")).repeated
        clock.advance(days=2)
        assert not (await manager.create_user_memories("I like tea", user_id="lin")).repeated


async def test_a_conversation_that_goes_on_is_read_from_where_it_ended(uri: str) -> None:
    """Only what is new is evidence; what was captured before is shown above it. A second "yes" is read again."""
    model = Listener()
    async with manager_of(uri, model) as manager:
        talk: list[dict[str, str]] = [{"role": "user", "content": "I row"}]
        await manager.create_user_memories(messages=talk, user_id="lin")
        talk += [{"role": "assistant", "content": "Daily?"}, {"role": "user", "content": "I swim too"}]
        second = await manager.create_user_memories(messages=talk, user_id="lin")
        assert [c.after and c.after.memory for c in second.changes] == ["I swim too"]
        assert [c.sources for c in second.changes] == [(2,)]
        assert (await manager.create_user_memories(messages=talk, user_id="lin")).repeated
        talk += [{"role": "assistant", "content": "Bye"}]
        assert (await manager.create_user_memories(messages=talk, user_id="lin")).usage.calls == 0
        assert model.calls == 2
        assert await texts(manager) == ["I row", "I swim too"]


async def test_an_idempotency_key_names_a_capture(uri: str) -> None:
    """The same key does nothing twice, whatever is said; another key captures the same words again."""
    model = ScriptedModel([plan(), plan()])
    async with model, manager_of(uri, model) as manager:
        assert not (await manager.create_user_memories("a b", user_id="lin", idempotency_key="k")).repeated
        assert (await manager.create_user_memories("c d", user_id="lin", idempotency_key="k")).repeated
        assert not (await manager.create_user_memories("a b", user_id="lin", idempotency_key="l")).repeated
        with pytest.raises(InvalidIdError, match="idempotency_key"):
            await manager.create_user_memories("a b", user_id="lin", idempotency_key=" ")


async def test_a_capture_that_failed_is_done_when_it_is_called_again(uri: str) -> None:
    """Nothing is remembered of a capture whose model failed; tasks and previews are never repetitions."""
    model = ScriptedModel([ConnectionError("down"), plan(add("Likes tea", "I like tea")), plan(), plan(), plan()])
    async with model, manager_of(uri, model, llm=LLMSettings(retries=0)) as manager:
        with pytest.raises(ModelError):
            await manager.create_user_memories("I like tea", user_id="lin")
        assert len((await manager.create_user_memories("I like tea", user_id="lin")).changes) == 1
        for _ in range(2):
            assert not (await manager.update_memory_task("Remember that I like tea", user_id="lin")).repeated
        assert not (await manager.extract_user_memories("I like tea", user_id="lin")).repeated


async def test_the_same_capture_in_two_managers_at_once_happens_once(uri: str) -> None:
    """Both ask their model; one of them writes, and the other says that it was captured."""
    one, two = Listener(), Listener()
    async with manager_of(uri, one) as first, manager_of(uri, two) as second:
        results = await asyncio.gather(
            first.create_user_memories("I like tea", user_id="lin"),
            second.create_user_memories("I like tea", user_id="lin"),
        )
        assert sorted(r.repeated for r in results) == [False, True]
        assert sorted(len(r.changes) for r in results) == [0, 1]
        assert await texts(first) == ["I like tea"]


# -------------------------------------------------------------------------------------------------------- together


async def test_one_users_captures_run_in_order(uri: str) -> None:
    """Fifty captures of one user in two managers end with each statement once and no error, each manager's in order."""
    async with manager_of(uri, Listener()) as first, manager_of(uri, Listener()) as second:
        boats, canoes = [f"I own boat {n}" for n in range(20)], [f"I row canoe {n}" for n in range(20)]
        await asyncio.gather(
            *(first.create_user_memories(text, user_id="lin") for text in boats),
            *(second.create_user_memories(text, user_id="lin") for text in canoes),
            *(second.create_user_memories(text, user_id="lin", idempotency_key=text) for text in boats[:10]),
        )
        kept = await texts(first)
        assert sorted(kept) == sorted([*boats, *canoes])
        assert [text for text in kept if text in canoes] == canoes


async def test_a_memory_that_says_something_else_meanwhile_is_decided_anew(uri: str) -> None:
    """The model is asked once more, about what is there now, and nothing of the first decision is written."""
    async with manager_of(uri, None) as other:
        memory_id = await other.add_user_memory(UserMemory(memory="Works nights"), user_id="lin")
        said = "I work nights at the port with Marta. I have a cat"

        class Slow(ScriptedModel):
            async def complete(self, request: ChatRequest) -> ChatReply:
                if not self.requests:
                    await other.update_user_memory(memory_id, user_id="lin", memory="Works nights at the port")
                return await super().complete(request)

        model = Slow(
            [
                plan(
                    add("Has a cat", "I have a cat"),
                    {"op": "update", "memory_id": "1", "memory": "Works nights with Marta", "evidence": said},
                ),
                plan(
                    {
                        "op": "update",
                        "memory_id": "1",
                        "memory": "Works nights at the port with Marta",
                        "evidence": said,
                    }
                ),
            ]
        )
        async with model, manager_of(uri, model) as manager:
            result = await manager.create_user_memories(said, user_id="lin")
            assert ([c.kind for c in result.changes], result.skipped) == (["update"], [])
            assert result.usage.calls == 2
            assert await texts(manager) == ["Works nights at the port with Marta"]
            assert "Works nights at the port" in str(model.requests[1].messages)


async def test_a_memory_that_keeps_changing_is_reported(store: MemoryStore) -> None:
    """A batch that is not strict skips what says something else; a strict one does nothing at all."""
    memory_id = await store.write.add(UserMemory(memory="Swims"), "lin", "manual")
    seen = {memory_id: UserMemory(memory="Rows", memory_id=memory_id)}
    operations = [Grounded(Update(memory_id, "Rows daily")), Grounded(Delete(memory_id)), Grounded(Add("Has a cat"))]
    stale = await store.applier.apply(Batch(Scope("lin"), operations, seen=seen, strict=True))
    assert (stale.stale, stale.changes, await store.read.count("lin")) == (True, [], 1)
    applied = await store.applier.apply(Batch(Scope("lin"), operations, seen=seen))
    assert [s.reason for s in applied.skipped] == ["the memory was changed meanwhile"] * 2
    assert [c.kind for c in applied.changes] == ["add"]


async def test_an_erasure_during_a_capture_wins(uri: str) -> None:
    """A user who is erased while a model thinks has nothing afterwards, and the result says why."""
    async with manager_of(uri, None) as other:

        async def meanwhile(call: int) -> None:
            await other.erase_user("lin")

        async with manager_of(uri, Listener(meanwhile)) as manager:
            result = await manager.create_user_memories("I like tea", user_id="lin")
            assert [(s.op, s.reason) for s in result.skipped] == [("add", "the user was erased meanwhile")]
            assert (await texts(manager), (await manager.erase_user("lin")).total) == ([], 0)


# -------------------------------------------------------------------------------------------------------- forgetting


async def test_what_was_to_be_forgotten_does_not_come_back(uri: str, clock: Clock) -> None:
    """A removed memory's sentences are refused in a later capture of the old talk, and taken when said anew."""
    old = [{"role": "user", "content": "Hi! I started at Oakline Foods on Monday.", "at": "2096-01-01T08:00:00Z"}]
    work = add("Started at Oakline Foods", "I started at Oakline Foods on Monday")
    model = ScriptedModel([plan(work), plan({"op": "delete", "memory_id": "1"}), plan(work), plan(work), plan(work)])
    async with model, manager_of(uri, model, clock, delete_memories=True) as manager:
        await manager.create_user_memories(messages=old, user_id="lin")
        forgot = await manager.create_user_memories("Please forget where I work", user_id="lin")
        assert [c.kind for c in forgot.changes] == ["delete"]
        assert await manager.build_context(user_id="lin") == ""
        clock.advance(days=40)
        again = await manager.create_user_memories(messages=old, user_id="lin")
        assert (again.changes, [s.reason for s in again.skipped]) == ([], ["the user wished it to be forgotten"])
        untimed = await manager.create_user_memories("I started at Oakline Foods on Monday!", user_id="lin")
        assert [s.reason for s in untimed.skipped] == ["the user wished it to be forgotten"]
        anew = [{**old[0], "at": clock.now.isoformat()}]
        assert len((await manager.create_user_memories(messages=anew, user_id="lin")).changes) == 1
        receipt = await manager.erase_user("lin")
        assert receipt.counts["captures"] > 0


async def test_forgetting_holds_no_words(uri: str) -> None:
    """What is kept of a forgotten memory outside the archive has none of its words."""
    model = ScriptedModel(
        [plan(add("Works at Oakline", "I work at Oakline")), plan({"op": "delete", "memory_id": "1"})]
    )
    async with model, manager_of(uri, model, delete_memories=True) as manager:
        await manager.create_user_memories("I work at Oakline", user_id="lin")
        await manager.create_user_memories("Forget my work", user_id="lin")
        store = await manager._opening.store()
        rows = await store.captures._rows.find({}).to_list()
        assert {row["kind"] for row in rows} == {"capture", "tombstone", "ledger"}
        assert "oakline" not in repr(rows).casefold()


# ----------------------------------------------------------------------------------------------------------- journal


async def test_steps_survive_a_journal(clock: Clock) -> None:
    """What is packed comes out as it was."""
    batch = Batch(Scope("lin", "pip"), [], words="words")
    grounded = Grounded(Add("Has a cat", ("pets",), "a cat"), frozenset({b"1", b"2"}))
    insert = to_step(grounded, batch, clock.now)
    assert isinstance(insert, Insert)
    steps = [insert, Revise("a", "b", None, True, "c", [b"1"]), Remove("a", None)]
    kept, at, cause = unpack(pack(steps, clock.now, "capture"))
    assert (kept, at, cause) == (steps, clock.now, "capture")


async def test_a_journal_that_was_left_is_finished_once(uri: str, clock: Clock) -> None:
    """Opening finishes what a crash left; what somebody did since stays as they wanted it."""
    async with manager_of(uri, None, clock) as manager:
        store = await manager._opening.store()
        ids = await store.write.add_many(
            [(UserMemory(memory=t), "lin") for t in ("Swims", "Rows", "Dives", "Runs")], "manual"
        )
        batch = Batch(Scope("lin"), [])
        made = to_step(Grounded(Add("Has a cat")), batch, clock.now)
        gone = to_step(Grounded(Add("Has a dog")), batch, clock.now)
        assert isinstance(made, Insert)
        assert isinstance(gone, Insert)
        steps = [
            made,
            gone,
            Revise(ids[0], "Swims daily", None, False, "Swims", []),
            Revise(ids[1], "Rows daily", None, False, "Rows", []),
            Remove(ids[2], "Dives"),
            Remove(ids[3], "Runs"),
        ]
        record = store.captures.record("lin", "x", [b"1"])
        for again in (False, True):  # the first half was done before the crash, and changed since
            shelves = (store.captures._core, store.archive, store.captures, store.proposals)
            taker = Taker(*shelves, "lin", clock.now, "capture", again=again)
            if not again:
                for step in (gone, steps[2], steps[5]):
                    assert await taker.take(step) is not None
                clock.advance(hours=1)
                await manager.delete_user_memory(gone.row["_id"], user_id="lin")
                await manager.update_user_memory(ids[0], user_id="lin", memory="Swims weekly")
                await manager.revert(ids[3], 1, user_id="lin")
                clock.advance(hours=-1)
                await store.captures.insert(store.captures.journal(record, pack(steps, clock.now, "capture")))
        clock.advance(hours=2)
        assert await store.captures.known("lin", [b"1"]) == {b"1"}
    async with manager_of(uri, None, clock) as manager:
        assert sorted(await texts(manager)) == ["Has a cat", "Rows daily", "Runs", "Swims weekly"]
        store = await manager._opening.store()
        assert await store.applier.recover() == 0
        assert await store.captures.known("lin", [b"1"]) == {b"1"}
        clock.advance(days=2)
        assert await store.captures.known("lin", [b"1"]) == set()


async def test_a_records_place_is_free_when_it_is_forgotten(store: MemoryStore) -> None:
    """An expired record makes room for one of the same name; a living one doesn't."""
    clock_now = store.captures._core.now()
    record = store.captures.record("lin", "x", [b"1"])
    assert await store.captures.insert(record)
    assert not await store.captures.insert({**record, "at": clock_now})
    await store.captures._rows.update_one({"_id": record["_id"]}, {"$set": {"expire_at": clock_now - timedelta(1)}})
    assert await store.captures.insert(record)


async def test_a_hundred_captures_of_one_user_from_two_processes(uri: str) -> None:
    """Each distinct statement is there once, and no capture fails."""
    command = [sys.executable, "-m", "tests.store.rivals", uri]
    rivals = [await asyncio.create_subprocess_exec(*command, name) for name in ("old", "new")]
    assert [await rival.wait() for rival in rivals] == [0, 0]
    async with manager_of(uri, None) as manager:
        own = [f"Likes {name} film {n}" for name in ("old", "new") for n in range(10)]
        assert sorted(await texts(manager)) == sorted([*STATEMENTS, *own])


async def test_a_journal_is_done_though_its_caller_leaves(standalone_uri: str, database_name: str) -> None:
    """Cancelled while it writes, a capture on a server without transactions is whole before the cancellation is."""
    async with manager_of(with_database(standalone_uri, database_name), Listener()) as manager:
        store = await manager._opening.store()
        for turns in range(60):
            capture = asyncio.ensure_future(
                manager.create_user_memories(messages=[f"I own boat {turns}", f"I row canoe {turns}"], user_id="lin")
            )
            for _ in range(turns):
                await asyncio.sleep(0.0005)
            capture.cancel()
            await asyncio.wait([capture])
            kept = [text for text in await texts(manager) if text.endswith(f" {turns}")]
            assert len(kept) in (0, 2)
        await manager.create_user_memories("Hi", user_id="lin")
        assert await store.captures.pending("lin") == []
        kept = await texts(manager)
        assert all(kept.count(f"I own boat {n}") == kept.count(f"I row canoe {n}") <= 1 for n in range(60))


async def test_a_journal_that_an_error_left_is_finished_by_the_next_capture(
    standalone_uri: str, database_name: str
) -> None:
    """What a broken connection left undone is done before the same user's next capture."""
    async with manager_of(with_database(standalone_uri, database_name), Listener()) as manager:
        store = await manager._opening.store()
        step = to_step(Grounded(Add("Has a cat")), Batch(Scope("lin"), []), store.captures._core.now())
        assert isinstance(step, Insert)
        record = store.captures.record("lin", "x", [b"1"])
        packed = pack([step], store.captures._core.now(), "capture")
        await store.captures.insert(store.captures.journal(record, packed))
        await manager.create_user_memories("I row", user_id="omar")
        assert await texts(manager) == []
        await manager.create_user_memories("I row", user_id="lin")
        assert await texts(manager) == ["Has a cat", "I row"]


async def test_an_erasure_beside_captures_always_succeeds(uri: str) -> None:
    """Whatever is under way and whoever comes first, the user is gone afterwards."""
    async with manager_of(uri, Listener()) as manager, manager_of(uri, Listener()) as other:
        for n in range(12):
            user, texts_of = f"user {n}", [f"I own boat {n}", f"I row canoe {n}"]
            capture = asyncio.ensure_future(manager.create_user_memories(messages=texts_of, user_id=user))
            await asyncio.sleep(0.002 * n)
            await asyncio.gather(manager.erase_user(user), other.erase_user(user), capture)
            assert await manager.count_user_memories(user_id=user) in (0, 2)  # a capture may also begin afterwards
            await manager.erase_user(user)
            assert (await manager.erase_user(user)).total == 0


async def test_a_clear_ends_what_was_left_half_way(standalone_uri: str, database_name: str) -> None:
    """A journal that was left before a clear brings nothing back after it."""
    async with manager_of(with_database(standalone_uri, database_name), None) as manager:
        store = await manager._opening.store()
        step = to_step(Grounded(Add("Has a cat")), Batch(Scope("lin"), []), store.captures._core.now())
        assert isinstance(step, Insert)
        packed = pack([step], store.captures._core.now(), "capture")
        await store.captures.insert(store.captures.journal(store.captures.record("lin", "x", [b"1"]), packed))
        await manager.clear_user_memories(user_id="lin")
        assert await store.applier.recover() == 0
        assert await texts(manager) == []


async def test_odd_rows_of_other_software_block_nobody(uri: str) -> None:
    """Fields that hold what they never should are read as if they were absent."""
    model = ScriptedModel([plan()])
    async with model, manager_of(uri, model) as manager:
        store = await manager._opening.store()
        odd: list[dict[str, Any]] = [
            {"metadata": 5}, {"metadata": ["a"]}, {"vector": 5}, {"stamp": float("nan")}, {"revision": "q"},
        ]  # fmt: skip
        rows = [{"_id": f"x{n}", "user_id": "lin", "memory": f"Likes odd tea {n}", **o} for n, o in enumerate(odd)]
        await store.captures._core.collections.memories.insert_many(rows)
        assert len(await texts(manager)) == len(odd)
        found = await manager.search_user_memories("tea", user_id="lin", retrieval_method="keyword")
        assert len(found) == len(odd)
        assert "odd tea" in await manager.build_context(user_id="lin", query="tea")
        assert (await manager.create_user_memories("Hi", user_id="lin")).changes == []
        for row in rows:
            assert await manager.delete_user_memory(row["_id"], user_id="lin")


async def test_a_long_history_is_looked_through_for_what_was_said(uri: str) -> None:
    """Of more memories than a capture considers, an old one that the words are about is shown all the same."""
    model = ScriptedModel([plan()])
    async with model, manager_of(uri, model) as manager:
        store = await manager._opening.store()
        old = UserMemory(memory="Works at Brightwater Logistics")
        many = [old, *(UserMemory(memory=f"Read book number {n}") for n in range(600))]
        await store.write.add_many([(memory, "lin") for memory in many], "manual")
        await manager.create_user_memories("I left Brightwater yesterday", user_id="lin")
        shown = str(model.requests[0].messages[-1]["content"])
        assert ("Works at Brightwater Logistics" in shown, "Read book number 599" in shown) == (True, True)


async def test_a_capture_makes_room_and_keeps_history(uri: str, clock: Clock) -> None:
    """An expired memory that says the same makes room; revisions that their row has no room for are archived."""
    settings = Settings(clock=clock, history_limit=1)
    model = ScriptedModel([plan(add("On holiday", "I'm on holiday"))])
    model.add(*(plan({"op": "update", "memory_id": "1", "memory": f"On holiday in {place}",
                      "evidence": f"I'm on holiday in {place}"}) for place in ("Porto", "Lisbon")))  # fmt: skip
    async with model, MemoryManager(uri, model=model, settings=settings) as manager:
        brief = UserMemory(memory="On holiday", expires_at=clock.now + timedelta(hours=1))
        await manager.add_user_memory(brief, user_id="lin")
        clock.advance(hours=2)
        (change,) = (await manager.create_user_memories("I'm on holiday", user_id="lin")).changes
        for place in ("Porto", "Lisbon"):
            assert len((await manager.create_user_memories(f"I'm on holiday in {place}", user_id="lin")).changes) == 1
        history = await manager.history(change.memory_id, user_id="lin")
        assert [c.after and c.after.memory for c in history] == [
            "On holiday",
            "On holiday in Porto",
            "On holiday in Lisbon",
        ]
        assert (await manager.extract_user_memories(" ", user_id="lin")).changes == []
