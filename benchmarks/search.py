"""Search beside MongoDB's own text search, and beside agno and LangGraph's store, on one server.

    python benchmarks/search.py [--rows 1000000] [--agno PYTHON] [--langgraph PYTHON] [--write | --table]

Users of 100, 1,000 and 10,000 memories, mixed among many rows. PYTHON has agno, or langgraph-store-mongodb, installed;
without it, those figures are left out. Every figure is the median of interleaved rounds in one run; trust the ratios,
not the times. ``--write`` keeps the figures in benchmarks/results/search.json and writes the tables in
docs/performance.md from them (``--table``: only that).
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pages import put  # noqa: E402
from pymongo import AsyncMongoClient, MongoClient  # noqa: E402
from pymongo.write_concern import WriteConcern  # noqa: E402
from search_rows import CHANCE, DIMS, SIZES, TOPIC, load, words  # noqa: E402
from sides import Side  # noqa: E402
from stalls import longest_stall  # noqa: E402

from asyncmem import MemoryManager, UserMemory  # noqa: E402
from asyncmem.testing import HashEmbedder  # noqa: E402
from tests.servers import running_mongod, with_database  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "search.json"
PAGE = ROOT / "docs" / "performance.md"
BUDGET = {"keyword": 40, "semantic": 40, "hybrid": 60}
OTHERS = {"agno": ("agno_side.py", "agno"), "langgraph": ("langgraph_side.py", "langgraph-store-mongodb")}
WHAT = {
    "last20": "newest 20 (langgraph: any 20)",
    "topic20": "newest 20 of a topic (langgraph: any 20 of it)",
    "add": "add one",
}
PATIENCE = 15.0
Call = Callable[[], Awaitable[object]]
Timed = Callable[[], Awaitable[float]]


def timed(call: Call) -> Timed:
    """A call that answers with its seconds."""

    async def seconds() -> float:
        began = time.perf_counter()
        await call()
        return time.perf_counter() - began

    return seconds


def theirs(side: Side, op: str, user: str) -> Timed:
    """One call in another library's process, which takes the time itself."""

    async def seconds() -> float:
        return (await asyncio.to_thread(side.seconds, op, user))[0]

    return seconds


async def duel(sides: dict[str, Timed], rounds: int = 60) -> dict[str, dict[str, float]]:
    """Median and 95th percentile of each side in milliseconds; the sides take turns.

    Five rounds at least, and no more than that once ``PATIENCE`` is over.
    """
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for call in sides.values():
        await call()
    until = time.perf_counter() + PATIENCE
    for done in range(rounds):
        if done >= 5 and time.perf_counter() > until:
            break
        for name, call in CHANCE.sample(list(sides.items()), len(sides)):
            taken[name].append(await call() * 1000)
    return {
        name: {
            "p50": round(statistics.median(each), 2),
            "p95": round(sorted(each)[int(0.95 * len(each))], 2),
            "rounds": len(each),
        }
        for name, each in taken.items()
    }


async def first_searches(uri: str, user: str) -> dict[str, dict[str, float]]:
    """The first search of a manager, by each method."""
    found: dict[str, dict[str, float]] = {}
    for method in BUDGET:
        async with MemoryManager(uri, embedding_model=HashEmbedder(DIMS)) as fresh:

            def first(method: str = method, fresh: MemoryManager = fresh) -> Awaitable[object]:
                return fresh.search_user_memories(words(4), user_id=user, retrieval_method=method, limit=10)

            began = time.perf_counter()
            stall = await longest_stall(first)
            found[method] = {"ms": round((time.perf_counter() - began) * 1000, 1), **stall}
    return found


async def ranked(manager: MemoryManager, uri: str, texts: Any, user: str) -> dict[str, Any]:
    """The methods that rank, beside a text index, for one user."""

    def search(method: str) -> Call:
        return lambda: manager.search_user_memories(words(4), user_id=user, retrieval_method=method, limit=10)

    async def text() -> object:
        score = {"score": {"$meta": "textScore"}}
        query = {"user_id": user, "$text": {"$search": words(4)}}
        return await texts.find(query, score).sort([("score", {"$meta": "textScore"})]).limit(10).to_list()

    cold = await first_searches(uri, user)
    warm = await duel({**{method: timed(search(method)) for method in BUDGET}, "$text": timed(text)})
    late: list[float] = []
    for _ in range(15):
        await manager.add_user_memory(UserMemory(memory=words(12)), user_id=user)
        late.append(await timed(search("hybrid"))() * 1000)
    return {"warm": warm, "cold": cold, "hybrid after an add": round(statistics.median(late), 2)}


async def listed(manager: MemoryManager, sides: dict[str, Side], user: str) -> dict[str, Any]:
    """What other libraries do as well, for one user: the newest, those of a topic, and adding."""

    def ours(**more: Any) -> Call:
        return lambda: manager.search_user_memories(user_id=user, limit=20, **more)

    def add() -> Awaitable[object]:
        return manager.add_user_memory(UserMemory(memory=words(12), topics=["new"]), user_id=user)

    mine = {"last20": ours(), "topic20": ours(topics=[TOPIC]), "add": add}
    found = {}
    for op, call in mine.items():
        able = {name: side for name, side in sides.items() if (name, op) != ("agno", "topic20")}
        found[op] = await duel(
            {"asyncmem": timed(call), **{name: theirs(side, op, user) for name, side in able.items()}}
        )
    return found


@contextmanager
def other_libraries(pythons: dict[str, str | None], uri: str) -> Iterator[dict[str, Side]]:
    """Those of the other libraries that there is a Python for, each warmed up, so that its indexes are there."""
    sides = {name: Side(python, *OTHERS[name], uri, "bench") for name, python in pythons.items() if python}
    try:
        for side in sides.values():
            side.seconds("add", "warm")
        yield sides
    finally:
        for side in sides.values():
            side.close()


async def run(total: int, pythons: dict[str, str | None]) -> dict[str, Any]:
    """Measure everything."""
    results: dict[str, Any] = {"rows": total, "sizes": {}}
    with running_mongod(replica_set=True) as server, other_libraries(pythons, server.uri) as sides:
        results["versions"] = {name: side.version for name, side in sides.items()}
        uri = with_database(server.uri, "bench")
        async with MemoryManager(uri, embedding_model=HashEmbedder(DIMS)) as manager, AsyncMongoClient(uri) as client:
            with MongoClient(uri) as sync:
                load(sync["bench"].with_options(write_concern=WriteConcern(w=1)), total, set(sides))
            for size in SIZES:
                print(f"{size:,} memories", flush=True)
                user, texts = f"u{size}", client["bench"]["text_memories"]
                found = await listed(manager, sides, user)
                results["sizes"][str(size)] = {"listed": found, **await ranked(manager, uri, texts, user)}
    return results


def ranked_table(results: dict[str, Any]) -> list[str]:
    """What ranks, as a Markdown table."""
    head = "| memories of the user | keyword ms | semantic ms | hybrid ms | `$text` ms | hybrid after an add ms |"
    lines = [
        head + " first keyword, hybrid search ms | longest stall: wall clock, CPU, CPU without collector ms |",
        "|" + "---|" * 8,
    ]
    for size, found in results["sizes"].items():
        warm, cold = found["warm"], found["cold"]
        times = " | ".join(f"{warm[name]['p50']:.1f}" for name in (*BUDGET, "$text"))
        stall = ", ".join(f"{max(each[what] for each in cold.values()):.0f}" for what in ("stall", "cpu", "own"))
        first = f"{cold['keyword']['ms']:.0f}, {cold['hybrid']['ms']:.0f}"
        lines.append(f"| {int(size):,} | {times} | {found['hybrid after an add']:.1f} | {first} | {stall} |")
    budget = " | ".join(f"≤ {BUDGET[name]}" for name in BUDGET)
    return [*lines, f"| budget at 10,000 | {budget} | | | | |"]


def listed_table(results: dict[str, Any]) -> list[str]:
    """What other libraries do as well, as a Markdown table."""
    names = ["asyncmem", *results["versions"]]
    heads = ["asyncmem ms", *(f"{OTHERS[name][1]} {number} ms" for name, number in results["versions"].items())]
    lines = [f"| what | memories of the user | {' | '.join(heads)} |", "|" + "---|" * (2 + len(names))]
    for op, what in WHAT.items():
        for size, found in results["sizes"].items():
            times = (f"{found['listed'][op][name]['p50']:.2f}" if name in found["listed"][op] else "" for name in names)
            lines.append(f"| {what} | {int(size):,} | {' | '.join(times)} |")
    return lines


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    before, after = results["machine"]["load"]
    setting = (
        f"{results['rows']:,} rows in all, {results['machine']['cores']} cores; the machine's load was {before} when "
        f"it began and {after} when it ended."
    )
    return "\n".join([*ranked_table(results), "", *listed_table(results), "", setting])


def write_page() -> None:
    """Put the last results' tables into the page."""
    put(PAGE, "search", table(json.loads(RESULTS.read_text())))


def main() -> None:
    """Run, or write the tables of the last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows in all")
    parser.add_argument("--agno", help="a Python that has agno installed")
    parser.add_argument("--langgraph", help="a Python that has langgraph-store-mongodb installed")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RESULTS.name}, and write the page")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, measure nothing")
    options = parser.parse_args()
    if options.table:
        write_page()
        return
    load_before = round(os.getloadavg()[0], 1)
    results = asyncio.run(run(options.rows, {"agno": options.agno, "langgraph": options.langgraph}))
    results["machine"] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "date": datetime.now(UTC).date().isoformat(),
        "load": [load_before, round(os.getloadavg()[0], 1)],
    }
    print(table(results))
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_page()


if __name__ == "__main__":
    main()
