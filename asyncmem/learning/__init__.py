"""What an application learns about its users beside memories. Above the manager, and by its means."""

from .config import UserProfileConfig
from .profile import UserProfileStore

__all__ = ["UserProfileConfig", "UserProfileStore"]
