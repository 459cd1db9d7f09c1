"""What config.json says of a checkpoint before any weights are read: whether it is a model that
writes text, which packages read its format, and whether its caches can be rolled back.

transformers needs other packages to read quantised checkpoints.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from voiceloop.errors import EngineError

_HEADS = ("speculators_config", "dflash_config", "draft_vocab_size")
"""Keys of config.json of drafts that were trained for another model: those of speculators, DFlash
and EAGLE-3."""
_NO_WRITER = re.compile(
    r"(For(Sequence|Token)Classification|ForMaskedLM|ForQuestionAnswering|Reward\w*|(?<!Head)Model)$"
)
"""Matches architectures that write no text, such as `BertForMaskedLM` or `Qwen2Model`."""

_OWN_ATTENTION, _OWN_EXPERTS = ("eager", "sdpa"), ("eager", "grouped_mm", "batched_mm")
"""Implementations of attention and of mixtures of experts that need only torch."""
_ATTENTION = {"attention", "full_attention", "sliding_attention", "chunked_attention"}
"""Kinds of layers that leave rows in a cache, so that the last rows can be removed again."""
_INSTEAD = "choose the model in 16 bits, or as a GGUF file"


@cache
def _readers() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("formats.toml").read_text(encoding="utf-8"))


def check_kind(name: str, config: Mapping[str, Any]) -> None:
    """Raise EngineError if the model `name` is not one that writes text. `config` is the contents
    of config.json."""
    listed = config.get("architectures")
    kinds = [str(one) for one in listed] if isinstance(listed, list) else []
    if config.keys() & set(_HEADS) or any("eagle" in kind.lower() for kind in kinds):
        raise EngineError(
            f"'{name}' is a draft that was trained for one model, of a kind that does not run here",
            "take a smaller model of the family as llm.draft, or let vLLM or SGLang serve both",
        )
    if kinds and all(map(_NO_WRITER.search, kinds)):
        raise EngineError(
            f"the model '{name}' does not write text: it is a {kinds[0]}", "choose a chat model"
        )


def check_format(
    name: str, config: Mapping[str, Any], found: Callable[[str], object] = find_spec
) -> None:
    """Raise EngineError if the weights of the model `name` cannot be read. Either their format is
    unknown, or a module that reads it is not `found`. `config` is the contents of config.json."""
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict):
        return
    method = str(quantization.get("quant_method") or "")
    if not method and (quantization.get("load_in_4bit") or quantization.get("load_in_8bit")):
        method = "bitsandbytes"
    if method not in _readers():
        raise EngineError(
            f"the weights of '{name}' are quantised in a format that is not known here"
            + (f", {method}" if method else ""),
            _INSTEAD,
        )
    title, packages = _readers()[method]["title"], _readers()[method]["packages"]
    missing = [package for package, module in packages.items() if not found(module)]
    if missing:
        raise EngineError(
            f"the weights of '{name}' are in {title}'s format, and what reads it is not installed",
            f"pip install {' '.join(missing)}; or {_INSTEAD}",
        )


def forget_kernels(config: Any) -> None:
    """Remove implementations of attention and experts from `config` if torch does not have them,
    e.g. kernels that would be downloaded from the hub. transformers then chooses others."""
    if config._attn_implementation not in _OWN_ATTENTION:
        config._attn_implementation = None
    if config._experts_implementation not in _OWN_EXPERTS:
        config._experts_implementation = None
    for key in config.sub_configs:
        if part := getattr(config, key, None):
            forget_kernels(part)


def check_attention(name: str, config: Any) -> set[str]:
    """Return the kinds of layers that `config` lists, all of which are attention; empty if it lists
    none. Raises EngineError for other kinds."""
    text = config.get_text_config()
    if getattr(text, "is_encoder_decoder", False):
        raise unsuitable(name, "is an encoder-decoder")
    layers = set[str](getattr(text, "layer_types", None) or ())
    if not layers <= _ATTENTION:
        raise unsuitable(name, "has recurrent layers")
    return layers


def unsuitable(name: str, why: str) -> EngineError:
    """Return the error for the model `name`, with the reason `why` its caches cannot be rolled
    back."""
    return EngineError(
        f"the model '{name}' {why}, whose caches cannot be rolled back",
        "choose its GGUF file, or a causal model with attention in every layer (Llama, Qwen3, …)",
    )
