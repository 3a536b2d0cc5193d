"""The commands, by typer: each opens a manager, does one thing, and says what came of it."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from asyncmem import (
    AsyncMemError,
    ConfigurationError,
    InvalidInputError,
    MemoryManager,
    MemoryOptimizationStrategyType,
    Settings,
    UserMemory,
)

from .choice import choose_db, choose_model, llm_settings, without_password
from .conversation import Conversation
from .demo import memory_table, run_demo
from .optimization import result_data, run_data, run_table, show_result, show_undo, undo_data

app: typer.Typer = typer.Typer(
    help="Memories of an application's users.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out: Console = Console()
err: Console = Console(stderr=True)

User = Annotated[str, typer.Option(help="Whose memories.")]
Db = Annotated[
    str | None,
    typer.Option(
        help="A MongoDB URI with a database name, 'embedded' or 'embedded:PATH'. [ASYNCMEM_DB, else embedded]"
    ),
]
Model = Annotated[
    str | None, typer.Option(help="Any litellm model name. [ASYNCMEM_MODEL, else by the key in the environment]")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def execute(action: Callable[[], Awaitable[None]]) -> None:
    """Run to the end. An error is one line and an exit code: 2 when the caller can mend it, else 1."""

    async def awaited() -> None:
        await action()

    try:
        asyncio.run(awaited())
    except AsyncMemError as error:
        err.print(f"[red]asyncmem:[/red] {escape(str(error))}", soft_wrap=True, highlight=False)
        raise typer.Exit(2 if isinstance(error, ConfigurationError | InvalidInputError) else 1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def say(value: Any, text: str, *, as_json: bool) -> None:
    """Print a value as JSON, or as text for a person."""
    if as_json:
        typer.echo(json.dumps(value, ensure_ascii=False))
    else:
        out.print(escape(text), highlight=False)


def print_either(value: Any, show_text: Callable[[], None], *, as_json: bool) -> None:
    """Print a value as JSON, or whatever shows it to a person."""
    if as_json:
        typer.echo(json.dumps(value, ensure_ascii=False))
    else:
        show_text()


def show(memories: list[UserMemory], title: str, *, as_json: bool) -> None:
    """Print memories as a JSON list, or as a table."""
    if as_json:
        typer.echo(json.dumps([m.model_dump(mode="json") for m in memories], ensure_ascii=False))
    else:
        out.print(memory_table(memories, title))


@app.command()
def demo(
    file: Annotated[
        Path | None, typer.Option(help="A conversation as JSON messages; by default a shipped one.")
    ] = None,
    model: Model = None,
    db: Db = None,
) -> None:
    """Capture a conversation, list the memories, ask three questions. Uses a user of its own, erased first."""

    async def action() -> None:
        load = partial(Conversation.load, file) if file else Conversation.shipped
        conversation = await asyncio.to_thread(load)
        chosen = choose_model(model)
        where = choose_db(db)
        out.print(f"model {escape(chosen)}, database {escape(without_password(where))}\n", highlight=False)
        async with MemoryManager(
            where, model=chosen, llm=llm_settings(), delete_memories=True, default_user_id=None
        ) as manager:
            await run_demo(manager, conversation, out)

    execute(action)


@app.command("list")
def list_memories(user: User, limit: int | None = None, db: Db = None, as_json: Json = False) -> None:
    """List a user's memories, oldest update first; with --limit the newest of them."""

    async def action() -> None:
        async with MemoryManager(choose_db(db)) as manager:
            found = await manager.search_user_memories(user_id=user, limit=limit)
            show(list(found), f"{len(found)} memories", as_json=as_json)

    execute(action)


@app.command()
def search(
    query: str,
    user: User,
    method: Annotated[str, typer.Option(help="agentic, keyword, last_n or first_n.")] = "agentic",
    limit: int | None = None,
    model: Model = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Find a user's memories."""

    async def action() -> None:
        chosen = choose_model(model) if method == "agentic" else model
        async with MemoryManager(choose_db(db), model=chosen, llm=llm_settings()) as manager:
            found = await manager.search_user_memories(query, user_id=user, retrieval_method=method, limit=limit)
            show(list(found), f"{len(found)} found by {method}", as_json=as_json)

    execute(action)


@app.command()
def add(
    text: str,
    user: User,
    topic: Annotated[list[str] | None, typer.Option(help="A topic; may be given more than once.")] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Store a memory as it is, without a model; prints its id."""

    async def action() -> None:
        async with MemoryManager(choose_db(db)) as manager:
            memory_id = await manager.add_user_memory(UserMemory(memory=text, topics=topic or []), user_id=user)
            say({"memory_id": memory_id}, memory_id, as_json=as_json)

    execute(action)


@app.command()
def forget(memory_id: str, user: User, db: Db = None, as_json: Json = False) -> None:
    """Delete one memory; exit code 1 if the user has none of that id."""

    async def action() -> None:
        async with MemoryManager(choose_db(db)) as manager:
            deleted = await manager.delete_user_memory(memory_id, user_id=user)
        say({"deleted": deleted}, "deleted" if deleted else "this user has no such memory", as_json=as_json)
        if not deleted:
            raise typer.Exit(1)

    execute(action)


@app.command()
def erase(
    user: User,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Remove every trace of a user, for good."""
    if not yes:
        typer.confirm(f"Remove every trace of {user!r}? Nothing brings it back", abort=True, err=True)

    async def action() -> None:
        async with MemoryManager(choose_db(db)) as manager:
            receipt = await manager.erase_user(user)
        counts = ", ".join(f"{count} {kind}" for kind, count in receipt.counts.items())
        say({"user_id": receipt.user_id, "counts": receipt.counts}, f"erased: {counts}", as_json=as_json)

    execute(action)


@app.command()
def optimize(
    user: User,
    strategy: Annotated[str, typer.Option(help="summarize, time_window, topics or deduplicate.")] = "summarize",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    undo: Annotated[str | None, typer.Option(help="Take the optimization with this run id back.")] = None,
    runs: Annotated[bool, typer.Option("--list", help="List the user's optimizations.")] = False,
    model: Model = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Make fewer memories of many, without losing a fact; prints what goes, what comes and what stays."""
    asks = undo is None and not runs and strategy.strip().casefold() != "deduplicate"

    async def action() -> None:
        if sum((undo is not None, runs, dry_run)) > 1:
            raise ConfigurationError("--dry-run, --list and --undo are three things to do: pass one of them")
        known = [each.value for each in MemoryOptimizationStrategyType]
        if strategy.strip().casefold() not in known:  # before a model is asked for
            raise ConfigurationError(f"--strategy must be one of {', '.join(known)}")
        chosen = choose_model(model) if asks else model
        async with MemoryManager(choose_db(db), model=chosen, llm=llm_settings(), default_user_id=None) as manager:
            if runs:
                found = await manager.list_optimizations(user_id=user)
                print_either([run_data(run) for run in found], partial(out.print, run_table(found)), as_json=as_json)
            elif undo is not None:
                undone = await manager.undo_optimization(undo, user_id=user)
                print_either(undo_data(undone), partial(show_undo, undone, out), as_json=as_json)
            else:
                result = await manager.optimize_memories(user_id=user, strategy=strategy, apply=not dry_run)
                print_either(result_data(result), partial(show_result, result, user, out), as_json=as_json)

    execute(action)


@app.command()
def worker(
    concurrency: Annotated[int, typer.Option(help="Captures at once.", min=1, max=1000)] = 8,
    deadline: Annotated[float, typer.Option(help="Seconds that captures in flight have when it is stopped.")] = 30.0,
    model: Model = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Carry out scheduled captures until it is stopped (SIGTERM, Ctrl-C); says what it did. Exit code 0."""

    async def action() -> None:
        stop, where = asyncio.Event(), choose_db(db)
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        settings = Settings(workers=False, close_timeout=timedelta(seconds=deadline))
        async with MemoryManager(where, model=choose_model(model), llm=llm_settings(), settings=settings) as manager:
            err.print(f"working on {escape(without_password(where))}; stop with Ctrl-C", highlight=False)
            report = await manager.run_worker(stop, concurrency=concurrency)
        text = f"{report.done} done, {report.failed} failed, {report.dead} dead, {report.handed_back} handed back"
        say(asdict(report), text, as_json=as_json)

    execute(action)


@app.command()
def queue(
    retry: Annotated[bool, typer.Option("--retry", help="Let all dead letters wait again.")] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Show how many scheduled captures wait, are in flight, and are dead letters."""

    async def action() -> None:
        async with MemoryManager(choose_db(db), settings=Settings(workers=False)) as manager:
            retried = await manager.retry_dead() if retry else 0
            status = await manager.queue_status()
        oldest = None if status.oldest is None else status.oldest.total_seconds()
        value = {**asdict(status), "oldest": oldest, "retried": retried}
        say(
            value,
            ", ".join(
                f"{number} {name.replace('_', ' ')}"
                for name, number in value.items()
                if number is not None and (retry or name != "retried")
            ),
            as_json=as_json,
        )

    execute(action)
