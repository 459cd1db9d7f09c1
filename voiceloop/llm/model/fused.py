"""Triton kernels for the operations of a pass over a few rows, one kernel for each operation.

Between two products torch runs two to four kernels for an operation, or one kernel that leaves most
of the GPU idle. In a model of eight billion parameters, these operations take 1.7 of the 5.7 ms of
a pass over one row on an H200. A third of the 1.7 ms is attention. For products of few rows torch
calls cuBLAS, which reads small matrices slowly: at 0.3 to 2.8 TB/s, while an H100 copies at 3 TB/s.
The kernels here are for captured passes: if they are launched one by one, each takes longer to
launch than to run.

Triton comes with torch for CUDA on Linux. The import of this module fails if Triton or a C compiler
is missing; callers expect that.
"""

# Triton adds its own arguments to each call of a kernel, and takes numbers for constants.
# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from voiceloop.llm.model.operations import Linear, Norm, Operations, Whole

QUERIES = 64
"""Maximum number of queries that one program of `attended` takes."""
STAGES = 2
SPARE = 32 * 1024
"""Bytes of a program's shared memory that are not used for keys and values."""
COLUMNS = 1024
"""Numbers that one program of `glu` computes."""
WARPS = 8
FEW = 16
"""Rows that tensor cores multiply at once. A captured pass has no more rows."""
ONE_ROW = {"OUT": 4, "IN": 1024, "num_warps": 8}
FEW_ROWS = {"OUT": 16, "IN": 256, "num_warps": 2, "num_stages": 4}
"""`ONE_ROW` and `FEW_ROWS` are the quickest of about twenty settings each on an H100, for the
matrices of models of half a billion to eight billion parameters. On average they take 0.75 and 0.87
of the time of cuBLAS."""
OPTIONS = {"enable_fp_fusion": True}
"""Options that are set explicitly, because Triton's defaults change between versions."""

NEVER = tl.constexpr(float("-inf"))


class Fused(Operations):
    """The operations on CUDA, in 16 bits, by kernels."""

    def product(self, weights: Linear, x: Tensor, to: Tensor | None = None) -> Tensor:
        rows = len(x)
        if rows > FEW:
            return super().product(weights, x, to)
        assert isinstance(weights, Whole), "halved weights are on a CPU"
        size, columns = weights.weight.shape
        out = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
        given = (x, weights.weight, weights.bias, to, out, size, columns, *weights.weight.stride())
        if rows == 1:
            _one_row[(triton.cdiv(columns, ONE_ROW["OUT"]),)](*given, **ONE_ROW, **OPTIONS)
        else:
            blocks = triton.cdiv(columns, FEW_ROWS["OUT"])
            _few_rows[(blocks,)](*given, rows, x.stride(0), FEW, **FEW_ROWS, **OPTIONS)
        return out

    def rms_norm(self, norm: Norm, x: Tensor) -> Tensor:
        *rows, size = x.shape
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        heads = rows[1] if len(rows) > 1 else 1
        block = triton.next_power_of_2(size)
        _rms_norm[(rows[0], heads)](
            *(x, norm.weight, out, x.stride(0), heads, norm.eps),
            *(size, block),
            num_warps=WARPS,
            **OPTIONS,
        )
        return out

    def apply_rotary(self, x: Tensor, cos: Tensor, sin: Tensor) -> None:
        rows, heads, dim = x.shape
        blocks = triton.next_power_of_2(heads), triton.next_power_of_2(dim // 2)
        _apply_rotary[(rows,)](
            *(x, cos, sin, x.stride(0)), heads, dim // 2, *blocks, num_warps=WARPS
        )

    def glu(self, x: Tensor, activation: str) -> Tensor:
        rows, size = len(x), x.shape[1] // 2
        out = torch.empty(rows, size, dtype=x.dtype, device=x.device)
        _glu[(rows, triton.cdiv(size, COLUMNS))](
            *(x, out, size), activation == "silu", COLUMNS, **OPTIONS
        )
        return out


def attended(
    q: Tensor, buffer: Tensor, slot: Tensor, start: Tensor, window: int | None, scale: float | None
) -> Tensor:
    """Return causal attention softmax(scale q k^T) v, [rows, heads * dim].

    `q` is [rows, heads, dim]; its rows stand at positions `start`, `start + 1`, … of `slot`. Keys
    and values are in `buffer` [slots, capacity, 2 groups, dim], keys before values. `slot` and
    `start` are int64 [1] on the device. Each row sees the last `window` positions up to its own, or
    all positions up to its own if `window` is None. If `scale` is None, it is 1 / sqrt(dim).
    """
    rows, heads, dim = q.shape
    _, capacity, both, _ = buffer.shape
    groups = both // 2
    fold = heads // groups
    out = torch.empty(rows, heads * dim, dtype=q.dtype, device=q.device)
    queries = max(16, min(QUERIES, triton.next_power_of_2(rows * fold)))
    width = max(16, triton.next_power_of_2(dim))
    keys = pieces(_memory(q.device), width, q.element_size())
    _attended[(groups, triton.cdiv(rows * fold, queries))](
        *(q, buffer, out, slot, start, dim**-0.5 if scale is None else scale),
        *(rows, capacity if window is None else window, q.stride(0), capacity),
        *(groups, fold, dim, queries, keys, width),
        num_stages=STAGES,
        **OPTIONS,
    )
    return out


def pieces(memory: int, width: int, size: int) -> int:
    """Return how many keys a program loads at once. It has `memory` bytes of shared memory, and a
    key has `width` numbers of `size` bytes."""
    room = (memory - SPARE) // (2 * STAGES * width * size)
    return next((count for count in (128, 64, 32) if count <= room), 16)


@cache
def _memory(device: torch.device) -> int:
    """Return how many bytes of shared memory one program can have."""
    if device.type == "cpu":  # Triton's interpreter
        return 100 * 1024
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin


# These arguments differ between passes. Without this option Triton would compile other kernels for
# some of their values.
@triton.jit(do_not_specialize=["rows", "window", "slot", "start", "capacity"])
def _attended(
    q,
    buffer,
    out,
    slot,
    start,
    scale,
    rows,
    window,
    q_row,
    capacity,
    groups: tl.constexpr,
    fold: tl.constexpr,
    dim: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute attention for some queries of one group by an online softmax over blocks of keys
    (Milakov and Gimelshein 2018, arXiv 1805.02867)."""
    group = tl.program_id(0)
    first = tl.load(start).to(tl.int32)
    query = tl.program_id(1) * QUERIES + tl.arange(0, QUERIES)
    column = tl.arange(0, WIDTH)
    row, head = query // fold, group * fold + query % fold
    own = (row < rows)[:, None] & (column < dim)[None, :]
    query_place = q + row[:, None] * q_row + head[:, None] * dim + column[None, :]
    queries = tl.load(query_place, mask=own, other=0.0)
    kept = buffer + tl.load(slot) * capacity * (2 * groups * dim) + group * dim
    most = tl.full([QUERIES], NEVER, tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    seen = tl.zeros([QUERIES, WIDTH], tl.float32)
    end = first + rows
    begin = tl.maximum(first - window + 1, 0) // KEYS * KEYS
    for at in range(begin, end, KEYS):
        position = at + tl.arange(0, KEYS)
        known = (position < end)[:, None] & (column < dim)[None, :]
        place = kept + position[:, None] * (2 * groups * dim) + column[None, :]
        keys = tl.load(place, mask=known, other=0.0)
        values = tl.load(place + groups * dim, mask=known, other=0.0)
        back = (first + row)[:, None] - position[None, :]
        scores = tl.dot(queries, tl.trans(keys)) * scale
        scores = tl.where((back >= 0) & (back < window), scores, NEVER)
        larger = tl.maximum(most, tl.max(scores, 1))
        # A row may see none of the first keys, because they are there for other rows.
        shift = tl.where(larger == NEVER, 0.0, larger)
        weights = tl.exp(scores - shift[:, None])
        left = tl.exp(most - shift)
        total = total * left + tl.sum(weights, 1)
        seen = seen * left[:, None] + tl.dot(weights.to(values.dtype), values)
        most = larger
    seen = seen / total[:, None]
    found = out + (row * groups * fold + head)[:, None] * dim + column[None, :]
    tl.store(found, seen.to(out.dtype.element_ty), mask=own)


@triton.jit
def _one_row(
    x, matrix, bias, to, out, size, columns, by_size, by_column, OUT: tl.constexpr, IN: tl.constexpr
):
    """Compute `OUT` columns of x W^T + b + `to` for one row x."""
    column, place = tl.program_id(0) * OUT + tl.arange(0, OUT), tl.arange(0, IN)
    own = column < columns
    weights = matrix + column[:, None].to(tl.int64) * by_column + place[None, :] * by_size
    sums = tl.zeros([OUT, IN], tl.float32)
    for at in range(0, size, IN):
        there = at + place < size
        row = tl.load(x + at + place, mask=there, other=0.0).to(tl.float32)
        known = own[:, None] & there[None, :]
        sums += tl.load(weights + at * by_size, mask=known, other=0.0).to(tl.float32) * row[None, :]
    found = tl.sum(sums, 1)
    if bias is not None:
        found += tl.load(bias + column, mask=own, other=0.0).to(tl.float32)
    if to is not None:
        found += tl.load(to + column, mask=own, other=0.0).to(tl.float32)
    tl.store(out + column, found.to(out.dtype.element_ty), mask=own)


@triton.jit(do_not_specialize=["rows"])
def _few_rows(
    x,
    matrix,
    bias,
    to,
    out,
    size,
    columns,
    by_size,
    by_column,
    rows,
    x_row,
    ROWS: tl.constexpr,
    OUT: tl.constexpr,
    IN: tl.constexpr,
):
    """Compute `OUT` columns of x W^T + b + `to` for up to `ROWS` rows x."""
    column, place = tl.program_id(0) * OUT + tl.arange(0, OUT), tl.arange(0, IN)
    row = tl.arange(0, ROWS)
    own, real = column < columns, row < rows
    weights = matrix + column[:, None].to(tl.int64) * by_column + place[None, :] * by_size
    given = x + row[:, None] * x_row + place[None, :]
    sums = tl.zeros([ROWS, OUT], tl.float32)
    for at in range(0, size, IN):
        there = at + place < size
        some = tl.load(given + at, mask=real[:, None] & there[None, :], other=0.0)
        known = own[:, None] & there[None, :]
        piece = tl.load(weights + at * by_size, mask=known, other=0.0)
        sums = tl.dot(some, tl.trans(piece), sums)
    if bias is not None:
        sums += tl.load(bias + column, mask=own, other=0.0).to(tl.float32)[None, :]
    found = row[:, None] * columns + column[None, :]
    known = real[:, None] & own[None, :]
    if to is not None:
        sums += tl.load(to + found, mask=known, other=0.0).to(tl.float32)
    tl.store(out + found, sums.to(out.dtype.element_ty), mask=known)


@triton.jit
def _rms_norm(x, weight, out, x_row, heads, eps, size: tl.constexpr, BLOCK: tl.constexpr):
    """Normalise one vector x: w x / sqrt(mean(x^2) + eps)."""
    row, head = tl.program_id(0), tl.program_id(1)
    column = tl.arange(0, BLOCK)
    own = column < size
    values = tl.load(x + row * x_row + head * size + column, mask=own, other=0.0).to(tl.float32)
    weights = tl.load(weight + column, mask=own, other=0.0).to(tl.float32)
    values *= tl.rsqrt(tl.sum(values * values, 0) / size + eps) * weights
    place = out + (row * heads + head) * size + column
    tl.store(place, values.to(out.dtype.element_ty), mask=own)


@triton.jit
def _apply_rotary(
    x,
    cos,
    sin,
    x_row,
    heads: tl.constexpr,
    half: tl.constexpr,
    HEADS: tl.constexpr,
    HALF: tl.constexpr,
):
    """Rotate all heads of one row in place: x1 = x1 cos + x2 sin, x2 = x2 cos + x1 sin. The first
    half of `sin` is negated already."""
    row = tl.program_id(0)
    head, column = tl.arange(0, HEADS)[:, None], tl.arange(0, HALF)[None, :]
    own = (head < heads) & (column < half)
    place = x + row * x_row + head * (2 * half) + column
    first = tl.load(place, mask=own, other=0.0).to(tl.float32)
    second = tl.load(place + half, mask=own, other=0.0).to(tl.float32)
    angle = row * (2 * half) + column
    there = column < half
    cos_first = tl.load(cos + angle, mask=there, other=0.0).to(tl.float32)
    cos_second = tl.load(cos + angle + half, mask=there, other=0.0).to(tl.float32)
    sin_first = tl.load(sin + angle, mask=there, other=0.0).to(tl.float32)
    sin_second = tl.load(sin + angle + half, mask=there, other=0.0).to(tl.float32)
    kind = x.dtype.element_ty
    tl.store(place, (first * cos_first + second * sin_first).to(kind), mask=own)
    tl.store(place + half, (second * cos_second + first * sin_second).to(kind), mask=own)


@triton.jit
def _glu(x, out, size, SILU: tl.constexpr, BLOCK: tl.constexpr):
    """Compute `BLOCK` columns of act(gate) * up for one row."""
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    own = column < size
    gate = tl.load(x + row * 2 * size + column, mask=own, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * size + size + column, mask=own, other=0.0).to(tl.float32)
    if SILU:
        inner = gate
    else:  # GELU by tanh (Hendrycks and Gimpel 2016)
        inner = 1.5957691216057308 * (gate + 0.044715 * gate * gate * gate)
    gate = gate * tl.sigmoid(inner)
    tl.store(out + row * size + column, (gate * up).to(out.dtype.element_ty), mask=own)
