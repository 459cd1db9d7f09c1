"""llama.cpp computes the logits of transformers for each kind of small GGUF model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.conftest import lacking
from tests.ggufkinds import COMPARED, CONTEXT, network, write_kind
from tests.llm.conftest import near
from voiceloop.llm.gguf.libllama import find_library, library

pytestmark = pytest.mark.models

APART = {"gemma3": 1e-3, "gemma4": 3e-3}
"""The difference that is allowed, in parts of the largest logit: llama.cpp looks GELU up in a table
of 16-bit numbers."""


@pytest.mark.parametrize("kind", COMPARED)
def test_logits_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    if find_library() is None or find_spec("gguf") is None:
        lacking("llama.cpp or gguf is not installed: pip install 'voiceloop[llama,convert]'")
    write_kind(tmp_path / "small.gguf", kind)
    model = network(kind)
    vocab: int = model.config.vocab_size
    ids = torch.randint(3, vocab, (100,), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected: Tensor = model(ids[None]).logits[0]
    for rows in (len(ids), 30, 1):
        found = _computed(tmp_path / "small.gguf", ids.tolist(), rows).reshape(len(ids), vocab)
        assert near(found, expected, APART.get(kind, 1e-4))


def _computed(file: Path, ids: list[int], rows: int) -> Tensor:
    """Return llama.cpp's logits of `ids`, in passes of up to `rows` rows."""
    lib, logits = library(), list[float]()
    settings = lib.llama_model_default_params()
    settings.n_gpu_layers = 0
    model = lib.llama_model_load_from_file(str(file).encode(), settings)
    assert model, "llama.cpp reads the file"
    vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    context = lib.llama_init_from_model(model, _exact(lib))
    batch = lib.llama_batch_init(rows, 0, 1)
    for start in range(0, len(ids), rows):
        piece = ids[start : start + rows]
        batch.n_tokens = len(piece)
        for row, token in enumerate(piece):
            batch.token[row], batch.pos[row], batch.logits[row] = token, start + row, 1
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
        assert lib.llama_decode(context, batch) == 0
        logits += lib.llama_get_logits(context)[: len(piece) * vocab]
    lib.llama_batch_free(batch)
    lib.llama_free(context)
    lib.llama_model_free(model)
    return torch.tensor(logits)


def _exact(lib: Any) -> Any:
    """Return the settings of a context which computes all in 32 bits."""
    settings = lib.llama_context_default_params()
    settings.n_ctx = settings.n_batch = settings.n_ubatch = CONTEXT
    settings.n_threads = settings.n_threads_batch = 1
    settings.type_k = settings.type_v = 0
    settings.flash_attn_type = 0  # on processors it rounds to 16 bits, whatever the cache has
    return settings
