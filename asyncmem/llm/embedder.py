"""Whatever was passed as an embedding model, as an ``Embedder`` whose failures are ours."""

from collections.abc import Sequence
from typing import cast

from asyncmem.errors import AsyncMemError, ConfigurationError, ModelRequestError
from asyncmem.settings import LLMSettings

from .abilities import Abilities
from .client import LLM
from .embeddings import Embedder, Embeddings
from .observing import UsageObserver


class GuardedEmbedder:
    """An embedder of the user's own: what it raises and returns is checked."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """What errors and logs call it."""
        return self._embedder.name

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """One vector a text.

        Raises:
            ModelRequestError: it failed, or gave something else than one vector a text.
        """
        try:
            found = cast("object", await self._embedder.embed(texts))
        except (AsyncMemError, AssertionError):
            raise
        except Exception as error:  # noqa: BLE001  an embedder of the user's own may raise anything
            kind = type(error).__name__
        else:
            if isinstance(found, Embeddings) and _is_table(found.vectors, len(texts)):
                return found
            raise ModelRequestError(
                f"{self.name}: embed() must give Embeddings with one vector a text", model=self.name
            )
        raise ModelRequestError(f"{self.name}: its embed() failed ({kind})", model=self.name)


def _is_table(vectors: object, rows: int) -> bool:
    shape: tuple[int, ...] = getattr(vectors, "shape", ())
    return len(shape) == 2 and shape[0] == rows and shape[1] > 0


def to_embedder(
    model: object, settings: LLMSettings, abilities: Abilities | None = None, observers: Sequence[UsageObserver] = ()
) -> Embedder:
    """The embedder that is meant.

    Args:
        model: a litellm model string, or anything with the ``Embedder`` protocol.
        settings: how a litellm model is called.
        abilities: where to keep what is learned about a litellm model.
        observers: told about every call of a litellm model.

    Raises:
        ConfigurationError: it is neither.
    """
    if isinstance(model, str):
        return LLM(model, settings, abilities=abilities, observers=observers)
    if isinstance(model, LLM):
        return model
    if isinstance(model, Embedder):
        return GuardedEmbedder(model)
    raise ConfigurationError(
        f"embedding_model must be a litellm model string or an Embedder (name, embed), not {type(model).__name__}"
    )
