"""Exports trained weights as folders that transformers loads, and reads them back.

The evaluation reads them back, so that it measures what is shipped. This module knows nothing of
training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, LlamaForCausalLM

from models.train.llm_data import CONTEXT, END, PAD, load_tokenizer
from models.train.llm_model import EPS, THETA, Shape, Weights, hidden


def export(weights: Weights, shape: Shape, tokenizer_folder: Path, folder: Path) -> float:
    """Save the weights as float16 in shards below 8 MiB.

    Returns the largest difference of logits between transformers and `llm_model.hidden` on the
    saved weights. Raises ValueError if it exceeds 0.01, or if the weights do not fit.
    """
    tokenizer = load_tokenizer(tokenizer_folder)
    end, pad = (tokenizer.encode(mark)[0] for mark in (END, PAD))
    config = LlamaConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.width,
        intermediate_size=shape.ff,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.head,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=EPS,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=pad,
    )
    model = LlamaForCausalLM(config)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise ValueError(f"the weights do not fit: {missing} missing, {unexpected} unexpected")
    model.tie_weights()
    model.generation_config = GenerationConfig(eos_token_id=end, pad_token_id=pad, do_sample=False)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.safetensors*"):
        old.unlink()
    model.half().save_pretrained(folder, max_shard_size="7MB")
    tokenizer.save_pretrained(folder)
    tokenizer.backend_tokenizer.save(f"{folder}/tokenizer.json", pretty=False)
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors makes files readable by the owner alone

    ids = torch.randint(0, shape.vocab, (2, 50), generator=torch.Generator().manual_seed(0))
    plain, _ = read(folder)
    with torch.no_grad():
        loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        theirs = loaded(ids).logits.view(100, -1)
        ours = hidden(plain, shape, ids) @ plain["model.embed_tokens.weight"].t()
    difference = float((theirs - ours).abs().max())
    if difference > 1e-2:
        raise ValueError(f"transformers computes something else: logits differ by {difference}")
    return difference


def read(folder: Path) -> tuple[Weights, Shape]:
    """Return the float32 weights and the shape of an exported model."""
    weights: Weights = {}
    for path in sorted(folder.glob("*.safetensors")):
        weights |= {name: tensor.float() for name, tensor in load_file(path).items()}
    config: Any = LlamaConfig.from_pretrained(folder)
    shape = Shape(
        config.vocab_size,
        config.hidden_size,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.intermediate_size,
    )
    return weights, shape
