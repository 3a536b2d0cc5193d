"""What asyncmem costs over litellm, and how long loading litellm stalls the event loop.

Every way is called in turn, in rounds, against one simulated provider in a process of its own, so that noise hits all
of them alike; the figures are minimum CPU per call over the rounds, and the largest lag of the event loop.

    python benchmarks/llm.py [--calls 400] [--rounds 5]

``openai`` and, where it is installed, ``instructor`` are measured beside it.
"""

import argparse
import asyncio
import importlib
import json
import multiprocessing
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from pydantic import BaseModel

from asyncmem.llm import LLM, Abilities
from asyncmem.llm.loading import load_litellm
from asyncmem.llm.schemas import with_schema
from asyncmem.settings import LLMSettings
from asyncmem.testing import Behaviour, ProviderSimulator

CONCURRENCY = (1, 16, 32, 256)
BUDGET = 1.10
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


async def ways(url: str) -> dict[str, Call]:
    """What is compared: the same request, the same format, the same checks of the answer."""
    litellm = await load_litellm()
    openai = importlib.import_module("openai")
    turns = with_schema(PROMPT, Ids)
    common = {"api_base": url, "api_key": "sk-x"}
    llm = LLM("openai/foo", LLMSettings(**common, concurrency=1000, deadline=600), abilities=Abilities())  # type: ignore[arg-type]
    client = openai.AsyncOpenAI(base_url=url, api_key="sk-x", max_retries=0)

    async def asyncmem_() -> Any:
        return (await llm.structured(PROMPT, Ids)).value

    async def litellm_() -> Any:
        answer = await litellm.acompletion(
            "openai/foo", messages=turns, response_format=Ids, temperature=0.0, max_tokens=2048, timeout=60,
            num_retries=0, max_retries=0, enable_json_schema_validation=False, **common,
        )  # fmt: skip
        return Ids.model_validate_json(answer.choices[0].message.content)

    async def openai_() -> Any:
        answer = await client.chat.completions.parse(
            model="foo", messages=turns, response_format=Ids, temperature=0.0, max_tokens=2048, timeout=60
        )
        return answer.choices[0].message.parsed

    found: dict[str, Call] = {"litellm": litellm_, "asyncmem": asyncmem_, "openai": openai_}
    try:
        instructor = importlib.import_module("instructor")
    except ImportError:
        return found
    patched = instructor.from_litellm(litellm.acompletion, mode=instructor.Mode.JSON_SCHEMA)

    async def instructor_() -> Any:
        given = {"temperature": 0.0, "max_tokens": 2048, "max_retries": 0, **common}
        return await patched.chat.completions.create(model="openai/foo", messages=turns, response_model=Ids, **given)

    return {**found, "instructor": instructor_}


async def measure(url: str, calls: int, rounds: int) -> dict[tuple[str, int], Figures]:
    """Figures of every way at every concurrency, rounds interleaved."""
    compared = await ways(url)
    for call in compared.values():
        assert await call() == Ids(memory_ids=["2", "1"])
    figures = {(name, n): Figures() for name in compared for n in CONCURRENCY}
    for _ in range(rounds):
        for n in CONCURRENCY:
            for name, call in compared.items():
                cpu, wall = time.process_time(), time.perf_counter()
                lag, _ = await lag_of(burst(call, calls, n))
                done = figures[name, n]
                done.cpu.append((time.process_time() - cpu) / calls)
                done.wall.append((time.perf_counter() - wall) / calls)
                done.lag.append(lag)
    return figures


def report(figures: dict[tuple[str, int], Figures]) -> bool:
    """Print the table; whether the budget is kept."""
    kept = True
    print(f"{'way':<12}{'at once':>8}{'CPU ms/call':>13}{'over litellm':>14}{'worst lag ms':>14}{'calls/s':>9}")
    for (name, n), done in figures.items():
        ratio = min(done.cpu) / min(figures["litellm", n].cpu)
        kept = kept and (name != "asyncmem" or ratio <= BUDGET)
        lag = sorted(done.lag)[len(done.lag) // 2]
        print(
            f"{name:<12}{n:>8}{min(done.cpu) * 1e3:>13.2f}{ratio:>13.2f}x{lag * 1e3:>14.0f}{1 / min(done.wall):>9.0f}"
        )
    print(f"budget: asyncmem at most {BUDGET:.2f}x litellm's own CPU: {'kept' if kept else 'NOT KEPT'}")
    return kept


async def run(url: str, calls: int, rounds: int) -> bool:
    """Load litellm, watching the loop, then compare."""
    started = time.perf_counter()
    lag, _ = await lag_of(load_litellm())
    print(f"loading litellm: {time.perf_counter() - started:.1f} s, the loop stalled {lag * 1e3:.0f} ms at most")
    return report(await measure(url, calls, rounds))


def main() -> int:
    """Run it; 1 when the budget is not kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = here.recv()
    kept = asyncio.run(run(url, given.calls, given.rounds))
    here.send("stop")
    server.join(10)
    print(json.dumps({"kept": kept}))
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
