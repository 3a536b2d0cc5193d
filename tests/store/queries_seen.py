"""What a store sends: every command that asks or changes something, and how the server would carry it out."""

from collections.abc import Iterator
from typing import Any

from bson import SON
from bson.raw_bson import RawBSONDocument
from pymongo import AsyncMongoClient
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

Row = dict[str, Any]
_ASKING = ("find", "aggregate", "count", "distinct", "update", "delete", "findAndModify")
_ENVELOPE = ("lsid", "txnNumber", "$clusterTime", "$db", "startTransaction", "autocommit", "$readPreference")


class Recorder(CommandListener):
    """Keeps every command that has a query."""

    def __init__(self) -> None:
        self.commands: list[Row] = []

    def started(self, event: CommandStartedEvent) -> None:
        # neither a probe of what the server can do nor a change stream, which reads the oplog, is a query
        begins = str(event.command.get("pipeline", ""))
        asks = event.command_name in _ASKING and not any(s in begins for s in ("$listSearchIndexes", "$changeStream"))
        if asks:
            self.commands.append(dict(event.command))

    def succeeded(self, event: CommandSucceededEvent) -> None:
        pass

    def failed(self, event: CommandFailedEvent) -> None:
        pass


def name_of(command: Row) -> str:
    """Which command it is: the server takes the first key for it."""
    return next(iter(command))


def single(command: Row) -> Iterator[Row]:
    """The command with one statement at a time, which is all that ``explain`` takes."""
    plain = {key: value for key, value in command.items() if key not in (*_ENVELOPE, "writeConcern", "readConcern")}
    several = {"update": "updates", "delete": "deletes"}.get(name_of(command))
    for statement in plain[several] if several else [None]:
        yield plain if several is None else {**plain, several: [statement]}


def filter_of(command: Row) -> Row:
    """What the command selects by."""
    if "pipeline" in command:
        first = command["pipeline"][0]
        return dict(first.get("$match", {}))
    for several in ("updates", "deletes"):
        if several in command:
            return dict(command[several][0]["q"])
    return dict(command.get("filter") or command.get("query") or {})


def shape(value: Any) -> Any:
    """A query without its values."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def collection_of(command: Row) -> str:
    """Which collection the command is for."""
    return str(command[name_of(command)])


async def explained(client: "AsyncMongoClient[Row]", database: str, command: Row) -> list[Row]:
    """The stages of the plan that the server chooses, from the bottom up."""
    name = name_of(command)
    ordered = SON([(name, command[name]), *((key, value) for key, value in command.items() if key != name)])
    if name == "aggregate":
        ordered["cursor"] = {}
    plan = await client[database].command({"explain": ordered, "verbosity": "queryPlanner"})
    return list(_stages(plan))


def _stages(plan: Any) -> Iterator[Row]:
    """Every stage of every winning plan in an answer of ``explain``."""
    if isinstance(plan, RawBSONDocument | dict):
        if "rejectedPlans" in plan:
            plan = {key: value for key, value in plan.items() if key != "rejectedPlans"}
        for value in plan.values():
            yield from _stages(value)
        if isinstance(plan.get("stage"), str):
            yield dict(plan)
    elif isinstance(plan, list):
        for value in plan:
            yield from _stages(value)
