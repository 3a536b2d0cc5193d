"""One user's rows as search ranks them: postings, vectors and times in memory, kept up to date row by row.

Nothing that it says is shown: results are read again from the database by id.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from ..store.scanner import Entry, Fingerprint
from ..tokens import query_dates, query_tokens
from .bm25 import Bm25
from .centring import Centred
from .fusion import fuse, pairs
from .matrix import Matrix
from .retriever import Ranked

Scores = NDArray[np.float32]
_SPARE = 100
_LONG = 300
"""Characters of a query that takes more than a few milliseconds."""
_LARGE = 5_000_000
"""Numbers in a matrix whose product takes more than a few milliseconds."""
_ROW_BYTES = 400
_POSTING_BYTES = 30


class UserIndex:
    """The rows of one user. A row keeps its slot until it changes; then it gets a new one.

    Args:
        model: whose vectors are kept; ``None`` keeps none.
        dims: how long they are; ``None`` takes the length of the first.
    """

    def __init__(self, model: str | None = None, dims: int | None = None) -> None:
        self.model = model
        self.dims = dims
        self.unmarked: set[str] = set()
        self._slots: dict[str, int] = {}
        self._ids: list[str] = []
        self._stamps: list[int] = []
        self._total = 0
        self._words = Bm25()
        # of each slot: last update, insertion, expiry, whether a row is there, whether it has a vector
        self._columns = _Columns()
        self._matrix = Matrix()
        self._seen: tuple[Centred, float] | None = (
            None  # the matrix from its mean, and its rows' kinship, till a change
        )

    # ------------------------------------------------------------------------------------------ keeping in step

    @property
    def fingerprint(self) -> Fingerprint:
        """What its rows add up to."""
        return Fingerprint(len(self._slots), self._total)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 4 * self._matrix.size + _ROW_BYTES * len(self._ids) + _POSTING_BYTES * self._words.postings

    @property
    def wasted(self) -> bool:
        """Whether most of its slots are those of rows that are gone: time to make it anew."""
        return len(self._ids) > 1_000 + 2 * len(self._slots)

    def take(self, entries: Iterable[Entry]) -> None:
        """Take rows as they are now."""
        for entry in entries:
            slot = self._slots.get(entry.memory_id)
            if slot is None or not entry.stamp or self._stamps[slot] != entry.stamp:
                self.drop([entry.memory_id])
                self._put(entry)

    def _put(self, entry: Entry) -> None:
        self._seen = None
        slot = len(self._ids)
        self._slots[entry.memory_id] = slot
        self._ids.append(entry.memory_id)
        self._stamps.append(entry.stamp)
        self._total += entry.stamp
        if not entry.stamp:
            self.unmarked.add(entry.memory_id)
        self._words.put(slot, entry.tokens)
        vector = self._vector(entry.vector)
        self._columns.put(slot, entry, embedded=vector is not None)
        if vector is not None:
            self._matrix.put(slot, vector)

    def _vector(self, data: bytes | None) -> NDArray[np.float32] | None:
        """The vector with length one, if it is one that can be compared."""
        if data is None:
            return None
        vector = np.frombuffer(data, "<f4")
        if self.dims is None:
            self.dims = len(vector)
        length = float(np.linalg.norm(vector)) if len(vector) == self.dims else 0.0
        return (vector / np.float32(length)).astype(np.float32) if 0 < length < float("inf") else None

    def drop(self, ids: Iterable[str]) -> None:
        """Forget rows."""
        for memory_id in ids:
            slot = self._slots.pop(memory_id, None)
            if slot is not None:
                self._seen = None
                self._total -= self._stamps[slot]
                self.unmarked.discard(memory_id)
                self._words.drop(slot)
                self._columns.clear(slot)

    def differing(self, stamps: dict[str, int]) -> tuple[list[str], list[str]]:
        """Which rows are new or have changed, and which are gone."""
        slots, mine = self._slots, self._stamps
        changed = [i for i, stamp in stamps.items() if (slot := slots.get(i)) is None or mine[slot] != stamp]
        return changed, [memory_id for memory_id in slots if memory_id not in stamps]

    # --------------------------------------------------------------------------------------------------- ranking

    def allowed(self, now: float, ids: Collection[str] | None = None) -> NDArray[np.bool_]:
        """The slots of rows that have not expired, and are among ``ids`` where given."""
        allowed = self._columns.alive[: len(self._ids)] & (self._columns.expires[: len(self._ids)] > now)
        if ids is not None:
            among = np.zeros(len(self._ids), np.bool_)
            among[[self._slots[memory_id] for memory_id in ids if memory_id in self._slots]] = True
            allowed &= among
        return allowed

    def keyword(self, query: str) -> Scores:
        """The BM25 score of every slot; 0 where no word matches."""
        return self._words.scores(query_tokens(query))

    async def by_words(self, query: str) -> Scores:
        """The same; a long query in a worker thread. Nothing may change the index meanwhile."""
        return await anyio.to_thread.run_sync(self.keyword, query) if len(query) > _LONG else self.keyword(query)

    async def by_meaning(self, query: NDArray[np.float32]) -> Scores:
        """Like ``semantic``; a large matrix in a worker thread. Nothing may change the index meanwhile."""
        return (
            await anyio.to_thread.run_sync(self.semantic, query) if self._matrix.size > _LARGE else self.semantic(query)
        )

    async def by_both(
        self, query: str, keyword: Scores, vector: NDArray[np.float32], allowed: NDArray[np.bool_]
    ) -> Scores:
        """Like ``fused``; a large matrix, which it reads four times, in a thread. Nothing may change meanwhile."""
        if 4 * self._matrix.size > _LARGE:
            return await anyio.to_thread.run_sync(self.fused, query, keyword, vector, allowed)
        return self.fused(query, keyword, vector, allowed)

    def semantic(self, query: NDArray[np.float32]) -> Scores:
        """The cosine of every slot to a query's vector of length one; minus infinity where there is no vector."""
        found = np.full(len(self._ids), -np.inf, np.float32)
        rows = min(len(self._ids), len(self._matrix))
        if rows:
            has = self._columns.embedded[:rows]
            found[:rows] = np.where(has, self._matrix.dot(query)[:rows], np.float32(-np.inf))
        return found

    def fused(self, query: str, keyword: Scores, vector: NDArray[np.float32], allowed: NDArray[np.bool_]) -> Scores:
        """The hybrid score of every allowed slot: of its words, its meaning, its neighbours and its time."""
        if self._seen is None:
            alive, embedded = (column[: len(self._ids)] for column in (self._columns.alive, self._columns.embedded))
            centred = Centred(self._matrix, embedded)
            self._seen = centred, centred.kinship(*pairs(self.updated, self.inserted, alive))
        centred, kinship = self._seen
        return fuse(
            keyword,
            centred.cosines(vector),
            self.updated,
            self.inserted,
            allowed,
            kinship=kinship,
            dates=query_dates(query),
        )

    @property
    def updated(self) -> NDArray[np.float64]:
        """When each slot was updated, in seconds since 1970; minus infinity where that is not known."""
        return self._columns.updated[: len(self._ids)]

    @property
    def inserted(self) -> NDArray[np.int64]:
        """Numbers that rise with the time of insertion."""
        return self._columns.inserted[: len(self._ids)]

    def lacking(self, allowed: NDArray[np.bool_]) -> list[str]:
        """The rows without a vector, newest first."""
        (slots,) = np.nonzero(allowed & ~self._columns.embedded[: len(self._ids)])
        return self._named(slots[np.lexsort((-self.inserted[slots], -self.updated[slots]))])

    def best(self, scores: Scores, allowed: NDArray[np.bool_], limit: int = 0, *, newest_first: bool = False) -> Ranked:
        """The allowed slots that have a score, best first; equal ones by insertion, or the newest first.

        With a limit, some more than that: a row may go before it is read.
        """
        (slots,) = np.nonzero(allowed & np.isfinite(scores))
        if limit and len(slots) > (enough := limit + _SPARE):
            worst = np.partition(scores[slots], -enough)[-enough]
            slots = slots[scores[slots] >= worst]
        ties = (self.inserted[slots], -self.updated[slots]) if newest_first else (self.inserted[slots],)
        order = slots[np.lexsort((*ties, -scores[slots]))]
        return Ranked(self._named(order), scores[order].tolist())

    def _named(self, slots: Sequence[Any] | NDArray[Any]) -> list[str]:
        ids = self._ids
        return [ids[slot] for slot in slots]


class _Columns:
    """Arrays with a value a slot; they grow by doubling."""

    def __init__(self) -> None:
        self.updated = np.empty(0, np.float64)
        self.expires = np.empty(0, np.float64)
        self.inserted = np.empty(0, np.int64)
        self.alive = np.empty(0, np.bool_)
        self.embedded = np.empty(0, np.bool_)

    def put(self, slot: int, entry: Entry, *, embedded: bool) -> None:
        """Fill a slot."""
        if slot >= len(self.alive):
            grown = max(64, 2 * slot)
            for name, column in vars(self).items():
                setattr(self, name, np.concatenate([column, np.zeros(grown - len(column), column.dtype)]))
        self.updated[slot], self.expires[slot] = entry.updated, entry.expires
        self.inserted[slot] = entry.seq
        self.alive[slot], self.embedded[slot] = True, embedded

    def clear(self, slot: int) -> None:
        """Empty a slot."""
        self.alive[slot] = self.embedded[slot] = False
