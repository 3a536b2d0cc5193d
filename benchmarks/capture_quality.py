"""How good capture is with a real model: 60 made-up conversations, and what memory should be like after each.

    python benchmarks/capture_quality.py [--set dev] [--only ID ...] [--write]     # the model that ASYNCMEM_MODEL names
    python benchmarks/local_model.py run -- python benchmarks/capture_quality.py   # the small local one

Prompt and guards were improved on the 40 cases of the set ``dev``; the 20 of ``held-out`` are only reported, so
what is wrong in one of them is not printed. ``--write`` keeps the figures in benchmarks/results/capture_quality.json
and writes the tables in docs/quality.md from it (``--table``: only that).
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from capture_scoring import Case, Outcome, Score, Written, load_cases, score  # noqa: E402
from pages import put  # noqa: E402

from asyncmem import AsyncMemError, CaptureResult, MemoryManager, Usage, UserMemory  # noqa: E402
from asyncmem.interfaces.choice import choose_db, choose_model, llm_settings  # noqa: E402
from asyncmem.prompts import PROMPT_VERSION  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "capture_quality.json"
PAGE = ROOT / "docs" / "quality.md"
SETS = ("dev", "held-out")
USER = "asyncmem-quality"
"""Users of the runs have names that begin so; they are erased before and after."""


@dataclass(frozen=True)
class Ran:
    """One case, run."""

    case: Case
    score: Score
    usage: Usage
    seconds: float
    result: CaptureResult = field(default_factory=CaptureResult)


async def run_case(manager: MemoryManager, case: Case) -> Ran:
    """Fill a user's memory, capture, and look at what came of it."""
    user, began, result, failed = f"{USER}-{case.id}", time.perf_counter(), CaptureResult(), ""
    await manager.erase_user(user)
    ids = [await manager.add_user_memory(UserMemory(memory=text), user_id=user) for text in case.before]
    try:
        result = await manager.create_user_memories(messages=case.messages(), user_id=user)
    except AsyncMemError as error:
        failed = f"{type(error).__name__}: {error}"[:200]
    after = await manager.get_user_memories(user_id=user)
    await manager.erase_user(user)
    outcome = outcome_of(result, ids, after, failed)
    return Ran(case, score(case, outcome), result.usage, time.perf_counter() - began, result)


def outcome_of(result: CaptureResult, ids: Sequence[str], after: Iterable[UserMemory], failed: str) -> Outcome:
    """What the scoring looks at."""
    written = []
    for change in result.changes:
        memory = change.after or change.before
        assert memory is not None
        index = ids.index(change.memory_id) if change.memory_id in ids else None
        written.append(Written(change.kind, memory.memory, index, bool(memory.metadata.get("suspect"))))
    texts = [memory.memory for memory in after if not memory.metadata.get("suspect")]
    refused = any("forgetting is switched off" in skipped.reason for skipped in result.skipped)
    return Outcome(written, texts, refused, failed)


async def run(cases: Sequence[Case], model: str, db: str) -> list[Ran]:
    """Run the cases one by one, saying how each went."""
    done: list[Ran] = []
    managers = {
        delete: MemoryManager(db, model=model, llm=llm_settings(), delete_memories=delete, default_user_id=None)
        for delete in (False, True)
    }
    try:
        for case in cases:
            ran = await run_case(managers[case.delete], case)
            done.append(ran)
            say(ran)
    finally:
        for manager in managers.values():
            await manager.aclose()
    return done


def say(ran: Ran) -> None:
    """One case in a line or some; of a held-out one only whether all is right."""
    mark = "ok   " if ran.score.perfect else "WRONG"
    print(f"{mark} {ran.case.set:8} {ran.case.category:20} {ran.case.id:16} {ran.seconds:5.1f} s", flush=True)
    if ran.case.set != "dev" or ran.score.perfect:
        return
    for change in ran.result.changes:
        print(f"        {change.kind:6} {(change.after or change.before or UserMemory(memory='?')).memory}")
    for skipped in ran.result.skipped:
        print(f"        skip {skipped.op}: {skipped.reason}: {skipped.memory or ''}")
    for wrong in ran.score.wrong:
        print(f"        ! {wrong}", flush=True)


def figures(ran: Sequence[Ran]) -> dict[str, Any]:
    """Everything about some cases, added up."""
    total, usage = sum((r.score for r in ran), Score()), sum((r.usage for r in ran), Usage())
    counts = {name: value for name, value in vars(total).items() if name != "wrong"}
    return {
        **counts,
        "failed": sum(any(w.startswith("failed") for w in r.score.wrong) for r in ran),
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
        "seconds": round(sum(r.seconds for r in ran), 1),
    }


def summed_up(ran: Sequence[Ran], model: str) -> dict[str, Any]:
    """The results: by set, each whole and by category, with the names of the cases that are not perfect."""
    sets: dict[str, Any] = {}
    for name in SETS:
        mine = [r for r in ran if r.case.set == name]
        categories = dict.fromkeys(r.case.category for r in mine)
        sets[name] = {
            "all": figures(mine),
            "categories": {c: figures([r for r in mine if r.case.category == c]) for c in categories},
            "imperfect": [r.case.id for r in mine if not r.score.perfect],
        }
    today = datetime.now(UTC).date().isoformat()
    return {"model": model, "prompt_version": PROMPT_VERSION, "date": today, "sets": sets}


COLUMNS = (
    *("set", "category", "cases right", "facts found", "writes right", "wrong writes", "language", "dates"),
    *("calls", "tokens in + out", "cost", "s"),
)


def table(results: dict[str, Any]) -> str:
    """The results as a table in Markdown."""
    lines = [
        f"Model `{results['model']}`, prompt version {results['prompt_version']}, {results['date']}.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
    ]
    for name, one in results["sets"].items():
        if one["all"]["cases"]:
            lines += [_line(name, category, f) for category, f in one["categories"].items()]
            lines.append(_line(f"**{name}**", "**all**", one["all"]))
    return "\n".join(lines)


def _line(name: str, category: str, f: dict[str, Any]) -> str:
    cost = "unknown" if f["cost"] is None else f"${f['cost']:.4f}"
    cells = [
        name,
        category,
        _share(f["perfect"], f["cases"]),
        _share(f["held"], f["facts"]),
        _share(f["right"], f["writes"]),
        str(f["writes"] - f["right"]),
        _share(f["in_language"], f["texts"]),
        _share(f["dated"], f["dates"]),
        str(f["calls"]),
        f"{f['prompt_tokens']:,} + {f['completion_tokens']:,}",
        cost,
        f"{f['seconds']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole}" if whole else ""


def write_page(results: dict[str, Any]) -> None:
    """Put the table into the page, between its marks."""
    put(PAGE, "quality", table(results))


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--set", choices=SETS, help="only the cases of one set")
    parser.add_argument("--only", nargs="+", metavar="ID", help="only these cases")
    parser.add_argument("--model", help="any litellm model name, instead of ASYNCMEM_MODEL")
    parser.add_argument("--db", help="a MongoDB URI with a database name; by default a server of the run's own")
    parser.add_argument("--write", action="store_true", help="keep the figures, and write the tables from them")
    parser.add_argument("--table", action="store_true", help="only write the tables from the figures that are kept")
    given = parser.parse_args()
    if given.table:
        write_page(json.loads(RESULTS.read_text()))
        return
    cases = [c for c in load_cases() if given.set in (None, c.set) and (not given.only or c.id in given.only)]
    model = choose_model(given.model)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        results = summed_up(asyncio.run(run(cases, model, choose_db(given.db or f"embedded:{folder}"))), model)
    print(table(results))
    if given.write:
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        write_page(results)


if __name__ == "__main__":
    main()
