"""Embeddings on this machine, without a key: the library fastembed (``pip install "asyncmem[fastembed]"``)."""

import importlib
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import anyio.to_thread

from asyncmem import ConfigurationError, Embeddings, ModelUnavailableError, Usage


class FastEmbedEmbedder:
    """An ``Embedder`` that runs an ONNX model in a worker thread.

    Nothing is imported or loaded before the first text.

    Args:
        model_name: one of fastembed's models; vectors carry this name.
        model_path: a folder that holds the model's files, so that nothing is downloaded. Without one fastembed
            fetches the model once and keeps it.
        threads: of ONNX Runtime; by default as many as it likes.
    """

    def __init__(
        self,
        model_name: str = "BAAI/bge-small-en-v1.5",
        *,
        model_path: str | Path | None = None,
        threads: int | None = None,
    ) -> None:
        self._model_name = model_name
        self._options: dict[str, Any] = {"model_name": model_name, "threads": threads}
        if model_path is not None:
            self._options["specific_model_path"] = str(model_path)
        self._loading = threading.Lock()
        self._model: Any = None

    @property
    def name(self) -> str:
        """What errors and logs call it; vectors of different names are never compared."""
        return f"fastembed/{self._model_name}"

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """One vector a text.

        Raises:
            ConfigurationError: fastembed is not installed.
            ModelUnavailableError: the model can't be fetched, or its files can't be used.
        """
        return await anyio.to_thread.run_sync(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Embeddings:
        with self._loading:
            model = self._model = self._model or self._load()
        numpy = importlib.import_module("numpy")
        vectors = numpy.array(list(cast("Iterable[Any]", model.embed(texts))), "float32")
        return Embeddings(vectors, (False,) * len(texts), Usage(calls=1))

    def _load(self) -> Any:
        try:
            library = importlib.import_module("fastembed")
        except ImportError:
            raise ConfigurationError(
                'FastEmbedEmbedder needs the library fastembed: pip install "asyncmem[fastembed]"'
            ) from None
        try:
            return library.TextEmbedding(**self._options)
        except Exception as error:  # noqa: BLE001  its own, ONNX Runtime's, and whatever a download raises
            kind = type(error).__name__
        raise ModelUnavailableError(
            f"{self.name}: fastembed can't load it ({kind}): check the name, or pass model_path= with a folder that "
            "holds its files",
            model=self.name,
        )
