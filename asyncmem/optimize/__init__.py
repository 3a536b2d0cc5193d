"""Fewer, better memories from many: strategies, and the proof that no fact was lost. Pure of storage."""

from .merging import Merged, check_one_user, merged
from .model import OptimizationModel
from .near import duplicate_groups
from .preserving import Fact, Lost, PreservationReport, facts_of, lost
from .strategy import (
    DeduplicateStrategy,
    MemoryOptimizationStrategy,
    MemoryOptimizationStrategyType,
    SummarizeStrategy,
    TimeWindowStrategy,
    TopicsStrategy,
    check_results,
    to_strategy,
)
from .supporting import invented

__all__ = [
    "DeduplicateStrategy",
    "Fact",
    "Lost",
    "MemoryOptimizationStrategy",
    "MemoryOptimizationStrategyType",
    "Merged",
    "OptimizationModel",
    "PreservationReport",
    "SummarizeStrategy",
    "TimeWindowStrategy",
    "TopicsStrategy",
    "check_one_user",
    "check_results",
    "duplicate_groups",
    "facts_of",
    "invented",
    "lost",
    "merged",
    "to_strategy",
]
