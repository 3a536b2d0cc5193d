"""Tools that raise: the model is told so, the run goes on, and its result says what was raised."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from ..cleaning import sendable
from ..errors import ToolError
from ..llm import Tool
from ..llm.chat import ScriptError
from ..llm.closing import is_cancelled
from .results import ToolFailure

_log = logging.getLogger(__name__)


def guarded(tools: Sequence[Tool[Any]], failures: list[ToolFailure]) -> list[Tool[Any]]:
    """The tools, none of which raises: what one does raise is told to the model by its class, and kept.

    The text of an exception may hold keys, paths and what others said, so no model sees it; that of a ``ToolError``
    was written for one.
    """
    return [replace(tool, run=partial(_run, tool, failures)) for tool in tools]


async def _run(tool: Tool[Any], failures: list[ToolFailure], arguments: BaseModel) -> str:
    try:
        return sendable(await tool.run(arguments))
    except ScriptError:
        raise  # a test double says that it was not to be called
    except ToolError as error:
        failures.append(ToolFailure(tool.name, error))
        return sendable(f"Error: {error}")
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        failures.append(ToolFailure(tool.name, error))
        _log.warning("the tool %s raised %s", tool.name, type(error).__name__)
        return f"Error: {tool.name} failed ({type(error).__name__}). Don't say that it worked."
