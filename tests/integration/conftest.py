"""Managers whose model plays a script, on a real server."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from asyncmem import MemoryManager, UserMemory
from asyncmem.testing import ScriptedModel

from ..servers import with_database

Script = Callable[..., MemoryManager]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A model without steps; what a test adds must be played to the end."""
    scripted = ScriptedModel()
    yield scripted
    scripted.assert_done()


@pytest.fixture
def uri(server_uri: str, database_name: str) -> str:
    """A fresh database on each kind of server."""
    return with_database(server_uri, database_name)


@pytest.fixture
def make(uri: str, model: ScriptedModel) -> Script:
    """Makes a manager whose model plays the script."""

    def maker(**options: Any) -> MemoryManager:
        return MemoryManager(uri, model=model, **options)

    return maker


def plan(*operations: dict[str, Any]) -> dict[str, Any]:
    """What a model answers to capture."""
    return {"operations": list(operations)}


async def texts(manager: MemoryManager, user_id: str) -> list[str]:
    """A user's memories as text, oldest update first."""
    return [m.memory for m in await manager.get_user_memories(user_id=user_id)]


async def fill(manager: MemoryManager, user_id: str, *memories: str) -> list[str]:
    """Give a user memories; their ids."""
    return await manager.add_user_memories([UserMemory(memory=m) for m in memories], user_id=user_id)
