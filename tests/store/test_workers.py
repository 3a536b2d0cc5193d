"""Workers that are killed, wherever they are: nothing is lost, nothing is doubled, and every user's order is kept."""

import asyncio
import json
import random
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pymongo import AsyncMongoClient

from asyncmem import MemoryManager, QueueStatus, Settings
from asyncmem import workers as workers_module
from asyncmem.errors import ModelRateLimitError, StoreUnavailableError
from asyncmem.store.jobs import Claim

from ..servers import drop_database, running_mongod, with_database
from .rivals import Echo
from .test_jobs import Hearer, manager_of, store_of, take, texts
from .working import SETTINGS

anyio_only = pytest.mark.anyio
COMMAND = [sys.executable, "-m", "tests.store.working"]


@pytest.fixture(params=[True, False], ids=["replica_set", "standalone"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server of the test's own, which frees what a killed client's transaction has locked after a second."""
    with running_mongod(replica_set=request.param) as mongod:

        async def hurry() -> None:
            async with AsyncMongoClient[dict[str, Any]](mongod.uri) as client:
                await client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)

        asyncio.run(hurry())
        yield mongod.uri


def manager_on(uri: str) -> MemoryManager:
    """A manager as the worker processes have one."""
    return MemoryManager(uri, model=Echo(), settings=Settings(**SETTINGS), default_user_id=None)


@anyio_only
async def test_a_worker_killed_at_any_write_loses_and_doubles_nothing(server: str) -> None:
    """Before and after each write of a job's life: taking, lengthening the lease, capturing, marking it as done."""
    uri = with_database(server, "killed")
    users = {f"user {n}": [f"I own boat {k}" for k in range(3)] for n in range(16)}
    async with manager_on(uri) as manager:
        for user, said in users.items():
            await manager.schedule(said[0], user_id=user)
            await manager.schedule(said[1], user_id=user, agent_id="pip")  # a capture of its own
            await manager.schedule(said[2], user_id=user, agent_id="pip")
    kills = [(write, when) for write in range(1, 14) for when in ("before", "after")]
    done = await asyncio.to_thread(
        subprocess.run, [*COMMAND, uri, json.dumps(kills)], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["killed"] * len(kills)
    async with manager_on(uri) as manager:
        stop = asyncio.Event()
        working = asyncio.create_task(manager.run_worker(stop))
        assert await manager.drain(60) == QueueStatus()
        stop.set()
        await working
        for user, said in users.items():
            assert await texts(manager, user) == said


@asynccontextmanager
async def worker(uri: str) -> AsyncIterator["asyncio.subprocess.Process"]:
    """A worker process that works; ended if it has not."""
    process = await asyncio.create_subprocess_exec(*COMMAND, uri, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@anyio_only
async def test_two_managers_and_workers_that_are_killed_at_random_are_as_one(server: str) -> None:
    """Every user's memories equal those of a sequential run, whoever did the work and whoever died over it."""
    uri, chance = with_database(server, "random"), random.Random(7)
    users = {f"user {n}": [f"I own boat {k}" for k in range(3)] for n in range(40)}
    async with manager_on(uri) as web, MemoryManager(uri, model=Echo(), settings=Settings()) as other:

        async def talk(user: str, said: list[str]) -> None:
            for turn, manager in zip(said, (web, other, web), strict=True):
                await manager.schedule(turn, user_id=user)
                await asyncio.sleep(chance.random() * 2)

        talking = asyncio.gather(*(talk(user, said) for user, said in users.items()))
        for _ in range(3):
            async with worker(uri) as process:
                await asyncio.sleep(chance.uniform(0.2, 1.2))
                process.kill()
        async with worker(uri) as process:
            await talking
            assert await web.drain(60) == QueueStatus()
            process.terminate()
            out, _ = await process.communicate()
            assert (process.returncode, out.strip().isdigit()) == (0, True)
        for user, said in users.items():
            assert await texts(web, user) == said


@anyio_only
async def test_a_slow_model_delays_no_schedule(server: str) -> None:
    """While a capture waits three seconds for its model, schedule() returns: nothing of it waits for a capture."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def act(said: list[str]) -> None:
        begun.set()
        await go_on.wait()

    async with manager_of(with_database(server, "slow"), Hearer(act)) as manager:
        first = await manager.schedule("I like tea", user_id="lin")
        await begun.wait()
        rest = [await manager.schedule(f"I own boat {n}", user_id=f"user {n % 20}") for n in range(100)]
        rest += [await manager.schedule("I like rum", user_id="lin")]
        assert not first.done
        assert not any(ticket.done for ticket in rest)
        go_on.set()
        await manager.drain(60)


@anyio_only
async def test_where_a_server_has_change_streams_others_are_woken(replica_set_uri: str, database_name: str) -> None:
    """A worker that polls every half a minute starts at once with what another process schedules."""
    uri = with_database(replica_set_uri, database_name)
    async with manager_of(uri) as busy, manager_of(uri, workers=False) as web:
        queue = await busy._queue()
        queue.workers.start()
        while not queue.workers._watching:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await (await web.schedule("I like tea", user_id="lin")).wait(20)
        assert loop.time() - began < 15


class Flaky:
    """Fails the first calls of a method, as a server that goes away does."""

    def __init__(self, times: int, method: Any) -> None:
        self.left, self.method = times, method

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.left:
            self.left -= 1
            raise StoreUnavailableError("gone", retryable=True)
        return await self.method(*args, **kwargs)


@anyio_only
async def test_a_server_that_goes_away_is_waited_for(
    replica_set_uri: str, database_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The queue is read again, a lease lengthened again, the change stream opened again; the work is done, once."""
    quick = {"lease": timedelta(milliseconds=600)}
    model = Hearer(lambda said: asyncio.sleep(0.6))
    async with manager_of(with_database(replica_set_uri, database_name), model, **quick) as manager:
        jobs = (await store_of(manager)).jobs
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers_module, "_POLLS", (0.02, 0.1))
            patch.setattr(type(jobs), "due", Flaky(2, jobs.due))
            patch.setattr(type(jobs), "beat", Flaky(1, jobs.beat))
            watched: list[int] = []

            async def broken() -> AsyncIterator[str]:
                watched.append(1)
                raise StoreUnavailableError("gone", retryable=True)
                yield ""  # an async generator

            patch.setattr(type(jobs), "watch", lambda _: broken())
            await (await manager.schedule("I like tea", user_id="lin")).wait(20)
            while len(watched) < 2:
                await asyncio.sleep(0.02)
        assert await texts(manager) == ["I like tea"]
    assert "the queue can't be read" in caplog.text
    assert "a lease could not be lengthened" in caplog.text


@anyio_only
async def test_work_whose_lease_was_taken_over_is_left(replica_set_uri: str, database_name: str) -> None:
    """A worker that learns it stops, and changes nothing; who has taken it does it, and the ticket hears of that."""
    begun = asyncio.Event()

    async def act(said: list[str]) -> None:
        begun.set()
        if len(slow.heard) == 1:
            await asyncio.sleep(60)

    slow = Hearer(act)
    uri = with_database(replica_set_uri, database_name)
    async with manager_of(uri, slow, lease=timedelta(milliseconds=300)) as manager:
        ticket = await manager.schedule("I like tea", user_id="lin")
        await begun.wait()
        jobs = (await store_of(manager)).jobs
        await jobs._lanes.update_one({"user_id": "lin"}, {"$set": {"holder": "another"}})
        assert [c.after and c.after.memory for c in (await ticket.wait(20)).changes] == ["I like tea"]
        assert len(slow.heard) == 2


@anyio_only
async def test_a_job_that_can_not_be_marked_done_is_done(
    replica_set_uri: str, database_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server goes away between the capture and its last write: the next worker finds what was changed."""
    uri = with_database(replica_set_uri, database_name)
    async with manager_of(uri, lease=timedelta(milliseconds=300)) as manager:
        jobs = (await store_of(manager)).jobs
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(jobs), "finish", Flaky(1, jobs.finish))
            result = await (await manager.schedule("I like tea", user_id="lin")).wait(20)
        assert ([c.after and c.after.memory for c in result.changes], result.repeated) == (["I like tea"], True)
    assert "a scheduled capture ended with StoreUnavailableError" in caplog.text


# ------------------------------------------------------------------------------------------------------ by chance

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["schedule", "take", "work", "die after work", "fail", "lapse", "late", "give back", "retry"]),
        st.sampled_from(["lin", "omar"]),
        st.integers(0, 3),
    ),
    min_size=4,
    max_size=25,
)


class Interleaving:
    """Jobs of two users, and workers that do all that workers may do to them, in any order."""

    def __init__(self, manager: MemoryManager) -> None:
        self.manager = manager
        self.accepted: dict[str, list[str]] = {"lin": [], "omar": []}
        self.claims: list[Claim] = []

    async def step(self, name: str, user: str, number: int) -> None:
        """One step; those that make no sense now do nothing."""
        store, workers = await store_of(self.manager), (await self.manager._queue()).workers
        held = self.claims[number % len(self.claims)] if self.claims else None
        match name, held:
            case "schedule", _:
                said = f"{user} owns boat {len(self.accepted[user])}"
                await self.manager.schedule(said, user_id=user, agent_id="pip" if number == 0 else None)
                self.accepted[user].append(said)
            case "take", _:
                if (claim := await take(self.manager, user)) is not None:
                    self.claims.append(claim)
            case "work" | "late", Claim() as claim:
                await workers._work(claim, 0)
            case "die after work", Claim() as claim:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(type(store.jobs), "finish", gone)
                    await workers._work(claim, 0)
            case "fail", Claim() as claim:
                kind = ModelRateLimitError("busy", retryable=True) if number else ValueError("poison")
                await workers._failed(claim, kind)
            case "lapse", _:
                await store.jobs._lanes.update_many(
                    {"due": {"$exists": True}}, [{"$set": {"due": {"$add": ["$$NOW", -1]}}}]
                )
            case "give back", Claim() as claim:
                await store.jobs.give_back(claim, counted=False, solo=number == 0)
            case "retry", _:
                await self.manager.retry_dead(user)
            case _:
                pass


async def gone(*args: object, **kwargs: object) -> bool:
    """What becomes of the last write of a worker that dies before it."""
    return False


@pytest.mark.parametrize("kind", ["replica_set", "standalone"])
def test_any_interleaving_applies_each_job_once(kind: str, request: pytest.FixtureRequest) -> None:
    """Whatever workers do, die of, or do too late: each accepted job is applied once, and in order."""
    base: str = request.getfixturevalue(f"{kind}_uri")

    async def run(steps: list[tuple[str, str, int]]) -> None:
        name = f"asyncmem_test_{uuid.uuid4().hex[:12]}"
        try:
            async with manager_of(with_database(base, name), Echo(), workers=False, job_attempts=100) as manager:
                machine, revived = Interleaving(manager), False
                for step in steps:
                    await machine.step(*step)
                await machine.step("lapse", "lin", 0)
                stop = asyncio.Event()
                working = asyncio.create_task(manager.run_worker(stop))
                await manager.drain(30)
                revived = await manager.retry_dead() > 0 or any(step[0] == "retry" for step in steps)
                assert await manager.drain(30) == QueueStatus()
                stop.set()
                await working
                for user, said in machine.accepted.items():
                    known = await texts(manager, user)
                    assert sorted(known) == sorted(said)
                    assert revived or known == said
        finally:
            await asyncio.to_thread(drop_database, base, name)

    @example([("schedule", "lin", 0), ("take", "lin", 0), ("fail", "lin", 1), ("fail", "lin", 0)])
    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def check(steps: list[tuple[str, str, int]]) -> None:
        asyncio.run(run(steps))

    check()
