"""Memory tools whose user is known only when an agent runs: what the adapters to agent frameworks share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

from asyncmem import InvalidIdError, MemoryManager, MemoryTools, Retriever, memory_tools

Whose = str | Callable[[Any], str]
"""A user, or a function that tells the user of a run from what the application gave that run."""


class ToolOptions(TypedDict, total=False):
    """What ``memory_tools`` takes besides the manager and the user."""

    add: bool
    update: bool
    delete: bool
    clear: bool
    search: bool
    list: bool
    agent_id: str | None
    team_id: str | None
    retrieval_method: str | Retriever | None
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Spec:
    """One tool as frameworks want to know it.

    Attributes:
        name: what the model calls it.
        description: when and how to use it.
        parameters: a JSON schema of what it takes.
    """

    name: str
    description: str
    parameters: dict[str, Any] = field(repr=False)


class OwnedTools:
    """The tools of whoever a run is about.

    Raises:
        ConfigurationError: an option can't be used.
        InvalidIdError: the user is neither a usable string nor a function.
    """

    def __init__(self, manager: MemoryManager, user_id: Whose, options: ToolOptions) -> None:
        self._manager = manager
        self._whose = user_id
        self._options = options
        # a bad option is told now and not in the middle of a run; nobody's memories are asked for
        shown = memory_tools(manager, user_id="nobody" if callable(user_id) else user_id, **options)
        self.specs: list[Spec] = [Spec(**spec["function"]) for spec in shown.specs]

    def of(self, given: object) -> MemoryTools:
        """The tools of the user whom this run is about.

        Raises:
            InvalidIdError: the run tells of no usable user.
        """
        return memory_tools(self._manager, user_id=owner(self._whose, given), **self._options)


def owner(whose: Whose, given: object) -> str:
    """The user of a run.

    Raises:
        InvalidIdError: a function could not tell it.
    """
    if isinstance(whose, str):
        return whose
    if not callable(whose):
        raise InvalidIdError(f"user_id must be a str or a function that tells one, not {type(whose).__name__}")
    try:
        user = cast("object", whose(given))
    except (AttributeError, LookupError, TypeError) as error:
        kind = type(error).__name__
    else:
        if isinstance(user, str):  # anything else must not mean the manager's default user
            return user
        kind = f"it gave a {type(user).__name__}"
    raise InvalidIdError(
        f"the function that is user_id= could not tell the user of this run ({kind}): give the run what it reads"
    )


async def told(manager: MemoryManager, whose: Whose, given: object, instructions: str, max_tokens: int) -> str:
    """The instructions, and below them what is known of the user of this run."""
    known = await manager.build_context(user_id=owner(whose, given), max_tokens=max_tokens)
    return "\n\n".join(part for part in (instructions, known) if part)
