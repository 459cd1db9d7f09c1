# pyright: reportMissingImports=false
"""Loads a voice of Coqui TTS from a folder or by its name, with errors that say what is missing.

Two kinds of voices can be used: XTTS, and VITS with one language. A VITS voice must have a single
speaker, or speakers with names. The files must be complete, and the licence accepted. This module
does not know how voices speak; `vits` and `xtts` do. Coqui TTS is imported where it is used,
because the import takes seconds, and the package may not be installed.
"""

from __future__ import annotations

import logging
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from voiceloop.engines import Tts
from voiceloop.errors import EngineError, MissingExtra, ModelNotFound
from voiceloop.placement import BUILDING, own_stream, torch_device
from voiceloop.settings.config import TtsConfig
from voiceloop.settings.schema import nearest
from voiceloop.status import ask
from voiceloop.tts.errors import corrupt, first_line, readable
from voiceloop.tts.vits import Vits
from voiceloop.tts.xtts import Xtts

DEFAULT = "tts_models/en/ljspeech/vits"
CHECKPOINTS = ("model_file.pth", "model.pth", "best_model.pth")
"""Usual names of the file of weights, the preferred name first. If no file has one of these names,
a single `.pth` file with another name is used."""
OTHER_FILES = (
    *("speakers.pth", "speaker_ids.pth", "model_se.pth"),
    *("speakers_xtts.pth", "dvae.pth", "mel_stats.pth"),
)
"""Files that end in `.pth` and are not weights."""
SPEAKER = ("gpt_cond_latent", "speaker_embedding")
"""Keys of the two tensors that XTTS's file of speakers has for each speaker."""
ACCEPTED = "COQUI_TOS_AGREED"
"""Environment variable of Coqui TTS; if it is 1, all of Coqui's licences count as accepted."""
AUDIO_PACKAGES = ("torchaudio", "torchcodec")
"""Packages that Coqui TTS imports but does not install, because they must fit torch."""
FIT_TORCH = (
    "install the builds that fit your torch: pip install torchaudio torchcodec; "
    "beside a torch without CUDA, with --index-url https://download.pytorch.org/whl/cpu"
)


def coqui(config: TtsConfig) -> Tts:
    """Load a voice of Coqui TTS. This is an entry point of `voiceloop.tts`.

    `config.model` is a folder, or the name of a voice in Coqui TTS. `config.voice` is a speaker if
    the model has several. Raises what `load_voice` raises, ConfigError for a speaker that does not
    exist, and EngineError for a device that is missing.
    """
    name = config.model or DEFAULT
    # Nobody has tested whether the voices run on Apple's GPU, so `auto` does not choose it.
    device = torch_device("tts.device", config.device, auto=("cuda", "cpu"))
    own_stream(device)
    model = load_voice(name)
    speaks = Xtts if model.config.model == "xtts" else Vits
    return speaks(name, model, device, config.voice, config.speed)


def load_voice(name: str) -> Any:
    """Load a `Vits` or `Xtts` on the CPU. `name` is a folder, or the name of a voice in Coqui TTS.

    Raises MissingExtra, ModelNotFound, ModelCorrupt and OutOfMemory. Raises EngineError for a voice
    of a kind that cannot be used, for a licence that the user has not accepted, and if a package or
    program that the voice needs is not installed.
    """
    _import_library()
    path = Path(name).expanduser()
    local = path.exists() or name.startswith((".", "/", "~")) or name.endswith("/")
    if local:
        checkpoint, config = _find(name, path)
    else:
        checkpoint, config = _fetch(name)
    return _build(name, checkpoint, config)


def _import_library() -> None:
    # The library warns about its own guesses and omissions, which the user cannot change.
    logging.getLogger("TTS").setLevel(logging.ERROR)
    try:
        import TTS.tts.models.vits  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra("Coqui TTS", "coqui") from error
    except (ImportError, OSError, RuntimeError) as error:
        missing = [package for package in AUDIO_PACKAGES if find_spec(package) is None]
        why = f"it needs {' and '.join(missing)}" if missing else first_line(error)
        raise EngineError(f"Coqui TTS cannot be loaded: {why}", FIT_TORCH) from error


def _find(name: str, folder: Path) -> tuple[Path, Path]:
    """Return the files of the weights and the configuration in a folder."""
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise ModelNotFound(f"the voice folder '{name}' {what}", "name the folder of a voice")
    hint = "name the folder that holds a voice's config.json and weights (.pth)"
    config = folder / "config.json"
    if not config.is_file():
        raise ModelNotFound(f"there is no voice in '{name}': it holds no config.json", hint)
    found = [file for file in folder.glob("*.pth") if file.name not in OTHER_FILES]
    named = [file for known in CHECKPOINTS for file in found if file.name == known]
    if named:
        return named[0], config
    if len(found) != 1:
        what = f"{len(found)} files of weights" if found else "no weights (.pth)"
        raise ModelNotFound(f"there is no voice in '{name}': it holds {what}", hint)
    return found[0], config


def _fetch(name: str) -> tuple[Path, Path]:
    """Return the files of the weights and the configuration of a voice of Coqui TTS. They are
    downloaded if they are missing."""
    from TTS.utils.manage import LICENSE_URLS, ModelManager

    manager = ModelManager(progress_bar=True)
    known: dict[str, Any] = {
        f"tts_models/{language}/{data}/{model}": item
        for language, voices in manager.models_dict["tts_models"].items()
        for data, models in voices.items()
        for model, item in models.items()
        if model.startswith("vits") or model == "xtts_v2"
    }
    if name not in known:
        near = nearest(name, known)
        raise ModelNotFound(
            f"Coqui TTS has no voice of VITS or XTTS v2 called '{name}'",
            f"did you mean '{near}'?" if near else f"name a folder, or for example {DEFAULT}",
        )
    folder = manager.output_prefix / name.replace("/", "--")
    if not manager.tos_agreed(known[name], folder):
        _agree(name, known[name]["license"], LICENSE_URLS[known[name]["license"].lower()], folder)
    try:
        checkpoint, config, _ = manager.download_model(name)
    except Exception as error:  # raised by requests, zipfile or coqpit
        raise ModelNotFound(
            f"the voice '{name}' could not be fetched: {first_line(error)}",
            f"check the network; if it failed half-way, delete {folder}",
        ) from error
    assert config is not None
    return checkpoint, config


def _agree(name: str, licence: str, url: str, folder: Path) -> None:
    """Ask the user to accept the licence of a voice. If they do, write the file that tells Coqui
    TTS so.

    Raises EngineError if the user does not accept it, or if nobody can be asked.
    """
    terms = f"the voice '{name}' is under the {licence}, for uses that are not commercial: {url}"
    answer = ask(f"{terms}\nDo you accept this licence?")
    if answer is None:
        raise EngineError(terms, f"read it; if you accept it, set {ACCEPTED}=1")
    if not answer:
        raise EngineError(f"the licence of '{name}' was not accepted", "answer y to accept it")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tos_agreed.txt").write_text(f"{licence} ({url}) was accepted.\n", encoding="utf-8")


def _build(name: str, checkpoint: Path, config_file: Path) -> Any:
    from TTS.config import load_config

    with readable(name):
        config: Any = load_config(config_file)
    builders = {"vits": _vits, "xtts": _xtts}
    if config.model not in builders:
        raise EngineError(
            f"the voice '{name}' is of type {config.model}", "only VITS and XTTS can be used"
        )
    model = builders[config.model](name, config, checkpoint, config_file.parent)
    if not all(parameter.isfinite().all() for parameter in model.parameters()):
        raise corrupt(name, "its weights are not numbers")
    return model


def _vits(name: str, config: Any, checkpoint: Path, folder: Path) -> Any:
    from TTS.tts.models import vits

    _check(name, config)
    for owner in (config, config.model_args):
        # The path is from the training machine; here the file lies beside the weights.
        path = Path(owner.get("speakers_file") or "")
        if path.name and not path.is_file():
            owner.speakers_file = str(folder / path.name)
    with readable(name), BUILDING:
        model = vits.Vits(config)
        model.load_checkpoint(config, checkpoint, eval=True)
    for needed_in_training in ("disc", "posterior_encoder"):
        if hasattr(model, needed_in_training):
            delattr(model, needed_in_training)
    return model


def _xtts(name: str, config: Any, checkpoint: Path, folder: Path) -> Any:
    from TTS.tts.models import xtts

    if not (folder / "vocab.json").is_file():
        raise ModelNotFound(
            f"the voice '{name}' is not complete: vocab.json is missing",
            "name a folder that holds config.json, model.pth, vocab.json and speakers_xtts.pth",
        )
    # transformers warns about tokens that no XTTS uses.
    logging.getLogger("transformers.configuration_utils").setLevel(logging.ERROR)
    with readable(name), BUILDING:
        model = xtts.Xtts(config)
        model.load_checkpoint(config, folder, checkpoint, eval=True)
        speakers = model.speaker_manager.speakers if model.speaker_manager else {}
        for speaker, latents in speakers.items():
            if not all(torch.is_tensor(latents[key]) for key in SPEAKER):
                raise ValueError(f"nothing is known of the speaker '{speaker}'")
    return model


def _check(name: str, config: Any) -> None:
    """Raise EngineError for a VITS voice that cannot be used here."""
    args = config.model_args
    if args.use_d_vector_file or args.speaker_encoder_model_path:
        raise EngineError(
            f"the voice '{name}' takes its speakers from recordings",
            "only voices with one speaker, or speakers by name, can be used",
        )
    if args.use_language_embedding:
        raise EngineError(f"the voice '{name}' mixes languages", "use a voice of one language")
    espeak = config.use_phonemes and config.phonemizer in (None, "", "espeak")
    if espeak and not (shutil.which("espeak-ng") or shutil.which("espeak")):
        raise EngineError(
            f"the voice '{name}' reads phonemes, and the program espeak-ng is not installed",
            "install it, for example with: apt install espeak-ng",
        )
