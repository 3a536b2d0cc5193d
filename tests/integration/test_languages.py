"""Keyword search in seven languages, over made-up memories of one user in all of them."""

import json
from pathlib import Path

import pytest

from asyncmem import MemoryManager, UserMemory
from asyncmem.testing import ScriptedModel

from ..servers import with_database

pytestmark = pytest.mark.anyio
LANGUAGES: dict[str, list[list[str]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "languages.json").read_text(encoding="utf-8")
)


async def test_keyword_finds_memories_in_seven_languages(replica_set_uri: str, database_name: str) -> None:
    """In each language nine of ten queries have their memory among the first five, of 140 in all languages."""
    async with MemoryManager(with_database(replica_set_uri, database_name), model=ScriptedModel([])) as manager:
        every = [UserMemory(memory=memory) for pairs in LANGUAGES.values() for memory, _ in pairs]
        assert len(await manager.add_user_memories(every, user_id="lin")) == 140
        recall = {}
        for language, pairs in LANGUAGES.items():
            hits = 0
            for memory, query in pairs:
                found = await manager.search_user_memories(query, user_id="lin", retrieval_method="keyword", limit=5)
                hits += memory in [m.memory for m in found]
            recall[language] = hits / len(pairs)
        assert all(share >= 0.9 for share in recall.values()), recall
