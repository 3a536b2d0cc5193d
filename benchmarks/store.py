"""The store against the raw driver and against agno, side by side on one server.

    python benchmarks/store.py [--agno PYTHON] [--rows 1000000]

Every figure is the median of interleaved rounds in one run; trust the ratios, not the times. Results go to
benchmarks/results/store.json, and the table in docs/performance.md is written from it (``--table``: only that).
"""

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pages import put  # noqa: E402
from pymongo import AsyncMongoClient, MongoClient  # noqa: E402
from pymongo.write_concern import WriteConcern  # noqa: E402
from sides import Side  # noqa: E402

from asyncmem import MemoryManager, UserMemory  # noqa: E402
from asyncmem.store.documents import MEMORY_INDEXES, NEWEST_FIRST  # noqa: E402
from asyncmem.store.rows import to_row  # noqa: E402
from tests.servers import running_mongod, with_database  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "store.json"
PAGE = ROOT / "docs" / "performance.md"
BUDGET = {"add, 1 task": 1.6, "add, 32 tasks": 1.5, "get by id": 1.5, "last 20": 1.5, "list 1,000": 2.5}
SIZES = (100, 1_000, 10_000)
WORDS = [
    "likes",
    "plays",
    "lives",
    "works",
    "reads",
    "cooks",
    "swims",
    "paints",
    "old",
    "red",
    "quiet",
    "near",
    "music",
]
random.seed(7)

Call = Callable[[], Awaitable[object]]


def memory(number: int) -> UserMemory:
    """A made-up memory."""
    return UserMemory(memory=f"{' '.join(random.choices(WORDS, k=9))} {number}", topics=random.sample(WORDS, 2))


def rows(user: str, count: int) -> Iterator[dict[str, Any]]:
    """Rows as the store writes them, a second apart."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for n in range(count):
        yield to_row(memory(n), user, start + timedelta(seconds=n), "manual")


def load(db: Any, users: Iterator[tuple[str, int]], total: int) -> int:
    """Insert rows for users until there are ``total``; how many there are."""
    batch: list[dict[str, Any]] = []
    done = db["asyncmem_memories"].estimated_document_count()
    for user, count in users:
        batch += rows(user, count)
        if len(batch) >= 5_000 or done + len(batch) >= total:
            agno = [
                {"user_id": r["user_id"], "memory_id": r["_id"], "memory": r["memory"], "topics": r["topics"],
                 "updated_at": int(r["updated_at"].timestamp())} for r in batch
            ]  # fmt: skip
            db["asyncmem_memories"].insert_many(batch, ordered=False)
            db["memories"].insert_many(agno, ordered=False)
            done, batch = done + len(batch), []
        if done >= total:
            break
    return done


async def timed(call: Call, times: int) -> list[float]:
    """Seconds of each of some calls."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - began)
    return seconds


async def duel(sides: dict[str, Call], rounds: int = 12, times: int = 15) -> dict[str, float]:
    """Median milliseconds of each side; the sides take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for call in sides.values():
        await timed(call, 3)
    for _ in range(rounds):
        for name, call in random.sample(list(sides.items()), len(sides)):
            seconds[name] += await timed(call, times)
    return {name: round(statistics.median(s) * 1000, 4) for name, s in seconds.items()}


def measure_import() -> dict[str, float]:
    """Milliseconds of a bare interpreter, and of one that imports asyncmem, taking turns."""
    seconds: dict[str, list[float]] = {"bare Python": [], "import asyncmem": []}
    for _ in range(15):
        for name, code in (("bare Python", "pass"), ("import asyncmem", "import asyncmem")):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-P", "-c", code], check=True)
            seconds[name].append(time.perf_counter() - began)
    return {name: round(statistics.median(s) * 1000, 1) for name, s in seconds.items()}


class Bench:
    """One server, our manager, the raw driver and maybe agno on it."""

    def __init__(self, manager: MemoryManager, raw: Any, bare: Any, agno: Side | None) -> None:
        self.manager, self.raw, self.bare, self.agno = manager, raw, bare, agno
        self.count = 0

    async def _raw_add(self) -> None:
        self.count += 1
        await self.bare.insert_one(to_row(memory(self.count), "adder", datetime.now(UTC), "manual"))

    async def adds(self) -> dict[str, dict[str, float]]:
        """Adding one memory, alone and in 32 tasks. Raw inserts go to a twin collection with the same indexes."""
        made = [memory(n) for n in range(60_000)]
        ready = [to_row(m, "raw", datetime.now(UTC), "manual") for m in made]

        async def ours() -> None:
            await self.manager.add_user_memory(made.pop(), user_id="adder")

        async def raw() -> None:
            await self.bare.insert_one(ready.pop())

        def at_once(call: Call) -> Call:
            async def worker() -> None:
                for _ in range(10):
                    await call()

            async def burst() -> None:
                await asyncio.gather(*(worker() for _ in range(32)))

            return burst

        alone = await duel({"raw": raw, "asyncmem": ours}, rounds=20, times=20)
        burst = await duel({"raw": at_once(raw), "asyncmem": at_once(ours)}, rounds=12, times=1)
        if self.agno is not None:
            alone["agno"] = self.agno.median("add", "adder", 100)
        return {"add, 1 task": alone, "add, 32 tasks": {k: round(v / 320, 4) for k, v in burst.items()}}

    async def reads(self, user: str, size: int) -> dict[str, dict[str, float]]:
        """Getting by id, the last 20, and listing up to 1,000."""
        newest = (await self.manager.search_user_memories(user_id=user, limit=1))[0]
        mine = {"user_id": user}

        async def raw_get() -> object:
            return await self.raw.find_one({"_id": newest.memory_id, **mine})

        async def raw_last() -> object:
            return await self.raw.find(mine).sort(NEWEST_FIRST).limit(20).to_list()

        async def raw_list() -> object:
            return await self.raw.find(mine).sort(NEWEST_FIRST).limit(1_000).to_list()

        found = {
            "get by id": await duel(
                {"raw": raw_get, "asyncmem": lambda: self.manager.get_user_memory(str(newest.memory_id), user_id=user)}
            ),
            "last 20": await duel(
                {"raw": raw_last, "asyncmem": lambda: self.manager.search_user_memories(user_id=user, limit=20)}
            ),
        }
        if size >= 1_000:
            found["list 1,000"] = await duel(
                {"raw": raw_list, "asyncmem": lambda: self.manager.search_user_memories(user_id=user, limit=1_000)},
                times=4,
            )
        if self.agno is not None:
            times = 30 if size < 10_000 else 5
            found["get by id"]["agno"] = self.agno.median("get", user, times)
            found["last 20"]["agno"] = self.agno.median("last20", user, times)
            if size == 1_000:
                found["list 1,000"]["agno"] = self.agno.median("list", user, times)
        return found


async def run(agno_python: str | None, total: int) -> dict[str, Any]:
    """Measure everything."""
    results: dict[str, Any] = {"import": measure_import(), "rows": {}}
    with running_mongod(replica_set=True) as server:
        uri = with_database(server.uri, "bench")
        with MongoClient(uri) as sync:
            db = sync["bench"].with_options(write_concern=WriteConcern(w=1))
            db["raw_memories"].create_indexes(MEMORY_INDEXES)
            agno = Side(agno_python, "agno_side.py", "agno", server.uri, "bench") if agno_python else None
            if agno is not None:
                agno.median("add", "warm", 1)
            async with MemoryManager(uri) as manager, AsyncMongoClient(uri) as client:
                safe = client["bench"].with_options(write_concern=WriteConcern("majority", j=True))
                bench = Bench(manager, safe["asyncmem_memories"], safe["raw_memories"], agno)
                load(db, ((f"u{n}", n) for n in SIZES), sum(SIZES))
                others = ((f"other{n}", 100) for n in range(10**9))
                results["add"] = await bench.adds()
                for stage in (sum(SIZES), total):
                    load(db, others, stage)
                    for size in SIZES:
                        print(f"{stage:,} rows in all, {size:,} a user", flush=True)
                        found = await bench.reads(f"u{size}", size)
                        results["rows"].setdefault(str(stage), {})[str(size)] = found
            if agno is not None:
                agno.close()
    return results


def ratio(figures: dict[str, float], side: str = "asyncmem") -> float:
    """How many times the raw driver's time a side takes."""
    return round(figures[side] / figures["raw"], 2)


def table(results: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    lines = ["| what | rows a user | rows in all | raw ms | asyncmem ms | ratio | budget | agno ms |", "|" + "---|" * 8]

    def line(what: str, size: str, stage: str, figures: dict[str, float]) -> None:
        other = f"{figures['agno']:.2f}" if "agno" in figures else ""
        budget = f"≤ {BUDGET[what]}"
        times = f"{figures['raw']:.2f} | {figures['asyncmem']:.2f} | {ratio(figures):.2f}"
        lines.append(f"| {what} | {size} | {stage} | {times} | {budget} | {other} |")

    for what, figures in results["add"].items():
        line(what, "", "", figures)
    for what in ("get by id", "last 20", "list 1,000"):
        for stage, sizes in results["rows"].items():
            for size, found in sizes.items():
                if what in found:
                    line(what, f"{int(size):,}", f"{int(stage):,}", found[what])
    cost = results["import"]["import asyncmem"] - results["import"]["bare Python"]
    lines.append(f"| `import asyncmem` | | | | {cost:.0f} over bare Python | | ≤ 250 ms | |")
    return "\n".join(lines)


def main() -> None:
    """Run, or print the table of the last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agno", help="a Python that has agno installed")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows in all at the last stage")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, measure nothing")
    options = parser.parse_args()
    if not options.table:
        results = asyncio.run(run(options.agno, options.rows))
        results["machine"] = {
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "date": datetime.now(UTC).date().isoformat(),
        }
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    results = json.loads(RESULTS.read_text())
    put(PAGE, "store", table(results))
    print(table(results))


if __name__ == "__main__":
    main()
