"""Writes small models of several architectures as GGUF files, and makes them in transformers.

The tensors are named and laid out as llama.cpp's converter does it (`conversion/` in its sources).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from tests.ggufs import CONTROL, add_words, tokenizer

SPLIT = "smollm"
"""How the tokenizer of all kinds splits text, as GGUF files call it."""
CONTEXT = 256
"""The longest sequence of all kinds, in tokens."""

_HIDDEN, _INNER, _HEADS, _KEYS = 64, 96, 4, 2
_DIM = _HIDDEN // _HEADS
_SPREAD = 0.5
"""The standard deviation of embeddings. If it is small, rounding keys and values to 16 bits changes
the logits more. If it is large and logits are products with embeddings, text repeats one token."""

_CONFIG: dict[str, Any] = {
    "hidden_size": _HIDDEN, "intermediate_size": _INNER, "max_position_embeddings": CONTEXT,
    "num_attention_heads": _HEADS, "num_key_value_heads": _KEYS, "tie_word_embeddings": False,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_METADATA: dict[str, Any] = {
    "context_length": CONTEXT, "embedding_length": _HIDDEN, "feed_forward_length": _INNER,
    "attention.head_count": _HEADS, "attention.head_count_kv": _KEYS,
    "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 5000.0,
}  # fmt: skip
_ROPE: dict[str, Any] = {"rope_type": "default", "rope_theta": 5000.0}
_TURNED, _WHOLE = {"rope_parameters": _ROPE}, {"rope.dimension_count": _DIM}
_WIDE = {"attention.key_length": 32, "attention.value_length": 32}

_KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llama": ("llama", {"num_hidden_layers": 2, "rms_norm_eps": 1e-6, **_TURNED}, _WHOLE),
    "qwen3": ("qwen3", {"num_hidden_layers": 2, "head_dim": 32, **_TURNED}, _WIDE),
    "qwen35": ("qwen3_5_text", {
        "num_hidden_layers": 4, "head_dim": 32, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
        "rope_parameters": {
            **_ROPE, "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
        },
    }, {
        "ssm.conv_kernel": 4, "ssm.state_size": 16, "ssm.group_count": 2, "ssm.time_step_rank": 4,
        "ssm.inner_size": 64, "full_attention_interval": 4, "rope.dimension_count": 8,
        "rope.dimension_sections": [2, 1, 1, 0], **_WIDE,
    }),
    "gemma3": ("gemma3_text", {  # by default the sixth layer attends to all tokens
        "num_hidden_layers": 6, "head_dim": _DIM, "query_pre_attn_scalar": _DIM,
        "sliding_window": 32, "rope_parameters": {
            "sliding_attention": {**_ROPE, "rope_theta": 500.0}, "full_attention": _ROPE,
        },
    }, {
        "attention.key_length": _DIM, "attention.value_length": _DIM,
        "attention.sliding_window": 32, "rope.freq_base_swa": 500.0,
    }),
    "gemma4": ("gemma4_text", {  # the last two layers take keys and values from earlier ones
        "num_hidden_layers": 6, "head_dim": _DIM, "num_kv_shared_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"] * 3, "tie_word_embeddings": True,
        "per_layer_config": {}, "hidden_size_per_layer_input": 16, "sliding_window": 32,
        "final_logit_softcapping": 30.0, "rope_parameters": {
            "sliding_attention": {**_ROPE, "rope_theta": 500.0},
            "full_attention": {**_ROPE, "rope_type": "proportional", "partial_rotary_factor": 0.25},
        },
    }, {
        "attention.key_length": _DIM, "attention.value_length": _DIM,
        "attention.key_length_swa": _DIM, "attention.value_length_swa": _DIM,
        "attention.sliding_window": 32, "rope.freq_base_swa": 500.0,
        "attention.sliding_window_pattern": [True, False] * 3, "attention.shared_kv_layers": 2,
        "embedding_length_per_layer_input": 16, "final_logit_softcapping": 30.0,
        "rope.dimension_count": _DIM, "rope.dimension_count_swa": _DIM,
    }),
    "lfm2": ("lfm2", {
        "num_hidden_layers": 4, "norm_eps": 1e-6, "block_auto_adjust_ff_dim": False,
        "layer_types": ["conv", "full_attention"] * 2, "conv_L_cache": 3,
        "tie_word_embeddings": True, **_TURNED,
    }, {"attention.head_count_kv": [0, _KEYS, 0, _KEYS], "shortconv.l_cache": 3}),
    "granitehybrid": ("granitemoehybrid", {
        "num_hidden_layers": 4, "shared_intermediate_size": _INNER, "num_local_experts": 0,
        "layer_types": ["mamba", "mamba", "attention", "mamba"],
        "mamba_n_heads": 8, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_n_groups": 1,
        "embedding_multiplier": 2.0, "residual_multiplier": 0.75,
        "attention_multiplier": 0.125, "logits_scaling": 0.5,
    }, {
        "attention.head_count_kv": [0, 0, _KEYS, 0], "rope.scaling.finetuned": False,  # no rotation
        "ssm.conv_kernel": 4, "ssm.state_size": 16, "ssm.group_count": 1, "ssm.time_step_rank": 8,
        "ssm.inner_size": 2 * _HIDDEN, "embedding_scale": 2.0, "residual_scale": 0.75,
        "attention.scale": 0.125, "logit_scale": 0.5,
    }),
    # Its fourth layer does not rotate.
    "smollm3": ("smollm3", {"num_hidden_layers": 4, **_TURNED}, _WHOLE),
    "mistral3": ("ministral3", {  # queries are scaled from position 64 on
        "num_hidden_layers": 2, "head_dim": _DIM, "rms_norm_eps": 1e-6, "rope_parameters": {
            **_ROPE, "rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "original_max_position_embeddings": 64, "mscale": 1.0, "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
    }, {
        "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 64, "rope.scaling.yarn_beta_fast": 32.0,
        "rope.scaling.yarn_beta_slow": 1.0, "rope.scaling.yarn_log_multiplier": 1.0,
        "attention.temperature_scale": 0.1, **_WHOLE,
    }),
}  # fmt: skip
"""By kind: the type of the model in transformers, its configuration there, and its metadata in a
GGUF file. What all kinds have in common is above."""
KINDS = tuple(_KINDS)
"""The kinds, as GGUF files call the architecture."""
COMPARED = KINDS
"""The kinds of which `network` returns the model."""

EMPTY: Mapping[str, Tensor] = {}

_PAIRED = ("llama", "granitehybrid", "smollm3", "mistral3")
"""The kinds in which llama.cpp rotates neighbours, where transformers rotates halves of a head."""
_FROM_ZERO = ("qwen35", "gemma3")
"""The kinds in whose norms transformers adds 1 to the weights."""
_NAMES = {
    "dt_bias": "dt_proj.bias", "layer_scalar": "layer_scalar.weight", 
    "shared_mlp.output_linear": "mlp.down_proj",
}  # fmt: skip
"""Parts of names in transformers that `gguf` knows by others."""


@cache
def _words() -> Tokenizer:
    return tokenizer(SPLIT)


def network(kind: str, seed: int = 0) -> PreTrainedModel:
    """Return the model of `kind` with random weights in float32.

    Its text has no control tokens, unless by sampling: their logits are small.
    """
    named, config, _ = deepcopy(_KINDS[kind])  # transformers completes some of it in place
    vocab = _words().get_vocab_size()
    if "hidden_size_per_layer_input" in config:
        config["vocab_size_per_layer_input"] = vocab
    made = AutoConfig.for_model(named, **{"vocab_size": vocab, **_CONFIG, **config})
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(made, dtype=torch.float32).eval()
    chance = torch.Generator().manual_seed(seed)
    for name, weights in model.named_parameters():
        random = torch.randn(weights.shape, generator=chance)
        if name.endswith(("A_log", "dt_bias")):  # a state lasts for some ten tokens
            weights.data = 0.3 * random - 1
        elif weights.ndim == 1:  # of norms and biases
            weights.data += 0.1 * random
        elif "embed_tokens" in name and not made.tie_word_embeddings:
            weights.data = _SPREAD * random
        else:  # products have the standard deviation of what they multiply
            weights.data = random / weights[0].numel() ** 0.5
    model.get_output_embeddings().weight.data[: len(CONTROL)] *= 0.1
    return model


def write_kind(path: Path, kind: str, seed: int = 0, head: Mapping[str, Tensor] = EMPTY) -> None:
    """Write `network(kind, seed)` as llama.cpp would convert it, in 32 bits, with the weights
    `head` of an MTP layer, if there are any."""
    import gguf

    out = gguf.GGUFWriter(path, kind)
    model = network(kind, seed)
    layers: int = model.config.num_hidden_layers
    vocab = _words().get_vocab_size()
    metadata = {**_METADATA, **_KINDS[kind][2], "block_count": layers, "vocab_size": vocab}
    if head:
        metadata |= {"block_count": layers + 1, "nextn_predict_layers": 1}
    types = {bool: "BOOL", int: "UINT32", float: "FLOAT32", str: "STRING", list: "ARRAY"}
    for key, value in metadata.items():
        out.add_key_value(f"{kind}.{key}", value, gguf.GGUFValueType[types[type(value)]])
    out.add_name(f"small {kind}")
    add_words(out, _words(), SPLIT)
    architecture = next(one for one, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)
    names = gguf.get_tensor_name_map(architecture, layers)
    for name, weights in _exported(kind, model):
        written = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert written is not None, name
        out.add_tensor(written, weights.contiguous().numpy())
    for name, weights in head.items():
        out.add_tensor(f"blk.{layers}.{name}.weight", weights.contiguous().numpy())
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def write_assistant(path: Path, seed: int = 0, backbone: int = _HIDDEN) -> None:
    """Write an assistant with random weights for the model of `gemma4`. `backbone` is the length of
    the features that it reads."""
    import gguf

    out, kind = gguf.GGUFWriter(path, "gemma4-assistant"), "gemma4-assistant"
    hidden, inner, vocab = 32, 48, _words().get_vocab_size()
    of_target = _KINDS["gemma4"][2]
    metadata = {
        **_METADATA, **{key: of_target[key] for key in of_target if "per_layer" not in key},
        "attention.sliding_window_pattern": [True, False], "attention.shared_kv_layers": 0,
        "embedding_length": hidden, "embedding_length_out": backbone, "feed_forward_length": inner,
        "block_count": 2, "nextn_predict_layers": 2, "vocab_size": vocab,
    }  # fmt: skip
    types = {bool: "BOOL", int: "UINT32", float: "FLOAT32", str: "STRING", list: "ARRAY"}
    for key, value in metadata.items():
        out.add_key_value(f"{kind}.{key}", value, gguf.GGUFValueType[types[type(value)]])
    add_words(out, _words(), SPLIT)
    chance, queries = torch.Generator().manual_seed(seed), _HEADS * _DIM
    sizes: dict[str, tuple[int, ...]] = {
        "token_embd": (vocab, hidden), "output_norm": (hidden,),
        "nextn.pre_projection": (hidden, 2 * backbone),
        "nextn.post_projection": (backbone, hidden),
    }  # fmt: skip
    for layer in range(2):
        for name, size in {
            "attn_norm": (hidden,), "attn_q": (queries, hidden), "attn_output": (hidden, queries),
            "attn_q_norm": (_DIM,), "post_attention_norm": (hidden,), "ffn_norm": (hidden,),
            "layer_output_scale": (1,), "ffn_gate": (inner, hidden), "ffn_up": (inner, hidden),
            "ffn_down": (hidden, inner), "post_ffw_norm": (hidden,),
        }.items():  # fmt: skip
            sizes[f"blk.{layer}.{name}"] = size
    for name, size in sizes.items():
        weights = torch.randn(size, generator=chance)
        weights = 1 + 0.1 * weights if len(size) == 1 else weights / size[-1] ** 0.5
        out.add_tensor(f"{name}.weight", weights.numpy())
    out.add_tensor("rope_freqs.weight", torch.ones(_DIM // 2).numpy())
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def mtp_layer(seed: int = 0, *, still: bool = False) -> dict[str, Tensor]:
    """Return random weights of an MTP layer for `qwen35`. With `still`, attention and MLP add
    nothing, and of its input only the token counts."""
    dim = _WIDE["attention.key_length"]
    sizes = {
        "attn_norm": (_HIDDEN,), "post_attention_norm": (_HIDDEN,),
        "attn_q": (2 * _HEADS * dim, _HIDDEN), "attn_k": (_KEYS * dim, _HIDDEN),
        "attn_v": (_KEYS * dim, _HIDDEN), "attn_output": (_HIDDEN, _HEADS * dim),
        "attn_q_norm": (dim,), "attn_k_norm": (dim,), "ffn_gate": (_INNER, _HIDDEN),
        "ffn_up": (_INNER, _HIDDEN), "ffn_down": (_HIDDEN, _INNER),
        "nextn.eh_proj": (_HIDDEN, 2 * _HIDDEN), "nextn.enorm": (_HIDDEN,),
        "nextn.hnorm": (_HIDDEN,), "nextn.shared_head_norm": (_HIDDEN,),
    }  # fmt: skip
    chance = torch.Generator().manual_seed(seed)
    made = {name: torch.randn(size, generator=chance) for name, size in sizes.items()}
    for name, weights in made.items():
        made[name] = 1 + 0.1 * weights if weights.ndim == 1 else weights / weights.shape[1] ** 0.5
    if still:
        made["attn_output"] *= 0
        made["ffn_down"] *= 0
        made["nextn.eh_proj"] = torch.eye(_HIDDEN, 2 * _HIDDEN)
    return made


def _exported(kind: str, model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Return the model's weights as llama.cpp lays them out, by names that `gguf` knows."""
    config: Any = model.config
    if kind == "gemma4":  # only the first quarter of a head rotates where all tokens are seen
        yield "rope_freqs.weight", torch.tensor([1.0] * (_DIM // 8) + [1e30] * (_DIM * 3 // 8))
    for name, weights in model.state_dict().items():
        for old, new in _NAMES.items():
            name = name.replace(old, new)
        if "lm_head" in name and config.tie_word_embeddings:
            continue
        if "conv" in name and weights.ndim == 3:
            weights = weights.squeeze(1)
        if "linear_attn" in name:
            weights = _tiled(name, weights, config)
        if name.endswith("A_log"):
            weights = -weights.exp()
        if kind == "granitehybrid" and name.endswith(("A_log", "mamba.D")):
            weights = weights[:, None]
        if kind in _FROM_ZERO and name.endswith("norm.weight") and "linear_attn" not in name:
            weights = weights + 1
        for part, heads in (("q_proj", _HEADS), ("k_proj", _KEYS)):
            if kind in _PAIRED and part in name:
                halves = weights.reshape(heads, 2, -1, weights.shape[1])
                weights = halves.transpose(1, 2).reshape(weights.shape)
        if "shared_mlp.input_linear" in name:
            for part, half in zip(("gate", "up"), weights.chunk(2), strict=True):
                yield name.replace("shared_mlp.input_linear", f"mlp.{part}_proj"), half
        else:
            yield name, weights


def _tiled(name: str, weights: Tensor, config: Any) -> Tensor:
    """Reorder the value heads of a gated delta layer: transformers stores those of one key head
    side by side, llama.cpp the first of each key head, then the second of each."""
    if name.endswith("norm.weight"):  # shared by the heads
        return weights
    keys, values = config.linear_num_key_heads, config.linear_num_value_heads
    single = weights.ndim == 1 or "in_proj_a" in name or "in_proj_b" in name
    dim = 1 if single else config.linear_value_head_dim
    order = torch.arange(values * dim).reshape(keys, -1, dim).transpose(0, 1).flatten()
    if "out_proj" in name:
        return weights[:, order]
    before = len(weights) - len(order)  # of queries and keys, in what is of all three
    return torch.cat([weights[:before], weights[before:][order]])
