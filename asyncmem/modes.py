"""When what a model decides is applied: at once, or after somebody approved it (pure)."""

import reprlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from .errors import ConfigurationError
from .operations import Add, Grounded


class LearningMode(StrEnum):
    """What a ``LearningMachine`` does with what it learns.

    Attributes:
        ALWAYS: every conversation is captured; the agent gets no tool.
        AGENTIC: nothing is captured by itself; the agent gets a tool.
        PROPOSE: what a capture decides waits as proposals.
        HITL: additions apply at once; what changes or removes something waits as a proposal.
    """

    ALWAYS = "always"
    AGENTIC = "agentic"
    PROPOSE = "propose"
    HITL = "hitl"


ModeName = Literal["always", "agentic", "propose", "hitl"]
"""A mode by its name."""


def clean_mode(mode: object) -> LearningMode:
    """The mode, given as one or by its name.

    Raises:
        ConfigurationError: there is no such mode.
    """
    try:
        return LearningMode(mode)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except ValueError:
        known = ", ".join(f"{m.value!r}" for m in LearningMode)
        raise ConfigurationError(f"mode must be one of {known}, not {reprlib.repr(mode)}") from None


def split(operations: Sequence[Grounded], mode: LearningMode) -> tuple[list[Grounded], list[Grounded]]:
    """What is applied at once, and what waits as a proposal."""
    match mode:
        case LearningMode.PROPOSE:
            return [], list(operations)
        case LearningMode.HITL:
            adds = [isinstance(g.operation, Add) for g in operations]
            return (
                [g for g, is_add in zip(operations, adds, strict=True) if is_add],
                [g for g, is_add in zip(operations, adds, strict=True) if not is_add],
            )
        case _:
            return list(operations), []
