"""Search beside MongoDB's own text search, on one server.

    python benchmarks/search.py [--rows 1000000]

Users of 100, 1,000 and 10,000 memories among many rows. Every figure is the median of interleaved rounds in one
run; trust the ratios, not the times. Results go to benchmarks/results/search.json, and the table in
docs/performance.md is written from it (``--table``: only that).
"""

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from pymongo import AsyncMongoClient, MongoClient  # noqa: E402
from pymongo.write_concern import WriteConcern  # noqa: E402

from asyncmem import MemoryManager, UserMemory  # noqa: E402
from asyncmem.store.rows import to_row  # noqa: E402
from asyncmem.store.vectors import to_vector  # noqa: E402
from asyncmem.testing import HashEmbedder  # noqa: E402
from tests.servers import running_mongod, with_database  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "search.json"
PAGE = ROOT / "docs" / "performance.md"
BUDGET = {"keyword": 40, "semantic": 40, "hybrid": 60}
SIZES = (100, 1_000, 10_000)
DIMS = 384
CHANCE = random.Random(7)
WORDS = ["".join(CHANCE.choices("abdefgiklmnoprstuv", k=CHANCE.randint(3, 9))) for _ in range(8_000)]
WEIGHTS = [1 / (n + 10) for n in range(len(WORDS))]
Call = Callable[[], Awaitable[object]]


def words(count: int) -> str:
    """Some words, a few of them frequent and most of them rare, as in a language."""
    return " ".join(CHANCE.choices(WORDS, WEIGHTS, k=count))


def rows(user: str, count: int, *, embedded: bool) -> Iterator[dict[str, Any]]:
    """Rows as the store writes them, a second apart."""
    start, name = datetime(2026, 1, 1, tzinfo=UTC), HashEmbedder(DIMS).name
    for n in range(count):
        text = f"{words(12)} {n}"
        vector = np.random.default_rng(n).standard_normal(DIMS).astype("<f4").tobytes() if embedded else b""
        vectors = {text: to_vector(name, text, vector)} if embedded else {}
        yield to_row(UserMemory(memory=text), user, start + timedelta(seconds=n), "manual", vectors)


def load(db: Any, total: int) -> None:
    """The three users, then others of a hundred memories each; and the same texts with a text index."""
    users = [(f"u{size}", size, True) for size in SIZES]
    done, number = 0, 0
    while done < total:
        user, count, embedded = users[number] if number < len(users) else (f"other{number}", 100, False)
        batch = list(rows(user, count, embedded=embedded))
        db["asyncmem_memories"].insert_many(batch, ordered=False)
        plain = [{"_id": row["_id"], "user_id": user, "memory": row["memory"]} for row in batch]
        db["text_memories"].insert_many(plain, ordered=False)
        done, number = done + count, number + 1
    db["text_memories"].create_index([("user_id", 1), ("memory", "text")])


async def timed(call: Call) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1000


async def duel(sides: dict[str, Call], rounds: int = 60) -> dict[str, dict[str, float]]:
    """Median and 95th percentile of each side in milliseconds; the sides take turns."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for call in sides.values():
        await timed(call)
    for _ in range(rounds):
        for name, call in CHANCE.sample(list(sides.items()), len(sides)):
            taken[name].append(await timed(call))
    return {
        name: {"p50": round(statistics.median(each), 2), "p95": round(sorted(each)[int(0.95 * len(each))], 2)}
        for name, each in taken.items()
    }


async def longest_stall(call: Call) -> float:
    """Milliseconds that the event loop was kept from others at most, while a call ran."""
    stalls, running = [0.0], True

    async def watch() -> None:
        while running:
            began = time.perf_counter()
            await asyncio.sleep(0)
            stalls.append((time.perf_counter() - began) * 1000)

    task = asyncio.create_task(watch())
    await call()
    running = False
    await task
    return round(max(stalls), 1)


async def measure(manager: MemoryManager, uri: str, texts: Any, user: str) -> dict[str, Any]:
    """All methods for one user."""

    def search(method: str) -> Call:
        return lambda: manager.search_user_memories(words(4), user_id=user, retrieval_method=method, limit=10)

    async def text() -> object:
        score = {"score": {"$meta": "textScore"}}
        query = {"user_id": user, "$text": {"$search": words(4)}}
        return await texts.find(query, score).sort([("score", {"$meta": "textScore"})]).limit(10).to_list()

    async def after_an_add() -> object:
        await manager.add_user_memory(UserMemory(memory=words(12)), user_id=user)
        began = time.perf_counter()
        await search("hybrid")()
        late.append((time.perf_counter() - began) * 1000)
        return None

    late: list[float] = []
    cold = {}
    for method in BUDGET:
        async with MemoryManager(uri, embedding_model=HashEmbedder(DIMS)) as fresh:

            def first(method: str = method, fresh: MemoryManager = fresh) -> Awaitable[object]:
                return fresh.search_user_memories(words(4), user_id=user, retrieval_method=method, limit=10)

            began = time.perf_counter()
            stall = await longest_stall(first)
            cold[method] = {"ms": round((time.perf_counter() - began) * 1000, 1), "stall": stall}
    warm = await duel({**{method: search(method) for method in BUDGET}, "$text": text})
    for _ in range(15):
        await after_an_add()
    return {"warm": warm, "cold": cold, "hybrid after an add": round(statistics.median(late), 2)}


async def run(total: int) -> dict[str, Any]:
    """Measure everything."""
    results: dict[str, Any] = {"rows": total, "sizes": {}}
    with running_mongod(replica_set=True) as server:
        uri = with_database(server.uri, "bench")
        async with MemoryManager(uri, embedding_model=HashEmbedder(DIMS)) as manager, AsyncMongoClient(uri) as client:
            with MongoClient(uri) as sync:
                load(sync["bench"].with_options(write_concern=WriteConcern(w=1)), total)
            for size in SIZES:
                print(f"{size:,} memories", flush=True)
                results["sizes"][str(size)] = await measure(manager, uri, client["bench"]["text_memories"], f"u{size}")
    return results


def table(results: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    head = "| memories of the user | keyword ms | semantic ms | hybrid ms | `$text` ms | hybrid after an add ms |"
    lines = [head + " first keyword, hybrid search ms | longest stall ms |", "|" + "---|" * 8]
    for size, found in results["sizes"].items():
        warm, cold = found["warm"], found["cold"]
        times = " | ".join(f"{warm[name]['p50']:.1f}" for name in (*BUDGET, "$text"))
        stall = max(each["stall"] for each in cold.values())
        first = f"{cold['keyword']['ms']:.0f}, {cold['hybrid']['ms']:.0f}"
        lines.append(f"| {int(size):,} | {times} | {found['hybrid after an add']:.1f} | {first} | {stall:.0f} |")
    budget = " | ".join(f"≤ {BUDGET[name]}" for name in BUDGET)
    return "\n".join([*lines, f"| budget at 10,000 | {budget} | | | | |"])


def main() -> None:
    """Run, or print the table of the last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows in all")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, measure nothing")
    options = parser.parse_args()
    if not options.table:
        results = asyncio.run(run(options.rows))
        results["machine"] = {
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "date": datetime.now(UTC).date().isoformat(),
        }
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    results = json.loads(RESULTS.read_text())
    before, _, rest = PAGE.read_text().partition("<!-- search -->\n")
    _, _, after = rest.partition("<!-- /search -->\n")
    PAGE.write_text(f"{before}<!-- search -->\n{table(results)}\n<!-- /search -->\n{after}")
    print(table(results))


if __name__ == "__main__":
    main()
