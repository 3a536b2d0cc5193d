"""The store behaves like a plain dictionary, whatever is done to it in whatever order."""

import asyncio
import os
import uuid
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from asyncmem import MemoryConflictError, MemoryManager, MemoryNotFoundError, RevisionConflictError, UserMemory
from asyncmem.operations import fold

from ..servers import drop_database, with_database

USERS = ("lin", "omar")
users = st.sampled_from(USERS)
texts = st.sampled_from(["Swims", "swims!", "Rows", "Has 4 ovens", "Has 5 ovens", "住在苏州", "$where", "a" * 8_000])
topics = st.lists(st.sampled_from(["a", "b", "C"]), max_size=3)


@dataclass
class Known:
    """What the model of the store knows of one memory."""

    user: str
    text: str
    topics: list[str]
    revisions: list[tuple[str, list[str]]] = field(default_factory=list)
    alive: bool = True
    revision: int = 1


class StoreMachine(RuleBasedStateMachine):
    """Two users' memories in the store, and the same in a dictionary."""

    uri = ""
    ids = Bundle("ids")

    @initialize()
    def open(self) -> None:
        self.runner = asyncio.Runner()
        self.name = f"asyncmem_test_{uuid.uuid4().hex[:12]}"
        self.manager = MemoryManager(with_database(self.uri, self.name))
        self.known: dict[str, Known] = {}

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.run(self.manager.aclose())
            self.runner.close()
            drop_database(self.uri, self.name)

    def _saying(self, user: str, text: str, but: str | None = None) -> str | None:
        """The living memory of this user that says the same."""
        same = (i for i, k in self.known.items() if k.alive and k.user == user and fold(k.text) == fold(text))
        return next((i for i in same if i != but), None)

    @rule(target=ids, user=users, text=texts, topics=topics)
    def add(self, user: str, text: str, topics: list[str]) -> object:
        existing = self._saying(user, text)
        added = self.runner.run(self.manager.add_user_memory(UserMemory(memory=text, topics=topics), user_id=user))
        unique = list(dict.fromkeys(topics))
        if existing is None:
            assert added not in self.known
            self.known[added] = Known(user, text, unique, [(text, unique)])
            return added
        assert added == existing
        known = self.known[existing]
        merged = list(dict.fromkeys([*known.topics, *unique]))
        if merged != known.topics:
            self._changed(known, known.text, merged)
        return multiple()

    @staticmethod
    def _changed(known: Known, text: str, topics: list[str]) -> None:
        known.text, known.topics = text, topics
        known.revision += 1
        known.revisions.append((text, topics))

    @rule(memory_id=ids, user=users, text=texts, stale=st.booleans())
    def update(self, memory_id: str, user: str, text: str, stale: bool) -> None:
        known = self.known[memory_id]
        expected = known.revision + 1 if stale else known.revision
        call = self.manager.update_user_memory(memory_id, user_id=user, memory=text, expected_revision=expected)
        if not known.alive or known.user != user:
            with pytest.raises(MemoryNotFoundError):
                self.runner.run(call)
        elif stale:
            with pytest.raises(RevisionConflictError):
                self.runner.run(call)
        elif text != known.text and self._saying(user, text, but=memory_id) is not None:
            with pytest.raises(MemoryConflictError):
                self.runner.run(call)
        else:
            memory = self.runner.run(call)
            if text != known.text:
                self._changed(known, text, known.topics)
            assert (memory.memory, memory.revision) == (known.text, known.revision)

    @rule(memory_id=ids, user=users)
    def delete(self, memory_id: str, user: str) -> None:
        known = self.known[memory_id]
        deleted = self.runner.run(self.manager.delete_user_memory(memory_id, user_id=user))
        assert deleted == (known.alive and known.user == user)
        if deleted:
            known.alive = False
            known.revision += 1

    @rule(memory_id=ids)
    def revert_to_first(self, memory_id: str) -> None:
        known = self.known[memory_id]
        text, first = known.revisions[0]
        call = self.manager.revert(memory_id, 1, user_id=known.user)
        if self._saying(known.user, text, but=memory_id) is not None:
            with pytest.raises(MemoryConflictError):
                self.runner.run(call)
            return
        memory = self.runner.run(call)
        if not known.alive or (text, first) != (known.text, known.topics):
            known.alive = True
            self._changed(known, text, first)
        assert (memory.memory, memory.topics, memory.revision) == (known.text, known.topics, known.revision)

    @rule(user=users)
    def clear(self, user: str) -> None:
        living = [k for k in self.known.values() if k.alive and k.user == user]
        assert self.runner.run(self.manager.clear_user_memories(user_id=user)) == len(living)
        for known in living:
            known.alive = False
            known.revision += 1

    @rule(memory_id=consumes(ids))
    def history_tells_all(self, memory_id: str) -> None:
        known = self.known[memory_id]
        changes = self.runner.run(self.manager.history(memory_id, user_id=known.user))
        told = [(c.after.memory, c.after.topics) for c in changes if c.after is not None]
        assert told == known.revisions
        assert (changes[-1].kind != "delete") == known.alive

    @invariant()
    def every_user_has_their_own(self) -> None:
        for user in USERS if hasattr(self, "known") else ():
            memories = self.runner.run(self.manager.get_user_memories(user_id=user))
            stored = {m.memory_id: (m.memory, m.topics, m.revision) for m in memories}
            living = {i: (k.text, k.topics, k.revision) for i, k in self.known.items() if k.alive and k.user == user}
            assert stored == living


def test_the_store_is_a_dictionary(replica_set_uri: str) -> None:
    """Adds, updates, deletions, reverts and clears of two users give what a dictionary would, with full history."""
    StoreMachine.uri = replica_set_uri
    fuzzing = os.environ.get("ASYNCMEM_FUZZ")
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=200 if fuzzing else 12,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
