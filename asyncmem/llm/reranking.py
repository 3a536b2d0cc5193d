"""Rerankers: models that put texts in order of their relevance to a query."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from asyncmem.errors import ModelUnavailableError
from asyncmem.usage import Usage

from .failures import Failure
from .flows import Context, Patience, Send
from .verdicts import PASSING


@dataclass(frozen=True, slots=True)
class RankRequest:
    """One request to a reranker. Its ``repr`` shows no text."""

    query: str = field(repr=False)
    documents: list[str] = field(repr=False)
    timeout: float | None = None

    @property
    def texts(self) -> list[str]:
        """All that the model is told."""
        return [self.query, *self.documents]


@dataclass(frozen=True, slots=True)
class RankReply:
    """Places of the texts, the most relevant first, each with its score."""

    order: list[tuple[int, float]]
    usage: Usage


def rank(
    context: Context, query: str, texts: Sequence[str]
) -> Generator[Send[RankRequest], RankReply | Failure, RankReply]:
    """The flow: the texts' order, each place at most once.

    Raises:
        ModelError: the call failed, or the reply names places that no text has.
    """
    patience, pause = Patience(context), 0.0
    while True:
        timeout = max(0.01, min(context.settings.timeout, context.left()))
        outcome = yield Send(RankRequest(query, list(texts), timeout), pause)
        context.usage += outcome.usage
        if isinstance(outcome, RankReply):
            order = dict(reversed(outcome.order))
            if not all(0 <= place < len(texts) for place in order):
                raise ModelUnavailableError(
                    f"{context.name}: it ranked texts that it was not given", model=context.name
                )
            return RankReply(sorted(order.items(), key=lambda each: -each[1]), context.usage)
        again = patience.pause(outcome) if issubclass(outcome.cause, PASSING) else None
        if again is None:
            raise context.error(outcome, [query, *texts], outcome.cause)
        pause = again


def to_ranking(response: Any, usage: Usage) -> RankReply:
    """A response of litellm as a reply; its items are dicts."""
    return RankReply([(int(item["index"]), float(item["relevance_score"])) for item in response.results], usage)
