"""Loads a model and its tokenizer by name, or raises an error that says why it cannot.

This module checks that a model is usable: causal, with caches that can be rolled back, and with
complete files. It does not know what the model is used for. transformers takes seconds to import,
so it is imported only for models that need it. A folder with a plain model of the Llama family is
read without it.

It also identifies models, by their weights and not by their paths or the format of their files. A
calibration depends on the weights and the chat template. Hashing gigabytes would take seconds at
every start. Any training changes nearly every weight, so samples of each tensor are enough. A
family is wider than a fingerprint. It covers all files of one model, however their weights were
rounded, and all models that were trained further from that model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, cast

import torch

from voiceloop.catalog.names import FOLDERS, find
from voiceloop.errors import EngineError, ModelCorrupt, ModelNotFound
from voiceloop.llm.gguf.file import GgufModel, gguf_in
from voiceloop.llm.gguf.vocabulary import GgufTokenizer
from voiceloop.llm.model.checkpoint import (
    EMBEDDING,
    Checkpoint,
    check_indexes,
    read_checkpoint,
    read_json,
)
from voiceloop.llm.model.formats import (
    check_attention,
    check_format,
    check_kind,
    forget_kernels,
    unsuitable,
)
from voiceloop.llm.model.tokens import read_tokenizer, without
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.placement import BUILDING, memory_for_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SAMPLES = 64
"""Number of weights that are sampled from each tensor, at equal steps. This is also the number of
bytes in one sample of a GGUF file."""
FILE_SAMPLES = 4096
"""Number of samples of a GGUF file, at equal steps."""
SHAPE = (
    "model_type",
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
)
"""The keys of config.json that name a model's kind and the sizes of its parts."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model on its device, with its tokenizer."""

    name: str
    model: Checkpoint | PreTrainedModel | GgufModel
    tokenizer: Any
    """A tokenizer of transformers, a `tokens.Tokenizer` or a `GgufTokenizer`."""
    eos: frozenset[int]
    """Tokens with which the model ends a reply."""
    rows: int
    """The length of a row of logits, in tokens. It is often padded, and then larger than the
    tokenizer's vocabulary."""
    parameters: int
    longest: int | None
    """The longest sequence that the model takes, in tokens; None if the files do not give it."""
    shape: tuple[str | int | None, ...]
    """The model's kind and the sizes of its parts, in the order of `SHAPE`."""
    rowless: frozenset[str] = frozenset()
    """Added tokens for which the model has no row of logits. `tokenizer` lacks them."""


def of_transformers(name: str, model: PreTrainedModel, tokenizer: Any) -> LoadedModel:
    """Wrap a model and a tokenizer of transformers."""
    embeddings = cast(Any, model).get_output_embeddings()
    config = cast(Any, model.config).get_text_config()
    return LoadedModel(
        name,
        model,
        tokenizer,
        eos=_eos(getattr(model.generation_config, "eos_token_id", None), tokenizer),
        rows=embeddings.weight.shape[0],
        parameters=model.num_parameters(),
        longest=getattr(config, "max_position_embeddings", None),
        shape=tuple(getattr(config, name, None) for name in SHAPE),
    )


def load_model(
    name: str,
    device: torch.device,
    dtype: torch.dtype | None,
    *,
    whole: bool = False,
    tokenizer: str = "",
    assistant: bool = False,
) -> LoadedModel:
    """Load the model called `name`, which `catalog.names.find` looks up.

    A GGUF file is opened by llama.cpp, and its weights stay as they are. Otherwise, if `dtype` is
    None, the weights keep the type in the checkpoint. With `whole`, the result is a model of
    transformers. `tokenizer` names the folder of the tokenizer; an empty name means the model's
    folder. With `assistant`, a GGUF file may also hold an assistant of Gemma 4.

    Raises the errors of `find`, ModelCorrupt, OutOfMemory, and EngineError for a model that cannot
    write a reply token by token, or whose caches cannot be rolled back.
    """
    folder = find(name, "llm")
    if file := gguf_in(folder):
        if whole or tokenizer:
            wish = "compares it with transformers" if whole else "gives it another tokenizer"
            raise EngineError(
                f"'{name}' is a GGUF file, and what {wish} needs torch",
                "name the model's folder or repository of safetensors",
            )
        with explained(name), memory_for_model(name):
            return _of_gguf(name, GgufModel(file, name, assistant=assistant))
    if not (folder / "config.json").is_file():
        raise ModelNotFound(
            f"there is no model in '{name}': it holds no config.json", FOLDERS["llm"]
        )
    with explained(name), memory_for_model(name):
        config = read_json(folder / "config.json")
        check_kind(name, config)
        check_format(name, config)
        check_indexes(folder)
        read = None if whole or tokenizer else _read(name, folder, device, dtype)
        tokenizers = find(tokenizer or name, "llm")
        return with_rows(read or _load(name, folder, device, dtype, tokenizers))


def with_rows(loaded: LoadedModel) -> LoadedModel:
    """Remove the added tokens for which the model has no row of logits from its tokenizer and from
    `eos`. Return the model, with these tokens in `rowless`. Most of them were added for padding,
    and the model has never seen them."""
    added = loaded.tokenizer.added_tokens_decoder
    rowless = {index: token.content for index, token in added.items() if index >= loaded.rows}
    if rowless:
        tokenizer: Any = loaded.tokenizer
        tokenizer._tokenizer = without(tokenizer._tokenizer, rowless)
    return replace(
        loaded,
        eos=frozenset(token for token in loaded.eos if token < loaded.rows),
        rowless=frozenset(rowless.values()),
    )


def _read(
    name: str, folder: Path, device: torch.device, dtype: torch.dtype | None
) -> LoadedModel | None:
    """Read a plain model without transformers. Return None if transformers is needed."""
    config = read_json(folder / "config.json")
    model = read_checkpoint(folder, config, device, dtype)
    if model is None:
        return None
    tokenizer = _tokenizer(folder, config)
    return LoadedModel(
        name,
        model,
        tokenizer,
        eos=_eos_of_files(folder, config, tokenizer),
        rows=len(model.weights[EMBEDDING]),
        parameters=model.parameters,
        longest=config["max_position_embeddings"],
        shape=_shape(config),
    )


def _of_gguf(name: str, model: GgufModel) -> LoadedModel:
    tokenizer = GgufTokenizer(model)
    return LoadedModel(
        name,
        model,
        tokenizer,
        eos=tokenizer.ends,
        rows=model.rows,
        parameters=model.parameters,
        longest=model.longest,
        shape=model.shape,
    )


def _shape(config: Mapping[str, Any]) -> tuple[str | int | None, ...]:
    return tuple(config.get(name) for name in SHAPE)


def _tokenizer(folder: Path, config: Mapping[str, Any]) -> Any:
    found = read_tokenizer(folder, config["model_type"])
    if found is None:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(folder)
    return found


def _load(
    name: str, folder: Path, device: torch.device, dtype: torch.dtype | None, tokenizers: Path
) -> LoadedModel:
    """Load any model through transformers; `tokenizers` is the folder of its tokenizer."""
    from transformers import (
        CONFIG_MAPPING,
        MODEL_FOR_CAUSAL_LM_MAPPING,
        AutoConfig,
        AutoModelForCausalLM,
        AutoTokenizer,
    )
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()  # this module reports problems, in one line
    kind = read_json(folder / "config.json").get("model_type")
    if kind not in CONFIG_MAPPING:
        raise EngineError(
            f"the model '{name}' is of a kind that transformers does not know: {kind}",
            "choose another, or its GGUF file",
        )
    config: Any = AutoConfig.from_pretrained(folder)
    layers = check_attention(name, config)
    if type(config) not in cast(Any, MODEL_FOR_CAUSAL_LM_MAPPING):
        raise EngineError(f"the model '{name}' does not write text: {kind}", "choose a chat model")
    forget_kernels(config)
    tokenizer = AutoTokenizer.from_pretrained(tokenizers)
    with BUILDING:
        model, report = cast(Any, AutoModelForCausalLM).from_pretrained(
            folder,
            config=config,
            dtype="auto" if dtype is None else dtype,
            output_loading_info=True,
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise _corrupt(name, f"the weights lack {missing[0]}")
    if getattr(model, "_is_stateful", False) and not layers:
        raise unsuitable(name, "has recurrent layers")
    return of_transformers(name, model.to(device).eval(), tokenizer)


def _eos_of_files(folder: Path, config: Mapping[str, Any], tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end a reply according to the model's files."""
    generation = folder / "generation_config.json"
    settings = read_json(generation) if generation.is_file() else config
    return _eos(settings.get("eos_token_id"), tokenizer)


def _eos(eos: int | list[int] | None, tokenizer: Any) -> frozenset[int]:
    listed = eos if isinstance(eos, list) else [eos]
    return frozenset(i for i in (*listed, tokenizer.eos_token_id) if i is not None)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn exceptions about the files of the model `name` into EngineError or ModelCorrupt with a
    message of one line."""
    try:
        yield
    except EngineError:
        raise
    except ImportError as error:
        raise EngineError(
            f"the model '{name}' needs a package that is not installed: {_first_line(error)}",
            "install it, or choose a model that needs none",
        ) from error
    except UnpicklingError as error:
        raise EngineError(
            f"the weights of '{name}' are a pickle of more than numbers, which would run as a "
            "program",
            "choose the model as safetensors",
        ) from error
    except RecursionError as error:
        raise _corrupt(name, "its files are nested too deep") from error
    except Exception as error:  # readers of foreign files raise anything
        raise _corrupt(name, _first_line(error)) from error


def _first_line(error: Exception) -> str:
    """Return the first line of an error's message, or the error's type if it has no message."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _corrupt(name: str, why: str) -> ModelCorrupt:
    return ModelCorrupt(f"the model '{name}' is damaged: {why}", "download or copy it again")


def fingerprint(model: Checkpoint | PreTrainedModel | GgufModel, template: ChatTemplate) -> str:
    """Return 32 hexadecimal digits for the weights and the chat template.

    They are equal for float32 and bfloat16 copies of one checkpoint, whichever code read it. They
    differ for a GGUF file that llama.cpp runs.
    """
    digest = hashlib.sha256()
    if isinstance(model, GgufModel):
        _sample_file(model.file, digest)
    else:
        _sample_weights(model, digest)
    frame = template.opening(""), template.user_to_reply, template.reply_to_user, template.ends
    digest.update(repr(frame).encode())
    return digest.hexdigest()[:32]


def family(loaded: LoadedModel) -> str:
    """Return 32 hexadecimal digits. They are equal for all models of the same kind, with the same
    sizes and the same vocabulary."""
    tokens = sorted(loaded.tokenizer.get_vocab().items())
    return hashlib.sha256(repr((loaded.shape, tokens)).encode()).hexdigest()[:32]


def _sample_file(file: Path, digest: Any) -> None:
    size = file.stat().st_size
    with file.open("rb") as opened:
        for place in range(FILE_SAMPLES):
            opened.seek(place * size // FILE_SAMPLES)
            digest.update(opened.read(SAMPLES))


def _sample_weights(model: Checkpoint | PreTrainedModel, digest: Any) -> None:
    named = model.weights if isinstance(model, Checkpoint) else dict(model.named_parameters())
    for name, weight in sorted(named.items()):
        count = min(SAMPLES, weight.numel())
        places = torch.linspace(0, weight.numel() - 1, count, dtype=torch.float64).long()
        rows = places.to(weight.device)
        sampled = weight.detach().flatten()[rows].to(torch.bfloat16).view(torch.int16)
        digest.update(f"{name} {tuple(weight.shape)}".encode())
        digest.update(sampled.cpu().numpy().astype("<i2").tobytes())
