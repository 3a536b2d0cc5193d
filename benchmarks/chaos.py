"""Whether a promise is kept under fire: workers and servers die, networks break, models fail, a disk is full.

    python benchmarks/chaos.py [--seconds 300] [--write]

Three mongod as a replica set on loopback, four worker processes, two writers that note every addition and every
schedule that was acknowledged. Faults come one after the other; after each, how long until a write and until a capture
went through again. At the end, what was promised is looked for. ``--write`` keeps the figures in
benchmarks/results/chaos.json and writes the table of docs/background.md from it (``--table``: only that).
"""

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from chaos_cluster import Cluster, running_cluster, small_disk  # noqa: E402
from chaos_side import SETTINGS, Moody  # noqa: E402
from pages import put  # noqa: E402

from asyncmem import AsyncMemError, MemoryManager, UserMemory  # noqa: E402
from tests.servers import running_mongod, with_database  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "chaos.json"
PAGE = ROOT / "docs" / "background.md"
SIDE = Path(__file__).parent / "chaos_side.py"
WORKERS = 4
WRITERS = 2
DISK = "120m"
"""An empty embedded server takes a part of it."""
STILL = 5
"""Users that nobody writes to while it burns."""


class Sides:
    """The processes around the cluster."""

    def __init__(self, uri: str, folder: Path, *, writers: int = WRITERS) -> None:
        self._uri = uri
        self._folder = folder
        self.workers = [self._start("worker", n) for n in range(WORKERS)]
        self.writers = [self._start("writer", n) for n in range(writers)]

    def _start(self, role: str, number: int) -> "subprocess.Popen[bytes]":
        command = [sys.executable, str(SIDE), role, self._uri, str(self._folder), str(number + 1)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def kill_worker(self) -> None:
        """Kill -9 one of the workers, and start another."""
        number = random.randrange(WORKERS)
        self.workers[number].kill()
        self.workers[number].wait()
        self.workers[number] = self._start("worker", number)

    def mood(self, mood: str) -> None:
        """How the model is from now on."""
        (self._folder / "mood").write_text(mood)

    def stop_writing(self) -> None:
        """Let the writers end."""
        (self._folder / "stop").touch()
        for writer in self.writers:
            writer.wait(60)

    def end(self) -> None:
        """Kill what still runs."""
        for process in (*self.workers, *self.writers):
            process.kill()
            process.wait()


Deed = Callable[[], Awaitable[None]]


async def _kill_primary(cluster: Cluster) -> Deed:
    node = await cluster.primary()
    node.kill()
    return _later(node.start)


async def _cut_primary(cluster: Cluster) -> Deed:
    node = await cluster.primary()
    node.proxy.cut()
    return _later(node.proxy.mend)


async def _step_down(cluster: Cluster) -> Deed:
    await cluster.step_down()
    return _later(lambda: None)


async def _mood(sides: Sides, mood: str) -> Deed:
    sides.mood(mood)
    return _later(lambda: sides.mood(""))


async def _kill_worker(sides: Sides) -> Deed:
    sides.kill_worker()
    return _later(lambda: None)


def _later(mend: Callable[[], None]) -> Deed:
    async def mending() -> None:
        await asyncio.sleep(3)
        mend()

    return mending


def faults(cluster: Cluster, sides: Sides) -> dict[str, Callable[[], Awaitable[Deed]]]:
    """What is done to them; each gives what mends it, three seconds later."""
    return {
        "a worker is killed": lambda: _kill_worker(sides),
        "the primary is killed, and comes back": lambda: _kill_primary(cluster),
        "the primary steps down": lambda: _step_down(cluster),
        "the primary's network is cut for 3 s": lambda: _cut_primary(cluster),
        "the model takes 2 s, for 3 s": lambda: _mood(sides, "slow"),
        "the model fails, for 3 s": lambda: _mood(sides, "failing"),
    }


async def recovery(manager: MemoryManager, number: int) -> dict[str, float]:
    """Seconds until a write and until a capture goes through."""
    began = time.perf_counter()

    async def insisting(call: Callable[[], Awaitable[object]]) -> float:
        while True:
            with contextlib.suppress(AsyncMemError):
                await call()
                return time.perf_counter() - began
            await asyncio.sleep(0.05)

    async def capture() -> None:
        ticket = await manager.schedule(f"I own the probe number {number}", user_id="probe", flush=True)
        await ticket.wait(timeout=60)

    added = await insisting(lambda: manager.add_user_memory(UserMemory(memory=f"Probe {number}"), user_id="prober"))
    return {"write": round(added, 2), "capture": round(await insisting(capture), 2)}


async def burn(manager: MemoryManager, cluster: Cluster, sides: Sides, seconds: float) -> dict[str, Any]:
    """Let the faults come, one after the other, again and again until the time is over."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in faults(cluster, sides)}
    ends, number = time.monotonic() + seconds, 0
    while time.monotonic() < ends or not all(found.values()):
        for name, fault in faults(cluster, sides).items():
            if time.monotonic() > ends and found[name]:
                continue
            number += 1
            mend = await fault()
            _, recovered = await asyncio.gather(mend(), recovery(manager, number))
            found[name].append(recovered)
            print(f"  {name}: {recovered}", flush=True)
            await asyncio.sleep(1)
    return found


async def promises_kept(manager: MemoryManager, folder: Path) -> dict[str, Any]:
    """What of the notes is there, and how often."""
    notes = [json.loads(line) for path in folder.glob("promised-*") for line in path.read_text().splitlines()]
    promised = [note for note in notes if "text" in note]
    users = sorted({note["user"] for note in promised})
    there = {user: Counter(m.memory for m in await manager.get_user_memories(user_id=user)) for user in users}
    owners = {note["text"]: note["user"] for note in promised}
    found: dict[str, Any] = {"refused": dict(Counter(note["failed"] for note in notes if "failed" in note))}
    for kind in ("add", "schedule"):
        mine = [note for note in promised if note["kind"] == kind]
        times = sorted(note["ms"] for note in mine)
        found[kind] = {
            "acknowledged": len(mine),
            "lost": sum(not there[note["user"]][note["text"]] for note in mine),
            "doubled": sum(there[note["user"]][note["text"]] > 1 for note in mine),
            "p50 ms": times[len(times) // 2],
            "p99 ms": times[len(times) * 99 // 100],
        }
    found["with another user"] = sum(owners.get(text, user) != user for user in users for text in there[user])
    return found


async def replica_set(seconds: float) -> dict[str, Any]:
    """The fire, and what is left."""
    folder = Path(tempfile.mkdtemp(prefix="asyncmem-chaos-notes-"))
    try:
        async with running_cluster() as cluster:
            settings = SETTINGS.model_copy(update={"workers": False})
            async with MemoryManager(cluster.uri, model=Moody(folder), settings=settings) as manager:
                still = [UserMemory(memory=f"Still {n}", user_id=f"still{n % STILL}") for n in range(10 * STILL)]
                await manager.add_user_memories(still)
                before = [await manager.get_user_memories(user_id=f"still{n}") for n in range(STILL)]
                sides = Sides(cluster.uri, folder)
                try:
                    await _drained(manager, "I own the first item")  # so that the workers are there
                    recovered = await burn(manager, cluster, sides, seconds)
                    sides.stop_writing()
                    await _drained(manager)
                finally:
                    sides.end()
                kept = await promises_kept(manager, folder)
                after = [await manager.get_user_memories(user_id=f"still{n}") for n in range(STILL)]
        touched = sum(a != b for a, b in zip(before, after, strict=True))
        return {"recovery": recovered, **kept, "still users touched": touched}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _drained(manager: MemoryManager, first: str | None = None) -> None:
    """Wait until everything is captured, what failed too often included."""
    if first is not None:
        await (await manager.schedule(first, user_id="probe", flush=True)).wait(timeout=60)
        return
    async with asyncio.timeout(900):
        while True:
            with contextlib.suppress(AsyncMemError):
                await manager.retry_dead()
                status = await manager.drain(timeout=60)
                if not status.depth and not status.dead and not status.in_flight:
                    return
            await asyncio.sleep(0.5)


async def full_disk() -> dict[str, Any] | None:
    """Additions until an embedded server has no disk left: whether what was acknowledged is there afterwards."""
    with small_disk(DISK) as disk:
        if disk is None:
            return None
        promised: list[str] = []
        refused: Counter[str] = Counter()
        with contextlib.suppress(AsyncMemError):  # a server without room may not even close in order
            async with MemoryManager(f"embedded:{disk}/data", settings=SETTINGS) as manager:
                while not refused and len(promised) < 20_000:
                    text = f"Item {len(promised)} {random.Random(len(promised)).randbytes(3_900).hex()}"
                    try:
                        await manager.add_user_memory(UserMemory(memory=text), user_id="lin")
                        promised.append(text)
                    except AsyncMemError as error:
                        refused[type(error).__name__] += 1
        subprocess.check_call(["mount", "-o", "remount,size=1g", str(disk)])
        async with MemoryManager(f"embedded:{disk}/data", settings=SETTINGS) as manager:
            there = Counter(m.memory for m in await manager.get_user_memories(user_id="lin"))
    lost, doubled = (sum(is_so(there[text]) for text in promised) for is_so in (lambda n: not n, lambda n: n > 1))
    return {"acknowledged": len(promised), "refused with": sorted(refused), "lost": lost, "doubled": doubled}


def turns_of(user: int) -> list[str]:
    """What a user of the crowd says."""
    return [f"I own the {what} numbered {user}" for what in ("bike", "boat", "drone")]


async def crowd(users: int) -> dict[str, Any]:
    """Three turns of each of many users, with workers killed meanwhile, beside a run of one capture after the other."""
    folder = Path(tempfile.mkdtemp(prefix="asyncmem-chaos-notes-"))
    settings = SETTINGS.model_copy(update={"workers": False})
    try:
        with running_mongod(replica_set=True) as server:
            uri = with_database(server.uri, "crowd")
            async with MemoryManager(uri, model=Moody(folder), settings=settings) as manager:
                alone = {f"alone{n}": turns_of(n) for n in range(0, users, max(1, users // 100))}
                for user, said in alone.items():
                    for text in said:
                        await manager.create_user_memories(text, user_id=user)
                sequential = [await _texts(manager, f"alone{n}") for n in range(0, users, max(1, users // 100))]
                sides = Sides(uri, folder, writers=0)
                try:
                    scheduling = time.perf_counter()
                    for turn in range(3):
                        for start in range(0, users, 32):
                            some = range(start, min(users, start + 32))
                            await asyncio.gather(*(manager.schedule(turns_of(n)[turn], user_id=f"u{n}") for n in some))
                        if turn:
                            sides.kill_worker()
                    scheduled = time.perf_counter() - scheduling
                    await _drained(manager)
                finally:
                    sides.end()
                done = time.perf_counter() - scheduling
                there = [await _texts(manager, f"u{n}") for n in range(users)]
        wrong = sum(there[n] != turns_of(n) for n in range(users))
        sample = [there[n] for n in range(0, users, max(1, users // 100))]
        return {
            "users": users,
            "schedules": 3 * users,
            "a schedule ms": round(scheduled / 3 / users * 1000, 2),
            "seconds": round(done),
            "unlike the sequential run": wrong + sum(a != b for a, b in zip(sample, sequential, strict=True)),
            "sequential sample": len(alone),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _texts(manager: MemoryManager, user: str) -> list[str]:
    return [m.memory for m in await manager.get_user_memories(user_id=user)]


async def run(seconds: float, users: int) -> dict[str, Any]:
    """Everything."""
    found = {"seconds": seconds, **await replica_set(seconds), "full disk": await full_disk()}
    return {**found, "crowd": await crowd(users)}


def lines_of(results: dict[str, Any]) -> list[str]:
    """The results as Markdown."""
    lines = ["| fault | times | until a write went through, s | until a capture went through, s |", "|---|---|---|---|"]
    for name, each in results["recovery"].items():
        writes, captures = (sorted(one[what] for one in each) for what in ("write", "capture"))
        lines.append(f"| {name} | {len(each)} | {_span(writes)} | {_span(captures)} |")
    lines += ["", "| promised | acknowledged | lost | doubled | p50 ms | p99 ms |", "|" + "---|" * 6]
    for kind in ("add", "schedule"):
        lines.append("| " + " | ".join([kind, *(f"{value:,}" for value in results[kind].values())]) + " |")
    full = results["full disk"]
    if full:
        promised = f"{full['acknowledged']:,}, then {' or '.join(full['refused with'])}"
        lines.append(f"| add, embedded, until the disk is full | {promised} | {full['lost']} | {full['doubled']} | | |")
    crowd = results["crowd"]
    told = (
        f"{crowd['users']:,} users, three turns each, scheduled in {crowd['a schedule ms']:.1f} ms a turn, done after "
        f"{crowd['seconds']:,} s, two workers killed: {crowd['unlike the sequential run']} users' memories differ from "
        "those of a run of one capture after the other."
    )
    lines += ["", told]
    other = f"{results['with another user']} with another user, {results['still users touched']} other users touched"
    return [*lines, "", f"{results['seconds']:.0f} seconds of faults; {other}."]


def _span(values: list[float]) -> str:
    return f"{values[len(values) // 2]:.1f} (at most {values[-1]:.1f})"


def write_page() -> None:
    """Put the last results' tables into the page."""
    put(PAGE, "chaos", "\n".join(lines_of(json.loads(RESULTS.read_text()))))


def main() -> None:
    """Run, or write the table of the last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--users", type=int, default=10_000, help="the crowd")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RESULTS.name}, and write the page")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, do nothing else")
    options = parser.parse_args()
    if options.table:
        write_page()
        return
    results = asyncio.run(run(options.seconds, options.users))
    results["date"] = datetime.now(UTC).date().isoformat()
    print("\n".join(lines_of(results)))
    if options.write:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_page()


if __name__ == "__main__":
    main()
