"""What asyncmem costs over litellm, beside the openai SDK and instructor, and what its loading does to the event loop.

Every way is called in turn, in rounds, against one simulated provider in a process of its own, so that noise hits all
of them alike; CPU is this process's own, with what litellm logs afterwards in tasks of its own, which is waited for.
The figures are minimum CPU per call over the rounds, the median of its ratio
to litellm's in the same round, the median of the rounds' largest lag of the event loop, and the best rate. ``asyncmem``
lets as many calls through as the row says, as the others do; ``asyncmem, 16`` keeps the default bound of 16.
What is budgeted of CPU is measured once more with litellm just before and just after, since the machine's own pace
drifts. What was loaded is taken from the garbage collector's sight: going through litellm's 370,000 objects takes it
half a second, which whoever happens to be measured would pay for.

    python benchmarks/llm.py [--calls 256] [--rounds 9] [--write | --table]

instructor is measured where it is installed; it wants an older openai SDK, so give it an environment of its own.
"""

import argparse
import asyncio
import gc
import importlib
import json
import multiprocessing
import os
import platform
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import metadata
from multiprocessing.connection import Connection
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Any

from pages import put
from pydantic import BaseModel

from asyncmem.llm import LLM, Abilities, ChatReply
from asyncmem.llm.loading import load_litellm
from asyncmem.llm.schemas import with_schema
from asyncmem.settings import LLMSettings
from asyncmem.testing import Behaviour, ProviderSimulator

CONCURRENCY = (1, 16, 32, 256)
BUDGET = 1.10
BUDGETED = ("1", "32", "256")
LAG_BUDGET = 0.050
RESULTS = Path(__file__).parent / "results" / "llm.json"
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
PROMPT = [
    {"role": "system", "content": "You choose the memories that matter. " * 20},
    {"role": "user", "content": "1: Plays chess\n2: Lives in Porto\n" * 30},
]


class Ids(BaseModel):
    """The answer."""

    memory_ids: list[str]


Call = Callable[[], Awaitable[Any]]


@dataclass
class Figures:
    """One way at one concurrency."""

    cpu: list[float] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


def serve(pipe: Connection) -> None:
    """Run a provider until the pipe says stop."""
    with ProviderSimulator(Behaviour(says={"memory_ids": ["2", "1"]})) as provider:
        provider.received = Forgetful()
        pipe.send(provider.url)
        pipe.recv()


class Forgetful(list[Any]):
    """A list that keeps nothing: thousands of requests are not worth keeping."""

    def append(self, item: Any) -> None:
        """Don't."""


async def lag_of(work: Awaitable[Any]) -> tuple[float, Any]:
    """The largest lag of the event loop in seconds while the work goes on, and its result."""
    worst = 0.0

    async def watch() -> None:
        nonlocal worst
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.002)
            worst = max(worst, time.perf_counter() - started - 0.002)

    watcher = asyncio.ensure_future(watch())
    result = await work
    watcher.cancel()
    return worst, result


async def burst(call: Call, calls: int, at_once: int) -> None:
    """So many calls, so many at once."""
    left = calls

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await call()

    await asyncio.gather(*(worker() for _ in range(at_once)))


async def settled() -> None:
    """Wait for what litellm still does for the calls before: else whoever comes next would pay for it."""
    worker = importlib.import_module("litellm.litellm_core_utils.logging_worker").GLOBAL_LOGGING_WORKER
    await worker.flush()


async def ways(url: str, at_once: int) -> dict[str, Call]:
    """What is compared: the same request, the same format, the same checks of the answer; ours lets so many through."""
    litellm = await load_litellm()
    openai = importlib.import_module("openai")
    turns = with_schema(PROMPT, Ids)
    common: dict[str, Any] = {"api_base": url, "api_key": "sk-x"}
    sampling: dict[str, Any] = {"temperature": 0.0, "max_tokens": 2048}
    client = openai.AsyncOpenAI(base_url=url, api_key="sk-x", max_retries=0)

    def ours(concurrency: int) -> Call:
        settings = LLMSettings(**common, concurrency=concurrency, deadline=600)
        llm = LLM("openai/foo", settings, abilities=Abilities())

        async def call() -> Any:
            return (await llm.structured(PROMPT, Ids)).value

        return call

    async def litellm_() -> Any:
        answer = await litellm.acompletion(
            "openai/foo", messages=turns, response_format=Ids, timeout=60, num_retries=0, max_retries=0,
            enable_json_schema_validation=False, **sampling, **common,
        )  # fmt: skip
        return Ids.model_validate_json(answer.choices[0].message.content)

    async def openai_() -> Any:
        answer = await client.chat.completions.parse(
            model="foo", messages=turns, response_format=Ids, timeout=60, **sampling
        )
        return answer.choices[0].message.parsed

    found = {"litellm": litellm_, "asyncmem": ours(at_once), "asyncmem, 16": ours(16), "openai": openai_}
    try:
        instructor = importlib.import_module("instructor")
    except ImportError:
        return found
    mode = instructor.Mode.JSON_SCHEMA
    over_litellm = instructor.from_litellm(litellm.acompletion, mode=mode).chat.completions
    over_openai = instructor.from_openai(client, mode=mode).chat.completions
    given: dict[str, Any] = {"messages": turns, "response_model": Ids, "max_retries": 0, **sampling}
    return {
        **found,
        "instructor, litellm": lambda: over_litellm.create(model="openai/foo", **given, **common),
        "instructor, openai": lambda: over_openai.create(model="foo", **given),
    }


async def alone(calls: int) -> float:
    """CPU seconds of asyncmem's own part of a call: of one that is answered without litellm, at once."""
    said = ChatReply(content='{"memory_ids": ["2", "1"]}')

    async def complete(**_: Any) -> ChatReply:
        return said

    llm, best = LLM(complete), float("inf")
    for _ in range(5):
        started = time.process_time()
        for _ in range(calls):
            await llm.structured(PROMPT, Ids)
        best = min(best, (time.process_time() - started) / calls)
    return best


async def prepared(url: str) -> dict[int, dict[str, Call]]:
    """Every way at every concurrency, seen to work."""
    compared = {n: await ways(url, n) for n in CONCURRENCY}
    for found in compared.values():
        for call in found.values():
            assert (await call()).memory_ids == ["2", "1"]
    gc.collect()
    gc.freeze()
    return compared


async def over_litellm(compared: dict[int, dict[str, Call]], rounds: int) -> dict[str, float]:
    """By calls at once: CPU of asyncmem as a multiple of litellm's, each measured twice, there and back."""
    ratios: dict[str, float] = {}
    for n in map(int, BUDGETED):
        found: list[float] = []
        for _ in range(rounds):
            spent = {"litellm": 0.0, "asyncmem": 0.0}
            for name in ("litellm", "asyncmem", "asyncmem", "litellm"):
                cpu = time.process_time()
                await burst(compared[n][name], max(32, n), n)
                await settled()
                spent[name] += time.process_time() - cpu
            found.append(spent["asyncmem"] / spent["litellm"])
        ratios[str(n)] = round(median(found), 2)
    return ratios


async def measure(compared: dict[int, dict[str, Call]], calls: int, rounds: int) -> dict[tuple[str, int], Figures]:
    """Figures of every way at every concurrency, rounds interleaved."""
    figures = {(name, n): Figures() for n in CONCURRENCY for name in compared[n]}
    for _ in range(rounds):
        for n in CONCURRENCY:
            # in another order each time, so that none always pays for what another left behind
            for name, call in random.sample(list(compared[n].items()), len(compared[n])):
                cpu, wall, most = time.process_time(), time.perf_counter(), max(calls, n)
                await burst(call, most, n)
                await settled()
                done = figures[name, n]
                done.cpu.append((time.process_time() - cpu) / most)
                done.wall.append((time.perf_counter() - wall) / most)
                # apart, since watching takes CPU too, the more the oftener the loop lets it run
                lag, _ = await lag_of(burst(call, most, n))
                await settled()
                done.lag.append(lag)
    return figures


def summed_up(figures: dict[tuple[str, int], Figures]) -> dict[str, dict[str, dict[str, float]]]:
    """By way and calls at once: CPU in ms a call, the same as a multiple of litellm's, lag in ms, calls a second."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for (name, n), done in figures.items():
        table.setdefault(name, {})[str(n)] = {
            "cpu_ms": round(min(done.cpu) * 1e3, 2),
            # of each round, since a shared machine is now faster, now slower
            "over_litellm": round(median(map(truediv, done.cpu, figures["litellm", n].cpu)), 2),
            "lag_ms": round(median(done.lag) * 1e3),
            "calls_per_s": round(1 / min(done.wall)),
        }
    return table


def report(table: dict[str, dict[str, dict[str, float]]], ratios: dict[str, float]) -> dict[str, bool]:
    """Print the table; whether each budget is kept."""
    print(f"{'way':<20}{'at once':>8}{'CPU ms/call':>13}{'over litellm':>14}{'lag ms':>8}{'calls/s':>9}")
    for name, rows in table.items():
        for n, row in rows.items():
            print(
                f"{name:<20}{n:>8}{row['cpu_ms']:>13.2f}{row['over_litellm']:>13.2f}x{row['lag_ms']:>8.0f}"
                f"{row['calls_per_s']:>9.0f}"
            )
    kept = {
        "cpu": all(ratio <= BUDGET for ratio in ratios.values()),
        "lag": table["asyncmem, 16"]["16"]["lag_ms"] <= LAG_BUDGET * 1e3,
    }
    print(
        f"CPU at most {BUDGET:.2f}x litellm's at {', '.join(BUDGETED)} at once: {list(ratios.values())}:"
        f" {'kept' if kept['cpu'] else 'NOT KEPT'}"
    )
    print(f"lag at most {LAG_BUDGET * 1e3:.0f} ms at 16 at once: {'kept' if kept['lag'] else 'NOT KEPT'}")
    return kept


async def run(url: str, calls: int, rounds: int) -> dict[str, Any]:
    """Load litellm, watching the loop, then compare."""
    started = time.perf_counter()
    stall, _ = await lag_of(load_litellm())
    loading = {"seconds": round(time.perf_counter() - started, 1), "stall_ms": round(stall * 1e3)}
    print(f"loading litellm: {loading['seconds']} s, the loop stalled {loading['stall_ms']} ms at most")
    own = round(await alone(calls) * 1e3, 3)
    print(f"asyncmem's own part: {own} ms CPU a call")
    compared = await prepared(url)
    ratios = await over_litellm(compared, rounds)
    table = summed_up(await measure(compared, calls, rounds))
    machine = {"python": platform.python_version(), "cpus": os.cpu_count(), "calls": calls, "rounds": rounds}
    names = ("litellm", "openai", "instructor", "pydantic")
    versions = {d.name: d.version for d in metadata.distributions() if d.name in names}
    return {
        "versions": versions,
        "run": machine,
        "loading": loading,
        "own_cpu_ms": own,
        "over_litellm": ratios,
        "ways": table,
        "kept": report(table, ratios),
    }


def table(results: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    lines = ["| way | at once | CPU ms a call | over litellm | largest lag, ms | calls a second |", "|" + "---|" * 6]
    for name, rows in results["ways"].items():
        for n, row in rows.items():
            figures = f"{row['cpu_ms']:.2f} | {row['over_litellm']:.2f} | {row['lag_ms']} | {row['calls_per_s']}"
            lines.append(f"| {name} | {n} | {figures} |")
    versions = ", ".join(f"{name} {version}" for name, version in sorted(results["versions"].items()))
    loading = results["loading"]
    return "\n".join(
        [
            *lines,
            "",
            "CPU over litellm's, each measured just before and just after the other: "
            + ", ".join(f"{ratio:.2f} at {n}" for n, ratio in results["over_litellm"].items())
            + ".",
            f"asyncmem's own part of a call is {results['own_cpu_ms']} ms of CPU.",
            f"Loading litellm took {loading['seconds']} s, and stalled the loop {loading['stall_ms']} ms at most.",
            f"Versions: {versions}.",
        ]
    )


def write_page() -> None:
    """Put the last results into the page."""
    put(PAGE, "llm", table(json.loads(RESULTS.read_text())))


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=256, help="calls of each way in each round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RESULTS.name}")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, measure nothing")
    given = parser.parse_args()
    if given.table:
        write_page()
        return
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = here.recv()
    results = asyncio.run(run(url, given.calls, given.rounds))
    here.send("stop")
    server.join(10)
    if given.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_page()


if __name__ == "__main__":
    main()
