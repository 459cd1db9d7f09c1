"""Getting a model and its tokenizer from a folder or from the hub, or saying why not.

This module knows what makes a model usable here (causal, full attention, complete files), not what
it is used for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from voiceloop.errors import EngineError, ModelCorrupt, ModelNotFound, OutOfMemory

_DAMAGE = (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError, SafetensorError)
"""What transformers raises over files it cannot make sense of."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model on its device, with its tokenizer."""

    name: str
    model: PreTrainedModel
    tokenizer: Any

    @property
    def eos(self) -> frozenset[int]:
        """Tokens with which the model ends a reply."""
        ids = getattr(self.model.generation_config, "eos_token_id", None)
        listed = ids if isinstance(ids, list) else [ids]
        return frozenset(i for i in (*listed, self.tokenizer.eos_token_id) if i is not None)


def load_model(name: str, device: torch.device, dtype: torch.dtype | None) -> Loaded:
    """Load a model from the folder or under the hub name `name`; None is the checkpoint's type.

    Raises ModelNotFound, ModelCorrupt, OutOfMemory, and EngineError for a model that is not a
    causal language model with full attention.
    """
    path = Path(name).expanduser()
    local = path.exists() or name.startswith((".", "/", "~")) or name.endswith("/")
    if local and not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise ModelNotFound(f"the model folder '{name}' {what}", "name the folder of a model")
    if local and not (path / "config.json").is_file():
        raise ModelNotFound(
            f"there is no model in '{name}': it holds no config.json",
            "name the folder that holds config.json, the weights and the tokenizer",
        )
    source = str(path) if local else name
    transformers_logging.disable_progress_bar()
    with _explained(name, local):
        config = AutoConfig.from_pretrained(source)
        _check_attention(name, config)
        tokenizer = AutoTokenizer.from_pretrained(source)
        model, report = cast(Any, AutoModelForCausalLM).from_pretrained(
            source,
            config=config,
            dtype="auto" if dtype is None else dtype,
            output_loading_info=True,
        )
        missing = sorted(report["missing_keys"])
        if missing:
            raise _corrupt(name, f"the weights lack {missing[0]}")
        if getattr(model, "_is_stateful", False):
            raise _unsuitable(name, "has recurrent layers")
        model = model.to(device).eval()
    return Loaded(name, model, tokenizer)


@contextmanager
def _explained(name: str, local: bool) -> Iterator[None]:
    try:
        yield
    except EngineError:
        raise
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise _too_large(name) from error
    except _DAMAGE as error:
        said = str(error).strip().partition("\n")[0]
        if "allocate memory" in said or "not enough memory" in said:
            raise _too_large(name) from error
        if isinstance(error, OSError) and not local:
            raise ModelNotFound(
                f"the model '{name}' could not be fetched: {said}",
                "check its name and the network, or name a folder that holds the model",
            ) from error
        raise _corrupt(name, said or type(error).__name__) from error


def _check_attention(name: str, config: Any) -> None:
    text = config.get_text_config()
    if getattr(text, "is_encoder_decoder", False):
        raise _unsuitable(name, "is an encoder-decoder")
    kinds = set(getattr(text, "layer_types", None) or ["full_attention"])
    windowed = getattr(text, "sliding_window", None) and getattr(text, "use_sliding_window", True)
    if kinds != {"full_attention"} or (windowed and not hasattr(text, "layer_types")):
        raise _unsuitable(name, "has sliding-window or recurrent layers")


def _unsuitable(name: str, why: str) -> EngineError:
    return EngineError(
        f"the model '{name}' {why}, whose caches cannot be rolled back",
        "choose a causal model with full attention (Llama, Qwen2.5, Qwen3, …)",
    )


def _corrupt(name: str, why: str) -> ModelCorrupt:
    return ModelCorrupt(f"the model '{name}' is damaged: {why}", "download or copy it again")


def _too_large(name: str) -> OutOfMemory:
    return OutOfMemory(
        f"the model '{name}' does not fit into memory", "choose a smaller model or dtype"
    )
