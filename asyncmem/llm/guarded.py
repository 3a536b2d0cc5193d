"""An embedder of the application's own, whose failures are ours."""

from collections.abc import Sequence
from dataclasses import replace

from asyncmem.errors import AsyncMemError

from .causes import missing_package
from .chat import ScriptError
from .embeddings import Embedder, Embeddings
from .failures import Failure, to_error
from .faults import AnswerError, awaited, named

_OWN = "its embed()"


class GuardedEmbedder:
    """An embedder of the application's own: what it raises is judged as a provider's error is, its answers checked."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """What errors and logs call it."""
        return self._embedder.name

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """One vector a text.

        Raises:
            ModelError: it failed: by the error's ``status_code``, its kind and its words; a ``ModelError`` that it
                raised itself as it is.
            ModelCodeError: a fault in its code, or something else than one vector a text.
        """
        try:
            return self._checked(await awaited(self._embedder.embed(texts)), len(texts))
        except (AsyncMemError, ScriptError):
            raise
        except Exception as error:  # noqa: BLE001  an embedder of the user's own may raise anything
            failure = Failure.of(error, _OWN)
        cause, hint = failure.cause, missing_package(failure.known, failure.text)
        # its words may hold memories, whose few words no scrubbing could tell
        raise to_error(replace(failure, text=""), self.name, kind=cause, hint=hint)

    def _checked(self, found: object, wanted: int) -> Embeddings:
        if not isinstance(found, Embeddings):
            raise AnswerError(f"it returned a {named(found)}: Embeddings is wanted")
        shape: tuple[int, ...] = getattr(found.vectors, "shape", ())
        if len(shape) != 2 or shape[0] != wanted or shape[1] <= 0:
            raise AnswerError(
                f"it returned Embeddings of the shape {shape}: one row with one vector a text is wanted, for {wanted}"
            )
        return found
