"""``asyncmem optimize``: what an optimization did, or would do, side by side for a person to judge."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from asyncmem import OptimizationResult, OptimizationRun, OptimizationUndo, UserMemory

from .demo import describe


def as_data(memories: list[UserMemory]) -> list[dict[str, object]]:
    """Memories as JSON has them."""
    return [m.model_dump(mode="json") for m in memories]


def result_data(result: OptimizationResult) -> dict[str, object]:
    """A result as JSON has it."""
    return {
        "strategy": result.strategy,
        "applied": result.applied,
        "run_id": result.run_id,
        "reason": result.reason,
        "memories": as_data(result.memories),
        "retired": as_data(result.retired),
        "kept": as_data(result.kept),
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
    }


def show_result(result: OptimizationResult, user: str, console: Console) -> None:
    """Print what goes, what comes and what stays."""
    if result.reason:
        console.print(f"nothing changed: {escape(result.reason)}", highlight=False)
        return
    for memory in result.retired:
        console.print(f"[red]- {escape(memory.memory)}[/red]", soft_wrap=True, highlight=False)
    for memory in result.memories:
        console.print(f"[green]+ {escape(memory.memory)}[/green]", soft_wrap=True, highlight=False)
    for memory in result.kept:
        console.print(f"[dim]  {escape(memory.memory)}[/dim]", soft_wrap=True, highlight=False)
    before, after = len(result.retired) + len(result.kept), len(result.memories) + len(result.kept)
    about = "" if result.tokens_exact else "about "
    console.print(
        f"\n{before} to {after} memories, {about}{result.tokens_before:,} to {result.tokens_after:,} tokens",
        highlight=False,
    )
    console.print(_checked(result), soft_wrap=True, highlight=False)
    if result.usage.calls:
        console.print(describe(result.usage), highlight=False)
    undo = f"asyncmem optimize --user {user} --undo {result.run_id}"
    console.print("a preview: nothing was written" if result.run_id is None else f"to undo it: {undo}", soft_wrap=True)


def _checked(result: OptimizationResult) -> str:
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(result.report.checked.items()) if count)
    missing = len(result.report.kept)
    kept = f"; {missing} of the memories stayed, since a fact of theirs was missing" if missing else ""
    return f"facts looked for: {counts or 'none'}{kept}"


def undo_data(undo: OptimizationUndo) -> dict[str, object]:
    """An undo as JSON has it."""
    return {"restored": as_data(undo.restored), "removed": undo.removed, "stayed": as_data(undo.stayed)}


def show_undo(undo: OptimizationUndo, console: Console) -> None:
    """Print what an undo brought back."""
    for memory in undo.restored:
        console.print(f"[green]+ {escape(memory.memory)}[/green]", soft_wrap=True, highlight=False)
    for memory in undo.stayed:
        console.print(f"[dim]  {escape(memory.memory)} (changed since: stays)[/dim]", soft_wrap=True, highlight=False)
    console.print(f"\n{len(undo.restored)} brought back, {undo.removed} removed", highlight=False)


def run_data(run: OptimizationRun) -> dict[str, object]:
    """A run as JSON has it."""
    counts = {"retired": run.retired, "revised": run.revised, "added": run.added}
    times = {"at": run.at.isoformat(), "undo_until": run.undo_until.isoformat()}
    return {"run_id": run.run_id, "strategy": run.strategy, "status": run.status, **counts, **times}


def run_table(runs: list[OptimizationRun]) -> Table:
    """Runs as a table, newest first."""
    table = Table(title=f"{len(runs)} optimizations", title_justify="left")
    for name in ("run", "strategy", "at", "status", "retired", "added", "undo until"):
        table.add_column(name, no_wrap=name == "run", overflow="fold")
    for run in runs:
        at, until = f"{run.at:%Y-%m-%d %H:%M}", f"{run.undo_until:%Y-%m-%d}"
        table.add_row(run.run_id, escape(run.strategy), at, run.status, str(run.retired), str(run.added), until)
    return table
