"""Whatever was passed as an embedding model, as an ``Embedder`` whose failures are ours."""

from collections.abc import Sequence

from asyncmem.errors import ConfigurationError
from asyncmem.settings import LLMSettings

from .abilities import Abilities
from .client import LLM
from .embeddings import Embedder
from .guarded import GuardedEmbedder
from .observing import UsageObserver


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
    if isinstance(model, type):
        raise ConfigurationError(
            f"embedding_model is the class {model.__name__}: pass an instance of it, {model.__name__}(...)"
        )
    if isinstance(model, Embedder):
        return GuardedEmbedder(model)
    raise ConfigurationError(
        f"embedding_model must be a litellm model string or an Embedder (name, embed), not {type(model).__name__}"
    )
