"""A process of ``benchmarks/chaos.py``: a worker that captures, or a writer that notes what was promised.

python benchmarks/chaos_side.py worker|writer URI FOLDER NUMBER
"""

import asyncio
import json
import logging
import random
import sys
import time
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from asyncmem import (  # noqa: E402
    AsyncMemError,
    ChatReply,
    ChatRequest,
    MemoryManager,
    Settings,
    UserMemory,
)

USERS = 20
SETTINGS = Settings(
    lease=timedelta(seconds=3),
    debounce=timedelta(seconds=0.2),
    job_backoff=timedelta(seconds=0.3),
    close_timeout=timedelta(seconds=5),
    open_timeout=timedelta(seconds=30),
)


class Moody:
    """A model that remembers each of the user's sentences as it is; slow, or failing, when a file says so."""

    name = "moody"

    def __init__(self, folder: Path) -> None:
        self._mood = folder / "mood"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Plan one addition for each of the user's turns."""
        mood = self._mood.read_text() if self._mood.exists() else ""
        await asyncio.sleep(2.0 if mood == "slow" else 0.05)
        if mood == "failing":
            raise ConnectionError("the model is down")
        lines = str(request.messages[-1]["content"]).splitlines()
        said = [json.loads(line)["user"] for line in lines if line.startswith('{"user"')]
        return ChatReply(content=json.dumps({"operations": [_add(text) for text in said]}))


def _add(text: str) -> dict[str, str]:
    return {"op": "add", "memory": text, "evidence": text}


async def work(uri: str, folder: Path) -> None:
    """Carry out captures until it is killed."""
    async with MemoryManager(uri, model=Moody(folder), settings=SETTINGS) as manager:
        await manager.run_worker()


async def write(uri: str, folder: Path, number: int) -> None:
    """Add and schedule, and note each promise after it was made, until told to stop."""
    chance, count = random.Random(number), 0
    settings = SETTINGS.model_copy(update={"workers": False})
    async with MemoryManager(uri, model=Moody(folder), settings=settings) as manager:
        with (folder / f"promised-{number}").open("a", buffering=1) as notes:
            while not (folder / "stop").exists():
                count += 1
                user, kind = f"user{chance.randrange(USERS)}", ("add", "schedule")[count % 2]
                text = f"I own the {kind}ed item number {number}{count:06d}"
                began = time.perf_counter()
                try:
                    if kind == "add":
                        await manager.add_user_memory(UserMemory(memory=text), user_id=user)
                    else:
                        await manager.schedule(text, user_id=user, idempotency_key=text)
                except AsyncMemError as error:
                    notes.write(json.dumps({"failed": type(error).__name__}) + "\n")
                    await asyncio.sleep(0.1)
                    continue
                taken = round((time.perf_counter() - began) * 1000, 1)
                notes.write(json.dumps({"kind": kind, "user": user, "text": text, "ms": taken}) + "\n")
                await asyncio.sleep(0.05)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # models that fail are what this is about
    role, address, where, name = sys.argv[1:]
    asyncio.run(work(address, Path(where)) if role == "worker" else write(address, Path(where), int(name)))
