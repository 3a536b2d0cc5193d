"""An agent's answer with capture on beside one with capture off: what a user notices of it.

    python benchmarks/agent.py [--quick] [--write | --table]

A replica set of one node; both agents take turns on sessions of their own. The models are simulated: one answers after
half a second, and one captures in three. ``--write`` keeps the figures in benchmarks/results/agent.json and writes the
table in docs/performance.md from them (``--table``: only that).
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from asyncmem import Agent, ChatReply, ChatRequest, MemoryManager, Settings, UserMemory  # noqa: E402
from tests.servers import running_mongod, with_database  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "agent.json"
PAGE = ROOT / "docs" / "performance.md"
ANSWERS, CAPTURES = 0.5, 3.0
"""Seconds that the agent's and the manager's model take."""
GOAL = 1.05
WAYS = {"off": False, "on": True}


class Simulated:
    """A model that takes its time."""

    name = "simulated"

    def __init__(self, seconds: float, says: str) -> None:
        self._seconds = seconds
        self._says = says

    async def complete(self, _: ChatRequest) -> ChatReply:
        """Answer late."""
        await asyncio.sleep(self._seconds)
        return ChatReply(content=self._says)


def spread(seconds: list[float]) -> dict[str, float]:
    """Median and 95th percentile in milliseconds."""
    ordered = sorted(seconds)
    return {
        "p50": round(statistics.median(ordered) * 1000, 2),
        "p95": round(ordered[int(0.95 * (len(ordered) - 1))] * 1000, 2),
    }


async def turns(uri: str, *, sessions: bool, rounds: int) -> dict[str, Any]:
    """How long a run takes with and without capture, by turns."""
    taken: dict[str, list[float]] = {name: [] for name in WAYS}
    keeper = Simulated(CAPTURES, json.dumps({"operations": []}))
    async with MemoryManager(uri, model=keeper, settings=Settings(debounce=timedelta(0))) as manager:
        facts = [UserMemory(memory=f"Fact number {n} about this person") for n in range(20)]
        speaker = Simulated(ANSWERS, "That is good to know. What else would you like to tell me today?")
        agents = {n: Agent(speaker, memory_manager=manager, update_memory_on_run=on) for n, on in WAYS.items()}
        for name in WAYS:
            await manager.add_user_memories(facts, user_id=name)
            await agents[name].run("Hello", user_id=name, session_id="warm")
        for n in range(rounds):
            for name, agent in agents.items():
                began = time.perf_counter()
                session = f"session {n // 10}" if sessions else None
                result = await agent.run(f"Today is day {n} of my journey", user_id=name, session_id=session)
                taken[name].append(time.perf_counter() - began)
                assert (len(result.captures), result.capture_error) == (int(WAYS[name]), None)
        for name in WAYS:
            await manager.erase_user(name)
    found: dict[str, Any] = {name: spread(seconds) for name, seconds in taken.items()}
    return {**found, "ratio": round(found["on"]["p50"] / found["off"]["p50"], 4)}


async def run(*, quick: bool) -> dict[str, Any]:
    """Measure everything."""
    rounds = 5 if quick else 60
    with running_mongod(replica_set=True) as server:
        results: dict[str, Any] = {}
        for name, sessions in (("in a session", True), ("without one", False)):
            print(name, flush=True)
            uri = with_database(server.uri, f"agent_{sessions}")
            results[name] = await turns(uri, sessions=sessions, rounds=rounds)
    return results


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = ["| a run | capture off p50, p95 ms | capture on p50, p95 ms | ratio of medians |", "|---|---|---|---|"]
    for what, found in results.items():
        if what == "machine":
            continue
        times = " | ".join(f"{found[name]['p50']:.1f}, {found[name]['p95']:.1f}" for name in WAYS)
        lines.append(f"| {what} | {times} | {found['ratio']:.3f} |")
    before, after = results["machine"]["load"]
    lines += ["", f"The goal is {GOAL}. The machine's load was {before} before, {after} after."]
    return "\n".join(lines)


def write_page() -> None:
    """Put the last results' table into the page."""
    before, _, rest = PAGE.read_text().partition("<!-- agent -->\n")
    _, _, after = rest.partition("<!-- /agent -->\n")
    text = table(json.loads(RESULTS.read_text()))
    PAGE.write_text(f"{before}<!-- agent -->\n{text}\n<!-- /agent -->\n{after}")


def main() -> None:
    """Run, or write the table of the last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: to see that it runs")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RESULTS.name}, and write the page")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, measure nothing")
    options = parser.parse_args()
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
