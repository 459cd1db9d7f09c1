"""The real Coqui TTS, and tiny VITS voices for it with random weights."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.conftest import lacking

STOOD_IN = ("torchaudio", "torchaudio.transforms", "torchaudio.functional", "torchcodec")
TINY = {
    "hidden_channels": 8,
    "hidden_channels_ffn_text_encoder": 8,
    "num_layers_text_encoder": 1,
    "num_layers_posterior_encoder": 1,
    "num_layers_flow": 1,
    "upsample_initial_channel_decoder": 32,
    "upsample_rates_decoder": [8, 4, 4, 2],
    "upsample_kernel_sizes_decoder": [16, 8, 8, 4],
    "resblock_kernel_sizes_decoder": [3, 5],
    "resblock_dilation_sizes_decoder": [[1, 2, 3], [1, 3, 5]],
    "init_discriminator": False,
}
HOP = 256
LOUD, QUIET = 0.5, 0.0045
"""Peaks of what the tiny voices say, more or less; much of what a quiet one says is inaudible."""

MakeVoice = Callable[..., Path]


@contextmanager
def audio_packages() -> Iterator[None]:
    """Stand in for torchaudio and torchcodec, unless they are there and work.

    Coqui TTS does not start without them. Their wheels hold CUDA code and do not load beside a
    torch without it, and nothing that a voice does to speak comes from them.
    """
    try:
        import torchaudio  # noqa: F401  # pyright: ignore[reportMissingImports]
        import torchcodec  # noqa: F401  # pyright: ignore[reportMissingImports]
    except (ImportError, OSError, RuntimeError):
        modules: dict[str, Any] = {name: ModuleType(name) for name in STOOD_IN}
        for name, module in modules.items():
            module.__spec__ = ModuleSpec(name, None)
        modules["torchaudio"].transforms = modules["torchaudio.transforms"]
        modules["torchaudio"].functional = modules["torchaudio.functional"]
        modules["torchaudio.transforms"].Resample = torch.nn.Identity  # made, never called
        sys.modules.update(modules)
        yield
        for name in STOOD_IN:
            del sys.modules[name]
    else:
        yield


@pytest.fixture(scope="session")
def vits() -> Any:
    """Coqui TTS's module of that name."""
    if find_spec("TTS") is None:
        lacking("Coqui TTS is not installed (extra coqui)")
    with audio_packages():
        import TTS.tts.models.vits as module  # pyright: ignore[reportMissingImports]
        import TTS.utils.manage  # noqa: F401  # pyright: ignore[reportMissingImports]
    return module


@pytest.fixture(scope="session")
def make_voice(vits: Any, tmp_path_factory: pytest.TempPathFactory) -> MakeVoice:
    """Call it with changes to a tiny voice's configuration; it returns the voice's folder.

    The weights are random but for their scale, so that it is loud, and every part of it matters.
    """

    def make(args: dict[str, Any] | None = None, *, peak: float = LOUD, **settings: Any) -> Path:
        folder = tmp_path_factory.mktemp("voice")
        config = vits.VitsConfig(
            model_args=vits.VitsArgs(**(TINY | (args or {}))),
            text_cleaner="english_cleaners",
            characters=vits.VitsCharacters().to_config(),
        )
        config.characters.characters_class = "TTS.tts.models.vits.VitsCharacters"
        for key, value in settings.items():
            config[key] = value
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            model = vits.Vits(config).eval()
            for flow in model.flow.flows:
                torch.nn.init.normal_(flow.post.weight, std=0.3)
            for name, parameter in model.waveform_decoder.named_parameters():
                if name.endswith("bias"):
                    torch.nn.init.zeros_(parameter)  # or the voice hums one note
            ids = torch.tensor([model.tokenizer.text_to_ids("some words to set the level with")])
            speaker = torch.tensor([0]) if model.num_speakers > 1 else None
            said = model.inference(ids, {"speaker_ids": speaker})["model_outputs"]
        model.waveform_decoder.conv_post.weight.data *= peak / said.abs().max()
        torch.save({"model": model.state_dict()}, folder / "model.pth")
        config.save_json(folder / "config.json")
        return folder

    return make


@pytest.fixture(scope="session")
def voice(make_voice: MakeVoice) -> Path:
    """The folder of a tiny voice with one speaker."""
    return make_voice()


def change_config(folder: Path, **settings: Any) -> None:
    """Overwrite keys of a voice's config.json; those of `model_args` go by `args`."""
    file = folder / "config.json"
    config = json.loads(file.read_text())
    config["model_args"].update(settings.pop("args", {}))
    file.write_text(json.dumps(config | settings))
