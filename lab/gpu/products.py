"""Checks and times our matrix products of few rows, for the matrices of a pair.

Whether ours or torch's are faster depends on the card. Ours were tuned on one card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter

import torch
from torch import Tensor

from lab.decoding.steps import wait
from lab.decoding.synthetic import PAIRS, Shape
from lab.gpu.checks import LOW
from lab.gpu.rows import Row, checked, not_here
from voiceloop.llm.decode.captured import Capture, CudaGraphs
from voiceloop.llm.model.kernels import ROUNDED, operations, relative_error
from voiceloop.llm.model.operations import PLAIN, Operations, Whole

ROWS = (1, 2, 5, 9)
COLD = 2**28
"""Minimum number of bytes of weights in a measurement: more than any cache holds."""
REPEATS = 9

Sizes = dict[tuple[int, int], int]
"""The number of products in a pass, by the sizes of their input and output."""


def sizes_of(vocab: int, shape: Shape) -> Sizes:
    """Return the sizes of the products in a pass."""
    hidden, wide, layers = shape.hidden, shape.feed_forward, shape.layers
    queries, keys = shape.heads * shape.head_dim, shape.key_value_heads * shape.head_dim
    found: Sizes = {}
    for size in (
        (hidden, queries + 2 * keys),
        (queries, hidden),
        (hidden, 2 * wide),
        (wide, hidden),
    ):
        found[size] = found.get(size, 0) + layers
    return found | {(hidden, vocab): 1}


@torch.inference_mode()
def products(device: torch.device, pair: str) -> Iterator[Row]:
    """Check and time the products of a synthetic pair. Yield rows of the table of results."""
    vocab, *shapes = PAIRS[pair]
    own = operations(device, LOW)
    if own is PLAIN:
        yield not_here(f"{pair}: products of few rows", "torch's run: ours are for CUDA and Triton")
        return
    models = {
        name: sizes_of(vocab, shape)
        for name, shape in zip(("target", "draft"), shapes, strict=True)
    }
    every = [
        wrong(own, device, size, rows)
        for size in sorted({size for sizes in models.values() for size in sizes})
        for rows in ROWS
    ]
    most = float(torch.stack(every).max())  # NaN if one of them is
    yield checked(
        f"{pair}: fused products are products", most < ROUNDED, f"at most {most:.1g} apart"
    )
    for name, sizes in models.items():
        ratios: list[str] = []
        for rows in ROWS:
            ours, torchs = (pass_ms(do, device, sizes, rows, CudaGraphs()) for do in (own, PLAIN))
            ratios.append(f"{ours / torchs:.2f} over {rows} ({ours:.2f} ms)")
        yield Row(f"{pair}: products of the {name} over torch's", ", ".join(ratios))


def wrong(do: Operations, device: torch.device, size: tuple[int, int], rows: int) -> Tensor:
    """Return the relative error of products of `rows` rows against single precision."""
    weights, x, to = _drawn(device, size, rows)
    alone = x.float() @ weights.weight.float()
    added = relative_error(do.product(weights, x, to), alone + to)
    return torch.maximum(relative_error(do.product(weights, x), alone), added)


def pass_ms(
    do: Operations, device: torch.device, sizes: Sizes, rows: int, capture: Capture
) -> float:
    """Return the milliseconds of all products in a pass over `rows` rows, one after the other."""
    total = 0.0
    for size, count in sizes.items():
        copies = max(2, -(-COLD // (2 * size[0] * size[1])))
        drawn = [_drawn(device, size, rows) for _ in range(copies)]

        def work(drawn: list[tuple[Whole, Tensor, Tensor]] = drawn) -> None:
            for weights, x, _ in drawn:
                do.product(weights, x)

        work()
        graph = capture(work)
        total += count * median(_took(device, graph.replay) for _ in range(REPEATS)) / copies
    return 1000 * total


def _took(device: torch.device, work: Callable[[], None]) -> float:
    """Return the seconds that `work` takes on the device."""
    wait(device)
    began = perf_counter()
    work()
    wait(device)
    return perf_counter() - began


def _drawn(device: torch.device, size: tuple[int, int], rows: int) -> tuple[Whole, Tensor, Tensor]:
    """Draw weights, the input of the product, and a tensor to which the product may be added."""
    inside, columns = size
    generator = torch.Generator(device).manual_seed(rows)
    matrix, x, to = (
        torch.randn(shape, generator=generator, device=device, dtype=LOW)
        for shape in ((columns, inside), (rows, inside), (rows, columns))
    )
    return Whole(matrix.div_(inside**0.5), None), x, to
