"""Async user memory for LLM applications: your process, your MongoDB, any model.

The names are resolved when they are first used, so that importing asyncmem costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import (
        AsyncMemError,
        BacklogFullError,
        CaptureAbandonedError,
        ConfigurationError,
        ContextTooLongError,
        DrainTimeoutError,
        EmbeddedServerError,
        EmbeddedUnavailableError,
        EventLoopError,
        InvalidIdError,
        InvalidInputError,
        InvalidMemoryError,
        InvalidMessageError,
        InvalidQueryError,
        ManagerClosedError,
        MemoryConflictError,
        MemoryNotFoundError,
        MixedUsersError,
        ModelAuthenticationError,
        ModelError,
        ModelKeyMissingError,
        ModelNotFoundError,
        ModelPackageMissingError,
        ModelQuotaError,
        ModelRateLimitError,
        ModelRefusedError,
        ModelRequestError,
        ModelTimeoutError,
        ModelUnavailableError,
        ModelUnreachableError,
        OptimizationConflictError,
        OptimizationError,
        OptimizationNotFoundError,
        PartialWriteError,
        RevisionConflictError,
        StoreAuthenticationError,
        StoreError,
        StorePermissionError,
        StoreTimeoutError,
        StoreUnavailableError,
        StoreWriteError,
        StructuredOutputError,
        TicketExpiredError,
        ToolsRefusedError,
        UnknownRetrievalMethodError,
    )
    from .filters import Range
    from .interfaces.fastembed import FastEmbedEmbedder
    from .llm import LLM, ChatModel, ChatReply, ChatRequest, Embedder, Embeddings, Structured, ToolCall
    from .manager import MemoryManager
    from .runs import OptimizationRun, OptimizationUndo
    from .search import Retriever, SearchRequest, Sources
    from .settings import LLMSettings, Settings
    from .tickets import CaptureTicket
    from .types import (
        CaptureResult,
        Change,
        ErasureReceipt,
        MemorySearchResult,
        Message,
        QueueStatus,
        Scope,
        Skipped,
        Usage,
        UserMemory,
        WorkerReport,
    )

_HOMES = {
    "filters": ("Range",),
    "interfaces.fastembed": ("FastEmbedEmbedder",),
    "llm": ("LLM", "ChatModel", "ChatReply", "ChatRequest", "Embedder", "Embeddings", "Structured", "ToolCall"),
    "manager": ("MemoryManager",),
    "runs": ("OptimizationRun", "OptimizationUndo"),
    "search": ("Retriever", "SearchRequest", "Sources"),
    "settings": ("LLMSettings", "Settings"),
    "tickets": ("CaptureTicket",),
    "types": (
        "CaptureResult",
        "Change",
        "ErasureReceipt",
        "MemorySearchResult",
        "Message",
        "QueueStatus",
        "Scope",
        "Skipped",
        "Usage",
        "UserMemory",
        "WorkerReport",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "LLM",
    "AsyncMemError",
    "BacklogFullError",
    "CaptureAbandonedError",
    "CaptureResult",
    "CaptureTicket",
    "Change",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "ConfigurationError",
    "ContextTooLongError",
    "DrainTimeoutError",
    "EmbeddedServerError",
    "EmbeddedUnavailableError",
    "Embedder",
    "Embeddings",
    "ErasureReceipt",
    "EventLoopError",
    "FastEmbedEmbedder",
    "InvalidIdError",
    "InvalidInputError",
    "InvalidMemoryError",
    "InvalidMessageError",
    "InvalidQueryError",
    "LLMSettings",
    "ManagerClosedError",
    "MemoryConflictError",
    "MemoryManager",
    "MemoryNotFoundError",
    "MemorySearchResult",
    "Message",
    "MixedUsersError",
    "ModelAuthenticationError",
    "ModelError",
    "ModelKeyMissingError",
    "ModelNotFoundError",
    "ModelPackageMissingError",
    "ModelQuotaError",
    "ModelRateLimitError",
    "ModelRefusedError",
    "ModelRequestError",
    "ModelTimeoutError",
    "ModelUnavailableError",
    "ModelUnreachableError",
    "OptimizationConflictError",
    "OptimizationError",
    "OptimizationNotFoundError",
    "OptimizationRun",
    "OptimizationUndo",
    "PartialWriteError",
    "QueueStatus",
    "Range",
    "Retriever",
    "RevisionConflictError",
    "Scope",
    "SearchRequest",
    "Settings",
    "Skipped",
    "Sources",
    "StoreAuthenticationError",
    "StoreError",
    "StorePermissionError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "StoreWriteError",
    "Structured",
    "StructuredOutputError",
    "TicketExpiredError",
    "ToolCall",
    "ToolsRefusedError",
    "UnknownRetrievalMethodError",
    "Usage",
    "UserMemory",
    "WorkerReport",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
