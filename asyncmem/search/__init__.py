"""Ways to find memories: one file per retrieval method."""

from .engine import SearchEngine
from .methods import METHODS, Plan, to_plan
from .retriever import Retriever, SearchRequest, Sources

__all__ = ["METHODS", "Plan", "Retriever", "SearchEngine", "SearchRequest", "Sources", "to_plan"]
