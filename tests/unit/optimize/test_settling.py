"""What a strategy returned, judged: nothing that it moves from one memory to another falls between them."""

from collections.abc import Sequence

from asyncmem import UserMemory
from asyncmem.optimize.settling import Settled, settle


def sources(*texts: str) -> list[UserMemory]:
    """Memories of one user."""
    return [UserMemory(memory=text, memory_id=str(n), user_id="lin") for n, text in enumerate(texts)]


def said(given: UserMemory, text: str) -> UserMemory:
    """A memory with other words."""
    return given.model_copy(update={"memory": text})


def after(given: Sequence[UserMemory], done: Settled) -> list[str]:
    """What there is once it is done."""
    gone = {m.memory_id for m in done.retired} | {before.memory_id for before, _ in done.revised}
    lives = [m.memory for m in given if m.memory_id not in gone]
    return sorted([*lives, *(m.memory for m in done.new), *(m.memory for _, m in done.revised)])


def test_what_is_moved_into_a_new_memory_arrives() -> None:
    """A memory is split: its shorter text and the new memory come together, though nothing retires."""
    given = sources("Plays chess. Likes tea. Rows. Swims in lakes.", "The user also currently owns a kayak")
    split = [said(given[0], "Plays chess. Rows."), UserMemory(memory="Likes tea. Swims in lakes.")]
    done = settle(given, [*split, said(given[1], "Owns a kayak")], "split")
    assert after(given, done) == ["Likes tea. Swims in lakes.", "Owns a kayak", "Plays chess. Rows."]


def test_what_rested_on_a_revision_that_is_not_taken_stays() -> None:
    """The second memory's words go to the first, whose own words would be lost: neither is revised."""
    given = sources("Plays chess", "Likes tea")
    done = settle(given, [said(given[0], "Likes tea"), said(given[1], "Likes")], "shift")
    assert after(given, done) == ["Likes tea", "Plays chess"]
    assert {each.memory_id for each in done.missing} == {"0", "1"}
    assert done.reason
