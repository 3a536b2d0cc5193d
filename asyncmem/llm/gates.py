"""The gate in front of a model: how many calls are under way at once, and when they begin."""

import asyncio

STEPPED = 16
"""Up to this bound calls begin one in each turn of the event loop; a higher bound asks for throughput instead."""


class Gate:
    """Lets so many calls through at once, and of a bound up to 16 one in each turn of the event loop.

    Calls that begin together stay together: all their replies are then worked on in one turn of the loop, and nothing
    else runs meanwhile. Begun one a turn they fall out of step, and the loop's largest lag is less than half of what
    it was. That is the slower way, though, the more calls there are: work on many replies in one go is done faster.

    Source: ``benchmarks/llm.py``.
    """

    def __init__(self, most: int) -> None:
        self._places = asyncio.Semaphore(most)
        self._turn = asyncio.Semaphore(1 if most <= STEPPED else most)

    async def __aenter__(self) -> None:
        await self._places.acquire()
        try:
            async with self._turn:
                await asyncio.sleep(0)
        except BaseException:
            self._places.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._places.release()


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
