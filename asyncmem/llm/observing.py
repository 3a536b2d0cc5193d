"""Telling observers about every call of a model: for metrics and budgets of the application's own."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from asyncmem.usage import Usage

log: logging.Logger = logging.getLogger("asyncmem.llm")


@dataclass(frozen=True, slots=True)
class CallReport:
    """One request to a provider, refused and failed ones included.

    Attributes:
        model: the model's name.
        kind: ``"chat"`` or ``"embed"``.
        usage: tokens and cost of this one call.
        seconds: from sending it to its answer, waiting in line included.
        error: class of the failure as the provider or litellm named it; empty when there was an answer.
    """

    model: str
    kind: str
    usage: Usage
    seconds: float
    error: str = ""


class UsageObserver(Protocol):
    """What wants to know of every call; it is called on the event loop and must be quick."""

    def on_call(self, report: CallReport) -> None:
        """One call was answered, or failed."""
        ...


def tell(observers: Sequence[UsageObserver], report: CallReport) -> None:
    """Tell them all; one that fails is logged, and costs neither the call nor the others."""
    for observer in observers:
        try:
            observer.on_call(report)
        except Exception as error:  # noqa: BLE001  an observer is the application's, and may raise anything
            log.warning("%s: the observer %s failed: %s", report.model, type(observer).__name__, type(error).__name__)
