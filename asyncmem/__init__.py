"""Async user memory for LLM applications: your process, your MongoDB, any model.

The names are resolved when they are first used, so that importing asyncmem costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import Agent, AnswerFinished, RunResult, ToolFailure
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
        InvalidProfileError,
        InvalidQueryError,
        ManagerClosedError,
        MemoryConflictError,
        MemoryNotFoundError,
        MixedUsersError,
        ModelAuthenticationError,
        ModelCodeError,
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
        ProposalDecidedError,
        ProposalError,
        ProposalExpiredError,
        ProposalNotFoundError,
        ProposalOutdatedError,
        RevisionConflictError,
        StoreAuthenticationError,
        StoreError,
        StorePermissionError,
        StoreTimeoutError,
        StoreUnavailableError,
        StoreWriteError,
        StructuredOutputError,
        TicketExpiredError,
        ToolError,
        ToolsRefusedError,
        UnknownRetrievalMethodError,
    )
    from .filters import Range
    from .interfaces.fastembed import FastEmbedEmbedder
    from .learning import (
        LearningMachine,
        LearningResult,
        LearningTickets,
        LearningTools,
        ProposalDecision,
        UserMemoryConfig,
        UserMemoryStore,
        UserProfileConfig,
        UserProfileStore,
        describe_proposals,
    )
    from .llm import (
        LLM,
        ChatDelta,
        ChatModel,
        ChatReply,
        ChatRequest,
        Embedder,
        Embeddings,
        RunFinished,
        StreamingModel,
        Structured,
        TextDelta,
        Tool,
        ToolCall,
        ToolDone,
        ToolResult,
        ToolStarted,
    )
    from .manager import MemoryManager
    from .modes import LearningMode
    from .optimize import (
        CurationResult,
        Curator,
        DeduplicateStrategy,
        Fact,
        Lost,
        MemoryOptimizationStrategy,
        MemoryOptimizationStrategyType,
        OptimizationModel,
        OptimizationResult,
        PreservationReport,
        SummarizeStrategy,
        TimeWindowStrategy,
        TopicsStrategy,
    )
    from .profile_values import ProfileChange, ProfileField, ProfileResult, UserProfile
    from .proposal_values import Proposal
    from .runs import OptimizationRun, OptimizationUndo
    from .search import Retriever, SearchRequest, Sources
    from .settings import LLMSettings, Settings
    from .task_tools import task_tool
    from .tickets import CaptureTicket, ProfileTicket
    from .toolbox import MemoryTools, memory_tools
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
    "agent": "Agent AnswerFinished RunResult ToolFailure",
    "filters": "Range",
    "interfaces.fastembed": "FastEmbedEmbedder",
    "learning": (
        "LearningMachine LearningResult LearningTickets LearningTools ProposalDecision UserMemoryConfig "
        "UserMemoryStore UserProfileConfig UserProfileStore describe_proposals"
    ),
    "llm": (
        "LLM ChatDelta ChatModel ChatReply ChatRequest Embedder Embeddings RunFinished StreamingModel Structured "
        "TextDelta Tool ToolCall ToolDone ToolResult ToolStarted"
    ),
    "manager": "MemoryManager",
    "modes": "LearningMode",
    "optimize": (
        "CurationResult Curator DeduplicateStrategy Fact Lost MemoryOptimizationStrategy "
        "MemoryOptimizationStrategyType OptimizationModel OptimizationResult PreservationReport "
        "SummarizeStrategy TimeWindowStrategy TopicsStrategy"
    ),
    "profile_values": "ProfileChange ProfileField ProfileResult UserProfile",
    "proposal_values": "Proposal",
    "runs": "OptimizationRun OptimizationUndo",
    "search": "Retriever SearchRequest Sources",
    "settings": "LLMSettings Settings",
    "task_tools": "task_tool",
    "tickets": "CaptureTicket ProfileTicket",
    "toolbox": "MemoryTools memory_tools",
    "types": (
        "CaptureResult Change ErasureReceipt MemorySearchResult Message QueueStatus Scope Skipped Usage "
        "UserMemory WorkerReport"
    ),
}
"""Where names come from; errors are the rest."""
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

# fmt: off
__all__ = [
    "LLM", "Agent", "AnswerFinished", "AsyncMemError", "BacklogFullError", "CaptureAbandonedError", "CaptureResult",
    "CaptureTicket", "Change", "ChatDelta", "ChatModel", "ChatReply", "ChatRequest", "ConfigurationError",
    "ContextTooLongError", "CurationResult", "Curator", "DeduplicateStrategy", "DrainTimeoutError",
    "EmbeddedServerError", "EmbeddedUnavailableError", "Embedder", "Embeddings", "ErasureReceipt", "EventLoopError",
    "Fact", "FastEmbedEmbedder", "InvalidIdError", "InvalidInputError", "InvalidMemoryError", "InvalidMessageError",
    "InvalidProfileError", "InvalidQueryError", "LLMSettings", "LearningMachine", "LearningMode", "LearningResult",
    "LearningTickets", "LearningTools", "Lost", "ManagerClosedError", "MemoryConflictError", "MemoryManager",
    "MemoryNotFoundError", "MemoryOptimizationStrategy", "MemoryOptimizationStrategyType", "MemorySearchResult",
    "MemoryTools", "Message", "MixedUsersError", "ModelAuthenticationError", "ModelCodeError", "ModelError",
    "ModelKeyMissingError",
    "ModelNotFoundError", "ModelPackageMissingError", "ModelQuotaError", "ModelRateLimitError", "ModelRefusedError",
    "ModelRequestError", "ModelTimeoutError", "ModelUnavailableError", "ModelUnreachableError",
    "OptimizationConflictError", "OptimizationError", "OptimizationModel", "OptimizationNotFoundError",
    "OptimizationResult", "OptimizationRun", "OptimizationUndo", "PartialWriteError", "PreservationReport",
    "ProfileChange", "ProfileField", "ProfileResult", "ProfileTicket", "Proposal", "ProposalDecidedError",
    "ProposalDecision", "ProposalError", "ProposalExpiredError", "ProposalNotFoundError", "ProposalOutdatedError",
    "QueueStatus", "Range", "Retriever", "RevisionConflictError", "RunFinished", "RunResult", "Scope",
    "SearchRequest", "Settings", "Skipped", "Sources", "StoreAuthenticationError", "StoreError",
    "StorePermissionError", "StoreTimeoutError", "StoreUnavailableError", "StoreWriteError", "StreamingModel",
    "Structured", "StructuredOutputError", "SummarizeStrategy", "TextDelta", "TicketExpiredError",
    "TimeWindowStrategy", "Tool", "ToolCall", "ToolDone", "ToolError", "ToolFailure", "ToolResult", "ToolStarted",
    "ToolsRefusedError", "TopicsStrategy", "UnknownRetrievalMethodError", "Usage", "UserMemory", "UserMemoryConfig",
    "UserMemoryStore", "UserProfile", "UserProfileConfig", "UserProfileStore", "WorkerReport", "describe_proposals",
    "memory_tools", "task_tool",
]
# fmt: on


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
