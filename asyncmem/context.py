"""Memories as a block for a prompt, within a token budget (pure)."""

from collections.abc import Sequence

from .prompts import escape, estimate_tokens
from .types import UserMemory

OPENING = "<user_memory>"
CLOSING = "</user_memory>"


def render_context(memories: Sequence[UserMemory], max_tokens: int) -> str:
    """The newest memories that fit, as bullets in one ``<user_memory>`` block, newest last.

    Text is escaped, so that no memory can close the block; a line break becomes a space. Memories suspected of
    instructing the model are left out. Nothing to show is an empty string.

    Args:
        memories: oldest first.
        max_tokens: estimated tokens that the whole block may have.
    """
    bullets: list[str] = []
    room = max_tokens - estimate_tokens(f"{OPENING}\n{CLOSING}")
    for memory in reversed(memories):
        if memory.metadata.get("suspect"):
            continue
        bullet = "- " + escape(" ".join(memory.memory.split()))
        room -= estimate_tokens(bullet) + 1
        if room < 0:
            break
        bullets.append(bullet)
    return "\n".join([OPENING, *reversed(bullets), CLOSING]) if bullets else ""
