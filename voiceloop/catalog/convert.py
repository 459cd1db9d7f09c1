"""Converts fetched files, once, into files that engines can load.

A GGUF file is moved into a folder of its own, so that llama.cpp can run it from there. The folder
also gets configuration, tokenizer and chat template in the format of transformers. `widen` adds
16-bit weights if torch is to run the model. A Piper voice becomes two graphs, so that its vocoder
can run in windows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from errno import ENOSPC
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from voiceloop.catalog.cards import Conversion
from voiceloop.catalog.ggufheader import Setting, read_settings
from voiceloop.catalog.splits import SPLITS, TextSplit, apply, split_of
from voiceloop.catalog.store import explained
from voiceloop.errors import EngineError, MissingExtra, ModelCorrupt, ModelNotFound, OutOfMemory

NEEDS = {"gguf": ("gguf", "accelerate"), "piper": ("onnx",)}
"""Packages of the extra `convert` that each conversion needs."""
GGUF, WEIGHTS = "model.gguf", "model.safetensors"
"""File names of a model's weights: as published, and for torch."""
FIRST_HALF, VOCODER, VOICE = "voice.onnx", "vocoder.onnx", "voice.json"
"""File names of a converted Piper voice: the graph up to the vocoder's input, the vocoder, and the
description."""


def require(conversion: Conversion) -> None:
    """Raise MissingExtra unless the packages that a conversion needs are installed."""
    if not all(find_spec(package) for package in NEEDS.get(conversion, ())):
        raise MissingExtra(f"what converts {conversion} files", "convert")


def convert(conversion: Conversion, source: Path, target: Path) -> None:
    """Convert the files in `source` into those of the new folder `target`.

    Raises MissingExtra, ModelCorrupt for files that cannot be read, ModelNotFound if a Piper voice
    lacks its JSON file, EngineError for unknown models, OutOfMemory, and VoiceloopError if the disk
    is full.
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
    """Make the folder of a GGUF file, and move the file, or the link to it, into that folder."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, AutoTokenizer

    with _readable(file):
        settings = read_settings(file)
    split = _split(file, settings)
    # transformers draws a progress bar here, which nothing switches off.
    with _readable(file), redirect_stderr(StringIO()):
        config = cast(Any, AutoConfig).from_pretrained(file.parent, gguf_file=file.name)
        tokenizer = cast(Any, AutoTokenizer).from_pretrained(file.parent, gguf_file=file.name)
        config.architectures = [cast(Any, MODEL_FOR_CAUSAL_LM_MAPPING)[type(config)].__name__]
        config.eos_token_id = _ends(config.eos_token_id, settings)
    if split is not None:
        apply(split, tokenizer.backend_tokenizer)
    with _written(target):
        config.save_pretrained(target)
        tokenizer.save_pretrained(target)
        shutil.move(file, target / GGUF)


def _ends(ids: int | list[int] | None, settings: Mapping[str, Setting]) -> int | list[int] | None:
    """Return the end tokens: `ids`, and the tokens that end a text, a turn or a message by the
    `settings` of a GGUF file. None if there are none."""
    found = ids if isinstance(ids, list) else [] if ids is None else [ids]
    for kind in ("eos", "eot", "eom"):
        index = settings.get(f"tokenizer.ggml.{kind}_token_id")
        if isinstance(index, int) and index not in found:
            found = [*found, index]
    return found if len(found) > 1 else next(iter(found), None)


def widen(folder: Path) -> None:
    """Write 16-bit weights, rounded to bfloat16, into the folder of a GGUF file that has none.

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
    logging.set_verbosity_error()
    with _readable(file), redirect_stderr(StringIO()):
        model = cast(Any, AutoModelForCausalLM).from_pretrained(
            folder,
            gguf_file=GGUF,
            dtype=torch.bfloat16,
            quantization_config=GgufConfig(dequantize=True),
        )
    # The weights get their final name once they are complete. All other files stay unchanged.
    with _written(folder), TemporaryDirectory(dir=folder) as made:
        model.save_pretrained(made, max_shard_size="1TB")
        (Path(made) / WEIGHTS).rename(folder / WEIGHTS)


def split_piper(file: Path, target: Path) -> None:
    """Split the graph of a Piper voice into two: up to the vocoder's input, and the vocoder."""
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


def _split(file: Path, settings: Mapping[str, Setting]) -> TextSplit | None:
    """Return how the tokenizer of a GGUF file splits text; None if it has no such step.

    transformers knows fewer splits, and would use GPT-2's split for those that it does not know.
    Raises EngineError for a model or a split that is unknown here.
    """
    architecture = str(settings.get("general.architecture", ""))
    if not _knows(architecture):
        raise EngineError(
            f"{file.name} is a model of the kind '{architecture}', which is not known here",
            "name the model's folder or repository of safetensors",
        )
    if settings.get("tokenizer.ggml.model") != "gpt2":
        return None
    name = str(settings.get("tokenizer.ggml.pre", ""))
    if split := split_of(name, architecture):
        return split
    raise EngineError(
        f"{file.name} splits text as '{name}' does, which is not known here"
        if name
        else f"{file.name} does not say how it splits text",
        f"known are {', '.join(SPLITS)}; name the model's folder or repository of safetensors",
    )


def _knows(architecture: str) -> bool:
    """Return whether transformers knows this architecture. Dashes and underscores are ignored."""
    from transformers.integrations.gguf.gguf_config_mapping import GGUF_CONFIG_ARCHS
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    def plain(name: str) -> str:
        return name.replace("-", "").replace("_", "")

    known: set[str] = {*GGUF_CONFIG_ARCHS, *GGUF_SUPPORTED_ARCHITECTURES}
    return plain(architecture) in map(plain, known)


@contextmanager
def _written(folder: Path) -> Iterator[None]:
    """Turn errors of the disk, also those that libraries report as text, into VoiceloopError."""
    with explained(folder):
        try:
            yield
        except Exception as error:  # safetensors and tokenizers put the system's error in text
            if f"os error {ENOSPC}" in str(error):
                raise OSError(ENOSPC, str(error)) from error
            raise


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn errors of reading a file into OutOfMemory or ModelCorrupt, with one line each."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory(
            f"{file.name} does not fit into memory", "choose a smaller model"
        ) from error
    except Exception as error:  # readers of foreign files raise anything
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelCorrupt(
            f"{file.name} is damaged, or of a kind that is not known: {said}",
            "copy or download it again",
        ) from error
