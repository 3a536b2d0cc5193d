"""What a memory takes: bytes of documents and indexes, and commands to the server for each verb.

    python benchmarks/sizing.py [--memories 20000] [--write]

``--write`` keeps the figures in benchmarks/results/sizing.json and writes the tables of docs/scaling.md from it
(``--table``: only that). Sizes are of a real mongod, after its cache was written to disk.
"""

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from pages import put  # noqa: E402
from pymongo import AsyncMongoClient  # noqa: E402
from pymongo.monitoring import (  # noqa: E402
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
)

from asyncmem import Embeddings, MemoryManager, Settings, UserMemory  # noqa: E402
from asyncmem.testing import ScriptedModel  # noqa: E402
from tests.servers import running_mongod, with_database  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "sizing.json"
PAGE = ROOT / "docs" / "scaling.md"
DIMS = 384
A_USER = 50
"""Memories of one user."""
USERS = (1_000_000, 10_000_000, 100_000_000)
_WORDS = ["".join(random.Random(n).choices("abdefgiklmnoprstuv", k=3 + n % 7)) for n in range(8_000)]
_READS = frozenset({"find", "aggregate", "getMore", "count", "distinct"})
_WRITES = frozenset({"insert", "update", "delete", "findAndModify", "commitTransaction"})


class Counting(CommandListener):
    """Counts the commands that a client sends."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()

    def started(self, event: CommandStartedEvent) -> None:
        """Count one."""
        self.sent[event.command_name] += 1

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """Nothing to do."""

    def failed(self, event: CommandFailedEvent) -> None:
        """Nothing to do."""


class Noise:
    """Vectors of chance numbers, which compress as badly as real ones do."""

    name = "noise"

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """One vector a text."""
        chance = np.random.default_rng(len(texts[0]))
        return Embeddings(chance.standard_normal((len(texts), DIMS)).astype(np.float32))


def memory(number: int) -> UserMemory:
    """A memory of twelve words with two topics, captured from a sentence, as most are."""
    chance = random.Random(number)
    text = " ".join(chance.choices(_WORDS, k=12))
    return UserMemory(memory=text, topics=chance.choices(_WORDS[:40], k=2), input=f"I think that {text}")


async def sizes(uri: str, memories: int, *, embedded: bool) -> dict[str, Any]:
    """Bytes a memory, of documents and of each index, in users of fifty."""
    embedder = Noise() if embedded else None
    async with AsyncMongoClient[dict[str, Any]](uri) as client:
        database = client.get_default_database()
        async with MemoryManager(database, embedding_model=embedder) as manager:
            for start in range(0, memories, 1_000):
                owned = [
                    memory(n).model_copy(update={"user_id": f"user-{n % (memories // A_USER):08d}"})
                    for n in range(start, start + 1_000)
                ]
                await manager.add_user_memories(owned)
        await client.admin.command({"fsync": 1})
        stats = await database.command({"collStats": "asyncmem_memories"})
    indexes = {name: round(size / memories) for name, size in stats["indexSizes"].items()}
    return {"document": round(stats["avgObjSize"]), "on disk": round(stats["storageSize"] / memories), **indexes}


async def commands(uri: str) -> dict[str, dict[str, int]]:
    """Reads and writes that each verb sends, for a user of fifty memories."""
    counting = Counting()
    said = {"operations": [{"op": "add", "memory": "Keeps bees", "evidence": "I keep bees"}]}
    model = ScriptedModel([json.dumps(said), json.dumps({"operations": []})])
    async with (
        AsyncMongoClient[dict[str, Any]](uri, event_listeners=[counting]) as client,
        MemoryManager(client.get_default_database(), model=model, settings=Settings(workers=False)) as manager,
    ):
        user = "jane"
        ids = await manager.add_user_memories([memory(n) for n in range(A_USER)], user_id=user)

        def search() -> Awaitable[object]:
            return manager.search_user_memories(_WORDS[1], user_id=user, retrieval_method="keyword", limit=10)

        await search()
        verbs: dict[str, Callable[[], Awaitable[object]]] = {
            "get": lambda: manager.get_user_memory(ids[0], user_id=user),
            "newest 20": lambda: manager.search_user_memories(user_id=user, limit=20),
            "build_context": lambda: manager.build_context(user_id=user),
            "search by keyword": search,
            "add": lambda: manager.add_user_memory(memory(999), user_id=user),
            "search by keyword, after it": search,
            "update": lambda: manager.update_user_memory(ids[0], memory="Another text", user_id=user),
            "delete": lambda: manager.delete_user_memory(ids[1], user_id=user),
            "capture that adds one": lambda: manager.create_user_memories("I keep bees", user_id=user),
            "capture that adds none": lambda: manager.create_user_memories("How are you?", user_id=user),
            "schedule": lambda: manager.schedule("I row", user_id=user),
        }
        found: dict[str, dict[str, int]] = {}
        for name, call in verbs.items():
            counting.sent.clear()
            await call()
            found[name] = {
                "reads": sum(counting.sent[each] for each in _READS),
                "writes": sum(counting.sent[each] for each in _WRITES),
            }
    return found


async def run(memories: int) -> dict[str, Any]:
    """Measure everything."""
    with running_mongod(replica_set=True) as server:
        plain = await sizes(with_database(server.uri, "plain"), memories, embedded=False)
        vectors = await sizes(with_database(server.uri, "vectors"), memories, embedded=True)
        verbs = await commands(with_database(server.uri, "verbs"))
    return {"memories": memories, "a user": A_USER, "dims": DIMS, "plain": plain, "vectors": vectors, "verbs": verbs}


def human(size: float) -> str:
    """A size in the unit that suits it."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1_000:
            return f"{size:.0f} {unit}"
        size /= 1_000
    return f"{size:.1f} TB"


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    plain, vectors = results["plain"], results["vectors"]
    lines = [f"| bytes a memory | without vectors | with vectors of {results['dims']} |", "|---|---|---|"]
    lines += [f"| {name} | {plain[name]:,} | {vectors[name]:,} |" for name in plain]
    lines += ["", f"| users, {results['a user']} memories each | documents on disk | indexes |", "|---|---|---|"]
    for users in USERS:
        count = users * results["a user"]
        disk = f"{human(count * plain['on disk'])} ({human(count * vectors['on disk'])} with vectors)"
        indexes = sum(size for name, size in plain.items() if name not in ("document", "on disk"))
        lines.append(f"| {users:,} | {disk} | {human(count * indexes)} |")
    lines += ["", "| verb | reads | writes |", "|---|---|---|"]
    lines += [f"| {name} | {each['reads']} | {each['writes']} |" for name, each in results["verbs"].items()]
    return "\n".join(lines)


def write_page() -> None:
    """Put the last results' tables into the page."""
    put(PAGE, "sizing", table(json.loads(RESULTS.read_text())))


def main() -> None:
    """Run, or write the tables of the last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RESULTS.name}, and write the page")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, measure nothing")
    options = parser.parse_args()
    if options.table:
        write_page()
        return
    results = asyncio.run(run(options.memories))
    results["date"] = datetime.now(UTC).date().isoformat()
    print(table(results))
    if options.write:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_page()


if __name__ == "__main__":
    main()
