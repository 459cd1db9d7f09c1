"""The weights and sizes of a model of the Llama family, for `LeanDecoder`.

Plain models are read straight from the files of their folder. This saves seconds: transformers need
not be imported. Models with scaled positions, windows, quantised weights or adapters are loaded by
transformers, not here. This module uses neither transformers nor tokenizers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, cast

import torch
from safetensors import safe_open
from torch import Tensor

from voiceloop.foreign import parsed

LAYERS = "num_hidden_layers"
EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"

_CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
}
LEAN = (*_CLASSES, "gemma3_text")
"""Values of `model_type` that may become a `Checkpoint`."""
_COUNTS = (
    "hidden_size",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    LAYERS,
    "num_key_value_heads",
    "vocab_size",
)
_DTYPES = {name: getattr(torch, name) for name in ("float16", "bfloat16", "float32", "float64")}

Rotary = Callable[[int], tuple[Tensor, Tensor]]
"""A function that returns the cosines and sines of the first n positions, each [n, dim]."""


@dataclass(frozen=True, slots=True)
class Sight:
    """How a layer sees the sequence: its rotary positions and its window. All layers of one kind
    share one `Sight`."""

    rotary: Rotary | None
    """The layer's rotary positions; None if it has none."""
    window: int | None = None
    """How many tokens a row sees, its own token included; None for all tokens up to its own."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The weights and sizes of a model for `LeanDecoder`."""

    sights: tuple[Sight, ...]
    """The sight of each layer."""
    heads: int
    """Heads of the queries."""
    groups: int
    """Heads of the keys, and of the values."""
    dim: int
    """Size of a head."""
    eps: float
    """The number that norms add to the mean square."""
    weights: dict[str, Tensor]
    """The weights by their names in checkpoints. `HEAD` is missing if the embedding is also the
    head. A decoder removes the weights that it fuses.

    Weights may have a narrower type than `dtype`. On a CPU such weights are mapped from the file,
    and are read from the disk when they are fused.
    """
    dtype: torch.dtype
    """The type of the arithmetic."""
    activation: str = "silu"
    """The activation of the gate, one of `operations.ACTIVATIONS`."""
    raised: bool = False
    """Whether norms multiply by 1 + weight instead of by the weight."""
    embedding_scale: float | None = None
    """The factor of the rows of the embedding; None for 1."""
    attention_scale: float | None = None
    """The factor of the products of queries and keys; None for the usual 1 / sqrt(dim)."""

    @property
    def parameters(self) -> int:
        """The number of weights."""
        return sum(weight.numel() for weight in self.weights.values())


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty object if there is no such file. Raises
    ValueError if the file holds no JSON object."""
    if not path.is_file():
        return {}
    found = parsed(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"{path.name} holds no object")
    return cast("dict[str, Any]", found)


def dtype_of(config: Mapping[str, Any]) -> torch.dtype | None:
    """Return the type of the weights that config.json names. Return None if it names no type, or a
    type that is not supported here."""
    return _DTYPES.get(config.get("dtype") or config.get("torch_dtype") or "")


def read_checkpoint(
    folder: Path, config: Mapping[str, Any], device: torch.device, dtype: torch.dtype | None
) -> Checkpoint | None:
    """Read the model in `folder`; return None if transformers has to load it.

    `config` is the contents of config.json. If `dtype` is None, the type is the one that `config`
    names. Raises ValueError if the weights do not match `config`, and SafetensorError or OSError if
    they cannot be read.
    """
    dtype = dtype or dtype_of(config)
    theta = _theta(config)
    if dtype is None or theta is None or not _plain(config):
        return None
    if (folder / "adapter_config.json").exists():  # its weights would have to be added
        return None
    dim: int = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    shapes = _shapes(config, dim)
    weights: dict[str, Tensor] = {}
    for file in weight_files(folder):
        with safe_open(file, framework="pt", device=str(device)) as opened:
            for name in opened.keys():
                if name.endswith("rotary_emb.inv_freq"):  # follows from the configuration
                    continue
                if name not in shapes:
                    return None
                weight: Tensor = opened.get_tensor(name)
                if tuple(weight.shape) != shapes[name]:
                    sizes = f"{list(weight.shape)}, not {list(shapes[name])}"
                    raise ValueError(f"{name} is {sizes} as config.json says")
                narrow = weight.dtype.itemsize < dtype.itemsize
                weights[name] = weight if narrow else weight.to(dtype)
    if not weights:
        return None
    if missing := [name for name in shapes if name not in weights]:
        raise ValueError(f"the weights lack {missing[0]}")
    placed = Sight(lambda positions: rotary_table(positions, dim, theta, dtype, device))
    unplaced = Sight(None)
    return Checkpoint(
        sights=tuple(placed if rotary else unplaced for rotary in _rotary_layers(config)),
        heads=config["num_attention_heads"],
        groups=config["num_key_value_heads"],
        dim=dim,
        eps=config["rms_norm_eps"],
        weights=weights,
        dtype=dtype,
    )


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files that hold the weights; an empty list if the weights have another
    format. Raises ValueError if the index of the files cannot be read, or names a file outside the
    folder."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    return [whole] if whole.is_file() else _listed(index)


def check_indexes(folder: Path) -> None:
    """Raise ValueError if an index of weights, in any format, names a file outside the folder. A
    model may not read other files."""
    for index in folder.glob("*.index.json"):
        _listed(index)


def _listed(index: Path) -> list[Path]:
    """Return the files that an index names. Raises ValueError if one of them is outside the
    folder."""
    listed = read_json(index).get("weight_map", {})
    if not isinstance(listed, dict):
        raise ValueError(f"{index.name} lists no weights")
    names = sorted({str(name) for name in cast("dict[str, object]", listed).values()})
    for name in names:
        path = PureWindowsPath(name)  # this class parses drives and backslashes, and also slashes
        if path.anchor or ".." in path.parts:
            raise ValueError(f"{index.name} names {name!r}, which is not in its folder")
    return [index.parent / name for name in names]


def _plain(config: Mapping[str, Any]) -> bool:
    """Tell whether config.json describes the model fully, and whether everything in it is supported
    here."""
    kind = config.get("model_type", "")
    # The default of a missing key differs between classes, so only present keys count.
    windows = (
        config.get("sliding_window", 0) is not None
        if kind == "mistral"
        else bool(config.get("use_sliding_window"))
    )
    return (
        config.get("architectures") == [_CLASSES.get(kind)]
        and all(isinstance(config.get(key), int) and config[key] > 0 for key in _COUNTS)
        and config["hidden_size"] % config["num_attention_heads"] == 0
        and isinstance(config.get("head_dim"), int if kind == "qwen3" else int | None)
        and (kind != "smollm3" or len(config.get("no_rope_layers") or ()) == config[LAYERS])
        and isinstance(config.get("rms_norm_eps"), float)
        and isinstance(config.get("tie_word_embeddings"), bool)
        and config.get("hidden_act") == "silu"
        and not windows
        and {*(config.get("layer_types") or ())} <= {"full_attention"}
        and not config.get("attention_bias")
        and not config.get("mlp_bias")
        and "quantization_config" not in config
        and "auto_map" not in config
    )


def _theta(config: Mapping[str, Any]) -> float | None:
    """Return the base of the rotary positions; None if they are scaled or otherwise changed."""
    rope = config.get("rope_parameters")
    if rope is None:  # the form that transformers wrote before version 5
        rope = {"rope_type": "default", "rope_theta": config.get("rope_theta")}
    if config.get("rope_scaling") is not None or "partial_rotary_factor" in config:
        return None
    if not isinstance(rope, dict) or rope.keys() != {"rope_type", "rope_theta"}:
        return None
    theta = cast("dict[str, Any]", rope)["rope_theta"]
    plain = rope["rope_type"] == "default" and isinstance(theta, int | float)
    return float(theta) if plain else None


def _rotary_layers(config: Mapping[str, Any]) -> list[int]:
    """Return for each layer 1 if it has rotary positions, else 0."""
    every = [1] * config[LAYERS]
    return config["no_rope_layers"] if config["model_type"] == "smollm3" else every


def _shapes(config: Mapping[str, Any], dim: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every weight, by name."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    queries, keys = (config[name] * dim for name in ("num_attention_heads", "num_key_value_heads"))
    layer = layer_shapes(hidden, inner, queries, keys)
    if config["model_type"] == "qwen2":
        layer |= {
            "self_attn.q_proj.bias": (queries,),
            "self_attn.k_proj.bias": (keys,),
            "self_attn.v_proj.bias": (keys,),
        }
    if config["model_type"] == "qwen3":
        layer |= {"self_attn.q_norm.weight": (dim,), "self_attn.k_norm.weight": (dim,)}
    shapes: dict[str, tuple[int, ...]] = {
        EMBEDDING: (config["vocab_size"], hidden),
        NORM: (hidden,),
    }
    if not config["tie_word_embeddings"]:
        shapes[HEAD] = (config["vocab_size"], hidden)
    for index in range(config[LAYERS]):
        shapes |= {f"model.layers.{index}.{name}": shape for name, shape in layer.items()}
    return shapes


def layer_shapes(hidden: int, inner: int, queries: int, keys: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every weight of a layer, by name. `queries` and `keys` are the widths of
    all heads together; `inner` is the width of the MLP."""
    return {
        "input_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (queries, hidden),
        "self_attn.k_proj.weight": (keys, hidden),
        "self_attn.v_proj.weight": (keys, hidden),
        "self_attn.o_proj.weight": (hidden, queries),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }


def rotary_table(
    positions: int, dim: int, theta: float, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of rotary embeddings (Su et al. 2021), each [positions, dim].

    Angles are computed in single precision for every type of weight, as in the models' training.
    """
    steps = torch.arange(0, dim, 2, dtype=torch.float32, device=device) / dim
    places = torch.arange(positions, dtype=torch.float32, device=device)
    angles = torch.outer(places, 1.0 / theta**steps).repeat(1, 2)
    return angles.cos().to(dtype), angles.sin().to(dtype)
