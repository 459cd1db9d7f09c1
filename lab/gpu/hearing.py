"""Times Whisper's encoder on a device: the program's own, transformers', and CTranslate2's.

On a GPU the program uses CTranslate2's. The weights are random.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import WhisperConfig, WhisperForConditionalGeneration

from lab.decoding.steps import wait
from lab.gpu.rows import Row, not_here
from lab.gpu.standins import FRAMES, SMALL_WHISPER, TURBO
from voiceloop.asr.whisper_encoder import POSITIONS, Layer, WhisperEncoder
from voiceloop.llm.decode.captured import CudaGraphs, Plainly
from voiceloop.placement import BUILDING

SECONDS = (2, 5, 10, 30)
FRAMES_PER_SECOND = 100
REPEATS = 7
NAME = "Whisper's encoder"


def hearing(device: torch.device) -> Iterator[Row]:
    """Yield the rows about the encoder of Whisper large-v3-turbo; on a CPU, of a small one."""
    small = device.type == "cpu"
    shape, dtype = (SMALL_WHISPER, torch.float32) if small else (TURBO, torch.bfloat16)
    yield from _own(shape, device, dtype)
    with BUILDING, device:
        model: Any = WhisperForConditionalGeneration(shape)
    model = model.to(torch.float32 if small else torch.float16).eval()
    yield from _transformers(model, device)
    yield from _ctranslate2(model, device)


@torch.inference_mode()
def _own(shape: WhisperConfig, device: torch.device, dtype: torch.dtype) -> Iterator[Row]:
    encoder = Placed(shape, device, dtype)
    found = list[str]()
    for seconds in SECONDS:
        features = torch.randn(shape.num_mel_bins, FRAMES_PER_SECOND * seconds).to(device, dtype)

        def work(features: Tensor = features) -> None:
            encoder.encode(features)

        work()
        graph = (CudaGraphs() if device.type == "cuda" else Plainly)(work)
        found.append(f"{_took_ms(graph.replay, device):.1f} for {seconds} s")
    yield Row(f"{NAME}, the program's own, ms", ", ".join(found))


@torch.inference_mode()
def _transformers(model: Any, device: torch.device) -> Iterator[Row]:
    sound = torch.randn(1, model.config.num_mel_bins, FRAMES).to(device, model.dtype)
    took = _took_ms(lambda: model.model.encoder(sound), device)
    yield Row(f"{NAME}, transformers', ms", f"{took:.1f} for 30 s")


def _ctranslate2(model: Any, device: torch.device) -> Iterator[Row]:
    name = f"{NAME}, CTranslate2's, ms"
    try:
        import ctranslate2
        from ctranslate2.converters.transformers import WhisperLoader
    except ImportError:
        yield not_here(name, "CTranslate2 is not installed")
        return
    spec: Any = WhisperLoader().get_model_spec(model.float())
    spec.register_vocabulary([f"<{number}>" for number in range(model.config.vocab_size)])
    spec.validate()
    kind = "float32" if device.type == "cpu" else "float16"
    spec.optimize(quantization=kind)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        whisper = ctranslate2.models.Whisper(folder, device=device.type, compute_type=kind)
    sound = np.random.default_rng(0).normal(0, 1, (1, model.config.num_mel_bins, FRAMES))
    given = ctranslate2.StorageView.from_array(sound.astype(np.float32))
    took = _took_ms(lambda: whisper.encode(given, to_cpu=True), device)
    yield Row(name, f"{took:.1f} for 30 s")


class Placed(WhisperEncoder):
    """The program's encoder with random weights, on any device."""

    def __init__(self, shape: WhisperConfig, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__(drawn(shape))

        def moved(part: tuple[Any, ...]) -> Any:
            return tuple(
                moved(one) if isinstance(one, tuple) else one.to(device, dtype) for one in part
            )

        self._convolutions, self._norm = moved(self._convolutions), moved(self._norm)
        self.positions = self.positions.to(device, dtype)
        parts = [field.name for field in fields(Layer)]
        self.layers = [
            Layer(*moved(tuple(getattr(layer, part) for part in parts))) for layer in self.layers
        ]


def drawn(shape: WhisperConfig) -> dict[str, npt.NDArray[np.float32]]:
    """Draw the weights of an encoder. They have their names in CTranslate2."""
    width, wide, states = shape.d_model, shape.encoder_ffn_dim, shape.max_source_positions
    sizes: dict[str, tuple[int, ...]] = {
        "conv1/weight": (width, shape.num_mel_bins, 3),
        "conv2/weight": (width, width, 3),
        POSITIONS: (states, width),
    }
    for number in range(shape.encoder_layers):
        for name, size in (
            ("self_attention/linear_0", (3 * width, width)),
            ("self_attention/linear_1", (width, width)),
            ("ffn/linear_0", (wide, width)),
            ("ffn/linear_1", (width, wide)),
        ):
            sizes[f"layer_{number}/{name}/weight"] = size
    norms = ["layer_norm"] + [
        f"layer_{number}/{part}/layer_norm"
        for number in range(shape.encoder_layers)
        for part in ("self_attention", "ffn")
    ]
    rng = np.random.default_rng(0)
    found = {name: 0.02 * rng.standard_normal(size, np.float32) for name, size in sizes.items()}
    found |= {
        name.replace("weight", "bias"): np.zeros(size[0], np.float32)
        for name, size in sizes.items()
        if name.endswith("weight")
    }
    found |= {f"{norm}/gamma": np.ones(width, np.float32) for norm in norms}
    found |= {f"{norm}/beta": np.zeros(width, np.float32) for norm in norms}
    return found | {"num_heads": np.array(shape.encoder_attention_heads, np.float32)}


def _took_ms(work: Callable[[], object], device: torch.device) -> float:
    """Return the median time of `work` in ms, without its first run."""
    times = list[float]()
    for _ in range(REPEATS + 1):
        wait(device)
        began = perf_counter()
        work()
        wait(device)
        times.append(1000 * (perf_counter() - began))
    return median(times[1:])
