"""The queue on each kind of server: in order, once, bounded, by lease, and by the server's clock alone."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from asyncmem import (
    AsyncMemError,
    BacklogFullError,
    CaptureAbandonedError,
    ChatReply,
    ChatRequest,
    ConfigurationError,
    DrainTimeoutError,
    InvalidIdError,
    InvalidMessageError,
    InvalidQueryError,
    LearningMode,
    LLMSettings,
    ManagerClosedError,
    MemoryManager,
    Message,
    ModelAuthenticationError,
    ModelError,
    ModelRateLimitError,
    QueueStatus,
    Scope,
    Settings,
    StoreTimeoutError,
    TicketExpiredError,
    UserMemory,
)
from asyncmem.background import read_turns
from asyncmem.store.jobs import Claim
from asyncmem.store.store import MemoryStore
from asyncmem.testing import ScriptedModel

from ..servers import with_database

pytestmark = pytest.mark.anyio
SOON = 20.0
QUICK: dict[str, Any] = {"debounce": timedelta(0), "job_backoff": timedelta(milliseconds=10)}
Act = Callable[[list[str]], Any]


class Hearer:
    """A model that adds each of the user's words that it hears; ``act`` may wait or raise before that."""

    name = "hearer"

    def __init__(self, act: Act | None = None) -> None:
        self.heard: list[list[str]] = []
        self.act = act

    async def complete(self, request: ChatRequest) -> ChatReply:
        lines = str(request.messages[-1]["content"]).splitlines()
        said = [json.loads(line)["user"] for line in lines if line.startswith('{"user"')]
        self.heard.append(said)
        if self.act is not None and (waiting := self.act(said)) is not None:
            await waiting
        plan = [{"op": "add", "memory": text, "evidence": text} for text in said]
        return ChatReply(content=json.dumps({"operations": plan}))


def manager_of(uri: str, model: object = None, **settings: Any) -> MemoryManager:
    """A manager with this model, which retries nothing itself."""
    return MemoryManager(
        uri,
        model=Hearer() if model is None else model,  # type: ignore[arg-type]
        llm=LLMSettings(retries=0),
        settings=Settings(**{**QUICK, **settings}),
        default_user_id=None,
    )


async def texts(manager: MemoryManager, user_id: str = "lin") -> list[str]:
    """A user's memories as text, oldest first."""
    return [m.memory for m in await manager.get_user_memories(user_id=user_id)]


async def store_of(manager: MemoryManager) -> MemoryStore:
    """What a manager keeps its queue in."""
    return await manager._opening.store()


async def take(manager: MemoryManager, user_id: str = "lin") -> Claim | None:
    """Take a user's lane as a worker would, if it is due."""
    jobs = (await store_of(manager)).jobs
    for due in await jobs.due(100):
        if due.user_id == user_id and due.wait <= 0:
            return await jobs.claim(due)
    return None


@pytest.fixture
async def idle(uri: str) -> AsyncIterator[MemoryManager]:
    """A manager that schedules, and leaves the work to others."""
    async with manager_of(uri, ScriptedModel(), workers=False) as manager:
        yield manager


# ------------------------------------------------------------------------------------------------------- scheduling


async def test_what_is_scheduled_is_captured(uri: str) -> None:
    """The ticket gives the result of the capture, and the memory is there."""
    async with manager_of(uri) as manager:
        ticket = await manager.schedule("I like tea", user_id="lin", agent_id="pip", team_id="crew")
        assert (ticket.done, ticket.user_id, len(ticket.id)) == (False, "lin", 32)
        result = await ticket.wait(SOON)
        assert [c.after and c.after.memory for c in result.changes] == ["I like tea"]
        assert (result.usage.calls, result.repeated, ticket.done) == (1, False, True)
        (memory,) = await manager.get_user_memories(user_id="lin")
        assert (memory.agent_id, memory.team_id) == ("pip", "crew")
        assert await ticket.wait() is result
        assert await manager.queue_status() == QueueStatus()


async def test_a_bad_message_is_refused_at_once(idle: MemoryManager) -> None:
    """schedule() itself raises, and nothing is in the queue."""
    for messages in (7, [7], [{"content": "no role"}], [{"role": "user", "content": 7}], "\ud800", None):
        with pytest.raises(InvalidMessageError):
            await idle.schedule(messages, user_id="lin")
    with pytest.raises(InvalidMessageError, match="4,194,304"):
        await idle.schedule("x" * 2**22, user_id="lin")
    for bad in ({"user_id": ""}, {"user_id": "lin", "agent_id": ""}, {"user_id": "lin", "idempotency_key": ""}):
        with pytest.raises(InvalidIdError):
            await idle.schedule("I like tea", **bad)
    with pytest.raises(InvalidIdError):
        await idle.schedule("I like tea")
    assert (await idle.queue_status()).depth == 0


async def test_where_the_user_says_nothing_nothing_is_scheduled(idle: MemoryManager) -> None:
    """Blanks and the assistant's words give a ticket that is done, with an empty result."""
    for messages in ("  ", [{"role": "assistant", "content": "Hello"}]):
        ticket = await idle.schedule(messages, user_id="lin")
        assert ticket.done
        assert (await ticket.wait()).changes == []
    assert (await idle.queue_status()).depth == 0


async def test_every_shape_of_a_message_can_be_scheduled(uri: str) -> None:
    """A string, a Message, a dict and lists of them; the message's own time zone survives the queue."""
    model = ScriptedModel([{"operations": []}] * 4)
    async with manager_of(uri, model) as manager:
        at = datetime.fromisoformat("2021-03-14T00:30:00+09:00")
        for messages in ("One", Message(content="Two", at=at), {"role": "user", "content": "Three"}, ["Four", "Five"]):
            await (await manager.schedule(messages, user_id="lin")).wait(SOON)
    said = [str(request.messages[-1]["content"]) for request in model.requests]
    assert [text in said[i] for i, text in enumerate(("One", "Two", "Three", "Four"))] == [True] * 4
    assert "Sunday 2021-03-14" in said[1]
    assert "Five" in said[3]


async def test_turns_without_a_time_are_of_the_time_of_their_scheduling(uri: str) -> None:
    """A capture that is carried out days later counts "yesterday" from when it was said."""
    model = ScriptedModel([{"operations": []}])
    monday = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
    async with manager_of(uri, model, workers=False, clock=lambda: monday) as manager:
        await manager.schedule("I swam yesterday", user_id="lin")
    async with manager_of(uri, model, clock=lambda: monday + timedelta(days=3)) as manager:
        await manager.drain(SOON)
    assert "Monday 2026-01-05, yesterday 2026-01-04" in str(model.requests[0].messages[-1]["content"])


async def test_the_same_is_scheduled_once(idle: MemoryManager, uri: str) -> None:
    """The same words, or the same key, give the same ticket while they wait; another key is another capture."""
    first = await idle.schedule("I like tea", user_id="lin")
    assert (await idle.schedule("I like tea", user_id="lin")).id == first.id
    assert (await idle.schedule("I like tea", user_id="omar")).id != first.id
    assert (await idle.schedule("I like tea", user_id="lin", agent_id="pip")).id != first.id
    keyed = await idle.schedule("I row", user_id="lin", idempotency_key="$k")
    assert (await idle.schedule("I ski", user_id="lin", idempotency_key="$k")).id == keyed.id
    assert (await idle.schedule("I row", user_id="lin", idempotency_key="$l")).id != keyed.id
    assert (await idle.queue_status()).depth == 5
    model = Hearer()
    async with manager_of(uri, model) as manager:
        await manager.drain(SOON)
        again = await (await manager.schedule("I like tea", user_id="lin")).wait(SOON)
        assert (again.repeated, again.changes) == (True, [])
        assert await texts(manager) == ["I like tea", "I row"]
    assert len([said for said in model.heard if said == ["I like tea"]]) == 3  # omar's, and lin's for pip


async def test_a_user_may_not_fill_the_queue(uri: str) -> None:
    """Beyond the bound of one user nothing is stored; others go on; room is made by work."""
    async with manager_of(uri, backlog_per_user=3, workers=False) as manager:
        for n in range(3):
            await manager.schedule(f"I own boat {n}", user_id="lin")
        with pytest.raises(BacklogFullError, match="3 captures"):
            await manager.schedule("I own boat 3", user_id="lin")
        await manager.schedule("I own boat 0", user_id="lin")  # it waits already
        await manager.schedule("I own boat 3", user_id="omar")
        assert (await manager.queue_status()).depth == 4
    async with manager_of(uri, backlog_per_user=3) as manager:
        await manager.drain(SOON)
        await manager.schedule("I own boat 3", user_id="lin")


async def test_a_user_may_not_fill_a_document(uri: str) -> None:
    """Conversations of one user may take 12 MiB in all: a document has no more room."""
    async with manager_of(uri, workers=False) as manager:
        for n in range(4):
            await manager.schedule(f"{n}" * 3_000_000, user_id="lin")
        with pytest.raises(BacklogFullError):
            await manager.schedule("x" * 3_000_000, user_id="lin")
        assert (await manager.queue_status()).depth == 4


async def test_the_queue_is_bounded_in_all(uri: str) -> None:
    """Beyond the bound of the whole queue nothing is stored, until somebody did some of it."""
    async with manager_of(uri, backlog=3, workers=False) as manager:
        for user in ("lin", "omar", "ada"):
            await manager.schedule("I like tea", user_id=user)
        with pytest.raises(BacklogFullError, match="3 captures wait already"):
            await manager.schedule("I like tea", user_id="bo")
        async with manager_of(uri) as other:
            await other.drain(SOON)
        await manager.schedule("I like tea", user_id="bo")


# ------------------------------------------------------------------------------------------------- order and folding


async def test_turns_in_quick_succession_become_one_capture(uri: str) -> None:
    """Debounce folds them, in order; each ticket has the one result; sources count through what was folded."""
    model = Hearer()
    async with manager_of(uri, model, debounce=timedelta(milliseconds=300)) as manager:
        tickets = [await manager.schedule(f"I own boat {n}", user_id="lin") for n in range(5)]
        results = [await ticket.wait(SOON) for ticket in tickets]
        assert all(result is results[0] for result in results)
        assert [c.sources for c in results[0].changes] == [(0,), (1,), (2,), (3,), (4,)]
        assert await texts(manager) == [f"I own boat {n}" for n in range(5)]
        assert model.heard == [[f"I own boat {n}" for n in range(5)]]
        for n in range(5):
            assert (await (await manager.schedule(f"I own boat {n}", user_id="lin")).wait(SOON)).repeated


async def test_a_growing_conversation_is_read_once(uri: str) -> None:
    """Where each schedule has all that was said, what is new in each is read, and sources are those of the last."""
    model = Hearer()
    talk = ["I row", {"role": "assistant", "content": "Daily?"}, "I swim", "I ski"]
    async with manager_of(uri, model, workers=False) as manager:
        for end in (1, 3, 4):
            await manager.schedule(talk[:end], user_id="lin")
    async with manager_of(uri, model) as manager:
        await manager.drain(SOON)
        assert model.heard == [["I row", "I swim", "I ski"]]
        result = await (await manager.schedule([*talk, "I run"], user_id="lin")).wait(SOON)
        assert [(c.after and c.after.memory, c.sources) for c in result.changes] == [("I run", (4,))]
        assert await texts(manager) == ["I row", "I swim", "I ski", "I run"]


async def test_what_can_not_be_folded_is_captured_in_order(uri: str) -> None:
    """Another agent's, another day's, and what refers to a conversation captured before are captures of their own."""
    model, clock = Hearer(), [datetime(2096, 1, 5, 20, tzinfo=UTC)]  # ahead of the sweeps
    async with manager_of(uri, model, clock=lambda: clock[0]) as manager:
        talk = ["I row", {"role": "assistant", "content": "And tea?"}]
        await (await manager.schedule(talk, user_id="lin")).wait(SOON)
    async with manager_of(uri, model, workers=False, clock=lambda: clock[0]) as manager:
        await manager.schedule("I ski", user_id="lin")
        await manager.schedule("I swim", user_id="lin", agent_id="pip")
        await manager.schedule("I run", user_id="lin")
        clock[0] += timedelta(hours=6)
        await manager.schedule("I climb", user_id="lin")
        await manager.schedule([*talk, "I like it"], user_id="lin")
    async with manager_of(uri, model, clock=lambda: clock[0]) as manager:
        await manager.drain(SOON)
    assert [said[-1] for said in model.heard] == ["I row", "I ski", "I swim", "I run", "I climb", "I like it"]


async def test_debounce_puts_nobody_off_for_ever(uri: str) -> None:
    """Turns that never stop coming are captured after ten times the debounce at the latest."""
    async with manager_of(uri, debounce=timedelta(milliseconds=50)) as manager:
        first = await manager.schedule("I own boat 0", user_id="lin")
        for n in range(1, 200):
            await manager.schedule(f"I own boat {n}", user_id="lin")
            await asyncio.sleep(0.02)
            if first.done:
                break
        assert first.done


async def test_a_flush_waits_for_nothing(uri: str) -> None:
    """What waits for debounce goes with flush=True, or when the queue is drained."""
    async with manager_of(uri, debounce=timedelta(hours=1)) as manager:
        first = await manager.schedule("I like tea", user_id="lin")
        with pytest.raises(StoreTimeoutError, match="stays in the queue"):
            await first.wait(0.3)
        second = await manager.schedule("I like rum", user_id="lin", flush=True)
        assert await first.wait(SOON) is await second.wait(SOON)
        await manager.schedule("I like gin", user_id="lin")
        assert await manager.drain(SOON) == QueueStatus()
        assert await texts(manager) == ["I like tea", "I like rum", "I like gin"]


async def test_one_users_captures_run_in_order_and_alone(uri: str) -> None:
    """Over several managers one user has one capture at a time, in the order of scheduling; others run beside it."""
    running: list[str] = []
    beside = asyncio.Event()
    order: list[str] = []

    async def act(said: list[str]) -> None:
        user = said[0].split()[0]
        assert user not in running
        running.append(user)
        order.extend(said)
        if len(running) > 1:
            beside.set()
        with suppress(TimeoutError):  # whoever comes first gives the others time to come
            async with asyncio.timeout(SOON / 2):
                await beside.wait()
        running.remove(user)

    async with manager_of(uri, Hearer(act)) as one, manager_of(uri, Hearer(act)) as two:
        for n in range(12):
            for user in ("Lin", "Omar", "Ada"):
                chosen = one if n % 2 else two
                await chosen.schedule(f"{user} owns boat {n}", user_id=user)
        await one.drain(SOON)
        for user in ("Lin", "Omar", "Ada"):
            assert [s for s in order if s.startswith(user)] == [f"{user} owns boat {n}" for n in range(12)]
            assert await texts(one, user) == [f"{user} owns boat {n}" for n in range(12)]
    assert beside.is_set()


async def test_a_user_with_much_to_do_starves_nobody(uri: str) -> None:
    """After each capture a lane goes behind the others that are due."""
    heard: list[str] = []
    async with manager_of(uri, workers=False) as manager:
        for n in range(60):
            await manager.schedule(f"Lin owns boat {n}", user_id="lin")
        for user in ("omar", "ada", "bo"):
            await manager.schedule(f"{user} rows", user_id=user)
    model = Hearer(lambda said: heard.append(said[0].split()[0]))
    async with manager_of(uri, model, worker_concurrency=1) as manager:
        await manager.drain(SOON)
        assert len(await texts(manager, "lin")) == 60
    assert heard.count("Lin") == 3  # twenty at a time
    assert set(heard[:4]) == {"Lin", "omar", "ada", "bo"}


# ------------------------------------------------------------------------------------------------- leases and clocks


async def test_a_lane_is_taken_by_one(idle: MemoryManager) -> None:
    """What one worker holds nobody else takes; what comes meanwhile waits behind it."""
    await idle.schedule("I like tea", user_id="lin")
    jobs = (await store_of(idle)).jobs
    (due,) = await jobs.due(10)
    claims = await asyncio.gather(*(jobs.claim(due) for _ in range(5)))
    (claim,) = [c for c in claims if c is not None]
    assert (len(claim.jobs), claim.attempts) == (1, 1)
    await idle.schedule("I like rum", user_id="lin")
    assert await take(idle) is None
    status = await idle.queue_status()
    assert (status.depth, status.in_flight, status.dead) == (1, 1, 0)
    assert await jobs.give_back(claim, counted=False)
    again = await take(idle)
    assert again is not None
    assert (len(again.jobs), again.attempts) == (2, 1)


async def test_a_lease_that_lapses_is_somebody_elses(uri: str) -> None:
    """A worker that isn't heard of loses its lane, the attempt counts, and what it still does changes nothing."""
    async with manager_of(uri, workers=False, lease=timedelta(milliseconds=300)) as manager:
        await manager.schedule("I like tea", user_id="lin")
        jobs = (await store_of(manager)).jobs
        first = await take(manager)
        assert first is not None
        assert await take(manager) is None
        assert await jobs.beat(first)
        await asyncio.sleep(0.4)
        second = await take(manager)
        assert second is not None
        assert (second.attempts, second.jobs) == (2, first.jobs)
        assert not await jobs.beat(first)
        assert not await jobs.give_back(first)
        assert not await jobs.bury(first, ValueError())
        assert await jobs.beat(second)


async def test_a_lease_lasts_as_long_as_the_work(uri: str) -> None:
    """A model that takes several times the lease is asked once: the lease is lengthened meanwhile."""
    model = Hearer(lambda said: asyncio.sleep(1.5))
    async with manager_of(uri, model, lease=timedelta(milliseconds=400)) as one, manager_of(uri, model) as two:
        ticket = await one.schedule("I like tea", user_id="lin")
        await two.drain(SOON)
        assert len((await ticket.wait(SOON)).changes) == 1
    assert model.heard == [["I like tea"]]


async def test_clocks_that_are_wrong_change_nothing(uri: str) -> None:
    """Managers whose clocks are hours apart see the same queue, and take nothing from each other."""
    now = datetime.now(UTC)
    ahead, behind = (lambda: now + timedelta(hours=7)), (lambda: now - timedelta(hours=7))
    async with (
        manager_of(uri, clock=ahead, workers=False) as one,
        manager_of(uri, clock=behind, workers=False) as two,
    ):
        await one.schedule("I like tea", user_id="lin")
        claim = await take(two)
        assert claim is not None
        assert await take(one) is None
        assert (await one.queue_status()).in_flight == 1
        oldest = (await two.queue_status()).oldest
        assert oldest is not None
        assert oldest < timedelta(minutes=1)
        await (await store_of(two)).jobs.give_back(claim)
        async with manager_of(uri, clock=behind) as worker:
            await worker.drain(SOON)
            assert await texts(worker) == ["I like tea"]


# ------------------------------------------------------------------------------------------------------------ failing


def raising(*errors: Exception | None) -> Act:
    """Raises these in turn, then nothing."""
    left = list(errors)

    def act(said: list[str]) -> None:
        if left and (error := left.pop(0)) is not None:
            raise error

    return act


async def test_a_passing_error_is_tried_again(uri: str) -> None:
    """The ticket sees nothing of it; the provider's wish to wait is kept."""
    slow = ModelRateLimitError("busy", retryable=True, retry_after=0.5)
    model = Hearer(raising(slow, ModelRateLimitError("busy", retryable=True)))
    async with manager_of(uri, model) as manager:
        began = asyncio.get_running_loop().time()
        result = await (await manager.schedule("I like tea", user_id="lin")).wait(SOON)
        assert len(result.changes) == 1
        assert asyncio.get_running_loop().time() - began >= 0.5
        assert len(model.heard) == 3
        assert (await manager.queue_status()).dead == 0


async def test_what_always_fails_is_set_aside(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    """After the last attempt it is a dead letter: its ticket raises the error, others go on, and it can be retried."""
    busy = [ModelRateLimitError("busy", model="m", retryable=True, status=429) for _ in range(3)]
    model = Hearer(raising(*busy))
    async with manager_of(uri, model, job_attempts=3) as manager:
        ticket = await manager.schedule("I like tea", user_id="lin")
        with pytest.raises(ModelRateLimitError, match="busy"):
            await ticket.wait(SOON)
        await (await manager.schedule("I like rum", user_id="lin")).wait(SOON)
        assert await texts(manager) == ["I like rum"]
        assert (await manager.queue_status()).dead == 1
        async with manager_of(uri, workers=False) as other:
            known = await other.get_ticket(ticket.id, user_id="lin")
            with pytest.raises(ModelRateLimitError) as caught:
                await known.wait(SOON)
            assert (caught.value.status, caught.value.retryable, caught.value.model) == (429, True, "m")
            assert await other.retry_dead("omar") == 0
            assert await other.retry_dead("lin") == 1
            assert len((await known.wait(SOON)).changes) == 1
        assert [c.after and c.after.memory for c in (await ticket.wait(SOON)).changes] == ["I like tea"]
        assert await manager.queue_status() == QueueStatus()
        assert await texts(manager) == ["I like rum", "I like tea"]
    assert "tea" not in caplog.text


async def test_an_error_that_does_not_pass_is_tried_once(uri: str) -> None:
    """It is a dead letter at once; retry_dead() is for everybody's."""
    refused = [ModelAuthenticationError("no key") for _ in range(2)]
    model = Hearer(raising(*refused))
    async with manager_of(uri, model) as manager:
        tickets = [await manager.schedule("I like tea", user_id=user) for user in ("lin", "omar")]
        for ticket in tickets:
            with pytest.raises(ModelAuthenticationError, match="no key"):
                await ticket.wait(SOON)
        assert len(model.heard) == 2
        assert await manager.retry_dead() == 2
        assert [len((await ticket.wait(SOON)).changes) for ticket in tickets] == [1, 1]


async def test_one_poisonous_turn_spoils_no_other(uri: str) -> None:
    """Turns that were folded are tried one by one, so that only the poisonous one is set aside."""

    def act(said: list[str]) -> None:
        if "poison" in " ".join(said):
            raise ModelAuthenticationError("refused")

    async with manager_of(uri, Hearer(act), debounce=timedelta(milliseconds=200)) as manager:
        tickets = [await manager.schedule(f"I like {what}", user_id="lin") for what in ("tea", "poison", "rum")]
        assert [len((await tickets[n].wait(SOON)).changes) for n in (0, 2)] == [1, 1]
        with pytest.raises(ModelAuthenticationError):
            await tickets[1].wait(SOON)
        assert await texts(manager) == ["I like tea", "I like rum"]
        assert (await manager.queue_status()).dead == 1


async def test_an_error_of_no_kind_of_ours_tells_no_text(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its class is kept, and a sentence; what it says, which may be what the user said, is not."""

    def act(said: list[str]) -> None:
        raise AssertionError(said)

    async with manager_of(uri, ScriptedModel()) as manager:  # whose script has no step: an AssertionError
        ticket = await manager.schedule("I like tea", user_id="lin")
        with pytest.raises(AssertionError):
            await ticket.wait(SOON)
        async with manager_of(uri, workers=False) as other:
            with pytest.raises(AsyncMemError, match="the capture ended with ScriptError"):
                await (await other.get_ticket(ticket.id, user_id="lin")).wait(SOON)
    assert "tea" not in caplog.text


async def test_what_ends_its_workers_is_set_aside(uri: str) -> None:
    """A job whose workers vanish, as often as it may be tried, is a dead letter; what stands behind it goes on."""
    settings: dict[str, Any] = {"lease": timedelta(milliseconds=150), "job_attempts": 3}
    async with manager_of(uri, workers=False, **settings) as manager:
        poison = await manager.schedule("I like tea", user_id="lin")
        other = await manager.schedule("I like rum", user_id="lin")
        taken: list[int] = []
        while len(taken) < 3:
            if (claim := await take(manager)) is not None:
                taken.append(len(claim.jobs))
            await asyncio.sleep(0.02)
        assert taken == [2, 2, 1]
        async with manager_of(uri, **settings):  # it finds the lease lapsed
            async with manager_of(uri, **settings) as worker:
                await worker.drain(SOON)
                assert await texts(worker) == ["I like rum"]
            with pytest.raises(CaptureAbandonedError, match="3 workers"):
                await poison.wait(SOON)
            assert len((await other.wait(SOON)).changes) == 1


async def test_a_queue_that_is_not_drained_says_how_much_is_left(idle: MemoryManager) -> None:
    """drain() raises when the time is over; everything stays in the queue."""
    for n in range(3):
        await idle.schedule(f"I own boat {n}", user_id=f"user {n}")
    with pytest.raises(DrainTimeoutError, match="3 scheduled captures are left") as caught:
        await idle.drain(0.1)
    assert (caught.value.left, caught.value.retryable) == (3, True)
    assert (await idle.queue_status()).depth == 3


# --------------------------------------------------------------------------------------------------- other processes


async def test_a_ticket_is_known_elsewhere(uri: str) -> None:
    """Another manager gives the same result, read from the memories' histories; skipped text is not kept."""
    scripted = ScriptedModel(
        [
            {
                "operations": [
                    {"op": "add", "memory": "Likes tea", "evidence": "I like tea"},
                    {"op": "add", "memory": "Owns a castle", "evidence": "my castle"},
                ]
            }
        ]
    )
    async with manager_of(uri, scripted) as one, manager_of(uri, workers=False) as two:
        ticket = await one.schedule("I like tea", user_id="lin")
        mine = await ticket.wait(SOON)
        theirs = await (await two.get_ticket(ticket.id, user_id="lin")).wait(SOON)
        assert [(c.kind, c.memory_id, c.after, c.cause, c.at, c.sources) for c in theirs.changes] == [
            (c.kind, c.memory_id, c.after, c.cause, c.at, c.sources) for c in mine.changes
        ]
        assert [(s.op, s.reason, s.memory) for s in theirs.skipped] == [(s.op, s.reason, None) for s in mine.skipped]
        assert (theirs.usage, theirs.tier, theirs.windows) == (mine.usage, mine.tier, mine.windows)
        await one.delete_user_memory(mine.changes[0].memory_id, user_id="lin")
        rows = await (await store_of(one)).jobs._lanes.find({}).to_list()
        assert "tea" not in str(rows)
        assert "castle" not in str(rows)
        with pytest.raises(TicketExpiredError):
            await (await two.get_ticket(ticket.id, user_id="omar")).wait(SOON)


async def test_a_ticket_outlives_its_memory(uri: str) -> None:
    """A change whose memory was removed for good is told without its text."""
    async with manager_of(uri) as one, manager_of(uri, workers=False) as two:
        ticket = await one.schedule("I like tea", user_id="lin")
        (change,) = (await ticket.wait(SOON)).changes
        store = await store_of(one)
        await store.jobs._core.collections.memories.delete_many({"user_id": "lin"})
        (told,) = (await (await two.get_ticket(ticket.id, user_id="lin")).wait(SOON)).changes
        assert (told.kind, told.memory_id, told.after, told.at) == ("add", change.memory_id, None, change.at)


async def test_results_are_kept_for_a_while(uri: str) -> None:
    """Afterwards the ticket says that nothing is kept of it."""
    async with manager_of(uri, result_memory=timedelta(milliseconds=200)) as one, manager_of(uri) as two:
        ticket = await one.schedule("I like tea", user_id="lin")
        await ticket.wait(SOON)
        await asyncio.sleep(0.4)
        await (await one.schedule("I like rum", user_id="lin")).wait(SOON)
        with pytest.raises(TicketExpiredError, match="nothing is kept"):
            await (await two.get_ticket(ticket.id, user_id="lin")).wait(SOON)


async def test_managers_that_only_schedule_leave_the_work_to_workers(uri: str) -> None:
    """run_worker() takes everybody's work until it is stopped, and says what it did."""
    stop = asyncio.Event()
    async with manager_of(uri, workers=False) as web, manager_of(uri, workers=False) as other:
        working = asyncio.create_task(other.run_worker(stop, concurrency=2))
        tickets = [await web.schedule("I like tea", user_id=f"user {n}") for n in range(5)]
        for ticket in tickets:
            assert len((await ticket.wait(SOON)).changes) == 1
        stop.set()
        report = await working
        assert (report.done, report.failed, report.dead, report.handed_back) == (5, 0, 0, 0)
        await web.schedule("I like rum", user_id="lin")
        stop.clear()
        working = asyncio.create_task(other.run_worker(stop))
        await web.drain(SOON)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert await texts(web) == ["I like rum"]


# ------------------------------------------------------------------------------------------- cancelling and closing


async def test_cancelling_the_caller_cancels_no_work(uri: str) -> None:
    """At whatever point schedule() is cancelled, what was begun to be written is written and captured, once."""
    async with manager_of(uri) as manager:
        await manager.schedule("I like tea", user_id="lin")
        for n in range(40):
            task = asyncio.create_task(manager.schedule(f"I own boat {n}", user_id="omar"))
            for _ in range(n % 8):
                await asyncio.sleep(0)
            if n % 8 == 7:
                await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.gather(*manager._background._writing)  # type: ignore[union-attr]
        await manager.drain(SOON)
        written = await texts(manager, "omar")
        assert len(written) == len(set(written))
        assert len(written) > 5
        assert written == sorted(written, key=lambda text: int(text.split()[-1]))


async def test_closing_finishes_what_is_in_flight(uri: str) -> None:
    """Work that ends in time is done; what waits stays; afterwards nothing can be scheduled."""
    begun = asyncio.Event()

    async def act(said: list[str]) -> None:
        begun.set()
        await asyncio.sleep(0.3)

    async with manager_of(uri, Hearer(act), worker_concurrency=1) as manager:
        await manager.schedule("I like tea", user_id="lin")
        await begun.wait()
        await manager.schedule("I like tea", user_id="omar")
    with pytest.raises(ManagerClosedError):
        await manager.schedule("I like tea", user_id="lin")
    async with manager_of(uri, workers=False) as other:
        assert await texts(other) == ["I like tea"]
        status = await other.queue_status()
        assert (status.depth, status.in_flight) == (1, 0)


async def test_closing_gives_back_what_takes_too_long(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its lease is given back at once and the attempt doesn't count; another manager does it, once."""
    begun = asyncio.Event()

    async def act(said: list[str]) -> None:
        begun.set()
        await asyncio.sleep(60)

    slow = Hearer(act)
    async with manager_of(uri, slow, close_timeout=timedelta(milliseconds=100)) as manager:
        ticket = await manager.schedule("I like tea", user_id="lin")
        await begun.wait()
    assert "1 captures are handed back" in caplog.text
    assert "tea" not in caplog.text
    assert manager._background is not None
    assert manager._background.workers.report.handed_back == 1
    async with manager_of(uri, workers=False) as other:
        claim = await take(other)
        assert claim is not None
        assert (claim.attempts, claim.jobs[0].id) == (1, ticket.id)
        await (await store_of(other)).jobs.give_back(claim)
        async with manager_of(uri) as worker:
            await worker.drain(SOON)
            assert await texts(worker) == ["I like tea"]


async def test_erasing_takes_the_queue_along(uri: str) -> None:
    """Jobs, dead letters and results go and are counted; a capture under way writes nothing."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def act(said: list[str]) -> None:
        if "slow" in said[0]:
            begun.set()
            await go_on.wait()

    async with manager_of(uri, Hearer(act)) as manager:
        await (await manager.schedule("I like tea", user_id="lin")).wait(SOON)
        running = await manager.schedule("I am slow", user_id="lin")
        await begun.wait()
        waiting = await manager.schedule("I like rum", user_id="lin")
        await manager.schedule("I like tea", user_id="omar")
        receipt = await manager.erase_user("lin")
        assert (receipt.counts["memories"], receipt.counts["jobs"]) == (1, 3)
        go_on.set()
        result = await running.wait(SOON)
        assert result.changes == []
        assert [s.reason for s in result.skipped] == ["the user was erased meanwhile"]
        with pytest.raises(TicketExpiredError):
            await waiting.wait(SOON)
        await manager.drain(SOON)
        assert await texts(manager) == []
        assert await texts(manager, "omar") == ["I like tea"]
        store = await store_of(manager)
        assert await store.jobs._lanes.count_documents({"user_id": "lin"}) == 0
        await (await manager.schedule("I like gin", user_id="lin")).wait(SOON)
        assert await texts(manager) == ["I like gin"]


async def test_a_worker_that_took_a_job_before_an_erasure_writes_nothing(uri: str) -> None:
    """However late it begins: it asked how often the user was erased before it took the job."""
    async with manager_of(uri, workers=False) as manager:
        await manager.schedule("I like tea", user_id="lin")
        store, workers = await store_of(manager), (await manager._queue()).workers
        erasures = await store.captures.begun("lin")
        claim = await take(manager)
        assert claim is not None
        await manager.erase_user("lin")
        await workers._work(claim, erasures)
        assert await texts(manager) == []
        assert await store.jobs._lanes.count_documents({}) == 0


async def late(manager: MemoryManager, text: str, erasures: int | None, key: str | None = None) -> str:
    """Put a job into the queue whose caller was stopped just before it saw whether the user was erased; its id."""
    queue, store = await manager._queue(), await store_of(manager)
    job = queue._job(read_turns(text), Scope("lin"), key, LearningMode.ALWAYS, erasures)
    return await store.jobs.enqueue("lin", job, flush=True)


async def test_what_began_before_an_erasure_and_is_scheduled_after_it_is_dropped(uri: str) -> None:
    """Nothing of it is captured or kept, its ticket ends, and what began later is captured, be it the same words."""
    model = Hearer()
    async with manager_of(uri, model, workers=False) as web, manager_of(uri, model) as worker:
        await web.erase_user("lin")
        old = await late(web, "I like tea", 0)
        assert await late(web, "I like tea", 0) == old
        new = await late(web, "I like tea", 1)
        assert len({old, new, await late(web, "I like rum", 0), await late(web, "I like gin", None)}) == 4
        await worker.drain(SOON)
        assert await texts(web) == ["I like tea", "I like gin"]
        for manager in (web, worker):
            with pytest.raises(TicketExpiredError):
                await (await manager.get_ticket(old, user_id="lin")).wait(SOON)
        assert (await (await web.get_ticket(new, user_id="lin")).wait(SOON)).changes
        await web.erase_user("lin")
        await late(web, "I like tea", 1)
        await worker.drain(SOON)
        assert await texts(web) == []
        assert await (await store_of(web)).jobs._lanes.count_documents({}) == 0


async def test_the_ticket_of_a_dropped_job_ends_where_its_worker_is(uri: str) -> None:
    """Whoever waits beside the worker is told at once, as of an erased user."""
    async with manager_of(uri) as manager:
        await manager.erase_user("lin")
        ticket = await manager.get_ticket(await late(manager, "I like tea", 0), user_id="lin")
        await manager.drain(SOON)
        with pytest.raises(TicketExpiredError):
            await ticket.wait(SOON)
        assert await texts(manager) == []


async def test_a_job_that_comes_too_late_leaves_the_queue_by_itself(idle: MemoryManager) -> None:
    """Where no worker comes by, words of a user who was erased before they were scheduled don't wait for one."""
    await idle.erase_user("lin")
    turns, scope, store = read_turns("I like tea"), Scope("lin"), await store_of(idle)
    ticket = await idle.schedule_turns(turns, scope, None, erasures=0)
    assert await store.jobs._lanes.count_documents({}) == 0
    with pytest.raises(TicketExpiredError):
        await ticket.wait(SOON)
    waiting = await idle.schedule("I like rum", user_id="lin")
    await idle.schedule_turns(turns, scope, None, erasures=0)
    assert [job.id for job in await store.jobs.waiting("lin", 9)] == [waiting.id]


async def test_a_worker_that_lost_its_lease_drops_nothing(uri: str) -> None:
    """Whoever took the lane after it does."""
    async with manager_of(uri, workers=False) as manager:
        await manager.erase_user("lin")
        await late(manager, "I like tea", 0)
        store, workers = await store_of(manager), (await manager._queue()).workers
        claim = await take(manager)
        assert claim is not None
        await workers._work(replace(claim, token="another"), 1)
        assert len(await store.jobs.waiting("lin", 9)) == 1
        await workers._work(claim, 1)
        assert await store.jobs.waiting("lin", 9) == []


async def test_dead_letters_keep_their_count(uri: str) -> None:
    """One that waits again after its user was erased is dropped as well."""
    async with manager_of(uri, workers=False) as manager:
        name, store = await late(manager, "I like tea", 0), await store_of(manager)
        claim = await take(manager)
        assert claim is not None
        assert await store.jobs.bury(claim, ModelError("no"))
        assert await manager.retry_dead("lin") == 1
        assert [(job.id, job.erasures) for job in await store.jobs.waiting("lin", 9)] == [(name, 0)]


async def test_what_was_applied_is_never_applied_again(uri: str) -> None:
    """A worker that wakes up late, in other company and with another decision, changes nothing; tickets keep theirs."""
    async with manager_of(uri, workers=False) as manager:
        store, workers = await store_of(manager), (await manager._queue()).workers
        tickets = [await manager.schedule(f"I own boat {n}", user_id="lin") for n in range(3)]
        late = await take(manager)
        assert late is not None
        await store.jobs.give_back(late, solo=True)
        alone = await take(manager)
        assert alone is not None
        assert [len(late.jobs), len(alone.jobs)] == [3, 1]
        await workers._work(alone, 0)
        await workers._work(late, 0)  # it holds the first, too
        assert await texts(manager) == ["I own boat 0"]
        async with manager_of(uri) as worker:
            await worker.drain(SOON)
            assert await texts(worker) == [f"I own boat {n}" for n in range(3)]
        found = [await ticket.wait(SOON) for ticket in tickets]
        assert [len(result.changes) for result in found] == [1, 2, 2]


async def test_what_was_applied_and_not_marked_done_keeps_its_result(uri: str) -> None:
    """The next worker finds the changes that were made, asks no model, and tells the ticket."""
    async with manager_of(uri, workers=False) as manager:
        store = await store_of(manager)
        ticket = await manager.schedule("I like tea", user_id="lin")
        claim = await take(manager)
        assert claim is not None
        with pytest.MonkeyPatch.context() as patch:

            async def vanish(*args: object, **kwargs: object) -> bool:
                return False

            patch.setattr(type(store.jobs), "finish", vanish)
            await (await manager._queue()).workers._work(claim, 0)
        await store.jobs.give_back(claim)
        async with manager_of(uri, ScriptedModel()) as worker:
            await worker.drain(SOON)
            result = await (await worker.get_ticket(ticket.id, user_id="lin")).wait(SOON)
        assert [c.after and c.after.memory for c in result.changes] == ["I like tea"]
        assert (result.repeated, result.usage.calls) == (True, 0)
        assert await texts(manager) == ["I like tea"]


async def test_a_dead_letter_is_closed_to_late_workers(uri: str) -> None:
    """Nobody applies what was set aside; and what was applied meanwhile is not set aside."""
    async with manager_of(uri, workers=False) as manager:
        store, workers = await store_of(manager), (await manager._queue()).workers
        ticket = await manager.schedule("I like tea", user_id="lin")
        late = await take(manager)
        assert late is not None
        await store.jobs.give_back(late)
        claim = await take(manager)
        assert claim is not None
        await workers._failed(claim, ValueError("poison"))
        assert (await manager.queue_status()).dead == 1
        await workers._work(late, 0)
        assert await texts(manager) == []
        assert await manager.retry_dead("lin") == 1
        again = await take(manager)
        assert again is not None
        await workers._work(again, 0)
        assert await texts(manager) == ["I like tea"]
        await manager.schedule("I like rum", user_id="lin")
        claim = await take(manager)
        assert claim is not None
        await workers.carrier.carry_out(store, [workers_talk(claim)], 0, claim.turn)
        await workers._failed(claim, ValueError("poison"))
        assert await texts(manager) == ["I like tea", "I like rum"]
        assert await manager.queue_status() == QueueStatus()
        assert len((await ticket.wait(SOON)).changes) == 1


async def test_a_late_worker_that_fails_closes_nothing(uri: str) -> None:
    """A job that is somebody else's by now is not set aside; what a worker closed and left behind is open again."""
    async with manager_of(uri, workers=False) as manager:
        store, workers = await store_of(manager), (await manager._queue()).workers
        await manager.schedule("I like tea", user_id="lin")
        late = await take(manager)
        assert late is not None
        await store.jobs.give_back(late)
        now = await take(manager)
        assert now is not None
        await workers._failed(late, ValueError("poison"))
        assert (await manager.queue_status()).in_flight == 1
        with pytest.MonkeyPatch.context() as patch:  # it loses the lane between its two writes

            async def held(*args: object) -> bool:
                return True

            patch.setattr(type(store.jobs), "beat", held)
            await workers._failed(late, ValueError("poison"))
        guard = now.jobs[0].guard
        assert await store.captures.applied("lin", guard, 0) is None
        assert await store.captures.close("lin", guard, late.turn)  # it dies between them
        assert await store.captures.close("lin", guard, late.turn)
        assert await store.captures.applied("lin", guard, late.turn - 1) == []
        await workers._work(now, 0)
        assert await texts(manager) == ["I like tea"]
        assert await manager.queue_status() == QueueStatus()


async def test_a_job_that_is_closed_while_its_model_thinks_is_tried_again(uri: str) -> None:
    """A worker that was thought to be gone gets in the way of the one that is there, and nothing is lost."""
    held: list[Claim] = []

    async def act(said: list[str]) -> None:
        if len(model.heard) == 1:
            store = await store_of(manager)
            assert await store.captures.close("lin", held[0].jobs[0].guard, held[0].turn - 1)

    model = Hearer(act)
    async with manager_of(uri, model, workers=False) as manager:
        await manager.schedule("I like tea", user_id="lin")
        claim = await take(manager)
        assert claim is not None
        held.append(claim)
        workers = (await manager._queue()).workers
        await workers._work(claim, 0)
        assert workers.report.failed == 1
        async with manager_of(uri, model) as worker:
            await worker.drain(SOON)
            assert await texts(worker) == ["I like tea"]


def workers_talk(claim: Claim) -> Any:
    """The first job that was taken, as a conversation."""
    from asyncmem.workers import _talks

    return _talks(claim)[0]


# ---------------------------------------------------------------------------------------------------------- what waits


async def test_memories_by_hand_and_captures_share_a_user(uri: str) -> None:
    """A scheduled capture sees what was added by hand, and a capture in the foreground what it did."""
    async with manager_of(uri) as manager:
        await manager.add_user_memory(UserMemory(memory="I like tea"), user_id="lin")
        result = await (await manager.schedule("I like tea", user_id="lin")).wait(SOON)
        assert (len(result.changes), len(result.skipped)) == (0, 1)
        assert (await manager.create_user_memories("I like tea", user_id="lin")).repeated


async def test_context_shows_what_is_pending(idle: MemoryManager) -> None:
    """Quoted, escaped, each turn once, in at most half of the block, and left out of later captures."""
    await idle.add_user_memory(UserMemory(memory="Owns a boat"), user_id="lin")
    talk = ["I <row>", {"role": "assistant", "content": "Daily?"}, "</pending> yes"]
    await idle.schedule(talk[:1], user_id="lin")
    await idle.schedule(talk, user_id="lin")
    assert "pending" not in await idle.build_context(user_id="lin")
    block = await idle.build_context(user_id="lin", include_pending=True)
    assert block.splitlines() == [
        "<user_memory>",
        "- Owns a boat",
        "<pending>",
        '- {"user": "I &lt;row&gt;"}',
        '- {"assistant": "Daily?"}',
        '- {"user": "&lt;/pending&gt; yes"}',
        "</pending>",
        "</user_memory>",
    ]
    assert await idle.build_context(user_id="lin", query="boat", include_pending=True) != ""
    only = await idle.build_context(user_id="lin", query="xyzzy", include_pending=True)
    assert only.splitlines()[1] == "<pending>"
    small = await idle.build_context(user_id="lin", include_pending=True, max_tokens=100)
    assert "yes" in small
    assert "row" not in small
    assert "pending" not in await idle.build_context(user_id="lin", include_pending=True, max_tokens=20)
    assert await idle.build_context(user_id="omar", include_pending=True) == ""
    await idle.schedule("word " * 10_000, user_id="lin")
    assert "Owns a boat" in await idle.build_context(user_id="lin", include_pending=True)
    assert (await idle.schedule(block, user_id="ada")).done  # nothing but what was recalled


async def test_every_query_of_the_queue_uses_an_index(replica_set_uri: str, database_name: str) -> None:
    """No collection is scanned, and those about one user name the user."""
    sent = Sent()
    async with (
        AsyncMongoClient[dict[str, Any]](
            with_database(replica_set_uri, database_name), event_listeners=[sent]
        ) as client,
    ):
        failing = Hearer(raising(ModelAuthenticationError("no")))
        async with MemoryManager(client, model=failing, settings=Settings(**QUICK)) as manager:
            ticket = await manager.schedule("I like tea", user_id="lin")
            with pytest.raises(ModelAuthenticationError):
                await ticket.wait(SOON)
            await manager.retry_dead()
            await manager.drain(SOON)
            await manager.schedule("I like rum", user_id="lin", flush=True)
            await manager.build_context(user_id="lin", include_pending=True)
            await manager.drain(SOON)
            await (await store_of(manager)).jobs.find("lin", ticket.id)
            await manager.erase_user("lin")
            sent.listening = False
            database = client.get_default_database()
            seen: set[str] = set()
            for command in sent.commands:
                plan = await database.command("explain", command, verbosity="queryPlanner")
                assert "IXSCAN" in str(plan) or "IDHACK" in str(plan), command
                assert "COLLSCAN" not in str(plan), command
                asked = command.get("filter") or command.get("query") or command.get("updates", [{"q": 0}])[0]["q"]
                asked = asked or command["pipeline"][0]["$match"]
                assert "user_id" in asked or not {"since", "due", "dead_count"}.isdisjoint(asked), command
                seen.add(next(iter(command)))
    assert seen == {"findAndModify", "update", "find", "aggregate"}


class Sent(CommandListener):
    """The commands that a client sends to the queue's collection, fit to be explained."""

    def __init__(self) -> None:
        self.commands: list[dict[str, Any]] = []
        self.listening = True

    def started(self, event: CommandStartedEvent) -> None:
        name = event.command_name
        if self.listening and event.command.get(name) == "asyncmem_jobs" and "ndexes" not in name:
            driver = ("lsid", "txnNumber", "$db", "$clusterTime", "writeConcern", "readConcern", "autocommit")
            command = {key: value for key, value in event.command.items() if key not in driver}
            if "$changeStream" not in str(command):
                self.commands.append(command)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """It was noted."""

    def failed(self, event: CommandFailedEvent) -> None:
        """It was noted."""


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"concurrency": -1}, {"concurrency": "x"}, {"concurrency": 1.5}, {"stop": 5}]
)
async def test_a_worker_is_given_what_makes_sense(uri: str, wrong: dict[str, Any]) -> None:
    """What can't be a number of captures, or an event, is refused at once."""
    async with MemoryManager(uri, model=ScriptedModel([])) as manager:
        with pytest.raises(ConfigurationError):
            await manager.run_worker(**wrong)


async def test_times_and_flags_are_named(uri: str) -> None:
    """A time-out that is no number of seconds, and a flag that is none, are refused rather than waited for."""
    settings = Settings(workers=False)
    async with MemoryManager(uri, model=ScriptedModel([]), settings=settings) as manager:
        ticket = await manager.schedule("I row", user_id="lin")
        for wrong in ("x", float("nan"), -1, True):
            with pytest.raises(InvalidQueryError, match="timeout"):
                await ticket.wait(wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidQueryError, match="timeout"):
                await manager.drain(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidQueryError, match="flush"):
            await manager.schedule("I row", user_id="lin", flush=None)  # type: ignore[arg-type]


async def test_a_model_that_cancels_itself_has_failed(uri: str) -> None:
    """A model that raises ``CancelledError`` is a failed attempt like another one: counted, and in the end dead."""

    class Cancelling:
        name = "cancelling"
        calls = 0

        async def complete(self, request: ChatRequest) -> ChatReply:
            self.calls += 1
            raise asyncio.CancelledError

    model = Cancelling()
    settings = Settings(job_attempts=2, job_backoff=timedelta(0), debounce=timedelta(0))
    async with MemoryManager(uri, model=model, llm=LLMSettings(retries=0), settings=settings) as manager:
        ticket = await manager.schedule("I row", user_id="lin")
        with pytest.raises(ModelError):
            await ticket.wait(30)
        assert (model.calls, (await manager.queue_status()).dead) == (2, 1)
