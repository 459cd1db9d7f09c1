"""What config.json says of a checkpoint before any weights are read: whether it is a model that
writes text, and which packages read its format.

transformers needs other packages to read quantised checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from voiceloop.errors import EngineError

_READERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "aqlm": ("AQLM", ("aqlm", "accelerate")),
    "auto-round": ("AutoRound", ("auto-round",)),
    "awq": ("AWQ", ("gptqmodel", "accelerate")),
    "bitsandbytes": ("bitsandbytes", ("bitsandbytes", "accelerate")),
    "compressed-tensors": ("compressed-tensors", ("compressed-tensors",)),
    "eetq": ("EETQ", ("kernels", "accelerate")),
    "fbgemm_fp8": ("FP8 of FBGEMM", ("fbgemm-gpu", "accelerate")),
    "fp8": ("FP8", ("accelerate",)),
    "gptq": ("GPTQ", ("optimum", "gptqmodel")),
    "hqq": ("HQQ", ("hqq", "accelerate")),
    "mxfp4": ("MXFP4", ("accelerate",)),
    "quanto": ("Quanto", ("optimum-quanto", "accelerate")),
    "torchao": ("torchao", ("torchao",)),
}
"""For each `quant_method`, the format's name and the packages with which transformers reads it."""
_MODULES = {"optimum-quanto": "optimum", "fbgemm-gpu": "fbgemm_gpu"}
"""The module of a package, if the module's name does not follow from the package's name."""

_HEADS = ("speculators_config", "dflash_config", "draft_vocab_size")
"""Keys of config.json of drafts that were trained for another model: those of speculators, DFlash
and EAGLE-3."""
_NO_WRITER = re.compile(
    r"(For(Sequence|Token)Classification|ForMaskedLM|ForQuestionAnswering|Reward\w*|(?<!Head)Model)$"
)
"""Matches architectures that write no text, such as `BertForMaskedLM` or `Qwen2Model`."""

_INSTEAD = "choose the model in 16 bits, or as a GGUF file"


def _installed(package: str) -> bool:
    return find_spec(_MODULES.get(package, package.replace("-", "_"))) is not None


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
    name: str, config: Mapping[str, Any], installed: Callable[[str], bool] = _installed
) -> None:
    """Raise EngineError if the weights of the model `name` cannot be read. Either their format is
    unknown, or packages that read it are not `installed`. `config` is the contents of
    config.json."""
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict):
        return
    method = str(quantization.get("quant_method") or "")
    if not method and (quantization.get("load_in_4bit") or quantization.get("load_in_8bit")):
        method = "bitsandbytes"
    if method not in _READERS:
        raise EngineError(
            f"the weights of '{name}' are quantised in a format that is not known here"
            + (f", {method}" if method else ""),
            _INSTEAD,
        )
    title, packages = _READERS[method]
    missing = [package for package in packages if not installed(package)]
    if missing:
        raise EngineError(
            f"the weights of '{name}' are in {title}'s format, and what reads it is not installed",
            f"pip install {' '.join(missing)}; or {_INSTEAD}",
        )
