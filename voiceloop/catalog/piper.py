"""Converts the voices of Piper, once: a voice becomes two graphs, so that it can speak in windows
and with a seed.

A voice is a VITS model (Kim et al. 2021) that was exported as one graph: phonemes in, samples out,
with noise drawn inside. It becomes two graphs. The first graph goes up to the vocoder's input. Its
noise becomes an input, and the duration of each phoneme becomes an output. The second graph is the
vocoder. A sample depends on its own frame and on some frames before and after it; the vocoder's
metadata give their numbers. This module runs no graph.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from voiceloop.catalog.store import explained
from voiceloop.errors import MissingExtra, ModelCorrupt, ModelNotFound, OutOfMemory

if TYPE_CHECKING:
    import onnx

FIRST_HALF, VOCODER, VOICE = "voice.onnx", "vocoder.onnx", "voice.json"
"""File names of a converted Piper voice: the graph up to the vocoder's input, the vocoder, and the
description."""
SEAM_WEIGHT = "dec.conv_pre.weight"
"""The weights of the vocoder's first convolution."""
SPEAKER = "sid"
"""The input that selects the speaker, if there are several."""
TEXT_NOISE, NOISE, DURATIONS, LATENT = "text_noise", "noise", "durations", "latent"
"""Names of inputs and outputs of the two graphs, which have these values:

- `TEXT_NOISE`: the noise of the durations, [1, 2, phonemes]
- `NOISE`: the noise of the sound, [1, channels, any length], repeated if it is too short
- `DURATIONS`: the number of frames of each phoneme, [1, 1, phonemes]
- `LATENT`: the vocoder's input, [1, channels, frames]
"""
SAME_SIZE = {"Add", "Div", "Mul", "LeakyRelu", "Tanh", "Unsqueeze", "Squeeze", "Identity", "Cast"}
"""Operators, besides convolutions, that keep positions in time."""


def require() -> None:
    """Raise MissingExtra unless the package that a conversion needs is installed."""
    if not find_spec("onnx"):
        raise MissingExtra("what converts voices of Piper", "convert")


def split_piper(file: Path, target: Path) -> None:
    """Split the graph of a Piper voice into two, up to the vocoder's input and the vocoder, in the
    folder `target`.

    Raises MissingExtra, ModelCorrupt for a file that cannot be read, ModelNotFound if the voice
    lacks its JSON file, OutOfMemory, and VoiceloopError if the disk is full.
    """
    require()
    import onnx

    description = Path(f"{file}.json")
    if not description.is_file():
        raise ModelNotFound(
            f"{file.name} is a voice, and {description.name} is not beside it",
            "copy both: they are published together",
        )
    with _readable(file):
        first, vocoder = split(onnx.load(file))
    with explained(target):
        target.mkdir(exist_ok=True)
        onnx.save(first, target / FIRST_HALF)
        onnx.save(vocoder, target / VOCODER)
        shutil.copyfile(description, target / VOICE)


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


def split(model: onnx.ModelProto) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Split the graph of a voice into two: up to the vocoder's input, and the vocoder. Raises
    ValueError for a graph that is no Piper voice."""
    import onnx
    from onnx.utils import Extractor

    graph = model.graph
    inputs = [entry.name for entry in graph.input]
    (output,) = (entry.name for entry in graph.output)
    seam = _only(n for n in graph.node if SEAM_WEIGHT in n.input).input[0]
    durations = _only(n for n in graph.node if n.op_type == "Ceil").output[0]
    _make_noise_inputs(graph)
    model = onnx.shape_inference.infer_shapes(model)
    extractor = Extractor(model)
    first = extractor.extract_model([*inputs, TEXT_NOISE, NOISE], [seam, durations])
    _rename(first, {seam: LATENT, durations: DURATIONS})
    speaker = [name for name in inputs if name == SPEAKER]
    vocoder = extractor.extract_model([seam, *speaker], [output])
    _rename(vocoder, {seam: LATENT, output: "samples"})
    before, after, hop = reach(vocoder.graph, LATENT, "samples")
    onnx.helper.set_model_props(
        vocoder, {"before": str(before), "after": str(after), "hop": str(hop)}
    )
    return first, vocoder


def reach(graph: onnx.GraphProto, source: str, target: str) -> tuple[int, int, int]:
    """Return (before, after, hop) for a graph from `source` to `target`.

    A sample of `target` depends on its own frame of `source`, on `before` frames before that frame
    and on `after` frames after it. A frame has `hop` samples. Raises ValueError if another operator
    than a convolution mixes positions in time.
    """
    hop = math.prod(_first_number(node, "strides", 1) for node in graph.node if _is_up(node))
    needed = {target: (0, hop - 1)}
    after_source = _dependents(graph, source)
    for node in reversed(graph.node):  # nodes are in the order of computation
        spans = [needed[name] for name in node.output if name in needed]
        if not spans:
            continue
        low, high = min(low for low, _ in spans), max(high for _, high in spans)
        span = _needs(node, low, high)
        for name in node.input:
            if name in after_source:
                old = needed.get(name, span)
                needed[name] = min(old[0], span[0]), max(old[1], span[1])
    low, high = needed[source]
    return -low, high, hop


def _needs(node: onnx.NodeProto, low: int, high: int) -> tuple[int, int]:
    """Return the range of inputs that a node reads for its outputs from `low` to `high`."""
    if node.op_type not in ("Conv", "ConvTranspose"):
        if node.op_type not in SAME_SIZE:
            raise ValueError(f"its vocoder holds a {node.op_type}")
        return low, high
    stride, dilation = _first_number(node, "strides", 1), _first_number(node, "dilations", 1)
    pad = _first_number(node, "pads", 0)
    width = dilation * (_first_number(node, "kernel_shape", 1) - 1)
    if _is_up(node):
        # Output n is made of the inputs m for which 0 <= n + pad - m * stride <= width.
        return math.ceil((low + pad - width) / stride), (high + pad) // stride
    return low * stride - pad, high * stride - pad + width


def _is_up(node: onnx.NodeProto) -> bool:
    return node.op_type == "ConvTranspose"


def _first_number(node: onnx.NodeProto, name: str, default: int) -> int:
    """Return the first number in a list attribute of a node."""
    found: Sequence[int] = next((a.ints for a in node.attribute if a.name == name), [default])
    return found[0]


def _dependents(graph: onnx.GraphProto, source: str) -> set[str]:
    """Return all values that depend on `source`."""
    found = {source}
    for node in graph.node:
        if not found.isdisjoint(node.input):
            found.update(node.output)
    return found


def _make_noise_inputs(graph: onnx.GraphProto) -> None:
    """Replace the two places that draw noise by inputs: for durations, then for the sound."""
    from onnx import TensorProto, helper

    drawn = [node for node in graph.node if node.op_type == "RandomNormalLike"]
    if len(drawn) != 2:
        raise ValueError(f"it draws noise in {len(drawn)} places, not in two")
    for_text, for_sound = drawn
    _replace(graph, for_text, [helper.make_node("Identity", [TEXT_NOISE], for_text.output)])
    # Only the graph knows the number of frames: it cuts or repeats the noise to that length.
    like, (out,) = for_sound.input[0], for_sound.output
    nodes = [
        helper.make_node("Shape", [like], [f"{out}/shape"]),
        helper.make_node("Gather", [f"{out}/shape", f"{out}/two"], [f"{out}/frames"]),
        helper.make_node("Shape", [NOISE], [f"{out}/there"]),
        helper.make_node("Gather", [f"{out}/there", f"{out}/two"], [f"{out}/length"]),
        helper.make_node("Range", [f"{out}/zero", f"{out}/frames", f"{out}/one"], [f"{out}/range"]),
        helper.make_node("Mod", [f"{out}/range", f"{out}/length"], [f"{out}/which"]),
        helper.make_node("Gather", [NOISE, f"{out}/which"], [out], axis=2),
    ]
    _replace(graph, for_sound, nodes)
    for name, value in (("zero", 0), ("one", 1), ("two", 2)):
        graph.initializer.append(
            helper.make_tensor(f"{out}/{name}", TensorProto.INT64, [], [value])
        )
    for name, channels in ((TEXT_NOISE, 2), (NOISE, None)):
        graph.input.append(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, f"{name}_length"])
        )


def _replace(graph: onnx.GraphProto, node: onnx.NodeProto, by: Sequence[onnx.NodeProto]) -> None:
    place = list(graph.node).index(node)
    rest = list(graph.node)[place + 1 :]
    del graph.node[place:]
    graph.node.extend([*by, *rest])


def _rename(model: onnx.ModelProto, names: dict[str, str]) -> None:
    """Rename values everywhere in a graph."""
    graph = model.graph
    for entry in chain(graph.input, graph.output, graph.value_info):
        entry.name = names.get(entry.name, entry.name)
    for node in graph.node:
        for ports in (node.input, node.output):
            ports[:] = [names.get(name, name) for name in ports]


def _only(found: Iterator[onnx.NodeProto]) -> onnx.NodeProto:
    nodes = list(found)
    if len(nodes) != 1:
        raise ValueError("it is no voice of Piper")
    return nodes[0]
