"""What ``retrieval_quality.py`` measures: LoCoMo's turns as memories, and how the library ranks them."""

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402
from minilm import MiniLM  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from asyncmem import Embeddings, Usage  # noqa: E402
from asyncmem.search.bm25 import Bm25  # noqa: E402
from asyncmem.search.centring import Centred  # noqa: E402
from asyncmem.search.fusion import fuse, pairs  # noqa: E402
from asyncmem.search.index import UserIndex  # noqa: E402
from asyncmem.search.matrix import Matrix  # noqa: E402
from asyncmem.store.scanner import Entry  # noqa: E402
from asyncmem.tokens import query_dates, query_tokens, tokenize  # noqa: E402

DEEPEST = 20
RANKS = 60
"""Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (SIGIR 2009)."""
Scores = NDArray[np.float32]
Ranking = list[int]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and which turns hold the answer."""

    text: str
    category: str
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns as memories: their texts and times, in order of insertion."""

    texts: list[str]
    times: list[float]
    questions: list[Question]


def read(path: Path, *, dated: bool = True) -> list[Conversation]:
    """All conversations; ``dated``: whether the text of a turn ends with its date."""
    return [_conversation(each, dated=dated) for each in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(data: dict[str, Any], *, dated: bool) -> Conversation:
    place = {turn["id"]: n for n, turn in enumerate(data["turns"])}
    asked = [
        Question(qa["question"], str(qa["category"]), frozenset(place[turn] for turn in qa["evidence"]))
        for qa in data["qa"]
        if qa["evidence"]
    ]
    texts = [_text(turn) + (f" ({turn['date']})" if dated else "") for turn in data["turns"]]
    return Conversation(texts, [_time(turn["date"]) for turn in data["turns"]], asked)


def everyday() -> Conversation:
    """Short made-up memories of one person, each with a question that shares few words with it."""
    rows = json.loads((ROOT / "benchmarks" / "everyday.json").read_text(encoding="utf-8"))
    asked = [Question(question, "4", frozenset([n])) for n, (_, _, question) in enumerate(rows)]
    times = [datetime.fromisoformat(moment).timestamp() for moment, _, _ in rows]
    return Conversation([memory for _, memory, _ in rows], times, asked)


def _text(turn: dict[str, str]) -> str:
    caption = turn.get("image_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [image: {caption}]" if caption else "")


def _time(date: str) -> float:
    return datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()


class Kept:
    """An ``Embedder`` that makes a vector once, and keeps those of earlier runs in a folder if there is one."""

    name = MiniLM.name

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[str, NDArray[np.float32]] = {}

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector of length one a text."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known |= zip(missing, self._made(missing), strict=True)
        return np.stack([self._known[text] for text in texts])

    def _made(self, texts: list[str]) -> NDArray[np.float32]:
        name = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24] + ".npy"
        if self._folder is None or not (self._folder / name).exists():
            made: NDArray[np.float32] = MiniLM().vectors(texts)
            if self._folder is not None:
                self._folder.mkdir(parents=True, exist_ok=True)
                np.save(self._folder / name, made)
            return made
        return np.asarray(np.load(self._folder / name), np.float32)

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """The same for a manager."""
        return Embeddings(self.vectors(texts), (False,) * len(texts), Usage(calls=1))


# ------------------------------------------------------------------------------------------------------- rankings

Way = Callable[[str], Scores]
_DATE = re.compile(r"--\d\d(-\d\d)?:?|\d{4}-\d\d(-\d\d)?:?")


def simple(text: str) -> list[str]:
    """Tokens without any thought."""
    return re.findall(r"\w+", text.lower())


def without(pattern: str, tokens: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Tokens but for some kinds."""
    left_out = re.compile(pattern)
    return lambda text: [token for token in tokens(text) if not left_out.fullmatch(token)]


class Ranker:
    """Ranks a conversation's turns as a search over them does, and as what was tried on the way to it does."""

    def __init__(self, talk: Conversation, embedder: Kept) -> None:
        self.talk = talk
        self._matrix = embedder.vectors(talk.texts)
        texts = [question.text for question in talk.questions]
        self._asked = dict(zip(texts, embedder.vectors(texts), strict=True))
        self._index = UserIndex(embedder.name)
        self._index.take(self._entries())
        self._all = self._index.allowed(0.0)
        self._centred = Centred(Matrix.of(self._matrix), self._all)

    def _entries(self) -> Iterable[Entry]:
        for n, (text, time) in enumerate(zip(self.talk.texts, self.talk.times, strict=True)):
            yield Entry(str(n), n + 1, tokenize(text), time, n, math.inf, self._matrix[n].astype("<f4").tobytes())

    def rankings(self, way: Way, *, newest_first: bool = False) -> list[Ranking]:
        """For each question the turns that count, best first."""
        found = []
        for question in self.talk.questions:
            scores = way(question.text)
            ranked = self._index.best(scores, self._all & (scores != 0), DEEPEST, newest_first=newest_first)
            found.append([int(memory_id) for memory_id in ranked.ids[:DEEPEST]])
        return found

    def methods(self) -> dict[str, list[Ranking]]:
        """The rankings of the library's methods, and of a plain BM25."""
        return {
            "plain BM25": self.rankings(self._bm25(simple, simple, k1=1.2, b=0.75)),
            "keyword": self.rankings(self._index.keyword),
            "semantic": self.rankings(lambda query: self._index.semantic(self._asked[query])),
            "hybrid": self.rankings(self._hybrid, newest_first=True),
        }

    def steps(self) -> dict[str, list[Ranking]]:
        """The rankings of each step from a plain BM25 to ``keyword``, and from there to ``hybrid``."""
        bare = [without(f".*:|{_DATE.pattern}", tokens) for tokens in (tokenize, query_tokens)]
        undated = [without(_DATE.pattern, tokens) for tokens in (tokenize, query_tokens)]
        return {
            "plain BM25": self.rankings(self._bm25(simple, simple, k1=1.2, b=0.75)),
            "stems, no function words": self.rankings(self._bm25(*bare, k1=1.2, b=0.75)),
            "less for length and repetition": self.rankings(self._bm25(*bare)),
            "labels": self.rankings(self._bm25(*undated)),
            "dates (`keyword`)": self.rankings(self._index.keyword),
            "`keyword` and `semantic` by reciprocal ranks": self.rankings(self._by_ranks),
            "by their scores": self.rankings(self._mixed),
            "cosines from the mean": self.rankings(self._centred),
            "neighbours": self.rankings(self._lent),
            "dates that the query names (`hybrid`)": self.rankings(self._hybrid, newest_first=True),
        }

    def lending(self, kinship: float) -> list[Ranking]:
        """The rankings of ``hybrid`` if neighbours lend as if they were so much kin."""
        return self.rankings(lambda query: self._fused(query, self._meaning(query), kinship, dated=True))

    def _hybrid(self, query: str) -> Scores:
        return self._index.fused(query, self._index.keyword(query), self._asked[query], self._all)

    def _bm25(self, tokens: Callable[[str], list[str]], asked: Callable[[str], list[str]], **weights: float) -> Way:
        words = Bm25(**weights)
        for n, text in enumerate(self.talk.texts):
            words.put(n, tokens(text))
        return lambda query: words.scores(asked(query))

    def _by_ranks(self, query: str) -> Scores:
        keyword, semantic = self._index.keyword(query), self._index.semantic(self._asked[query])
        total = np.zeros(len(keyword), np.float32)
        for scores, counted in ((keyword, keyword > 0), (semantic, self._all)):
            (slots,) = np.nonzero(counted)
            order = slots[np.argsort(-scores[slots], kind="stable")]
            total[order] += 1 / (RANKS + 1 + np.arange(len(order), dtype=np.float32))
        return total

    def _mixed(self, query: str) -> Scores:
        return self._fused(query, self._index.semantic(self._asked[query]), 0.0)

    def _centred(self, query: str) -> Scores:
        return self._fused(query, self._meaning(query), 0.0)

    def _lent(self, query: str) -> Scores:
        return self._fused(query, self._meaning(query), self._kinship())

    def _fused(self, query: str, meaning: Scores, kinship: float, *, dated: bool = False) -> Scores:
        times = self._index.updated, self._index.inserted
        dates = query_dates(query) if dated else ()
        return fuse(self._index.keyword(query), meaning, *times, self._all, kinship=kinship, dates=dates)

    def _meaning(self, query: str) -> Scores:
        return self._centred.cosines(self._asked[query])

    def _kinship(self) -> float:
        return self._centred.kinship(*pairs(self._index.updated, self._index.inserted, self._all))
