"""The gate in front of a model: how many calls are under way at once, and when they begin."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import asynccontextmanager
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")
STEPPED = 16
"""Up to this bound calls begin one after another; a higher bound asks for throughput instead."""
PATIENCE = 0.03
"""Seconds that a call may have for beginning, others waiting."""


class Start:
    """A call's turn to begin. It ends when the call sends its request, or after 30 ms.

    Args:
        turns: hands turns out; ``None`` where all may begin at once.
        waits: how often the call waits before that, the last time for the network.
    """

    def __init__(self, turns: asyncio.Semaphore | None, waits: int) -> None:
        self._turns = turns
        self._waits = waits
        self._late = None if turns is None else asyncio.get_running_loop().call_later(PATIENCE, self.end)

    def end(self) -> None:
        """Let the next call begin, if that was not done before."""
        if self._turns is not None and self._late is not None:
            self._late.cancel()
            self._turns.release()
            self._late = None

    @coroutine
    def through(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """What the call gives, its waits counted."""
        thrown: list[BaseException] = []
        try:
            awaited = work.send(None)
            while True:
                self._waits -= 1
                if self._waits == 0:
                    self.end()
                given = None
                try:
                    given = yield awaited
                except BaseException as error:  # noqa: BLE001  it is the work's, which may be cancelled
                    thrown.append(error)
                # not while it is handled: all that the work raises would have it as its context, prompt and key in it
                awaited = work.throw(thrown.pop()) if thrown else work.send(given)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]


class Gate:
    """Lets so many calls through at once, and of a bound up to 16 one after another.

    Calls that begin together stay together: all their replies are then worked on in one turn of the loop, and nothing
    else runs meanwhile. litellm also prepares a request in a worker thread, and threads take the interpreter from each
    other: while one prepares, beginning another takes the loop twice as long. So a call begins when the one before has
    sent its request, and the loop's largest lag is a tenth of what it is when all begin at once. That is the slower
    way, though, the more calls there are: work on many replies in one go is done faster.

    Source: ``benchmarks/llm.py``.
    """

    def __init__(self, most: int) -> None:
        self._places = asyncio.Semaphore(most)
        self._turns = asyncio.Semaphore(1) if most <= STEPPED else None

    @asynccontextmanager
    async def passage(self, waits: int = 1) -> AsyncGenerator[Start]:
        """A place among the calls under way, and a turn to begin.

        Args:
            waits: see ``Start``.
        """
        async with self._places:
            if self._turns is None:
                yield Start(None, waits)
                return
            await self._turns.acquire()
            start = Start(self._turns, waits)
            try:
                await asyncio.sleep(0)
                yield start
            finally:
                start.end()


class Gates:
    """A gate for each event loop that a model is used in."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._gates: dict[asyncio.AbstractEventLoop, Gate] = {}

    def __len__(self) -> int:
        return len(self._gates)

    def here(self) -> Gate:
        """The running loop's gate."""
        loop = asyncio.get_running_loop()
        gate = self._gates.get(loop)
        if gate is None:
            # a lock holds on to its loop, so a weak reference to that would never die
            for ended in [each for each in list(self._gates) if each.is_closed()]:
                self._gates.pop(ended, None)
            gate = self._gates[loop] = Gate(self._most)
        return gate
