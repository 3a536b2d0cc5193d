"""Closing streams that are not ours, whatever they do about it."""

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

log: logging.Logger = logging.getLogger("asyncmem.llm")
S = TypeVar("S")


@asynccontextmanager
async def closed(stream: S) -> AsyncGenerator[S]:
    """The stream, closed at the end if it can be; that this fails is logged."""
    try:
        yield stream
    finally:
        await _close(stream)


async def _close(stream: Any) -> None:
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    try:
        done: object = close() if callable(close) else None
        if inspect.isawaitable(done):
            await done
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        log.debug("closing a model's stream was cancelled from within")
    except Exception as error:  # noqa: BLE001  a model's stream is foreign, and may raise anything
        log.debug("closing a model's stream failed: %s", type(error).__name__)


def is_cancelled() -> bool:
    """Whether somebody cancelled the running task, so that a ``CancelledError`` is theirs."""
    task = asyncio.current_task()
    return task is None or bool(task.cancelling())
