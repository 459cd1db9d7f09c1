"""What is made of fetched files once, so that engines load them as they are.

A GGUF file gets a folder with configuration, tokenizer and chat template as transformers reads
them, and the file itself, which llama.cpp runs; `widen` makes 16-bit weights of it where torch is
to run it. A Piper voice becomes two graphs, so that its vocoder can run in pieces.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from errno import ENOSPC
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from voiceloop.catalog.cards import Conversion
from voiceloop.catalog.store import explained
from voiceloop.errors import EngineError, MissingExtra, ModelCorrupt, ModelNotFound, OutOfMemory

NEEDS = {"gguf": ("gguf", "accelerate"), "piper": ("onnx",)}
"""The packages of the extra `convert` that a conversion takes."""
GGUF, WEIGHTS = "model.gguf", "model.safetensors"
"""The files of a model's weights: as it was published, and as torch takes them."""
FIRST_HALF, VOCODER, VOICE = "voice.onnx", "vocoder.onnx", "voice.json"
"""The files of a Piper voice."""

_LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN_2 = _LLAMA_3.replace("{1,3}", "")
SPLITS = {
    "gpt-2": "bytes",
    "smollm": "digits",
    "llama-bpe": _LLAMA_3,
    "qwen2": _QWEN_2,
}
"""How the tokenizers of byte pairs that GGUF files name split text: `bytes` as GPT-2 does, `digits`
too but each digit by itself, or else by an expression."""


def require(conversion: Conversion) -> None:
    """Raise MissingExtra unless what a conversion takes is installed."""
    if not all(find_spec(package) for package in NEEDS.get(conversion, ())):
        raise MissingExtra(f"what converts {conversion} files", "convert")


def convert(conversion: Conversion, source: Path, target: Path) -> None:
    """Make of the files in `source` those of the new folder `target`.

    Raises MissingExtra, ModelCorrupt for files that cannot be read, ModelNotFound where one is not
    there that belongs to another, EngineError for models that are not known, OutOfMemory, and
    VoiceloopError where the disk is full.
    """
    require(conversion)
    with explained(target.parent):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
    match conversion:
        case "gguf":
            (file,) = source.glob("*.gguf")
            convert_gguf(file, target)
        case "piper":
            (file,) = source.glob("*.onnx")
            split_piper(file, target)
        case _:
            source.rename(target)


def convert_gguf(file: Path, target: Path) -> None:
    """Make the folder of a GGUF file, which moves into it, or the link to it does."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, AutoTokenizer

    split = _split(file)
    # transformers draws a bar of its own here, which nothing switches off.
    with _readable(file), redirect_stderr(StringIO()):
        config = cast(Any, AutoConfig).from_pretrained(file.parent, gguf_file=file.name)
        tokenizer = cast(Any, AutoTokenizer).from_pretrained(file.parent, gguf_file=file.name)
        config.architectures = [cast(Any, MODEL_FOR_CAUSAL_LM_MAPPING)[type(config)].__name__]
    if split is not None:
        tokenizer.backend_tokenizer.pre_tokenizer = split
    with _written(target):
        config.save_pretrained(target)
        tokenizer.save_pretrained(target)
        shutil.move(file, target / GGUF)


def widen(folder: Path) -> None:
    """Have weights in 16 bits in the folder of a GGUF file, rounded to bfloat16 once.

    Raises what `convert` raises.
    """
    file = folder / GGUF
    if not file.exists() or (folder / WEIGHTS).exists():
        return
    require("gguf")
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    with _readable(file), redirect_stderr(StringIO()):
        model = cast(Any, AutoModelForCausalLM).from_pretrained(
            folder,
            gguf_file=GGUF,
            dtype=torch.bfloat16,
            quantization_config=GgufConfig(dequantize=True),
        )
    # Beside the folder's own files, which stay as they are, and only once it is whole.
    with _written(folder), TemporaryDirectory(dir=folder) as made:
        model.save_pretrained(made, max_shard_size="1TB")
        (Path(made) / WEIGHTS).rename(folder / WEIGHTS)


def split_piper(file: Path, target: Path) -> None:
    """Write the graph of a Piper voice in two: up to the vocoder's input, and the vocoder."""
    import onnx

    from voiceloop.catalog.piper import split

    description = Path(f"{file}.json")
    if not description.is_file():
        raise ModelNotFound(
            f"{file.name} is a voice, and {description.name} is not beside it",
            "copy both: they are published together",
        )
    with _readable(file):
        first, vocoder = split(onnx.load(file))
    with _written(target):
        onnx.save(first, target / FIRST_HALF)
        onnx.save(vocoder, target / VOCODER)
        shutil.copyfile(description, target / VOICE)


def _split(file: Path) -> Any:
    """The pre-tokenizer that a GGUF file names; None where its tokenizer has no such step.

    transformers takes the architecture's usual one, which another model's words do not fit.
    """
    from gguf import GGUFReader
    from tokenizers import Regex, pre_tokenizers

    with _readable(file):
        fields = GGUFReader(file).fields
        model, name = (
            field.contents() if (field := fields.get(f"tokenizer.ggml.{key}")) else ""
            for key in ("model", "pre")
        )
    if model != "gpt2":
        return None
    if name not in SPLITS:
        raise EngineError(
            f"{file.name} splits text as '{name}' does, which is not known here",
            f"known are {', '.join(SPLITS)}; name the model's folder or repository of safetensors",
        )
    bytes_level = pre_tokenizers.ByteLevel
    match SPLITS[name]:
        case "bytes":
            return bytes_level(add_prefix_space=False)
        case "digits":
            digits = pre_tokenizers.Digits(individual_digits=True)
            return pre_tokenizers.Sequence([digits, bytes_level(add_prefix_space=False)])
        case expression:
            split = pre_tokenizers.Split(Regex(expression), "isolated")
            plain = bytes_level(add_prefix_space=False, use_regex=False)
            return pre_tokenizers.Sequence([split, plain])


@contextmanager
def _written(folder: Path) -> Iterator[None]:
    """Say in one line why files cannot be written, by libraries that raise errors of their own."""
    with explained(folder):
        try:
            yield
        except Exception as error:  # safetensors and tokenizers tell of the system's in words alone
            if f"os error {ENOSPC}" in str(error):
                raise OSError(ENOSPC, str(error)) from error
            raise


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Say in one line what is wrong with a file that cannot be read."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory(
            f"{file.name} does not fit into memory", "choose a smaller model"
        ) from error
    except Exception as error:  # readers of other people's files raise anything
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelCorrupt(
            f"{file.name} is damaged, or of a kind that is not known: {said}",
            "copy or download it again",
        ) from error
