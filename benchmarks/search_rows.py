"""The rows of ``benchmarks/search.py``: made-up memories, and the same ones as each other library keeps them."""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

import numpy as np

from asyncmem import UserMemory
from asyncmem.store.rows import to_row
from asyncmem.store.vectors import to_vector
from asyncmem.testing import HashEmbedder

SIZES = (100, 1_000, 10_000)
DIMS = 384
TOPIC = "work"
CHANCE = random.Random(7)
_WORDS = ["".join(CHANCE.choices("abdefgiklmnoprstuv", k=CHANCE.randint(3, 9))) for _ in range(8_000)]
_WEIGHTS = list(accumulate(1 / (n + 10) for n in range(len(_WORDS))))
_START = datetime(2026, 1, 1, tzinfo=UTC)


def words(count: int) -> str:
    """Some words, a few of them frequent and most of them rare, as in a language."""
    return " ".join(CHANCE.choices(_WORDS, cum_weights=_WEIGHTS, k=count))


def _row(user: str, number: int, *, embedded: bool) -> dict[str, Any]:
    """A row as our store writes it, a second after the user's one before; every fourth has the topic."""
    text, name = f"{words(12)} {number}", HashEmbedder(DIMS).name
    vector = np.random.default_rng(number).standard_normal(DIMS).astype("<f4").tobytes() if embedded else b""
    vectors = {text: to_vector(name, text, vector)} if embedded else {}
    memory = UserMemory(memory=text, topics=[TOPIC] if number % 4 == 0 else [])
    return to_row(memory, user, _START + timedelta(seconds=number), "manual", vectors)


def _batches(total: int) -> Iterator[list[dict[str, Any]]]:
    """The rows of the three users and of others with a hundred each, in chance order, as lives are mixed."""
    measured = {f"u{size}": size for size in SIZES}
    owners = [user for user, size in measured.items() for _ in range(size)]
    owners += [f"other{n // 100}" for n in range(total - len(owners))]
    CHANCE.shuffle(owners)
    counts: Counter[str] = Counter()
    for start in range(0, len(owners), 5_000):
        batch = []
        for user in owners[start : start + 5_000]:
            batch.append(_row(user, counts[user], embedded=user in measured))
            counts[user] += 1
        yield batch


def _agno(row: dict[str, Any]) -> dict[str, Any]:
    """A row as agno's MongoDb keeps it."""
    kept = {"memory_id": row["_id"], "updated_at": int(row["updated_at"].timestamp())}
    return {**kept, **{name: row[name] for name in ("user_id", "memory", "topics")}}


def _langgraph(row: dict[str, Any]) -> dict[str, Any]:
    """A row as LangGraph's MongoDBStore puts it, in a namespace that is the user."""
    user, value = row["user_id"], {"memory": row["memory"], "topics": row["topics"]}
    times = {"created_at": row["created_at"], "updated_at": row["updated_at"]}
    return {"namespace": [user], "namespace_str": user, "key": row["_id"], "value": value, **times}


def load(db: Any, total: int, others: set[str]) -> None:
    """Insert the rows, into each collection in the same order; ``others`` are the libraries that are measured."""
    for batch in _batches(total):
        db["asyncmem_memories"].insert_many(batch, ordered=False)
        plain = [{"_id": row["_id"], "user_id": row["user_id"], "memory": row["memory"]} for row in batch]
        db["text_memories"].insert_many(plain, ordered=False)
        if "agno" in others:
            db["memories"].insert_many([_agno(row) for row in batch], ordered=False)
        if "langgraph" in others:
            db["langgraph_memories"].insert_many([_langgraph(row) for row in batch], ordered=False)
    db["text_memories"].create_index([("user_id", 1), ("memory", "text")])
