"""Sessions on each kind of server: no exchange is lost, none reaches another user, none survives its user."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from asyncmem import MemoryManager, StoreTimeoutError
from asyncmem.session_values import Exchange, Said, Terms
from asyncmem.store.sessions import PAGE, Sessions

from .conftest import Clock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sessions(manager: MemoryManager) -> Sessions:
    """The store's sessions."""
    return (await manager.opened()).sessions


def said(clock: Clock, words: str, *, capture: bool = False, tokens: int = 10, terms: Terms | None = None) -> Said:
    """One exchange."""
    return Said(words, clock.now, f"You said {words}.", clock.now + timedelta(seconds=1), tokens, capture, terms)


async def add(sessions: Sessions, one: Said, *, user: str = "lin", session: str = "s") -> Exchange:
    """Append as a run does that knows nothing of what is there."""
    added = await sessions.append(user, session, one, None, await sessions.begun(user))
    assert added is not None
    return added[0]


async def words(sessions: Sessions, user: str = "lin", session: str = "s") -> list[str]:
    """What was said in a session, oldest first."""
    return [e.said.message for e in await sessions.between(user, session, 1, 10_000)]


async def test_an_exchange_comes_back_as_it_was(sessions: Sessions, clock: Clock) -> None:
    """Words, times, size and place of an exchange are stored, and each has the next place."""
    first, second = said(clock, "one"), said(clock, "two", capture=True)
    assert (await add(sessions, first)).seq == 1
    made = await add(sessions, second)
    assert (made.seq, made.window, made.pending) == (2, 2, True)
    newest = await sessions.newest("lin", "s", 0)
    assert [(e.seq, e.said, e.window, e.pending) for e in newest] == [(2, second, 2, True), (1, first, 0, False)]
    assert newest[0] == made


async def test_runs_at_once_lose_no_exchange(sessions: Sessions, clock: Clock) -> None:
    """Writers who all think that the session is empty each get a place of their own, without a gap."""
    names = [f"word {n}" for n in range(12)]
    made = await asyncio.gather(*(add(sessions, said(clock, name)) for name in names))
    assert sorted(e.seq for e in made) == list(range(1, 13))
    assert sorted(await words(sessions)) == sorted(names)


async def test_each_writer_is_told_what_stands_before_it(sessions: Sessions, clock: Clock) -> None:
    """Whoever was overtaken learns which exchange came between, and so what else waits to be captured."""
    first = await add(sessions, said(clock, "one", capture=True))
    added = await sessions.append("lin", "s", said(clock, "two", capture=True), None, 0)
    assert added is not None
    assert added[1] == first
    assert (added[0].window, added[0].seq) == (first.window, 2)


async def test_races_that_are_all_lost_are_a_typed_error(
    sessions: Sessions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that others overtake each time gives up with an error that may be tried again."""

    async def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(Sessions, "_insert", never)
    monkeypatch.setattr("asyncmem.store.sessions._PAUSE", 0.0)
    with pytest.raises(StoreTimeoutError, match="this session") as caught:
        await add(sessions, said(clock, "one"))
    assert caught.value.retryable is True


async def test_sessions_belong_to_their_users(sessions: Sessions, clock: Clock) -> None:
    """A session of the same name is another one for another user, who can neither read, mark nor delete it."""
    made = await add(sessions, said(clock, "mine", capture=True))
    await add(sessions, said(clock, "theirs"), user="omar")
    assert (await words(sessions), await words(sessions, "omar")) == (["mine"], ["theirs"])
    assert await sessions.fold("omar", made) is False
    await sessions.summarize("omar", made, "stolen")
    await sessions.scheduled("omar", [made])
    assert await sessions.delete("omar", "other") == 0
    assert await sessions.newest("lin", "s", 0) == [made]
    assert await sessions.delete("omar", "s") == 1
    assert await words(sessions) == ["mine"]
    assert (await sessions.names("lin"), await sessions.names("omar")) == (["s"], [])


async def test_what_waits_to_be_captured_is_found_until_it_is_scheduled(sessions: Sessions, clock: Clock) -> None:
    """Exchanges are pending from their writing on, oldest first, until they are marked."""
    made = [await add(sessions, said(clock, w, capture=w != "b")) for w in "abcd"]
    assert [e.said.message for e in await sessions.pending("lin", "s")] == ["a", "c", "d"]
    await sessions.scheduled("lin", made[:3])
    assert [e.said.message for e in await sessions.pending("lin", "s")] == ["d"]


async def test_how_an_exchange_is_captured_is_kept(sessions: Sessions, clock: Clock) -> None:
    """Agent, team and what is learnt come back; what waits is found by that, as is what was stored without it."""
    old = await add(sessions, said(clock, "old", capture=True))
    mine, other = Terms("a", "t", "memory always"), Terms(None, None, "memory propose")
    first = await add(sessions, said(clock, "one", capture=True, terms=mine))
    second = await add(sessions, said(clock, "two", capture=True, terms=other))
    assert [e.said.terms for e in await sessions.pending("lin", "s")] == [None, mine, other]
    assert await sessions.pending("lin", "s", "memory always") == [old, first]
    assert await sessions.pending("lin", "s", "memory propose") == [old, second]
    assert [e.window for e in (old, first, second)] == [1, 2, 3]


async def test_one_writer_summarises(sessions: Sessions, clock: Clock) -> None:
    """Of several who set out to summarise a session up to an exchange one does; what comes of it is kept there."""
    made = await add(sessions, said(clock, "one"))
    won = await asyncio.gather(*(sessions.fold("lin", made) for _ in range(5)))
    assert sorted(won) == [False, False, False, False, True]
    assert [(e.folded, e.summary) for e in await sessions.newest("lin", "s", 0)] == [(True, None)]
    await sessions.summarize("lin", made, "In short.")
    assert [(e.folded, e.summary) for e in await sessions.newest("lin", "s", 0)] == [(True, "In short.")]


async def test_long_sessions_are_read_in_pages(sessions: Sessions, clock: Clock) -> None:
    """The newest exchanges come first, a page at a time, and the places before a page follow."""
    last: Exchange | None = None
    for n in range(PAGE + 3):
        added = await sessions.append("lin", "s", said(clock, f"{n}"), last, 0)
        assert added is not None
        last = added[0]
    page = await sessions.newest("lin", "s", 0)
    assert [e.seq for e in page] == list(range(PAGE + 3, 3, -1))
    assert [e.seq for e in await sessions.newest("lin", "s", 0, before=page[-1].seq)] == [3, 2, 1]


async def test_an_erasure_removes_and_counts_sessions(manager: MemoryManager, sessions: Sessions, clock: Clock) -> None:
    """erase_user removes and counts every exchange of the user, of nobody else, and the user may begin anew."""
    for session in ("s", "t"):
        await add(sessions, said(clock, "one"), session=session)
    await add(sessions, said(clock, "theirs"), user="omar")
    assert (await manager.erase_user("lin")).counts["sessions"] == 2
    assert (await words(sessions), await words(sessions, "omar")) == ([], ["theirs"])
    assert (await add(sessions, said(clock, "again"))).seq == 1
    assert await words(sessions) == ["again"]


async def test_a_late_write_brings_no_erased_user_back(
    manager: MemoryManager, sessions: Sessions, clock: Clock
) -> None:
    """What a run writes that began before the erasure is taken back, and said to be so."""
    begun = await sessions.begun("lin")
    made = await add(sessions, said(clock, "before"))
    await manager.erase_user("lin")
    assert await sessions.append("lin", "s", said(clock, "late"), None, begun) is None
    await sessions.summarize("lin", made, "late as well")
    await sessions.scheduled("lin", [made])
    assert await words(sessions) == []


async def test_what_an_erasure_overtook_is_not_read(manager: MemoryManager, sessions: Sessions, clock: Clock) -> None:
    """A row that a writer who died left behind an erasure is nothing that was said, and goes."""
    await add(sessions, said(clock, "one"))
    rows = (await manager.opened())._core.collections.sessions
    row: dict[str, Any] | None = await rows.find_one({"user_id": "lin"})
    assert row is not None
    await manager.erase_user("lin")
    await rows.insert_one(row)
    assert await sessions.newest("lin", "s", await sessions.begun("lin")) == []
    assert await words(sessions) == []
