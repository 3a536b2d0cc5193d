"""Fewer, better memories from many: strategies, and the proof that no fact was lost. Pure of storage."""

from .curator import Curator
from .merging import Merged, check_one_user, merged
from .model import OptimizationModel
from .near import duplicate_groups
from .preserving import Fact, Lost, PreservationReport, facts_of, lost
from .results import CurationResult, OptimizationResult
from .strategy import (
    DeduplicateStrategy,
    MemoryOptimizationStrategy,
    MemoryOptimizationStrategyType,
    SummarizeStrategy,
    TimeWindowStrategy,
    TopicsStrategy,
    to_strategy,
)
from .supporting import invented

__all__ = [
    "CurationResult",
    "Curator",
    "DeduplicateStrategy",
    "Fact",
    "Lost",
    "MemoryOptimizationStrategy",
    "MemoryOptimizationStrategyType",
    "Merged",
    "OptimizationModel",
    "OptimizationResult",
    "PreservationReport",
    "SummarizeStrategy",
    "TimeWindowStrategy",
    "TopicsStrategy",
    "check_one_user",
    "duplicate_groups",
    "facts_of",
    "invented",
    "lost",
    "merged",
    "to_strategy",
]
