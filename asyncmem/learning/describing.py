"""Pending proposals as a question to the user (pure)."""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from ..guards import looks_like_instructions
from ..proposal_values import Proposal

_LONGEST = 300
_WITHHELD = "(a text that looks like instructions to a model)"
INTRODUCTION = "Before I change what I remember about you, please tell me which of this is right:"
QUESTION = "Shall I? You can say yes or no to all of it, or name the numbers."
ONE = "Shall I? Yes or no."


def describe_proposals(proposals: Sequence[Proposal], *, introduction: str = INTRODUCTION) -> str:
    """The pending ones of some proposals as a question that an agent can put to the user; "" if none is pending.

    They are numbered from 1 in their order, so that the application knows which ones an answer means.

    Args:
        proposals: as ``LearningMachine.list_proposals`` gives them.
        introduction: what stands above the list, in the language of the conversation.
    """
    lines = [f"{i}. {_line(p)}" for i, p in enumerate((p for p in proposals if p.status == "pending"), 1)]
    return "\n".join([introduction, *lines, QUESTION if len(lines) > 1 else ONE]) if lines else ""


def _line(proposal: Proposal) -> str:
    field = (proposal.field or "").replace("_", " ")
    before, after = _quoted(proposal.before), _quoted(proposal.after)
    match proposal.kind:
        case "add":
            return f"Remember: {after}"
        case "update":
            return f"Remember {after} instead of {before}"
        case "delete":
            return f"Forget: {before}"
        case "clear":
            return f"Forget all that I remember about you: {proposal.count} memories"
        case "set":
            return f"Note your {field} as {after}{'' if proposal.before is None else f' instead of {before}'}"
        case "unset":  # pragma: no branch  there are no others
            return f"Forget your {field}: {before}"


def _quoted(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if looks_like_instructions(text):
        return _WITHHELD
    text = " ".join(text.split())
    return f"“{text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + '…'}”"
