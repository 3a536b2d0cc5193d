"""Messages or a task in, decided operations out: one model call, then the guards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .errors import InvalidMessageError
from .guards import judge_plan
from .llm import LLM
from .operations import Add, Delete, Operation, Update
from .plan import OPERATION_NAMES, plan_model
from .prompts import capture_prompt, estimate_tokens, newest_within, strip_recalled
from .types import Change, Message, Scope, Skipped, Tier, Usage, UserMemory

SHOWN_TOKENS = 2_000
"""Estimated tokens that the memories shown to the model may have: the newest that fit."""
CONVERSATION_TOKENS = 16_000
"""Estimated tokens that the messages of one capture may have."""
REPLY_TOKENS = 1_200


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """What a model may do, and what it is told.

    Attributes:
        add: whether it may add.
        update: whether it may update.
        delete: whether it may delete.
        clear: whether it may remove everything of the one user at hand.
        system_message: replaces the whole prompt; may use ``{existing_memories}`` and ``{operations}``.
        memory_capture_instructions: replaces the part that says what to capture.
        additional_instructions: comes after the memories.
    """

    add: bool = True
    update: bool = True
    delete: bool = False
    clear: bool = False
    system_message: str | None = None
    memory_capture_instructions: str | None = None
    additional_instructions: str | None = None

    @property
    def enabled(self) -> tuple[str, ...]:
        """Names of the operations that are switched on."""
        return tuple(name for name in OPERATION_NAMES if getattr(self, name))


@dataclass(frozen=True, slots=True)
class Decision:
    """What a model decided, after the guards.

    Attributes:
        operations: to be applied, with the memories' real ids.
        skipped: what was decided and must not be applied.
        usage: model calls, tokens and cost.
        tier: which step of the ladder answered; ``None`` when no model was asked.
        words: what the user said, to be recorded where an operation brings no evidence of its own.
    """

    operations: list[Operation] = field(default_factory=list[Operation])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    usage: Usage = field(default_factory=Usage)
    tier: Tier | None = None
    words: str | None = None


def read_messages(message: object, messages: object) -> list[Message]:
    """The turns of user and assistant, without what was recalled into them and without blank ones.

    Args:
        message: one message: a string, a dict in OpenAI's shape, or a ``Message``.
        messages: a sequence of such.

    Returns:
        The conversation; empty when the user said nothing.

    Raises:
        InvalidMessageError: both or neither were given, or one is no message.
    """
    if (message is None) == (messages is None):
        raise InvalidMessageError("pass either message or messages" + (", not both" if messages is not None else ""))
    if messages is None:
        items: Sequence[object] = [message]
    elif isinstance(messages, Sequence) and not isinstance(messages, str | bytes):
        items = messages  # pyright: ignore[reportUnknownVariableType]
    else:
        raise InvalidMessageError(f"messages must be a list, not {type(messages).__name__}: pass one as message")
    read = [_read(item, f"messages[{i}]" if messages is not None else "message") for i, item in enumerate(items)]
    turns = [turn for turn in read if turn.role in ("user", "assistant") and turn.content]
    return turns if any(turn.role == "user" for turn in turns) else []


def _read(item: object, where: str) -> Message:
    match item:
        case Message():
            made = item
        case str():
            made = Message(content=item)
        case Mapping():
            made = _from_mapping(item, where)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise InvalidMessageError(f"{where} must be a str, dict or Message, not {type(item).__name__}")
    return made.model_copy(update={"content": strip_recalled(made.content)})


def _from_mapping(item: Mapping[Any, Any], where: str) -> Message:
    role = item.get("role")
    if not isinstance(role, str):
        raise InvalidMessageError(f"{where} has no role: use 'user' or 'assistant'")
    return Message(role=role.strip().casefold(), content=_content(item.get("content"), where), at=item.get("at"))


def _content(content: object, where: str) -> str:
    """The text of a message's content; other parts, such as images and tool calls, hold none."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list() | tuple():
            return "\n".join(text for part in content if (text := _part(part, where)))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            raise InvalidMessageError(f"{where} has content of type {type(content).__name__}: use text or parts")


def _part(part: object, where: str) -> str:
    match part:
        case str():
            return part
        case Mapping():
            text = part.get("text")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            return text if isinstance(text, str) else ""
        case _:
            raise InvalidMessageError(f"{where} has a part of type {type(part).__name__}: use text or dicts")


async def decide(
    llm: LLM,
    messages: Sequence[Message],
    existing: Sequence[UserMemory],
    options: CaptureOptions,
    *,
    now: datetime,
    task: bool = False,
) -> Decision:
    """What a model wants changed, as far as the guards let it.

    Args:
        llm: the model.
        messages: what ``read_messages`` gave. Without any, or with every operation switched off, no model is asked.
        existing: what is known of the user, oldest update first.
        options: what the model may do, and what it is told.
        now: the date of messages without a time.
        task: the messages ask for a change of memories.

    Raises:
        InvalidMessageError: the conversation is too long for one capture.
        ModelError: the model could not be asked, or not be understood.
    """
    said = [message.content for message in messages if message.role == "user"]
    if not said or not options.enabled:
        return Decision()
    if sum(estimate_tokens(message.content) for message in messages) > CONVERSATION_TOKENS:
        raise InvalidMessageError(f"the messages exceed about {CONVERSATION_TOKENS:,} tokens: pass them in parts")
    shown = _to_show(existing)
    prompt = capture_prompt(
        options.enabled,
        system_message=options.system_message,
        memory_capture_instructions=options.memory_capture_instructions,
        additional_instructions=options.additional_instructions,
        memories=shown,
        messages=messages,
        now=now,
        task=task,
    )
    reply = await llm.structured(prompt, plan_model(options.enabled), max_tokens=REPLY_TOKENS)
    judged = judge_plan(
        reply.value, shown=shown, existing=existing, messages=messages, enabled=options.enabled, now=now
    )
    return Decision(judged.operations, judged.skipped, reply.usage, reply.tier, "\n".join(said))


def _to_show(existing: Sequence[UserMemory]) -> list[UserMemory]:
    """The newest that fit, in the order of their making: an update then moves no line, and caches stay warm.

    Text that was stored as suspect is not shown to a model.
    """
    fitting = newest_within([m for m in existing if not m.metadata.get("suspect")], SHOWN_TOKENS)
    return sorted(fitting, key=lambda m: (m.created_at is not None, m.created_at, str(m.memory_id)))


def preview(
    operations: Sequence[Operation], existing: Sequence[UserMemory], scope: Scope, now: datetime
) -> list[Change]:
    """The changes that the operations would make. Memories that would be added have no id yet: theirs is ""."""
    known = {str(memory.memory_id): memory for memory in existing}
    changes: list[Change] = []
    for operation in operations:
        match operation:
            case Add():
                changes.append(Change("add", "", None, _added(operation, scope, now), "capture", now))
            case Update():
                before = known[operation.memory_id]
                after = _updated(before, operation, now)
                changes.append(Change("update", operation.memory_id, before, after, "capture", now))
            case Delete():
                before = known[operation.memory_id]
                changes.append(Change("delete", operation.memory_id, before, None, "capture", now))
            case _:  # Clear
                changes += [Change("delete", i, memory, None, "capture", now) for i, memory in known.items()]
    return changes


def _added(add: Add, scope: Scope, now: datetime) -> UserMemory:
    return UserMemory(
        memory=add.memory,
        topics=list(add.topics),
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        team_id=scope.team_id,
        input=add.evidence,
        created_at=now,
        updated_at=now,
        metadata={"suspect": True} if add.suspect else {},
    )


def _updated(before: UserMemory, update: Update, now: datetime) -> UserMemory:
    changed: dict[str, object] = {"memory": update.memory, "updated_at": now, "revision": before.revision + 1}
    if update.topics is not None:
        changed["topics"] = list(update.topics)
    if update.suspect:
        changed["metadata"] = {**before.metadata, "suspect": True}
    return before.model_copy(update=changed)
