"""Finds and opens the models of Whisper, checks their settings, and chooses where they run.

Settings are checked before a model is loaded. That reads small files and looks for devices, so
CTranslate2 and faster-whisper are imported only when they are needed.

On a GPU, CTranslate2 asks the system's loader by name for the libraries of cuBLAS 12. The loader
may not find them: torch may bring another version or none, and pip installs them (extra `cuda`)
into a folder where no loader looks. But the loader finds every library that is already loaded. So
this module loads the libraries first. Their symbols are not made global, so torch still uses its
own cuBLAS.

This module does not load cuDNN, because CTranslate2 does not need it. torch's own cuDNN has the
same file name for CUDA 12 and 13, so another cuDNN could take its place.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from voiceloop.bundled import bundled
from voiceloop.catalog.names import FOLDERS, find
from voiceloop.errors import ConfigError, EngineError, ModelCorrupt, OutOfMemory
from voiceloop.foreign import parsed
from voiceloop.languages import AUTO
from voiceloop.placement import chosen_device
from voiceloop.settings.config import AsrConfig

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

logger = logging.getLogger(__name__)

LIBRARIES = ("libcublasLt.so.12", "libcublas.so.12")
"""Libraries of cuBLAS, in the order of loading: the second one needs the first."""
FOLDER = "nvidia.cublas.lib"
"""The package of `nvidia-cublas-cu12` that holds the libraries."""
INSTALL = "pip install nvidia-cublas-cu12"
SPECIALS = ("<|startoftranscript|>", "<|endoftext|>", "<|notimestamps|>")
NEEDED = ("model.bin", "config.json", "tokenizer.json")


def whisper_device(setting: str) -> str:
    """Return the device for a setting: `cpu` or `cuda`. `auto` means the GPU if there is one, even
    if it does not work."""
    if setting != "auto":
        return setting
    import ctranslate2

    return "cuda" if ctranslate2.get_cuda_device_count() else "cpu"


def whisper_type(setting: str, device: str) -> str:
    """Return the type in which weights are stored on `device`, e.g. `int8`. `auto` means `int8` on
    the CPU and `float16` on a GPU."""
    if setting != "auto":
        return setting
    return "int8" if device == "cpu" else "float16"


def wheel_folders() -> Iterable[Path]:
    """Return the folders into which pip has installed cuBLAS, or no folders if it is not
    installed."""
    try:
        found = find_spec(FOLDER)
    except ModuleNotFoundError:
        return ()
    return map(Path, found.submodule_search_locations or ()) if found else ()


def load_cublas(
    folders: Callable[[], Iterable[Path]] = wheel_folders,
    load: Callable[[str], object] = ctypes.CDLL,
) -> bool:
    """Load the libraries of cuBLAS, so that CTranslate2 finds them by name. Returns False if one is
    not found."""
    return all(_loaded(name, folders(), load) for name in LIBRARIES)


def _loaded(name: str, folders: Iterable[Path], load: Callable[[str], object]) -> bool:
    """Load one library from the first folder that has it, or else by the system's loader. Returns
    False if it is not found."""
    for place in (*(str(folder / name) for folder in folders), name):
        try:
            load(place)
        except OSError:
            continue
        return True
    return False


def open_model(folder: Path, device: str, compute_type: str) -> WhisperModel:
    """Load the model in `folder`, and prove by a short encode that its device works. Raises
    ValueError if its tokenizer lacks a special token."""
    from faster_whisper import WhisperModel  # slow to import, and some callers need only the device

    model = WhisperModel(
        str(folder), device=device, compute_type=compute_type, local_files_only=True
    )
    lacking = [token for token in SPECIALS if model.hf_tokenizer.token_to_id(token) is None]
    if lacking:
        raise ValueError(f"its tokenizer lacks {', '.join(lacking)}")
    mels = len(model.feature_extractor.mel_filters)
    model.encode(np.zeros((mels, 4), np.float32))
    return model


def load(
    folder: Path,
    config: AsrConfig,
    opener: Callable[[Path, str, str], WhisperModel] = open_model,
    libraries: Callable[[], bool] = load_cublas,
) -> WhisperModel:
    """Open the model in `folder` on the configured device. `auto` means the GPU if the model works
    on it, and the CPU otherwise.

    `opener` takes the folder, the device and the type of the weights. `libraries` loads the
    libraries that CTranslate2 needs on a GPU, and returns whether all were found. Raises
    ModelCorrupt, OutOfMemory or EngineError.
    """
    missing = [file for file in NEEDED if not (folder / file).is_file()]
    if missing:
        raise ModelCorrupt(
            f"{folder} is no Whisper model: {', '.join(missing)} missing", FOLDERS["asr"]
        )
    device = whisper_device(config.device)
    complete = device == "cpu" or libraries()
    try:
        return opener(folder, device, whisper_type(config.compute_type, device))
    except Exception as error:  # CTranslate2 and tokenizers raise bare exceptions
        reason = str(error).strip().partition("\n")[0]
        if device == "cpu":
            raise ModelCorrupt(
                f"the model in {folder} cannot be loaded: {reason}", FOLDERS["asr"]
            ) from error
        if "out of memory" in reason:
            raise OutOfMemory(
                f"{config.model} does not fit into the GPU's memory",
                "choose a smaller model, or --asr.device cpu",
            ) from error
        if config.device == "cuda":
            remedy = "set asr.device to auto or cpu"
            raise EngineError(
                f"recognition cannot run on the GPU: {reason}",
                remedy if complete else f"{INSTALL}, or {remedy}",
            ) from error
        remedy = "" if complete else f" ({INSTALL})"
        logger.warning("recognition runs on the CPU, the GPU does not work: %s%s", reason, remedy)
    return load(folder, replace(config, device="cpu", compute_type="int8"), opener)


MULTILINGUAL = 51_865
"""Minimum number of tokens of a multilingual Whisper model. CTranslate2 uses the same limit."""


def check_recogniser(config: AsrConfig) -> None:
    """Check the settings of Whisper; other engines check theirs when they are loaded. Raises
    ConfigError for a language that the model does not know, EngineError for a device that is
    missing, and the errors of `find`."""
    if config.engine != "whisper":
        return
    if config.device == "cuda":
        import ctranslate2

        there = {"cuda": ctranslate2.get_cuda_device_count() > 0}
        chosen_device("asr.device", "cuda", (), there, "CTranslate2")
    tokens = _tokens(model_folder(config))
    if config.language == AUTO or not tokens:
        return
    many = len(tokens) >= MULTILINGUAL
    if config.language != "en" if not many else f"<|{config.language}|>" not in tokens:
        raise unknown_language(config)


def unknown_language(config: AsrConfig) -> ConfigError:
    """Return the error for a language that the model does not know."""
    return ConfigError(
        f"the model {config.model} does not know the language '{config.language}'",
        "give a two-letter code such as en, and a model of many languages such as base",
    )


def _tokens(folder: Path) -> frozenset[str]:
    """Return the tokens of the model's vocabulary, or an empty set if its file cannot be read."""
    try:
        if (listed := folder / "vocabulary.json").exists():
            return frozenset(parsed(listed.read_bytes()))
        text = (folder / "vocabulary.txt").read_text(encoding="utf-8")
    except (OSError, ValueError, TypeError):  # loading the model reports what is wrong
        return frozenset()
    return frozenset(text.removesuffix("\n").split("\n"))


def model_folder(config: AsrConfig) -> Path:
    """Return the folder of the configured model. Raises the errors of `find`."""
    if config.model == "starter":
        return bundled("models/starter/asr")
    return find(config.model, "asr")
