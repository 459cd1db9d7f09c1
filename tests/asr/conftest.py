"""A Whisper of random weights, converted as a user's model would be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ctranslate2.converters import TransformersConverter
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

WORDS = 400
SEED = 1
SPECIALS = (
    *("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>", "<|transcribe|>"),
    *("<|fr|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"),
    *(f"<|{i * 0.02:.2f}|>" for i in range(1501)),
)


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 k weights, as transformers keeps them."""
    source = tmp_path_factory.mktemp("source")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    # CTranslate2 knows a multilingual model by the empty token.
    words = [f"Ġw{i}" for i in range(WORDS)]
    vocabulary = {token: i for i, token in enumerate([*alphabet, *words, ""])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIALS])
    end = tokenizer.token_to_id("<|endoftext|>")
    model = WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=tokenizer.get_vocab_size(), num_mel_bins=80, d_model=32,
            encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
            max_source_positions=1500, max_target_positions=448, pad_token_id=end,
            bos_token_id=end, eos_token_id=end,
            decoder_start_token_id=tokenizer.token_to_id("<|startoftranscript|>") or 0,
            suppress_tokens=[], begin_suppress_tokens=[],
        )
    )  # fmt: skip
    # Not torch's numbers: which they are depends on the processor.
    drawn = np.random.default_rng(SEED)
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(torch.from_numpy(drawn.normal(0, 0.3, weights.shape)))
    # Words are likelier than anything else, and which depends much on the position.
    with torch.no_grad():
        model.model.decoder.embed_tokens.weight[:256] = 0
        model.model.decoder.embed_tokens.weight[256 + WORDS :] *= 0.1
        model.model.decoder.embed_positions.weight *= 10
        # Though their language does, too.
        english, french = (tokenizer.token_to_id(f"<|{code}|>") for code in ("en", "fr"))
        model.model.decoder.embed_tokens.weight[[english, french]] *= 100
    generation: Any = model.generation_config
    generation.alignment_heads = [[0, 0], [0, 1]]
    generation.lang_to_id = {"<|en|>": tokenizer.token_to_id("<|en|>")}
    generation.suppress_tokens = generation.begin_suppress_tokens = []
    model.save_pretrained(source)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(source)
    WhisperFeatureExtractor(feature_size=80).save_pretrained(source)
    tokenizer.save(str(source / "tokenizer.json"))
    return source


@pytest.fixture(scope="session")
def folder(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, converted."""
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    out = tmp_path_factory.mktemp("model") / "tiny"
    files = ["tokenizer.json", "preprocessor_config.json"]
    TransformersConverter(str(source), copy_files=files).convert(str(out))
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    config["lang_ids"] = [tokenizer.token_to_id(f"<|{code}|>") for code in ("en", "fr")]
    (out / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return out
