"""A process that makes many captures of one user at once: ``python -m tests.store.rivals URI NAME``."""

import asyncio
import json
import sys

from asyncmem import ChatReply, ChatRequest, MemoryManager

STATEMENTS = [f"Owns boat number {n}" for n in range(40)]


class Echo:
    """A model that adds what the user said."""

    name = "echo"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Add the last words."""
        lines = str(request.messages[-1]["content"]).splitlines()
        said = [json.loads(line)["user"] for line in lines if line.startswith('{"user"')]
        plan = [{"op": "add", "memory": text, "evidence": text} for text in said]
        return ChatReply(content=json.dumps({"operations": plan}))


async def main() -> None:
    """Capture forty statements that the other process captures too, and ten of one's own."""
    uri, name = sys.argv[1:]
    own = [f"Likes {name} film {n}" for n in range(10)]
    async with MemoryManager(uri, model=Echo()) as manager:
        await asyncio.gather(*(manager.create_user_memories(text, user_id="lin") for text in [*STATEMENTS, *own]))


if __name__ == "__main__":
    asyncio.run(main())
