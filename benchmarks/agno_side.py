"""The other side of ``benchmarks/store.py``: agno's MemoryManager, in an environment of its own.

Reads one JSON command a line, ``{"op": …, "user": …, "n": …}``; answers with the seconds of each of n calls.
"""

import json
import sys
import time

from agno.db.mongo import MongoDb
from agno.memory import MemoryManager
from agno.memory.manager import UserMemory

manager = MemoryManager(db=MongoDb(db_url=sys.argv[1], db_name=sys.argv[2], memory_collection="memories"))
calls = {
    "add": lambda user: manager.add_user_memory(
        UserMemory(memory=f"Fact {time.time_ns()}", topics=["new"]), user_id=user
    ),
    "get": lambda user: manager.get_user_memory("agno-get", user_id=user),
    "last20": lambda user: manager.search_user_memories(limit=20, retrieval_method="last_n", user_id=user),
    "list": lambda user: manager.get_user_memories(user_id=user),
}
for line in sys.stdin:
    command = json.loads(line)
    seconds = []
    for _ in range(command["n"]):
        began = time.perf_counter()
        calls[command["op"]](command["user"])
        seconds.append(time.perf_counter() - began)
    print(json.dumps(seconds), flush=True)
