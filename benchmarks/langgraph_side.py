"""The other side of ``benchmarks/search.py``: LangGraph's MongoDBStore, in an environment of its own.

Without Atlas it has no search by words or by meaning: only a namespace, a filter and a limit, in no promised order.
Reads one JSON command a line, ``{"op": …, "user": …, "n": …}``; answers with the seconds of each of n calls.
"""

import json
import sys
import time

from langgraph.store.mongodb import MongoDBStore
from pymongo import MongoClient

LIMIT = 20
store = MongoDBStore(MongoClient(sys.argv[1])[sys.argv[2]]["langgraph_memories"])


def put(user):
    """One more item in the user's namespace."""
    store.put((user,), str(time.time_ns()), {"memory": f"Fact {time.time_ns()}", "topics": ["new"]})


def search(user, **more):
    """Any twenty items of the user's namespace."""
    found = store.search((user,), limit=LIMIT, **more)
    assert len(found) == LIMIT, len(found)
    assert all(item.namespace == (user,) for item in found), found


calls = {
    "add": put,
    "last20": search,
    "topic20": lambda user: search(user, filter={"topics": "work"}),
}
for line in sys.stdin:
    command = json.loads(line)
    seconds = []
    for _ in range(command["n"]):
        began = time.perf_counter()
        calls[command["op"]](command["user"])
        seconds.append(time.perf_counter() - began)
    print(json.dumps(seconds), flush=True)
