"""Whisper's encoder in torch, from the weights of CTranslate2's file, in float32.

The library encodes windows as a whole and gives out nothing but the states at the end. Here each
step of a layer stands by itself, for `silence.ShortEncoder`. This module knows no audio.

Source of the network: Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision,
2022, section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.asr.features import FRAMES_PER_STATE, Features
from voiceloop.asr.weights import read_shapes, read_weights

PREFIX = "encoder/"
"""Of the names of an encoder's weights."""
POSITIONS = "position_encodings/encodings"
EACH_LAYER = "/ffn/linear_0/weight"
"""How the name of one ends that each layer has."""

States = npt.NDArray[np.float32]
"""Shape [states, width]."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights and biases: attention, and then a network of two layers, each behind its norm."""

    norm: tuple[Tensor, Tensor]
    queries_keys_values: tuple[Tensor, Tensor]
    joined: tuple[Tensor, Tensor]
    second_norm: tuple[Tensor, Tensor]
    widen: tuple[Tensor, Tensor]
    narrow: tuple[Tensor, Tensor]


class Encoder:
    """The encoder of one model. Rows are what becomes of states, layer by layer."""

    def __init__(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """`weights` by CTranslate2's names within its encoder; ValueError where one lacks."""

        def linear(name: str) -> tuple[Tensor, Tensor]:
            return _tensor(weights, f"{name}/weight"), _tensor(weights, f"{name}/bias")

        def norm(name: str) -> tuple[Tensor, Tensor]:
            return _tensor(weights, f"{name}/gamma"), _tensor(weights, f"{name}/beta")

        self._convolutions = linear("conv1"), linear("conv2")
        self.positions = _tensor(weights, POSITIONS)
        """What tells the states of a full window apart: [states, width]."""
        self.layers = [
            Layer(
                norm(f"layer_{number}/self_attention/layer_norm"),
                linear(f"layer_{number}/self_attention/linear_0"),
                linear(f"layer_{number}/self_attention/linear_1"),
                norm(f"layer_{number}/ffn/layer_norm"),
                linear(f"layer_{number}/ffn/linear_0"),
                linear(f"layer_{number}/ffn/linear_1"),
            )
            for number in range(sum(name.endswith(EACH_LAYER) for name in weights))
        ]
        self._norm = norm("layer_norm")
        self._heads = int(_tensor(weights, "num_heads"))
        self.states, self._width = self.positions.shape
        """How many a full window has."""

    @property
    def mels(self) -> int:
        """Bands of the features."""
        return self._convolutions[0][0].shape[1]

    @torch.inference_mode()
    def __call__(self, features: Features) -> States:
        """States of `features`, which are those of a full window at the most."""
        rows = self.convolved(features)
        rows = rows + self.positions[: len(rows)]
        for layer in self.layers:
            queries, seen = self.project(layer, rows)
            rows = self.finish(layer, rows, self.attend(queries, seen))
        return self.end(rows).numpy()

    def convolved(self, features: Features) -> Tensor:
        """Rows before they are told their positions."""
        first, second = self._convolutions
        values = torch.from_numpy(features)[None]
        values = F.gelu(F.conv1d(values, *first, padding=1))
        values = F.gelu(F.conv1d(values, *second, stride=FRAMES_PER_STATE, padding=1))
        return values[0].T

    def project(self, layer: Layer, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Queries [rows, width], and keys and values side by side [rows, 2 * width]."""
        normed = F.layer_norm(rows, (self._width,), *layer.norm)
        joined = F.linear(normed, *layer.queries_keys_values)
        return joined[:, : self._width], joined[:, self._width :].contiguous()

    def attend(self, queries: Tensor, seen: Tensor) -> Tensor:
        """What `queries` take of the values in `seen`: [queries, width]."""
        asking, keys, values = self._by_head(queries, seen)
        taken = F.scaled_dot_product_attention(asking[None], keys[None], values[None])
        return taken[0].transpose(0, 1).reshape(len(queries), -1)

    def attention(self, queries: Tensor, seen: Tensor) -> Tensor:
        """Where `queries` look, over all heads: [queries, seen]."""
        asking, keys, _ = self._by_head(queries, seen)
        scores = asking @ keys.transpose(1, 2) / math.sqrt(asking.shape[-1])
        return scores.softmax(-1).sum(0)

    def finish(self, layer: Layer, rows: Tensor, taken: Tensor) -> Tensor:
        """`rows` after a layer whose attention has `taken` that."""
        rows = rows + F.linear(taken, *layer.joined)
        normed = F.layer_norm(rows, (self._width,), *layer.second_norm)
        return rows + F.linear(F.gelu(F.linear(normed, *layer.widen)), *layer.narrow)

    def end(self, rows: Tensor) -> Tensor:
        """The states, after the last layer."""
        return F.layer_norm(rows, (self._width,), *self._norm)

    def _by_head(self, queries: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values: each [heads, rows, width of a head]."""
        asking = queries.view(len(queries), self._heads, -1).transpose(0, 1)
        keys, values = seen.view(len(seen), 2, self._heads, -1).permute(1, 2, 0, 3)
        return asking, keys, values


def read_encoder(path: Path) -> Encoder:
    """The encoder of the model in CTranslate2's file at `path`.

    OSError for what cannot be read, ValueError for what is no such file or another network.
    """
    return Encoder(read_weights(path, PREFIX))


def encoder_bytes(path: Path, *, silence: bool) -> int:
    """Memory that the encoder of that file takes, with what its layers see of `silence`; 0 where
    the file does not tell."""
    try:
        shapes = read_shapes(path, PREFIX)
    except (OSError, ValueError):
        return 0
    layers = sum(name.endswith(EACH_LAYER) for name in shapes)
    seen = 2 * layers * math.prod(shapes.get(POSITIONS, (0,)))
    return 4 * (sum(map(math.prod, shapes.values())) + (seen if silence else 0))


def _tensor(weights: Mapping[str, npt.NDArray[np.float32]], name: str) -> Tensor:
    if name not in weights:
        raise ValueError(f"its encoder has no {name}")
    return torch.from_numpy(weights[name])
