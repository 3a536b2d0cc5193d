"""The story of two sessions with a real model: what was remembered of the first, and whether the second was told.

    python benchmarks/local_model.py run -- python benchmarks/agent_story.py --plan
    ASYNCMEM_MODEL=openai/gpt-4o-mini python benchmarks/agent_story.py

One user says how she likes to be answered and what she works on. In another session she asks something else: both
must stand in its prompt. It is told with capture behind the answer, and with the tool that the agent calls itself.
With ``--plan`` the agent's model writes a plan of calls instead: small models call tools badly.
The exit code is 0 if both ways remembered both.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from asyncmem import Agent, LLMSettings, MemoryManager  # noqa: E402
from asyncmem.interfaces.choice import choose_model, llm_settings  # noqa: E402
from tests.servers import running_mongod, with_database  # noqa: E402

TELLS = "I prefer code examples over explanations. I'm working on a machine learning project."
ASKS = "Explain async/await in Python"
WORDS = {"code examples": ("code", "example"), "machine learning": ("machine learning",)}
"""What has to be remembered, and the words that show it."""
WAYS: dict[str, dict[str, Any]] = {
    "captured behind the answer": {"update_memory_on_run": True},
    "handed over by the agent's tool": {"enable_agentic_memory": True},
}
INSTRUCTIONS = "You help programmers. Answer briefly."
WITH_TOOL = " When the user says something about himself or herself, call the tool to remember it before you answer."


async def tell(manager: MemoryManager, llm: LLMSettings, way: str, options: dict[str, Any]) -> bool:
    """Tell the story one way; whether the second session's prompt held all."""
    user_id, told = way.split()[0], INSTRUCTIONS + (WITH_TOOL if "enable_agentic_memory" in options else "")
    agent = Agent(choose_model(None), llm=llm, memory_manager=manager, instructions=told, **options)
    began = time.perf_counter()
    first = await agent.run(TELLS, user_id=user_id, session_id="first")
    print(f"\n{way}\n  user: {TELLS}\n  agent: {' '.join(first.content.split())[:200]}")
    for result in first.tool_results:
        print(f"  called {result.name}: {result.answer[:300]}")
    for ticket in first.captures:
        print(f"  captured: {await ticket.wait()}")
    for memory in await manager.get_user_memories(user_id=user_id):
        print(f"  remembered: {memory.memory}")
    second = await agent.run(ASKS, user_id=user_id, session_id="second")
    print(f"  user, in another session: {ASKS}\n  agent: {' '.join(second.content.split())[:300]}")
    context = second.context.casefold()
    held = {what: all(word in context for word in words) for what, words in WORDS.items()}
    for ticket in second.captures:
        await ticket.wait()
    said = ", ".join(f"{what}: {'yes' if yes else 'NO'}" for what, yes in held.items())
    print(f"  the prompt held {said}; {time.perf_counter() - began:.0f} s")
    return all(held.values())


async def run(*, plan: bool) -> bool:
    """Tell it each way."""
    llm = llm_settings().model_copy(update={"tools": False} if plan else {})
    with running_mongod(replica_set=True) as server:
        uri = with_database(server.uri, "story")
        async with MemoryManager(uri, model=choose_model(None), llm=llm_settings()) as manager:
            return all([await tell(manager, llm, way, options) for way, options in WAYS.items()])


def main() -> None:
    """Tell the story."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", action="store_true", help="a plan of calls instead of tools")
    options = parser.parse_args()
    print(f"model: {os.environ.get('ASYNCMEM_MODEL', choose_model(None))}")
    sys.exit(0 if asyncio.run(run(plan=options.plan)) else 1)


if __name__ == "__main__":
    main()
