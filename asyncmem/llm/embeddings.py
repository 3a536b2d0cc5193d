"""Vectors for texts: what an embedder is, and the one that asks a provider through litellm."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from asyncmem.errors import ContextTooLongError, ModelRequestError
from asyncmem.usage import Usage

from .failures import Failure
from .flows import Context, Patience, Send
from .verdicts import PASSING

if TYPE_CHECKING:  # numpy is imported by the first embedding, not by whoever imports this room
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of texts, in their order.

    Attributes:
        vectors: one row a text, float32.
        truncated: for each text, whether it was cut to what the model takes.
        usage: all model calls.
    """

    vectors: "NDArray[np.float32]" = field(repr=False)
    truncated: tuple[bool, ...] = ()
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class Embedder(Protocol):
    """What gives vectors: ``LLM`` does, and so may anything of your own."""

    @property
    def name(self) -> str:
        """What errors and logs call it; vectors of different names are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """One vector a text, all of the same length."""
        ...


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """One request for vectors. Its ``repr`` shows no text."""

    texts: list[str] = field(repr=False)
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class EmbedReply:
    """One vector a text, in order, as they came: they are checked by whoever asked."""

    rows: list[list[float]] = field(repr=False)
    usage: Usage


class EmbedBatch:
    """One batch on its way: split where the provider refuses its size.

    Attributes:
        texts: as they are sent.
        truncated: for each text, whether it was cut.
    """

    def __init__(self, context: Context, texts: Sequence[str]) -> None:
        self._context = context
        self._patience = Patience(context)
        self._rows: dict[int, list[float]] = {}
        self._waiting = [list(range(len(texts)))]
        self.texts: list[str] = list(texts)
        self.truncated: list[bool] = [False] * len(texts)

    @property
    def rows(self) -> list[list[float]]:
        """One vector a text, in their order."""
        return [self._rows[i] for i in range(len(self.texts))]

    def cut(self, place: int, shorter: str) -> None:
        """Send a shorter text in that place."""
        self.texts[place] = shorter
        self.truncated[place] = True

    def run(self) -> Generator[Send[EmbedRequest], EmbedReply | Failure, int | None]:
        """The flow: the place of a text that is too long, to be cut before it goes on, or ``None`` at the end.

        Raises:
            ModelError: the call failed, or the vectors are not what the model gave before.
        """
        pause = 0.0
        while self._waiting:
            part = self._waiting[0]
            timeout = max(0.01, min(self._context.settings.timeout, self._context.left()))
            outcome = yield Send(EmbedRequest([self.texts[i] for i in part], timeout), pause)
            self._context.usage += outcome.usage
            pause = 0.0
            if not isinstance(outcome, Failure):
                outcome = _faulty(outcome.rows, len(part)) or outcome
            if not isinstance(outcome, Failure):
                self._waiting.pop(0)
                self._rows |= dict(zip(part, self._comparable(outcome.rows), strict=True))
            elif outcome.cause in (ContextTooLongError, ModelRequestError) and len(part) > 1:
                middle = len(part) // 2
                self._waiting[:1] = [part[:middle], part[middle:]]
            elif outcome.cause is ContextTooLongError and len(self.texts[part[0]]) > 1:
                return part[0]
            else:
                pause = self._pause(outcome, part)
        return None

    def _pause(self, failure: Failure, part: list[int]) -> float:
        """Seconds to wait before what is waiting is sent again."""
        cause = failure.cause
        if issubclass(cause, PASSING) and (pause := self._patience.pause(failure)) is not None:
            return pause
        raise self._context.error(failure, [self.texts[i] for i in part], cause)

    def _comparable(self, rows: list[list[float]]) -> list[list[float]]:
        """The rows, if they have the length that this model's had before."""
        name = self._context.name
        known = self._context.abilities.get(self._context.key).dimensions
        if known is not None and known != len(rows[0]):
            raise ModelRequestError(
                f"{name}: its vectors have {len(rows[0])} numbers, and had {known} before: they can't be compared. Ask"
                f" for the same length (LLMSettings(extra={{'dimensions': {known}}})); if the model is another one now,"
                " forget the old length with llm.abilities.clear() and embed everything again",
                model=name,
            )
        self._context.learn("its first vectors", dimensions=len(rows[0]))
        return rows


_NO_TABLE = "the vectors are no lists of numbers, all of one length"


def _faulty(rows: list[list[float]], wanted: int) -> Failure | None:
    """What is wrong with an answer that should be so many vectors of one length: it may be right the next time."""
    import numpy as np  # loaded in a worker thread before anything is sent

    if len(rows) != wanted:
        return _answered(f"{wanted} texts gave {len(rows)} vectors")
    try:
        table: NDArray[Any] = np.array(rows)
    except (ValueError, TypeError):  # of several lengths
        return _answered(_NO_TABLE)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iuf":
        return _answered(_NO_TABLE)
    with np.errstate(over="ignore"):
        finite = bool(np.isfinite(table.astype(np.float32)).all())
    return None if finite else _answered("the vectors hold numbers that are not finite as float32")


def _answered(problem: str) -> Failure:
    return Failure("BadVectors", known="ServiceUnavailableError", text=problem)
