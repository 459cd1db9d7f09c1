"""Runs Whisper's encoder in torch, in float32 and with the weights of CTranslate2's file.

CTranslate2 encodes windows as a whole, and returns only the final states. Here each step of a layer
is a separate method, because `short_window.ShortEncoder` needs the steps one by one. This module
knows no audio.

The API of CTranslate2 does not give out the weights, so its file is read here. The format is
private to CTranslate2. The releases 3 and 4 of CTranslate2 write format version 6
(`ctranslate2.specs.ModelSpec`); files of another format version are refused. A later release may
write another one, so voiceloop requires a release below 5. For each variable the file has the name,
shape, type and values. Then come pairs of names: an alias, and the variable that it stands for.

Source of the network: Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision,
2022, section 2.2.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.asr.encoding import (
    FRAMES_PER_STATE,
    FRAMES_PER_STEP,
    FULL_WINDOW_S,
    Features,
    States,
    whole_steps,
)

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

logger = logging.getLogger(__name__)

SAME = 0.5
"""If the states of voiceloop's encoder and of CTranslate2's differ by more than this, the two are
not the same network. The difference is the root mean square, divided by the standard deviation of
CTranslate2's states. Two different networks give 1.4. With weights of 8 bits, tiny.en, base and the
starter model give 0.02 to 0.07; larger models have not been tried."""

FORMAT = 6
TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16, np.uint16)
"""Types of values; the index of each is its number in the file."""
BFLOAT16 = 5
"""Number of the type bfloat16. numpy does not have it; it is the upper half of a float32."""
SCALE = "_scale"
"""Suffix of the names of scales: the weight NAME has the scale NAME_scale. Integer weights are
stored multiplied by their scale. A scale is one number for all rows, or one number for each row."""

Weights = dict[str, npt.NDArray[np.float32]]


class _WeightsFile:
    """A file that is read one value after another. Raises ValueError at its end."""

    def __init__(self, path: Path) -> None:
        self._data = np.memmap(path, np.uint8, "r")
        self._at = 0

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        """Return the next `size` bytes."""
        begin, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise ValueError("it ends too early")
        return self._data[begin : self._at]

    def number(self, kind: str = "<u4") -> int:
        """Read a number of a type of numpy."""
        return int(self.take(np.dtype(kind).itemsize).view(kind)[0])

    def text(self) -> str:
        return self.take(self.number("<u2")).tobytes().rstrip(b"\0").decode()

    def values(self) -> npt.NDArray[np.generic]:
        """Read the shape, the type and the values of a variable."""
        shape = [self.number() for _ in range(self.number("u1"))]
        kind, raw = self.number("u1"), self.take(self.number())
        if kind >= len(TYPES):
            raise ValueError(f"it has values of an unknown type {kind}")
        values = raw.view(TYPES[kind])
        if kind == BFLOAT16:
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.reshape(shape)


def read_weights(path: Path, prefix: str) -> Weights:
    """Read as float32 the variables whose names begin with `prefix`. The result has their names
    without the prefix.

    Raises ValueError for a file of another format, and OSError for one that cannot be read.
    """
    file = _WeightsFile(path)
    if (version := file.number()) != FORMAT:
        raise ValueError(f"it is of version {version} of CTranslate2's format")
    file.text()  # the kind of model
    file.number()  # and its revision
    found = {file.text(): file.values() for _ in range(file.number())}
    for _ in range(file.number()):
        alias, name = file.text(), file.text()
        if name not in found:
            raise ValueError(f"it has no {name}")
        found[alias] = found[name]
    return {
        name.removeprefix(prefix): _scaled(values, found.get(name + SCALE))
        for name, values in found.items()
        if name.startswith(prefix) and not name.endswith(SCALE)
    }


def _scaled(
    values: npt.NDArray[np.generic], scale: npt.NDArray[np.generic] | None
) -> npt.NDArray[np.float32]:
    if scale is None:
        return values.astype(np.float32)
    by_row = scale.astype(np.float32).reshape(-1, *[1] * (values.ndim - 1))
    return values.astype(np.float32) / by_row


PREFIX = "encoder/"
"""Prefix of the names of the encoder's weights in the file."""
POSITIONS = "position_encodings/encodings"
EACH_LAYER = "/ffn/linear_0/weight"
"""Suffix of the name of a weight that each layer has once. It serves to count the layers."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights and biases of one layer, in the order of use. `joined` is the linear map after
    attention. `widen` and `narrow` are the feed-forward network."""

    norm: tuple[Tensor, Tensor]
    queries_keys_values: tuple[Tensor, Tensor]
    joined: tuple[Tensor, Tensor]
    second_norm: tuple[Tensor, Tensor]
    widen: tuple[Tensor, Tensor]
    narrow: tuple[Tensor, Tensor]


class WhisperEncoder:
    """The encoder of one model. A row is the vector of one position on its way through the
    layers."""

    def __init__(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Take `weights` by their names in CTranslate2 without `PREFIX`. Raises ValueError if one
        is missing."""

        def linear(name: str) -> tuple[Tensor, Tensor]:
            return _tensor(weights, f"{name}/weight"), _tensor(weights, f"{name}/bias")

        def norm(name: str) -> tuple[Tensor, Tensor]:
            return _tensor(weights, f"{name}/gamma"), _tensor(weights, f"{name}/beta")

        self._convolutions = linear("conv1"), linear("conv2")
        self.positions = _tensor(weights, POSITIONS)
        """Position encodings of a full window: [states, width]."""
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
        """Number of states of a full window (`states`), and the width of each (`_width`)."""

    @property
    def mels(self) -> int:
        """Number of bands of the features."""
        return self._convolutions[0][0].shape[1]

    @torch.inference_mode()
    def __call__(self, features: Features) -> States:
        """Return the states of `features`, which must be no longer than a full window."""
        return self.encode(torch.from_numpy(features)).numpy()

    def encode(self, features: Tensor) -> Tensor:
        """Return the states of `features` [mels, frames]: [states, width]."""
        rows = self.convolved(features)
        rows = rows + self.positions[: len(rows)]
        for layer in self.layers:
            queries, keys_values = self.project(layer, rows)
            rows = self.finish(layer, rows, self.attend(queries, keys_values))
        return self.end(rows)

    def convolved(self, features: Tensor) -> Tensor:
        """Return the rows of `features` without position encodings: [states, width]."""
        first, second = self._convolutions
        values = F.gelu(F.conv1d(features[None], *first, padding=1))
        values = F.gelu(F.conv1d(values, *second, stride=FRAMES_PER_STATE, padding=1))
        return values[0].T

    def project(self, layer: Layer, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the queries of `rows` [rows, width], and their keys and values side by side [rows,
        2 * width]."""
        normed = F.layer_norm(rows, (self._width,), *layer.norm)
        joined = F.linear(normed, *layer.queries_keys_values)
        return joined[:, : self._width], joined[:, self._width :].contiguous()

    def attend(self, queries: Tensor, keys_values: Tensor) -> Tensor:
        """Return softmax(QK^T / sqrt(width of a head)) V of all heads, side by side: [queries,
        width]."""
        split_queries, keys, values = self._by_head(queries, keys_values)
        attended = F.scaled_dot_product_attention(split_queries[None], keys[None], values[None])
        return attended[0].transpose(0, 1).reshape(len(queries), -1)

    def attention(self, queries: Tensor, keys_values: Tensor) -> Tensor:
        """Return the attention of queries to keys, summed over all heads: [queries, keys]."""
        split_queries, keys, _ = self._by_head(queries, keys_values)
        scores = split_queries @ keys.transpose(1, 2) / math.sqrt(split_queries.shape[-1])
        return scores.softmax(-1).sum(0)

    def finish(self, layer: Layer, rows: Tensor, attended: Tensor) -> Tensor:
        """Return the rows after a layer. `rows` are those before the layer, and `attended` is the
        output of its attention."""
        rows = rows + F.linear(attended, *layer.joined)
        normed = F.layer_norm(rows, (self._width,), *layer.second_norm)
        return rows + F.linear(F.gelu(F.linear(normed, *layer.widen)), *layer.narrow)

    def end(self, rows: Tensor) -> Tensor:
        """Return the states for the rows after the last layer."""
        return F.layer_norm(rows, (self._width,), *self._norm)

    def _by_head(self, queries: Tensor, keys_values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, each [heads, rows, width of a head]."""
        split_queries = queries.view(len(queries), self._heads, -1).transpose(0, 1)
        keys, values = keys_values.view(len(keys_values), 2, self._heads, -1).permute(1, 2, 0, 3)
        return split_queries, keys, values


def read_encoder(path: Path) -> WhisperEncoder:
    """Read the encoder of the model in CTranslate2's file at `path`.

    Raises OSError if the file cannot be read, and ValueError for another format or network.
    """
    return WhisperEncoder(read_weights(path, PREFIX))


def own_encoder(folder: Path, model: WhisperModel) -> WhisperEncoder | None:
    """Make voiceloop's own encoder from the weights in `folder`. Logs a warning and returns None if
    the weights cannot be read, or if the states differ from those of `model`."""
    try:
        encoder = read_encoder(folder / "model.bin")
        noise = np.random.default_rng(0).normal(0, 0.5, (encoder.mels, 2 * FRAMES_PER_STEP))
        features = noise.astype(np.float32)
        ours, theirs = encoder(features), np.asarray(model.encode(features))[0]
        apart = float(np.sqrt(np.mean((ours - theirs) ** 2)) / theirs.std())
        if not apart <= SAME:
            raise ValueError(f"its encoder is none of Whisper's (states are {apart:.2f} off)")
        if FRAMES_PER_STATE * encoder.states != whole_steps(FULL_WINDOW_S):
            raise ValueError(f"its window has {encoder.states} states")
    except (OSError, ValueError, RuntimeError) as error:
        logger.warning("windows are encoded in full, which takes long: %s", error)
        return None
    return encoder


def _tensor(weights: Mapping[str, npt.NDArray[np.float32]], name: str) -> Tensor:
    if name not in weights:
        raise ValueError(f"its encoder has no {name}")
    return torch.from_numpy(weights[name])
