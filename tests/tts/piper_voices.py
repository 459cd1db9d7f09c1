"""Small Piper voices with random weights, shaped as the real ones are."""

# ruff: noqa: RUF001 - phonemes look like letters

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = 8
HOP = 32
RATE = 16_000
SYMBOLS = "_^$ !'(),-.:;?abcdefghijklmnopqrstuvwxyzæðŋɐɑɔəɚɛɜɡɪɹɾʃʊʌʒʔˈˌːθᵻ\u0329"


class _Graph:
    """Nodes and weights in the making."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._draw = np.random.default_rng(seed)

    def node(self, kind: str, inputs: Sequence[str], out: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [out], f"/{out}", **attributes))
        return out

    def weight(self, name: str, *shape: int, scale: float = 1.0) -> str:
        value = (self._draw.normal(size=shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def constant(self, name: str, value: object, kind: Any = np.int64) -> str:
        self.weights.append(numpy_helper.from_array(np.array(value, kind), name))
        return name

    def conv(
        self,
        x: str,
        name: str,
        wide: tuple[int, int],
        width: int,
        dilation: int = 1,
        scale: float = 0.4,
    ) -> str:
        weight = self.weight(f"{name}.weight", wide[1], wide[0], width, scale=scale)
        pad = dilation * (width - 1) // 2
        sizes = {"kernel_shape": [width], "pads": [pad, pad], "dilations": [dilation]}
        return self.node("Conv", [x, weight], f"{name}/Conv", **sizes)

    def up(self, x: str, name: str, wide: tuple[int, int], stride: int) -> str:
        weight = self.weight(f"{name}.weight", *wide, 2 * stride, scale=0.5)
        sizes = {"kernel_shape": [2 * stride], "pads": [stride // 2] * 2, "strides": [stride]}
        return self.node("ConvTranspose", [x, weight], f"{name}/ConvTranspose", **sizes)


def piper_graph(speakers: int = 1, seed: int = 0) -> onnx.ModelProto:
    """The graph of a voice: phonemes in, samples out, its noise drawn inside."""
    g = _Graph(seed)
    g.constant("zero", 0)
    g.constant("zero.f", 0.0, np.float32)
    g.constant("one.f", 1.0, np.float32)
    table = g.weight("emb.weight", len(SYMBOLS), CHANNELS)
    text = g.node("Gather", [table, "input"], "emb")
    text = g.node("Transpose", [text], "text", perm=[0, 2, 1])
    for index, name in enumerate(("noise_scale", "length_scale", "noise_w")):
        g.node("Gather", ["scales", g.constant(f"{name}.index", index)], name)
    sides = [g.constant(f"two.{name}", value) for name, value in (("a", [0]), ("b", [2]))]
    pair = g.node("Slice", [text, *sides, g.constant("two.axis", [1])], "pair")
    drawn = g.node("RandomNormalLike", [pair], "dp/RandomNormalLike", dtype=1)
    spread = g.node("Mul", [drawn, "noise_w"], "dp/spread")
    spread = g.node("ReduceMean", [spread], "dp/mean", axes=[1], keepdims=1)
    base = g.node("ReduceMean", [text], "dp/base", axes=[1], keepdims=1)
    length = g.node("Exp", [g.node("Add", [base, spread], "dp/log")], "dp/length")
    length = g.node("Mul", [length, "length_scale"], "dp/scaled")
    frames = g.node("Ceil", [length], "Ceil")
    ends = g.node("CumSum", [frames, g.constant("last", 2)], "ends")
    ends = g.node("Reshape", [ends, g.constant("column", [-1, 1])], "ends.column")
    count = g.node("ReduceMax", [ends], "count", keepdims=0)
    steps = g.node("Range", ["zero.f", count, "one.f"], "steps")
    past = g.node("LessOrEqual", [ends, steps], "past")
    past = g.node("Cast", [past], "past.int", to=TensorProto.INT64)
    which = g.node("ReduceSum", [past, g.constant("rows", [0])], "which", keepdims=0)
    mean = g.node("Gather", [text, which], "mean", axis=2)
    noise = g.node("RandomNormalLike", [mean], "RandomNormalLike", dtype=1)
    noise = g.node("Mul", [noise, "noise_scale"], "noise.scaled")
    latent = g.node("Add", [mean, noise], "z")
    x = g.conv(latent, "dec.conv_pre", (CHANNELS, 16), 7)
    if speakers > 1:
        who = g.node("Gather", [g.weight("emb_g.weight", speakers, 4, scale=3.0), "sid"], "g.row")
        who = g.node("Unsqueeze", [who, g.constant("g.axis", [-1])], "g")
        x = g.node("Add", [x, g.conv(who, "dec.cond", (4, 16), 1)], "dec/conditioned")
    for index, (wide, stride) in enumerate((((16, 8), 8), ((8, 4), 4))):
        x = g.node("LeakyRelu", [x], f"dec/LeakyRelu.{index}", alpha=0.1)
        x = g.up(x, f"dec.ups.{index}", wide, stride)
        block = g.conv(x, f"dec.resblocks.{index}", (wide[1], wide[1]), 5, dilation=index + 1)
        x = g.node("Add", [x, block], f"dec/Add.{index}")
    x = g.conv(x, "dec.conv_post", (4, 1), 7, scale=0.01)
    g.node("Unsqueeze", [g.node("Tanh", [x], "dec/Tanh"), g.constant("out.axis", [1])], "output")
    info = helper.make_tensor_value_info
    inputs = [
        info("input", TensorProto.INT64, ["batch", "phonemes"]),
        info("input_lengths", TensorProto.INT64, ["batch"]),
        info("scales", TensorProto.FLOAT, [3]),
        *([info("sid", TensorProto.INT64, ["batch"])] if speakers > 1 else []),
    ]
    output = info("output", TensorProto.FLOAT, ["batch", 1, 1, "samples"])
    graph = helper.make_graph(g.nodes, "voice", inputs, [output], g.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def write_piper_voice(
    file: Path, *, speakers: Sequence[str] = (), seed: int = 0, **said: object
) -> Path:
    """Write a voice as they are published: a graph, and what it is beside it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(piper_graph(max(1, len(speakers)), seed), file)
    description: Mapping[str, object] = {
        "audio": {"sample_rate": RATE, "quality": "medium"},
        "espeak": {"voice": "en-us"},
        "inference": {"noise_scale": 0.3, "length_scale": 4.0, "noise_w": 0.3},
        "phoneme_type": "espeak",
        "phoneme_id_map": {symbol: [index] for index, symbol in enumerate(SYMBOLS)},
        "num_speakers": max(1, len(speakers)),
        "speaker_id_map": {speaker: index for index, speaker in enumerate(speakers)},
        "language": {"code": "en_US"},
    }
    file.with_name(f"{file.name}.json").write_text(
        json.dumps({**description, **said}), encoding="utf-8"
    )
    return file
