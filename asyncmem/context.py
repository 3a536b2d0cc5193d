"""Memories as a block for a prompt, within a token budget (pure)."""

import json
import re
from collections.abc import Sequence

from .prompts import escape, estimate_tokens
from .search.agentic import made
from .types import Message, UserMemory

OPENING = "<user_memory>"
CLOSING = "</user_memory>"
PENDING = ("<pending>", "</pending>")
"""Around what was said and is not captured yet."""
_SHARE_OF_PENDING = 0.5
"""Part of the budget that it may have."""
_SHARE_OF_RELEVANT = 0.75
"""Part of the budget that relevant memories have before recent ones; what either leaves, the other may have."""
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def render_context(memories: Sequence[UserMemory], max_tokens: int, pending: Sequence[Message] = ()) -> str:
    """The newest memories that fit, as bullets in one ``<user_memory>`` block, in the order of their making.

    Text is escaped, so that no memory can close the block; a line break becomes a space. Memories suspected of
    instructing the model are left out. Nothing to show is an empty string.

    Args:
        memories: oldest first.
        max_tokens: estimated tokens that the whole block may have.
        pending: what was said and is not captured yet, oldest first.
    """
    waiting, room = _waiting(pending, _room(max_tokens))
    return _block(_fitting(_trusted(memories)[::-1], room, {}), waiting, dated=False)


def render_relevant(
    relevant: Sequence[UserMemory],
    recent: Sequence[UserMemory],
    max_tokens: int,
    pending: Sequence[Message] = (),
) -> str:
    """What is relevant and then what is recent, as far as it fits, in one block like that of ``render_context``.

    The order is that of their making, so that a provider's prompt cache stays warm as memories are added. A memory
    that names no year shows the day of its last update. Without anything relevant or pending, it is an empty string.

    Args:
        relevant: the most relevant first.
        recent: oldest first.
        max_tokens: estimated tokens that the whole block may have.
        pending: what was said and is not captured yet, oldest first.
    """
    wanted, (waiting, room) = _trusted(relevant), _waiting(pending, _room(max_tokens))
    if not wanted:
        return _block({}, waiting, dated=True)
    chosen = _fitting(wanted, room * _SHARE_OF_RELEVANT, {}, dated=True)
    for more in (_trusted(recent)[::-1], wanted):
        chosen = _fitting(more, room, chosen, dated=True)
    return _block(chosen, waiting, dated=True)


def _waiting(pending: Sequence[Message], room: float) -> tuple[list[str], float]:
    """The newest turns that fit, each quoted as JSON so that none can end its line, and the room that is left."""
    left, lines = room * _SHARE_OF_PENDING - estimate_tokens("\n".join(PENDING)), list[str]()
    for turn in reversed(pending):
        line = f"- {escape(json.dumps({turn.role: turn.content}, ensure_ascii=False))}"
        left -= estimate_tokens(line) + 1
        if left < 0:
            break
        lines.append(line)
    lines = [PENDING[0], *reversed(lines), PENDING[1]] if lines else []
    return lines, room - sum(estimate_tokens(line) + 1 for line in lines)


def _trusted(memories: Sequence[UserMemory]) -> list[UserMemory]:
    return [memory for memory in memories if not memory.metadata.get("suspect")]


def _room(max_tokens: int) -> float:
    return max_tokens - estimate_tokens(f"{OPENING}\n{CLOSING}")


def _fitting(
    memories: Sequence[UserMemory], room: float, chosen: dict[str | None, UserMemory], *, dated: bool = False
) -> dict[str | None, UserMemory]:
    """``chosen``, and as many of the memories, in their order, as still fit."""
    chosen = dict(chosen)
    room -= sum(_cost(memory, dated=dated) for memory in chosen.values())
    for memory in memories:
        if memory.memory_id not in chosen:
            room -= _cost(memory, dated=dated)
            if room < 0:
                break
            chosen[memory.memory_id] = memory
    return chosen


def _cost(memory: UserMemory, *, dated: bool) -> int:
    return estimate_tokens(_bullet(memory, dated=dated)) + 1


def _bullet(memory: UserMemory, *, dated: bool) -> str:
    text = escape(" ".join(memory.memory.split()))
    day = f" ({memory.updated_at.date()})" if dated and memory.updated_at and not _YEAR.search(text) else ""
    return f"- {text}{day}"


def _block(chosen: dict[str | None, UserMemory], waiting: Sequence[str], *, dated: bool) -> str:
    bullets = [_bullet(memory, dated=dated) for memory in sorted(chosen.values(), key=made)]
    return "\n".join([OPENING, *bullets, *waiting, CLOSING]) if bullets or waiting else ""
