"""``asyncmem demo``: a conversation becomes memories, and the memories answer questions."""

import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from asyncmem import (
    CaptureResult,
    Change,
    MemoryManager,
    MemorySearchResult,
    Message,
    ModelTimeoutError,
    StructuredOutputError,
    Usage,
    UserMemory,
)

from .conversation import Conversation, Question

USER = "asyncmem-demo"
"""The demo's own user, erased before it begins."""


async def run_demo(manager: MemoryManager, conversation: Conversation, console: Console) -> Usage:
    """Capture, list, ask, and say what came of it; what the model calls took.

    Raises:
        AsyncMemError: the database or the model could not be used.
    """
    began = time.monotonic()
    await manager.erase_user(USER)
    usage = await _capture(manager, conversation, console)
    memories = await manager.get_user_memories(user_id=USER)
    console.print(memory_table(memories, "What is remembered"))
    usage += await _ask(manager, conversation.questions, console)
    _compare(conversation, [m.memory for m in memories], console)
    console.print(f"\n{describe(usage)}, {time.monotonic() - began:.0f} s")
    return usage


async def _capture(manager: MemoryManager, conversation: Conversation, console: Console) -> Usage:
    usage = Usage()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    captures = conversation.captures()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading", total=len(captures))
        for messages in captures:
            for message in messages:
                progress.console.print(_turn(message))
            try:
                result = await manager.create_user_memories(messages=messages, user_id=USER)
            except (ModelTimeoutError, StructuredOutputError) as error:  # the next turn may go well
                usage += error.usage
                progress.console.print(f"    [red]failed: {escape(str(error))}[/red]")
            else:
                usage += result.usage
                for line in _outcome(result):
                    progress.console.print(line)
            progress.advance(task)
    return usage


def _turn(message: Message) -> str:
    day = f"[dim]{message.at:%Y-%m-%d}[/dim] " if message.at else ""
    colour = "cyan" if message.role == "user" else "blue"
    return f"{day}[{colour}]{escape(message.role)}[/{colour}]: {escape(message.content)}"


def _outcome(result: CaptureResult) -> list[str]:
    skipped = [f"    [dim]skipped {s.op}: {escape(s.reason)}: {escape(s.memory or '')}[/dim]" for s in result.skipped]
    return [*map(_change, result.changes), *skipped]


def _change(change: Change) -> str:
    match change:
        case Change(before=None, after=UserMemory() as after):
            return f"    [green]+ {escape(after.memory)}[/green]"
        case Change(before=UserMemory() as before, after=UserMemory() as after):
            return f"    [yellow]~ {escape(after.memory)}[/yellow] [dim](was: {escape(before.memory)})[/dim]"
        case _:
            return f"    [red]- {escape(change.before.memory if change.before else '')}[/red]"


def memory_table(memories: list[UserMemory] | MemorySearchResult, title: str) -> Table:
    """Memories as a table."""
    table = Table(title=title, title_justify="left")
    for name in ("id", "memory", "topics", "updated"):
        table.add_column(name, no_wrap=name in ("id", "updated"), overflow="fold")
    for memory in memories:
        updated = f"{memory.updated_at:%Y-%m-%d %H:%M}" if memory.updated_at else ""
        table.add_row(escape(memory.memory_id or ""), escape(memory.memory), escape(", ".join(memory.topics)), updated)
    return table


async def _ask(manager: MemoryManager, questions: list[Question], console: Console) -> Usage:
    usage = Usage()
    for question in questions:
        with console.status("searching"):
            found = await manager.search_user_memories(question.ask, user_id=USER, retrieval_method="agentic")
        usage += found.usage
        console.print(f"\n[bold]{escape(question.ask)}[/bold]")
        for memory in found:
            console.print(f"    {escape(memory.memory)}")
        if not found:
            console.print("    [dim]no memory answers this[/dim]")
        told = "\n".join(m.memory for m in found).casefold()
        if question.expect and not any(text.casefold() in told for text in question.expect):
            console.print(f"    [red]wrong: expected {escape(' or '.join(question.expect))}[/red]")
    return usage


def _compare(conversation: Conversation, memories: list[str], console: Console) -> None:
    if not conversation.expected:
        return
    wrong = [e.what for e in conversation.expected if not e.holds(memories)]
    right = len(conversation.expected) - len(wrong)
    console.print(f"\n{right} of {len(conversation.expected)} expectations hold")
    for what in wrong:
        console.print(f"    [red]wrong: not true that {escape(what)}[/red]")


def describe(usage: Usage) -> str:
    """Calls, tokens and cost in one line."""
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    return f"{usage.calls} model calls, {usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens, {cost}"
