"""How much of what was meant is found: LoCoMo's questions over its turns, each turn a memory.

    python benchmarks/retrieval_quality.py locomo.json [--write] [--cache FOLDER]   # measure; --write keeps the figures
    python benchmarks/retrieval_quality.py locomo.json --store                      # is it the same on a real server?
    python benchmarks/retrieval_quality.py --table                                  # the page from the figures kept

The data (Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents, ACL 2024; CC BY-NC 4.0) is
no part of this repository. Rankings are those of ``UserIndex``, which the retrievers ask; ``--store`` compares them
with those of a manager. Dependency group ``embeddings``, see ``minilm.py``.
"""

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from pages import put
from retrieval_rankings import (  # first: it sets the path
    DEEPEST,
    ROOT,
    Conversation,
    Kept,
    Ranker,
    Ranking,
    everyday,
    read,
)

from asyncmem import MemoryManager, UserMemory
from tests.servers import running_mongod, with_database

RESULTS = ROOT / "benchmarks" / "results" / "retrieval_quality.json"
PAGE = ROOT / "docs" / "retrieval.md"
CHOSEN = 3
"""Conversations on which weights were chosen; the rest confirm them."""
CATEGORIES = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop", "5": "adversarial"}
MEASURES = ("recall@5", "recall@10", "recall@20", "nDCG@10")


# ------------------------------------------------------------------------------------------------------- measures


def measured(talks: Sequence[Conversation], rankings: Sequence[list[Ranking]], categories: str) -> dict[str, float]:
    """The mean of each measure over the questions of some categories."""
    each = [
        _measures(ranking, question.evidence)
        for talk, ranked in zip(talks, rankings, strict=True)
        for question, ranking in zip(talk.questions, ranked, strict=True)
        if question.category in categories
    ]
    means = [round(statistics.fmean(column), 3) for column in zip(*each, strict=True)] or [0.0] * len(MEASURES)
    return {**dict(zip(MEASURES, means, strict=True)), "questions": len(each)}


def _measures(ranking: Ranking, evidence: frozenset[int]) -> tuple[float, ...]:
    recalls = [len(evidence.intersection(ranking[:depth])) / len(evidence) for depth in (5, 10, 20)]
    gain = sum(1 / math.log2(rank + 2) for rank, turn in enumerate(ranking[:10]) if turn in evidence)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(evidence))))
    return (*recalls, gain / ideal)


def halves(talks: Sequence[Conversation], ranked: dict[str, list[list[Ranking]]]) -> dict[str, Any]:
    """Measures of categories 1 to 4: on the conversations that weights were chosen on, on the others, on all."""
    parts = {"chosen": slice(CHOSEN), "confirmed": slice(CHOSEN, None), "all": slice(None)}
    return {
        name: {part: measured(talks[cut], each[cut], "1234") for part, cut in parts.items()}
        for name, each in ranked.items()
    }


def turned(each: Sequence[dict[str, list[Ranking]]]) -> dict[str, list[list[Ranking]]]:
    """By name, then by conversation."""
    return {name: [rankings[name] for rankings in each] for name in each[0]}


def shuffled(talk: Conversation) -> Conversation:
    """The same turns, added all at one time in an order that means nothing."""
    order = random.Random(3).sample(range(len(talk.texts)), len(talk.texts))
    place = {old: new for new, old in enumerate(order)}
    asked = [replace(q, evidence=frozenset(place[turn] for turn in q.evidence)) for q in talk.questions]
    return Conversation([talk.texts[old] for old in order], [0.0] * len(order), asked)


def measure(path: Path, embedder: Kept) -> dict[str, Any]:
    """All figures."""
    talks, undated, short = read(path), read(path, dated=False), [everyday()]
    rankers = [Ranker(talk, embedder) for talk in talks]
    methods = turned([ranker.methods() for ranker in rankers])
    mixed = [Ranker(shuffled(talk), embedder) for talk in talks]
    order = {
        "`hybrid`": [ranker.methods()["hybrid"] for ranker in mixed],
        "neighbours lend nothing": [ranker.lending(0.0) for ranker in mixed],
        "neighbours lend whatever they are": [ranker.lending(1.0) for ranker in mixed],
    }
    return {
        "conversations": len(talks),
        "turns": sum(len(talk.texts) for talk in talks),
        "methods": halves(talks, methods),
        "categories": {
            name: {category: measured(talks, ranked, category) for category in CATEGORIES}
            for name, ranked in methods.items()
        },
        "without dates in the texts": halves(undated, turned([Ranker(each, embedder).methods() for each in undated])),
        "steps": halves(talks, turned([ranker.steps() for ranker in rankers])),
        "short memories": halves(short, turned([Ranker(each, embedder).methods() for each in short])),
        "in random order": halves([ranker.talk for ranker in mixed], order),
    }


# --------------------------------------------------------------------------------------------------- a real server


async def check(talk: Conversation, embedder: Kept) -> int:
    """How many rankings of a manager on a real server differ from those that are measured."""
    expected = Ranker(talk, embedder).methods()
    differing = 0
    with running_mongod(replica_set=True) as server:
        uri = with_database(server.uri, "quality")
        async with MemoryManager(uri, embedding_model=embedder) as manager:
            rows = [
                UserMemory(memory=text, memory_id=str(n), created_at=time, updated_at=time)
                for n, (text, time) in enumerate(zip(talk.texts, talk.times, strict=True))
            ]
            assert len(set(await manager.add_user_memories(rows))) == len(rows)
            for method in ("keyword", "semantic", "hybrid"):
                for question, ranking in zip(talk.questions, expected[method], strict=True):
                    found = await manager.search_user_memories(question.text, limit=DEEPEST, retrieval_method=method)
                    differing += [int(str(memory.memory_id)) for memory in found] != ranking
    return differing


# ----------------------------------------------------------------------------------------------------------- pages


def table(results: dict[str, Any]) -> str:
    """The results as Markdown tables."""
    lines = [f"{results['turns']:,} turns in {results['conversations']} conversations, each of one user; "]
    lines[0] += f"{results['methods']['hybrid']['all']['questions']} questions of categories 1 to 4.\n"
    lines += _rows("method", results["methods"], lambda found: found["all"])
    lines += [
        "",
        "Recall@10 by category; 5 is about what was never said, its evidence is what the question alludes to.\n",
    ]
    lines += ["| method | " + " | ".join(f"{n} {name}" for n, name in CATEGORIES.items()) + " |", "|" + "---|" * 6]
    for name, found in results["categories"].items():
        lines.append(f"| {name} | " + " | ".join(f"{found[n]['recall@10']:.3f}" for n in CATEGORIES) + " |")
    lines += ["", "Without the date in the text (it is in `updated_at` alone).\n"]
    lines += _rows("method", results["without dates in the texts"], lambda found: found["all"])
    lines += ["", "What each step adds: recall@10 and @20 where weights were chosen, and on the rest.\n"]
    lines += ["| step | chosen @10 | chosen @20 | the rest @10 | the rest @20 |", "|" + "---|" * 5]
    for name, found in results["steps"].items():
        parts = [found[part][name_of] for part in ("chosen", "confirmed") for name_of in ("recall@10", "recall@20")]
        lines.append(f"| {name} | " + " | ".join(f"{value:.3f}" for value in parts) + " |")
    lines += ["", "The same turns in an order that means nothing, all of one time: what a bulk import looks like.\n"]
    lines += _rows("neighbours", results["in random order"], lambda found: found["all"])
    lines += ["", "Forty short made-up memories of one person, and questions that share few words with them.\n"]
    lines += _rows("method", results["short memories"], lambda found: found["all"])
    return "\n".join(lines)


def _rows(head: str, found: dict[str, Any], pick: Callable[[Any], dict[str, float]]) -> list[str]:
    lines = [f"| {head} | " + " | ".join(MEASURES) + " |", "|" + "---|" * (len(MEASURES) + 1)]
    for name, each in found.items():
        lines.append(f"| {name} | " + " | ".join(f"{pick(each)[measure]:.3f}" for measure in MEASURES) + " |")
    return lines


def write_page(results: dict[str, Any]) -> None:
    """Put the tables into the page."""
    put(PAGE, "retrieval", table(results))


def main() -> None:
    """Measure, check, or print the table of the last results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", help="conversations in the shape of LoCoMo's data set")
    parser.add_argument("--write", action="store_true", help="keep the figures, and write them into the page")
    parser.add_argument("--table", action="store_true", help="write the last results into the page, measure nothing")
    parser.add_argument("--store", type=int, nargs="?", const=1, help="compare one conversation's rankings on a server")
    parser.add_argument("--cache", type=Path, help="a folder that keeps vectors")
    options = parser.parse_args()
    if options.table:
        write_page(json.loads(RESULTS.read_text()))
        return
    embedder = Kept(options.cache)
    if options.store is not None:
        differing = anyio.run(check, read(options.path)[options.store], embedder)
        sys.exit(f"{differing} rankings differ" if differing else None)
    results = measure(options.path, embedder)
    print(table(results))
    if options.write:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_page(results)


if __name__ == "__main__":
    main()
