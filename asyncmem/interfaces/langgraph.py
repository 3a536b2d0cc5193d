"""Memories for LangGraph (``pip install "asyncmem[langgraph]"``): tools, a system message, and a store."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NoReturn, Unpack, cast

from asyncmem import (
    ConfigurationError,
    InvalidInputError,
    MemoryConflictError,
    MemoryManager,
    MemoryNotFoundError,
    Range,
    UserMemory,
)

from .owned import OwnedTools, Spec, ToolOptions, Whose, told

try:
    from langchain_core.messages import SystemMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool, StructuredTool
    from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem, SearchOp
except ImportError as _error:
    raise ConfigurationError(
        'asyncmem.interfaces.langgraph needs LangGraph: pip install "asyncmem[langgraph]"'
    ) from _error

CAUSE = "langgraph"
"""What the history says of changes by the store."""
_RANGES = {"$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}


def memory_langchain_tools(manager: MemoryManager, *, user_id: Whose, **options: Unpack[ToolOptions]) -> list[BaseTool]:
    """The memory tools for a ``ToolNode``, ``bind_tools`` and every agent of LangChain's; they can only be awaited.

    Args:
        manager: keeps the memories; stays the caller's to close.
        user_id: whose; or a function that is given the ``configurable`` part of the run's config and tells it.
        options: further arguments of ``memory_tools``.

    Raises:
        ConfigurationError: an option can't be used.
        InvalidIdError: the user can't be used; in a run too, when its config tells of none.
    """
    owned = OwnedTools(manager, user_id, options)
    return [_tool(owned, spec) for spec in owned.specs]


def _tool(owned: OwnedTools, spec: Spec) -> BaseTool:
    async def invoke(config: RunnableConfig, **arguments: Any) -> str:
        return await owned.of(config.get("configurable") or {}).call(spec.name, arguments)

    return StructuredTool(
        name=spec.name, description=spec.description, args_schema=spec.parameters, func=None, coroutine=invoke
    )


def memory_message(
    manager: MemoryManager, instructions: str = "", *, user_id: Whose, max_tokens: int = 1000
) -> Callable[[RunnableConfig], Awaitable[SystemMessage]]:
    """A function that a node calls with its config for the system message: instructions, and what is known of the user.

    Args:
        manager: keeps the memories.
        instructions: what the model is told besides.
        user_id: as for the tools.
        max_tokens: estimated tokens of the memories shown.
    """

    async def message(config: RunnableConfig) -> SystemMessage:
        return SystemMessage(await told(manager, user_id, config.get("configurable") or {}, instructions, max_tokens))

    return message


class MemoryStore(BaseStore):
    """A store for ``graph.compile(store=...)`` whose items are user memories.

    The namespace is ``("memories", user_id)``, the key a memory's id, the value ``{"memory": text, "topics": [...]}``
    and beside them the memory's metadata. Only the asynchronous methods work.

    Args:
        manager: keeps the memories; stays the caller's to close.
        prefix: what stands before the user in the namespace.
    """

    supports_ttl: bool = False

    def __init__(self, manager: MemoryManager, *, prefix: tuple[str, ...] = ("memories",)) -> None:
        self._manager = manager
        self._prefix = prefix

    def batch(self, ops: Iterable[Op]) -> NoReturn:
        """Refuse: the memories are kept asynchronously.

        Raises:
            ConfigurationError: always.
        """
        del ops
        raise ConfigurationError("this store is asynchronous: await aget, aput, asearch or adelete, and graph.ainvoke")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out the operations in order.

        Raises:
            InvalidInputError: a namespace is not one user's, or an operation asks for what memories don't have.
            InvalidMemoryError: a value can't be stored.
            MemoryConflictError: the user has another memory that says the same.
            StoreError: the database could not do it.
        """
        return [await self._do(op) for op in ops]

    async def _do(self, op: Op) -> Result:
        match op:
            case GetOp():
                memory = await self._manager.get_user_memory(op.key, user_id=self._user(op.namespace))
                return None if memory is None else Item(**_item(memory, op.namespace))
            case PutOp():
                await self._put(op)
                return None
            case SearchOp():
                return await self._search(op)
            case _:
                raise InvalidInputError("namespaces are users: list them by MemoryManager.get_users")

    async def _put(self, op: PutOp) -> None:
        user_id = self._user(op.namespace)
        if op.index is not None:
            raise InvalidInputError("index= can't be chosen: a memory's text is what is searched")
        if op.value is None:
            await self._manager.delete_user_memory(op.key, user_id=user_id, cause=CAUSE)
            return
        fields = _fields(op.value)
        try:
            await self._manager.update_user_memory(op.key, user_id=user_id, **fields, cause=CAUSE)
        except MemoryNotFoundError:
            stored = await self._manager.add_user_memory(
                UserMemory(memory_id=op.key, **fields), user_id=user_id, cause=CAUSE
            )
            if stored != op.key:
                raise MemoryConflictError(f"the user has a memory that says the same, under the key {stored}") from None

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        found = await self._manager.search_user_memories(
            op.query,
            user_id=self._user(op.namespace_prefix),
            limit=op.offset + op.limit,
            retrieval_method=self._manager.relevance_method if op.query else "last_n",
            **_filters(op.filter or {}),
        )
        ranked = list(found if op.query else found[::-1])
        scores: list[float | None] = [*found.scores] if found.scores else [None] * len(ranked)
        items = zip(ranked, scores, strict=True)
        return [SearchItem(**_item(m, op.namespace_prefix), score=score) for m, score in items][op.offset :]

    def _user(self, namespace: tuple[str, ...]) -> str:
        """Whose memories a namespace names.

        Raises:
            InvalidInputError: none's, or several users'.
        """
        if namespace[:-1] != self._prefix:
            raise InvalidInputError(f"the namespace must be {(*self._prefix, 'USER_ID')}, one user's")
        return namespace[-1]


def _fields(value: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: given for name, given in value.items() if name not in ("memory", "topics")}
    if "memory" not in value:
        raise InvalidInputError('the value must have the text under "memory", and may have "topics" and metadata')
    return {"memory": value["memory"], "topics": value.get("topics"), "metadata": metadata}


def _item(memory: UserMemory, namespace: tuple[str, ...]) -> dict[str, Any]:
    return {
        "value": {**memory.metadata, "memory": memory.memory, "topics": memory.topics},
        "key": memory.memory_id,
        "namespace": namespace,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
    }


def _filters(given: Mapping[str, Any]) -> dict[str, Any]:
    """LangGraph's filter as that of a search.

    Raises:
        InvalidInputError: it can't be said.
    """
    metadata = {name: _wanted(value) for name, value in given.items() if name != "topics"}
    if "memory" in metadata:
        raise InvalidInputError("a text is not filtered by: pass it as the query")
    topics = given.get("topics")
    named = [topics] if isinstance(topics, str) else topics
    return ({"topics_all": named} if named is not None else {}) | ({"metadata": metadata} if metadata else {})


def _wanted(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    bounds = dict(cast("Mapping[str, Any]", value))
    if bounds.keys() == {"$eq"}:
        return bounds["$eq"]
    if not bounds or not bounds.keys() <= _RANGES.keys():
        raise InvalidInputError("a filter may have a value, or $eq, $gt, $gte, $lt and $lte")
    return Range(**{_RANGES[name]: bound for name, bound in bounds.items()})
