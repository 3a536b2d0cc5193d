"""Capture in the background: what scheduling costs, how workers scale, and what a chat turn notices of it.

    python benchmarks/background.py [--quick] [--write | --table]

A replica set of one node; models are simulated, so that what is measured is ours. ``--write`` keeps the figures in
benchmarks/results/background.json and writes the tables in docs/performance.md from them (``--table``: only that).
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pages import put  # noqa: E402
from pymongo import AsyncMongoClient  # noqa: E402
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent  # noqa: E402
from pymongo.write_concern import WriteConcern  # noqa: E402
from stalls import longest_stall  # noqa: E402

from asyncmem import ChatReply, ChatRequest, MemoryManager, Settings, UserMemory  # noqa: E402
from tests.servers import running_mongod, with_database  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "background.json"
PAGE = ROOT / "docs" / "performance.md"
TASKS = (1, 32, 256)
WORKERS = (1, 2, 4)
AT_ONCE = 4
"""Captures at once of one worker process."""
SAID = "I moved to Porto last week, and my flat has a balcony over the river"


class Simulated:
    """A model that takes its time, and remembers what it heard last."""

    name = "simulated"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer late."""
        await asyncio.sleep(self.seconds)
        lines = str(request.messages[-1]["content"]).splitlines()
        said = [json.loads(line)["user"] for line in lines if line.startswith('{"user"')]
        plan = [{"op": "add", "memory": text, "evidence": text} for text in said[-1:] if len(text) < 1_000]
        return ChatReply(content=json.dumps({"operations": plan}))


class Writes(CommandListener):
    """Counts the writes that a client sends."""

    def __init__(self) -> None:
        self.count = 0

    def started(self, event: CommandStartedEvent) -> None:
        """One more, if it is a write."""
        self.count += event.command_name in ("insert", "update", "delete", "findAndModify")

    def succeeded(self, event: CommandSucceededEvent) -> None:
        """It was counted."""

    def failed(self, event: CommandFailedEvent) -> None:
        """It was counted."""


def spread(seconds: list[float]) -> dict[str, float]:
    """Median and 95th percentile in milliseconds."""
    ordered = sorted(seconds)
    return {
        "p50": round(statistics.median(ordered) * 1000, 2),
        "p95": round(ordered[int(0.95 * (len(ordered) - 1))] * 1000, 2),
    }


async def at_once(tasks: int, calls: int, call: Callable[[int, int], Awaitable[object]]) -> list[float]:
    """Seconds of each call, of so many tasks that make so many of them one after the other."""
    taken: list[float] = []

    async def one(task: int) -> None:
        for n in range(calls):
            began = time.perf_counter()
            await call(task, n)
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*map(one, range(tasks)))
    return taken


async def scheduling(uri: str, *, quick: bool) -> dict[str, Any]:
    """schedule() beside inserting the same words with the driver, and how many writes it is."""
    found: dict[str, Any] = {}
    counter = Writes()
    settings = Settings(workers=False, backlog=10_000_000, backlog_per_user=10_000)
    async with (
        AsyncMongoClient[dict[str, Any]](uri, event_listeners=[counter]) as client,
        MemoryManager(client, model=Simulated(0), settings=settings) as manager,
    ):
        raw = client.get_default_database()["raw"].with_options(write_concern=WriteConcern("majority", j=True))
        await manager.schedule(SAID, user_id="warm")
        await raw.insert_one({"said": SAID})
        for tasks in TASKS:
            calls = max(4, (256 if quick else 2048) // tasks)

            async def insert(task: int, n: int, tasks: int = tasks) -> None:
                await raw.insert_one({"user_id": f"{tasks} {task}", "said": f"{SAID} {n}"})

            async def schedule(task: int, n: int, tasks: int = tasks) -> None:
                # turns of a chat come seldom: each finds its user's lane empty, as it mostly is
                await manager.schedule(f"{SAID} {n}", user_id=f"{tasks} {task} {n}")

            alone = await at_once(tasks, calls, insert)
            before = counter.count
            ours = await at_once(tasks, calls, schedule)
            writes = (counter.count - before) / len(ours)
            found[str(tasks)] = {"raw": spread(alone), "schedule": spread(ours), "writes": round(writes, 2)}
    return found


def worker(uri: str) -> None:
    """Be a worker process until SIGTERM."""

    async def work() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        async with MemoryManager(uri, model=Simulated(0.3), settings=Settings(workers=False)) as manager:
            await manager.run_worker(stop, concurrency=AT_ONCE)

    asyncio.run(work())


async def throughput(uri: str, processes: int, jobs: int) -> float:
    """Captures a second, between the first and the last tenth of the queue."""
    settings = Settings(workers=False, debounce=timedelta(0))
    async with MemoryManager(uri, settings=settings) as manager:
        await asyncio.gather(*(manager.schedule(SAID, user_id=f"{processes} {n}") for n in range(jobs)))
        command = [sys.executable, __file__, "--worker", uri]
        started = [await asyncio.to_thread(subprocess.Popen, command) for _ in range(processes)]
        try:
            marks: list[tuple[float, int]] = []
            while not marks or marks[-1][1] > jobs * 0.1:
                status = await manager.queue_status()
                left = status.depth + status.in_flight
                if left <= jobs * 0.9:
                    marks.append((time.perf_counter(), left))
                await asyncio.sleep(0.1)
            return round((marks[0][1] - marks[-1][1]) / (marks[-1][0] - marks[0][0]), 1)
        finally:
            for process in started:
                process.terminate()
            for process in started:
                await asyncio.to_thread(process.wait)


async def stalls(uri: str) -> dict[str, dict[str, float]]:
    """How long the loop is kept from others: by a long conversation, and by many short ones that are captured."""
    settings = Settings(debounce=timedelta(0))
    long = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 100} for n in range(2_000)]
    async with MemoryManager(uri, model=Simulated(0.01), settings=settings) as manager:
        await (await manager.schedule(SAID, user_id="warm")).wait()

        async def many() -> None:
            for n in range(200):
                await manager.schedule(f"{SAID} {n}", user_id=f"user {n % 50}")
            await manager.drain()

        async with MemoryManager(uri, settings=Settings(workers=False)) as web:
            await web.schedule("I row", user_id="warm")
            found = {"schedule 1 MB": await longest_stall(lambda: web.schedule(long, user_id="long"))}
        await manager.erase_user("long")
        return found | {"200 captures": await longest_stall(many)}


async def turns(uri: str, *, quick: bool) -> dict[str, Any]:
    """A chat turn with a capture of three seconds beside one without; they take turns."""
    answer, taken = Simulated(0.1), {"without": list[float](), "with": list[float]()}
    async with MemoryManager(uri, model=Simulated(3), settings=Settings(debounce=timedelta(0))) as manager:
        await manager.add_user_memory(UserMemory(memory="Rows"), user_id="jane")
        await manager.schedule(SAID, user_id="jane")
        for n in range(20 if quick else 100):
            for name, seconds in taken.items():
                began = time.perf_counter()
                block = await manager.build_context(user_id="jane")
                await answer.complete(ChatRequest([{"role": "user", "content": block}]))
                if name == "with":
                    await manager.schedule(f"{SAID} {n}", user_id="jane")
                seconds.append(time.perf_counter() - began)
        await manager.erase_user("jane")
    found = {name: spread(seconds) for name, seconds in taken.items()}
    return {**found, "ratio": round(found["with"]["p50"] / found["without"]["p50"], 3)}


async def run(*, quick: bool) -> dict[str, Any]:
    """Measure everything."""
    with running_mongod(replica_set=True) as server:
        print("scheduling", flush=True)
        results: dict[str, Any] = {"schedule": await scheduling(with_database(server.uri, "schedule"), quick=quick)}
        results["throughput"] = {}
        for processes in WORKERS:
            print(f"{processes} workers", flush=True)
            uri = with_database(server.uri, f"workers_{processes}")
            rate = await throughput(uri, processes, (60 if quick else 300) * processes)
            results["throughput"][str(processes)] = rate
        print("stalls and turns", flush=True)
        results["stalls"] = await stalls(with_database(server.uri, "stalls"))
        results["turns"] = await turns(with_database(server.uri, "turns"), quick=quick)
    return results


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = ["| tasks | raw insert p50, p95 ms | `schedule()` p50, p95 ms | writes a call |", "|---|---|---|---|"]
    for tasks, found in results["schedule"].items():
        times = " | ".join(f"{found[name]['p50']:.1f}, {found[name]['p95']:.1f}" for name in ("raw", "schedule"))
        lines.append(f"| {tasks} | {times} | {found['writes']:.2f} |")
    first = results["throughput"]["1"]
    lines += ["", "| worker processes | captures a second | of what as many single ones do |", "|---|---|---|"]
    lines += [f"| {n} | {rate} | {rate / first / int(n):.2f} |" for n, rate in results["throughput"].items()]
    lines += ["", "| what | longest stall: wall clock, CPU, CPU without collector ms |", "|---|---|"]
    for what, found in results["stalls"].items():
        lines.append(f"| {what} | {found['stall']:.0f}, {found['cpu']:.0f}, {found['own']:.0f} |")
    without, captured = results["turns"]["without"], results["turns"]["with"]
    lines += ["", "| a chat turn | p50 ms | p95 ms |", "|---|---|---|"]
    lines += [f"| without capture | {without['p50']:.1f} | {without['p95']:.1f} |"]
    lines += [f"| with one that takes 3 s | {captured['p50']:.1f} | {captured['p95']:.1f} |"]
    before, after = results["machine"]["load"]
    return "\n".join(
        [
            *lines,
            "",
            f"Ratio of the two: {results['turns']['ratio']}. The machine's load was {before} before, {after} after.",
        ]
    )


def write_page() -> None:
    """Put the last results' tables into the page."""
    put(PAGE, "background", table(json.loads(RESULTS.read_text())))


def main() -> None:
    """Run, or write the tables of the last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: to see that it runs")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RESULTS.name}, and write the page")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, measure nothing")
    parser.add_argument("--worker", metavar="URI", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker)
        return
    if options.table:
        write_page()
        return
    load_before = round(os.getloadavg()[0], 1)
    results = asyncio.run(run(quick=options.quick))
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
