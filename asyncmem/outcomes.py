"""What came of a scheduled capture, as the queue keeps it: without the text of any memory (pure)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from . import errors
from .errors import AsyncMemError, ModelError, StoreError
from .profile_values import ProfileChange, ProfileResult
from .proposal_values import Proposal
from .types import CaptureResult, Change, Skipped, Usage

_LONGEST = 500
"""Characters that are kept of an error's message."""
_MARKS = ("tier", "tools", "windows", "ended", "repeated")
_ABOUT = {ModelError: ("model", "retryable", "retry_after", "status"), StoreError: ("retryable", "code")}


def pack_result(result: CaptureResult, changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A result as it is stored.

    Args:
        result: what came of it.
        changes: its changes, as the store notes them.
    """
    usage = result.usage
    return {
        "changes": list(changes),
        "skipped": [{"op": s.op, "reason": s.reason, "id": s.memory_id} for s in result.skipped],
        "usage": [usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost],
        "seconds": result.duration.total_seconds(),
        **{name: getattr(result, name) for name in _MARKS},
    }


def unpack_result(row: Mapping[str, Any], changes: Sequence[Change]) -> CaptureResult:
    """The result again. What was skipped has lost its text, a change what the history no longer tells."""
    return CaptureResult(
        changes=list(changes),
        skipped=[Skipped(s["op"], s["reason"], None, s["id"]) for s in row["skipped"]],
        usage=Usage(*row["usage"]),
        duration=timedelta(seconds=row["seconds"]),
        **{name: row[name] for name in _MARKS},
    )


def pack_profile(result: ProfileResult) -> dict[str, Any]:
    """What came of reading a conversation for a profile, as it is stored: no value of any field."""
    usage = result.usage
    return {
        "fields": [[change.field, change.revision] for change in result.changes],
        "skipped": [[s.op, s.reason] for s in result.skipped],
        "usage": [usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost],
        "proposals": [proposal.proposal_id for proposal in result.proposals],
        "repeated": result.repeated,
    }


def unpack_profile(
    row: Mapping[str, Any], history: Sequence[ProfileChange], proposals: Sequence[Proposal]
) -> ProfileResult:
    """The result again, with the changes that the profile's history still tells of."""
    made = {(field, revision) for field, revision in row["fields"]}
    return ProfileResult(
        [change for change in history if (change.field, change.revision) in made],
        [Skipped(op, reason) for op, reason in row["skipped"]],
        Usage(*row["usage"]),
        list(proposals),
        row["repeated"],
    )


def pack_error(error: BaseException) -> dict[str, Any]:
    """An error as it is stored: its class, and a sentence. Of one that isn't ours the text may hold anything."""
    if not isinstance(error, AsyncMemError):
        return {"class": type(error).__name__, "message": f"the capture ended with {type(error).__name__}"}
    row: dict[str, Any] = {"class": type(error).__name__, "message": str(error)[:_LONGEST]}
    for kind, names in _ABOUT.items():
        if isinstance(error, kind):
            row |= {name: getattr(error, name) for name in names}
    return row


def unpack_error(row: Mapping[str, Any]) -> AsyncMemError:
    """The error again, of its own class."""
    kind = getattr(errors, str(row["class"]), None)
    if not (isinstance(kind, type) and issubclass(kind, AsyncMemError)):
        return AsyncMemError(row["message"])
    error = kind.__new__(kind, row["message"])
    AsyncMemError.__init__(error, row["message"])
    if isinstance(error, ModelError):
        error.usage = Usage()
    if isinstance(error, errors.StructuredOutputError):
        error.raw = ""
    for name in (name for about, names in _ABOUT.items() if issubclass(kind, about) for name in names):
        setattr(error, name, row.get(name))
    return error


def is_passing(error: BaseException) -> bool:
    """Whether the same capture may succeed later."""
    return isinstance(error, ModelError | StoreError) and error.retryable
