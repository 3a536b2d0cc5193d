"""Optimization: what a safe swap takes beside a naive one, and whether facts survive careless models.

    python benchmarks/optimize.py [--write]                                     # swaps, and models that lose facts
    python benchmarks/local_model.py run -- python benchmarks/optimize.py --model   # and with a real model

The facts are made up, and a checker of this benchmark's own looks for them: each memory's names, numbers and negations
must stand in one sentence of one memory afterwards. ``--write`` keeps the figures in benchmarks/results/optimize.json
and writes the tables of docs/optimize.md from it (``--table``: only that).
"""

import argparse
import asyncio
import json
import platform
import random
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pages import put  # noqa: E402
from pymongo import AsyncMongoClient  # noqa: E402
from pymongo.write_concern import WriteConcern  # noqa: E402

from asyncmem import (  # noqa: E402
    ChatReply,
    ChatRequest,
    MemoryManager,
    OptimizationError,
    OptimizationResult,
    Settings,
    UserMemory,
)
from asyncmem.interfaces.choice import choose_model, llm_settings  # noqa: E402
from asyncmem.store.rows import to_row  # noqa: E402
from asyncmem.store.store import MemoryStore, open_store  # noqa: E402
from asyncmem.store.swaps import SwapPlan  # noqa: E402
from tests.servers import running_mongod, with_database  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "optimize.json"
PAGE = ROOT / "docs" / "optimize.md"
SIZES = (50, 500, 5_000)
FOLDED = 10
"""Memories that one new memory takes the place of."""
USER = "asyncmem-optimize"
REAL = 24
"""Memories that a real model is asked about."""


# ------------------------------------------------------------------------------------------------------- facts


@dataclass(frozen=True)
class Fact:
    """A memory, and the words that must stand in one sentence afterwards."""

    text: str
    terms: tuple[str, ...]

    def survives(self, memories: list[str]) -> bool:
        """Whether one sentence of one memory has all terms, and is negated if the memory is."""
        sentences = (s for memory in memories for s in re.split(r"(?<=[.;!?])\s+", memory))
        return any(
            all(re.search(rf"\b{re.escape(term)}", sentence, re.IGNORECASE) for term in self.terms)
            and _is_negated(sentence) == _is_negated(self.text)
            for sentence in sentences
        )


def _is_negated(text: str) -> bool:
    return re.search(r"\b(?:not|never|no)\b|n't\b", text, re.IGNORECASE) is not None


_FIRST_ = "Ada Bela Cleo Dora Edda Finn Gero Hugo Ilse Jana Kolo Lasse Mira Nilo Olga Piet Rosa Sven Tilda Ugo"
_LAST_ = "Adler Bruns Cordes Dahl Eggers Falk Gruber Hansen Iwers Jansen Keller Lorenz Matz Nolte Petersen"
_PLACES_ = "Porto Oslo Lyon Bergen Gdansk Ghent Turin Malmo Split Graz Cork Bilbao Aarhus Leeds Bonn"
_PETS_ = "parrots cats dogs rabbits goldfish geckos ponies canaries ferrets tortoises"
_FOODS_ = "walnuts shrimps celery mustard coriander anchovies lentils ginger saffron radishes"
_FIRST, _LAST, _PLACES, _PETS, _FOODS = (text.split() for text in (_FIRST_, _LAST_, _PLACES_, _PETS_, _FOODS_))


def made_up(count: int, chance: random.Random) -> list[Fact]:
    """So many memories, no two of which say the same."""
    made: dict[str, Fact] = {}
    while len(made) < count:
        name = f"{chance.choice(_FIRST)} {chance.choice(_LAST)}"
        number, place = str(chance.randint(2, 99)), chance.choice(_PLACES)
        pets, food, year = chance.choice(_PETS), chance.choice(_FOODS), str(chance.randint(1950, 2025))
        fact = chance.choice(
            [
                Fact(f"Has a friend named {name} in {place}", (name, place)),
                Fact(f"{name} keeps {number} {pets}", (name, number, pets)),
                Fact(f"Moved to {place} in {year} with {name}", (place, year, name)),
                Fact(f"Does not eat {food} since {year}", (food, year)),
                Fact(f"Never visited {place} with {name}", (place, name)),
                Fact(f"Pays {number} euros for {food} in {place}", (number, food, place)),
            ]
        )
        made.setdefault(fact.text, fact)
    return list(made.values())


# ------------------------------------------------------------------------------------------- models that lose facts

Damage = Callable[[str, random.Random], str]
DAMAGES: dict[str, Damage] = {
    "leaves it out": lambda _, __: "",
    "another number": lambda text, _: re.sub(r"\d+", lambda m: str(int(m[0]) + 1), text),
    "another name": lambda text, _: re.sub(r"\b(?:%s)\b" % "|".join(_LAST), "Zimmer", text),  # noqa: UP031
    "turns it around": lambda text, _: text.replace("Does not eat", "Eats").replace("Never visited", "Visited"),
    "another place": lambda text, _: re.sub(r"\b(?:%s)\b" % "|".join(_PLACES), "Paris", text),  # noqa: UP031
    "a word less": lambda text, chance: " ".join(_without_one(text.split(), chance)),
}


def _without_one(words: list[str], chance: random.Random) -> list[str]:
    telling = [i for i, word in enumerate(words) if word[0].isupper() or word.isdigit() or word in _PETS + _FOODS]
    gone = chance.choice(telling)
    return [word for i, word in enumerate(words) if i != gone]


class Careless:
    """A model that copies what it reads, but for one memory in five, which it damages in one way, whenever asked."""

    name = "careless"

    def __init__(self, facts: list[Fact], damage: str, chance: random.Random) -> None:
        self._facts = [fact.text for fact in facts]
        self.said: dict[str, str] = {}
        for text in self._facts:
            said = DAMAGES[damage](text, chance) if chance.random() < 0.2 else text
            self.said[text] = said

    @property
    def damaged(self) -> int:
        """How many memories it says otherwise, or not at all."""
        return sum(said != text for text, said in self.said.items())

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Copy the memories of the request that it knows."""
        asked = "\n".join(str(message["content"]) for message in request.messages)
        read = [text for text in self._facts if text in asked]
        sentences = [said for text in read if (said := self.said[text])]
        return ChatReply(content=json.dumps({"memory": ". ".join(sentences) + "."}))


# ------------------------------------------------------------------------------------------------------- measuring


@asynccontextmanager
async def filled(uri: str, facts: list[Fact], **options: Any) -> AsyncIterator[MemoryManager]:
    """A manager whose one user has these memories."""
    async with MemoryManager(uri, **options) as manager:
        await manager.erase_user(USER)
        memories = [UserMemory(memory=fact.text, topics=["people"]) for fact in facts]
        await manager.add_user_memories(memories, user_id=USER)
        yield manager
        await manager.erase_user(USER)


async def careless(uri: str, damage: str, strategy: str) -> dict[str, int]:
    """How many facts a careless model damaged, and how many are lost afterwards."""
    chance = random.Random(f"{damage}{strategy}")
    facts = made_up(100, chance)
    model = Careless(facts, damage, chance)
    async with filled(uri, facts, model=model) as manager:
        refused = False
        try:
            await manager.optimize_memories(user_id=USER, strategy=strategy)
        except OptimizationError:
            refused = True
        texts = [m.memory for m in await manager.get_user_memories(user_id=USER)]
    return {
        "memories": len(facts),
        "damaged": model.damaged,
        "lost": sum(not fact.survives(texts) for fact in facts),
        "after": len(texts),
        "refused": refused,
    }


async def real(uri: str) -> dict[str, Any]:
    """The same with a real model."""
    facts = made_up(REAL, random.Random(11))
    found: dict[str, Any] = {"model": choose_model(None)}
    for strategy in ("summarize", "topics"):
        options: dict[str, Any] = {"model": choose_model(None), "llm": llm_settings()}
        async with filled(uri, facts, **options) as manager:
            began = time.perf_counter()
            result: OptimizationResult = await manager.optimize_memories(user_id=USER, strategy=strategy)
            texts = [m.memory for m in await manager.get_user_memories(user_id=USER)]
        found[strategy] = {
            "memories": len(facts),
            "after": len(texts),
            "lost": sum(not fact.survives(texts) for fact in facts),
            "tokens": [result.tokens_before, result.tokens_after],
            "calls": result.usage.calls,
            "seconds": round(time.perf_counter() - began),
        }
    return found


async def _fill(store: MemoryStore, size: int) -> list[UserMemory]:
    facts = made_up(size, random.Random(size))
    owned = [(UserMemory(memory=fact.text), USER) for fact in facts]
    await store.remove.erase(USER)
    await store.write.add_many(owned, "manual", {})
    return await store.swaps.snapshot(USER)


def _folded(memories: list[UserMemory]) -> list[UserMemory]:
    parts = [memories[i : i + FOLDED] for i in range(0, len(memories), FOLDED)]
    return [UserMemory(memory=". ".join(m.memory for m in part)) for part in parts]


async def swaps(uri: str, size: int, rounds: int) -> dict[str, float]:
    """Milliseconds of a safe swap, of its undo, and of deleting all and inserting what is new."""
    store = await open_store(uri, Settings())
    taken: dict[str, list[float]] = {"swap": [], "undo": [], "naive": []}
    async with AsyncMongoClient[dict[str, Any]](uri) as client:
        rows = client.get_default_database()["asyncmem_memories"].with_options(
            write_concern=WriteConcern(w="majority", j=True)
        )
        for number in range(rounds):
            memories = await _fill(store, size)
            run = f"{size}-{number}"
            erasures = await store.captures.begun(USER)
            plan = SwapPlan(run, USER, "fold", memories, (), _folded(memories), "optimize", erasures, {})
            began = time.perf_counter()
            await store.swaps.swap(plan)
            taken["swap"].append(time.perf_counter() - began)
            began = time.perf_counter()
            await store.swaps.undo(USER, run)
            taken["undo"].append(time.perf_counter() - began)
            new = [to_row(m, USER, datetime.now(UTC), "naive") for m in _folded(memories)]
            began = time.perf_counter()
            await rows.delete_many({"user_id": USER})
            await rows.insert_many(new)
            taken["naive"].append(time.perf_counter() - began)
    await store.remove.erase(USER)
    await store.aclose()
    return {name: round(statistics.median(each) * 1000, 1) for name, each in taken.items()}


async def run(rounds: int) -> dict[str, Any]:
    """Measure everything that needs no real model."""
    results: dict[str, Any] = {"swaps": {}, "careless": {}}
    for kind in ("replica set", "standalone"):
        with running_mongod(replica_set=kind == "replica set") as server:
            uri = with_database(server.uri, "optimize")
            results["swaps"][kind] = {str(size): await swaps(uri, size, rounds) for size in SIZES}
            if kind == "replica set":
                for damage in DAMAGES:
                    for strategy in ("summarize", "topics"):
                        results["careless"][f"{damage}, {strategy}"] = await careless(uri, damage, strategy)
    return results


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = ["| server | memories | swap ms | undo ms | naive ms | swap to naive |", "|" + "---|" * 6]
    for kind, sizes in results["swaps"].items():
        for size, each in sizes.items():
            ratio = each["swap"] / each["naive"]
            times = " | ".join(f"{each[name]:.0f}" for name in ("swap", "undo", "naive"))
            lines.append(f"| {kind} | {int(size):,} | {times} | {ratio:.1f} |")
    lines += ["", "| the model | memories | said otherwise | lost | memories afterwards |", "|" + "---|" * 5]
    for name, each in results["careless"].items():
        after = f"{each['after']} (refused as a whole)" if each["refused"] else each["after"]
        lines.append(f"| {name} | {each['memories']} | {each['damaged']} | {each['lost']} | {after} |")
    found = results.get("real")
    if found:
        lines += [
            "",
            f"| {found['model']} | memories | lost | memories afterwards | tokens | calls |",
            "|" + "---|" * 6,
        ]
        for name in ("summarize", "topics"):
            each = found[name]
            before, after = each["tokens"]
            lines.append(
                f"| {name} | {each['memories']} | {each['lost']} | {each['after']} | {before:,} to {after:,}"
                f" | {each['calls']} |"
            )
    return "\n".join(lines)


def write_page() -> None:
    """Put the last results' tables into the page."""
    put(PAGE, "optimize", table(json.loads(RESULTS.read_text())))


async def run_real() -> dict[str, Any]:
    """Measure with a real model."""
    with running_mongod(replica_set=True) as server:
        return await real(with_database(server.uri, "optimize"))


def main() -> None:
    """Run, or write the tables of the last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", action="store_true", help="only with the model that ASYNCMEM_MODEL names")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RESULTS.name}, and write the page")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, measure nothing")
    options = parser.parse_args()
    if options.table:
        write_page()
        return
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"swaps": {}, "careless": {}}
    results = (
        {**kept, "real": asyncio.run(run_real())} if options.model else {**kept, **asyncio.run(run(options.rounds))}
    )
    results["machine"] = {"python": platform.python_version(), "date": datetime.now(UTC).date().isoformat()}
    print(table(results))
    if options.write:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_page()


if __name__ == "__main__":
    main()
