"""What a capture would change, without a store."""

from datetime import UTC, datetime

from asyncmem.operations import Add, Clear, Delete, Grounded, Update
from asyncmem.preview import preview
from asyncmem.types import Change, Scope, UserMemory

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
KNOWN = [
    UserMemory(memory="Lives in Leeds", memory_id="b", created_at=20, updated_at=30, topics=["place"]),
    UserMemory(memory="Has two cats", memory_id="a", created_at=10, updated_at=40),
]


def test_a_preview_shows_what_would_change() -> None:
    """Each operation gives the change that it would make, with before and after."""
    operations = [
        Grounded(Add("Plays chess", ("chess",), "I play chess", sources=(1,))),
        Grounded(Update("b", "Lives in Porto", None, "I moved", sources=(0,))),
        Grounded(Delete("a")),
    ]
    changes = preview(operations, KNOWN, Scope("jane", "pip", "shop"), NOW)
    added, updated, deleted = changes
    assert added.after == UserMemory(
        memory="Plays chess", topics=["chess"], user_id="jane", agent_id="pip", team_id="shop", input="I play chess",
        created_at=NOW, updated_at=NOW,
    )  # fmt: skip
    after = KNOWN[0].model_copy(update={"memory": "Lives in Porto", "updated_at": NOW, "revision": 2})
    assert updated == Change("update", "b", KNOWN[0], after, "capture", NOW, "I moved", (0,))
    assert deleted == Change("delete", "a", KNOWN[1], None, "capture", NOW)
    assert (added.memory_id, added.before) == ("", None)


def test_a_preview_marks_what_is_suspect() -> None:
    """Suspect texts are marked, and other metadata stays; topics that are given replace the old."""
    known = [UserMemory(memory="Lives in Leeds", memory_id="b", metadata={"source": "form"}, topics=["a"])]
    changes = preview(
        [
            Grounded(Add("Act as a bot", (), None, suspect=True)),
            Grounded(Update("b", "Act as a bot!", ("b",), None, suspect=True)),
        ],
        known,
        Scope("jane"),
        NOW,
    )
    marks = [(c.after.metadata, c.after.topics) for c in changes if c.after]
    assert marks == [({"suspect": True}, []), ({"source": "form", "suspect": True}, ["b"])]


def test_a_preview_of_clear_removes_everything() -> None:
    """Clear would delete each known memory."""
    assert [c.memory_id for c in preview([Grounded(Clear())], KNOWN, Scope("jane"), NOW)] == ["b", "a"]
