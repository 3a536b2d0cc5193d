"""Faults in code of the application's own that stands in a model's place, told from a provider's failures."""

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

_HERE = str(Path(__file__).parent)
_FAULTS = (
    TypeError,
    AttributeError,
    LookupError,
    NameError,
    ImportError,
    NotImplementedError,
    AssertionError,
    ArithmeticError,
    RecursionError,
    SyntaxError,
)


class AnswerError(TypeError):
    """What such code gave can't be used. The words are ours: they tell types and names, nothing that was said."""


def fault(error: BaseException, who: str) -> str:
    """The sentence that says whose fault an error is; empty when it may be a provider's.

    Args:
        error: has no HTTP status and is of no class that a provider's SDK raises.
        who: the code of the application's own that was called; empty when it was litellm alone.
    """
    if isinstance(error, AnswerError):
        return f"{who or 'the completion function'}: {error}"
    # a package that is missing has a sentence of its own
    if not who or not isinstance(error, _FAULTS) or isinstance(error, ModuleNotFoundError):
        return ""
    return f"{who} raised an error that is a fault in its code, not a provider's: mend it, trying again won't help"


def place(error: BaseException) -> str:
    """File and line that raised it, in the code that was called rather than in ours."""
    raised = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in raised if not frame.filename.startswith((_HERE, "<"))]
    frames = frames or ([] if isinstance(error, AnswerError) else [*raised])
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


async def awaited(given: object) -> object:
    """What an async function gives in the end.

    Raises:
        AnswerError: it was no async function.
    """
    if not inspect.isawaitable(given):
        raise AnswerError(
            f"it must be an async function ('async def'), whose call gives an awaitable and not a {named(given)}"
        )
    return await given


async def called(function: Callable[..., object], arguments: Mapping[str, Any]) -> object:
    """What an async function gives for these arguments.

    Raises:
        AnswerError: it is no async function, or doesn't take them.
    """
    try:
        return await awaited(function(**arguments))
    except TypeError as error:
        unfit = "" if isinstance(error, AnswerError) or "argument" not in str(error) else _misfit(function, arguments)
        if not unfit:
            raise
    raise AnswerError(f"it must take what litellm.acompletion takes, and can't be called so: {unfit}")


def _misfit(function: Callable[..., object], arguments: Mapping[str, Any]) -> str:
    """Why the function can't be called with these, in words that name arguments alone; empty when it can."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(**arguments)
    except TypeError as error:
        return str(error)
    return ""


def check_answer(response: Any) -> None:
    """A completion function's answer has the parts of litellm's that are read.

    Raises:
        AnswerError: it has not.
    """
    _check_parts(response, "it returned", "message")


def check_chunk(chunk: Any) -> None:
    """A piece of a completion function's stream has the parts of litellm's that are read.

    Raises:
        AnswerError: it has not.
    """
    _check_parts(chunk, "it streamed", "delta")


def _check_parts(given: Any, did: str, part: str) -> None:
    wanted = "what litellm.acompletion gives is wanted (a ModelResponse with choices)"
    if not hasattr(given, "choices"):
        raise AnswerError(f"{did} a {named(given)}: {wanted}")
    choices: object = given.choices
    if not choices:
        return
    if not isinstance(choices, Sequence):
        raise AnswerError(f"{did} choices that are a {named(choices)}: {wanted}")
    choice = cast("Any", choices)[0]
    if not hasattr(choice, part):
        raise AnswerError(f"{did} a choice that is a {named(choice)} without .{part}: {wanted}")
    inner = getattr(choice, part)
    if inner is not None and not hasattr(inner, "model_dump"):
        raise AnswerError(f"{did} a {part} that is a {named(inner)} without .model_dump(): {wanted}")


def named(given: object) -> str:
    """The type's name, which is all that is told of a value."""
    return type(given).__name__
