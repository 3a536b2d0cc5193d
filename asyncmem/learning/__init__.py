"""What an application learns about its users beside what it stores by hand. Above the manager, and by its means."""

from ..modes import LearningMode
from .config import UserMemoryConfig, UserProfileConfig
from .describing import describe_proposals
from .machine import LearningMachine
from .memories import UserMemoryStore
from .profile import UserProfileStore
from .results import LearningResult, LearningTickets, ProposalDecision
from .tools import LearningTools

__all__ = [
    "LearningMachine",
    "LearningMode",
    "LearningResult",
    "LearningTickets",
    "LearningTools",
    "ProposalDecision",
    "UserMemoryConfig",
    "UserMemoryStore",
    "UserProfileConfig",
    "UserProfileStore",
    "describe_proposals",
]
