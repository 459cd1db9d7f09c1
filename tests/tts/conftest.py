"""The real Coqui TTS, and tiny VITS and XTTS voices for it with random weights."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.conftest import lacking
from voiceloop.engines import Tts
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.coqui import coqui

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

KOKORO_LONGEST = 60
"""Tokens that the tiny model reads; 510 in truth."""
KOKORO_SOUND = 600
"""Samples that it makes of each at its own pace."""
KOKORO_VOICES = ("af_heart", "bm_lewis", "ff_siwis", "jf_alpha")

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
        modules["torchaudio.transforms"].MelSpectrogram = _Spectrogram
        modules["torchaudio.functional"].resample = _same_rate
        sys.modules.update(modules)
        yield
        for name in STOOD_IN:
            del sys.modules[name]
    else:
        yield


class _Spectrogram(torch.nn.Module):
    """Loudness by time and pitch, though not by mel."""

    def __init__(self, *, n_fft: int, hop_length: int, n_mels: int, **_: object) -> None:
        super().__init__()
        self._size, self._hop, self._bands = n_fft, hop_length, n_mels

    def forward(self, wav: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(self._size)
        seen = torch.stft(wav, self._size, self._hop, window=window, return_complex=True)
        return torch.nn.functional.adaptive_avg_pool2d(
            seen.abs() ** 2, (self._bands, seen.shape[-1])
        )


def _same_rate(wav: torch.Tensor, rate: int, wanted: int) -> torch.Tensor:
    assert rate == wanted
    return wav


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


def open_voice(folder: Path, **settings: Any) -> Tts:
    """Load a voice of Coqui TTS."""
    return coqui(TtsConfig(engine="coqui", model=str(folder), **settings))


def change_config(folder: Path, **settings: Any) -> None:
    """Overwrite keys of a voice's config.json; those of `model_args` go by `args`."""
    file = folder / "config.json"
    config = json.loads(file.read_text())
    config["model_args"].update(settings.pop("args", {}))
    file.write_text(json.dumps(config | settings))


# ---- XTTS

TINY_XTTS = {
    "gpt_layers": 2,
    "gpt_n_model_channels": 32,
    "gpt_n_heads": 2,
    "gpt_max_text_tokens": 120,
    "gpt_max_audio_tokens": 120,
    "gpt_num_audio_tokens": 66,
    "gpt_start_audio_token": 64,
    "gpt_stop_audio_token": 65,
    "gpt_use_perceiver_resampler": True,
    "decoder_input_dim": 32,
}
LETTERS = "abcdefghijklmnopqrstuvwxyzäöüß'-,.:;?!"
SPEAKERS = ("Anna Alt", "Berta Bass")


@pytest.fixture(scope="session")
def xtts(vits: Any) -> Iterator[Any]:
    """Coqui TTS's module of that name, with models of a small size where it lets none be chosen."""
    with audio_packages():
        import TTS.tts.layers.xtts.hifigan_decoder as hifigan  # pyright: ignore[reportMissingImports]
        import TTS.tts.models.xtts as module  # pyright: ignore[reportMissingImports]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                module,
                "HifiDecoder",
                partial(
                    hifigan.HifiDecoder,
                    upsample_initial_channel_decoder=32,
                    resblock_kernel_sizes_decoder=[3, 5],
                    resblock_dilation_sizes_decoder=[[1, 2, 3], [1, 3, 5]],
                ),
            )
            small = partial(
                hifigan.ResNetSpeakerEncoder, layers=[1, 1, 1, 1], num_filters=[8, 8, 8, 8]
            )
            patch.setattr(hifigan, "ResNetSpeakerEncoder", small)
            yield module


def _tokenizer(languages: list[str]) -> Any:
    """Letters, as XTTS writes them down: a language first, and gaps as words of their own."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    special = ["[STOP]", "[UNK]", "[SPACE]", "[START]", *(f"[{code}]" for code in languages)]
    vocabulary = {token: i for i, token in enumerate([*special, *LETTERS])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    return tokenizer


@pytest.fixture(scope="session")
def make_xtts(xtts: Any, tmp_path_factory: pytest.TempPathFactory) -> MakeVoice:
    """As `make_voice`, of XTTS with two speakers."""
    from TTS.tts.configs.xtts_config import (  # pyright: ignore[reportMissingImports]
        XttsArgs,
        XttsConfig,
    )

    def make(args: dict[str, Any] | None = None, *, peak: float = LOUD) -> Path:
        folder = tmp_path_factory.mktemp("xtts")
        config = XttsConfig(model_args=XttsArgs(**(TINY_XTTS | (args or {}))), top_p=1.0)
        tokenizer = _tokenizer(config.languages)
        tokenizer.save(str(folder / "vocab.json"))
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            model = xtts.Xtts(config)
            model.tokenizer = xtts.VoiceBpeTokenizer(vocab_file=folder / "vocab.json")
            model.init_models()
            for name, parameter in model.hifigan_decoder.waveform_decoder.named_parameters():
                if name.endswith("bias"):
                    torch.nn.init.zeros_(parameter)  # or the voice hums one note
            torch.nn.init.normal_(model.gpt.mel_embedding.weight)  # or all tokens sound the same
            channels = config.model_args.gpt_n_model_channels
            speakers = {
                name: {
                    "gpt_cond_latent": torch.randn(1, 32, channels),
                    "speaker_embedding": torch.nn.functional.normalize(
                        torch.randn(1, 512, 1), dim=1
                    ),
                }
                for name in SPEAKERS
            }
            torch.save(speakers, folder / "speakers_xtts.pth")
            model.eval()
            said = next(
                model.inference_stream(
                    "some words", "en", *speakers[SPEAKERS[0]].values(), stream_chunk_size=0
                )
            )
        model.hifigan_decoder.waveform_decoder.conv_post.weight.data *= peak / said.abs().max()
        state = {
            name: weight
            for name, weight in model.state_dict().items()
            if not name.startswith(("gpt.gpt_inference", "gpt.gpt.wte"))
        }
        torch.save({"model": state}, folder / "model.pth")
        config.save_json(folder / "config.json")
        return folder

    return make


@pytest.fixture(scope="session")
def xtts_voice(make_xtts: MakeVoice) -> Path:
    """The folder of a tiny XTTS."""
    return make_xtts()


@pytest.fixture(scope="session")
def kokoro_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that makes a sound for each token, shorter at speed, as loud as the style says."""
    from onnx import TensorProto, helper, numpy_helper, save

    draw = np.random.default_rng(0)
    sounds = draw.uniform(-0.5, 0.5, (178, KOKORO_SOUND)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["sounds", "tokens"], ["said"]),
        helper.make_node("Div", ["length", "speed"], ["shorter"]),
        helper.make_node("Cast", ["shorter"], ["end"], to=TensorProto.INT64),
        helper.make_node("Slice", ["said", "zero", "end", "last"], ["cut"]),
        helper.make_node("ReduceMean", ["style"], ["loud"], keepdims=0),
        helper.make_node("Mul", ["cut", "loud"], ["heard"]),
        helper.make_node("Reshape", ["heard", "flat"], ["audio"]),
    ]
    constants = {
        "sounds": sounds,
        "length": np.array([KOKORO_SOUND / 2], np.float32),
        "zero": np.array([0]),
        "last": np.array([2]),
        "flat": np.array([-1]),
    }
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, "n"]),
            helper.make_tensor_value_info("style", TensorProto.FLOAT, [1, 256]),
            helper.make_tensor_value_info("speed", TensorProto.FLOAT, [1]),
        ],
        [helper.make_tensor_value_info("audio", TensorProto.FLOAT, ["samples"])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    made = tmp_path_factory.mktemp("kokoro")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    save(model, made / "kokoro-v1.0.onnx")
    styles = {
        name: np.full((KOKORO_LONGEST, 1, 256), 0.5 + 0.1 * i, np.float32)
        for i, name in enumerate(KOKORO_VOICES)
    }
    with open(made / "voices-v1.0.bin", "wb") as file:
        np.savez(file, **styles)  # pyright: ignore[reportArgumentType]
    return made
