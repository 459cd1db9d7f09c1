"""Attention of the rows of a pass to the rows of a cache.

There are two kinds of passes. The first kind writes after the rows of a `KvCache`; its shapes grow
with the cache. The second kind writes at a `SlotPosition`. Its shapes and addresses never change,
so it can be captured as a CUDA graph once and replayed for every conversation.

The second kind attends in one of two ways. On any device it can use a mask over a fixed number of
rows. On CUDA it can use a kernel that attends only to the rows in use. This module knows no layers
and no weights.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.rules.verify import Tree

logger = logging.getLogger(__name__)

CPU = torch.device("cpu")
BUCKETS = (256, 512, 1024, 2048)
"""Numbers of rows that a masked pass of fixed shape can attend to. A pass takes the smallest number
that is enough. If none is enough, it attends to all rows of a slot."""


ROUNDED = 0.05
"""Maximum difference between results of the kernel and results with masks, in 16 bits. A larger
difference does not come from rounding."""
FEATURES = -1
"""The layer number under which a cache keeps the inputs of the head, [rows, 1, hidden]."""


@dataclass(frozen=True, slots=True)
class SlotPosition:
    """Where a pass of fixed shape writes its rows. `slot` and `start` are on the device."""

    slots: Slots
    slot: Tensor
    """The index of the slot, int64 [1]."""
    start: Tensor
    """The position of the first row, int64 [1]."""
    reach: int
    """The pass attends only to positions below this one."""

    def positions(self, rows: int) -> Tensor:
        """Return the positions of `rows` rows in the sequence, int64 [rows]."""
        return self.start + torch.arange(rows, device=self.start.device)

    def rows(self, positions: Tensor) -> Tensor:
        """Return the indices of `positions` in the rows of all slots, counted from slot 0: int64
        [rows]."""
        return self.slot * self.slots.capacity + positions

    def write(self, layer: int, at: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        """Write `states`, each [rows, heads, dim], at the indices `at` that `rows` gives. Returns
        the layer's buffers, each [slots, capacity, heads, dim]."""
        buffers = self.slots.layer(layer, states)
        for buffer, state in zip(buffers, states, strict=True):
            buffer.flatten(0, 1).index_copy_(0, at, state)
        return buffers

    def seen(self, buffer: Tensor) -> Tensor:
        """Return the rows of a layer's buffer that the pass attends to: [reach, heads, dim]."""
        return buffer[:, : self.reach].index_select(0, self.slot)[0]


class Rows(Protocol):
    """The rows of one pass. They are written to a cache, and attend to its rows."""

    @property
    def positions(self) -> Tensor | slice[int, int, None]:
        """The positions of the rows in the sequence."""
        ...

    def attend(
        self, layer: int, q: Tensor, states: Tensor, window: int | None, scale: float | None
    ) -> Tensor:
        """Write a layer's `states` to the cache; return the attention of `q`, [rows, heads * dim].

        `states` is [rows, 2 groups, dim], keys before values; `q` is [rows, heads, dim]. A row sees
        the last `window` rows up to itself, or all rows up to itself if `window` is None. Products
        of queries and keys are multiplied by `scale`, or by 1 / sqrt(dim) if `scale` is None.
        """
        ...

    def keep(self, features: Tensor) -> None:
        """Write `features` [rows, hidden] to the cache: the head's input for each row."""
        ...


class Following:
    """The next rows of a cache. Implements `Rows`. The caller has to `advance` the cache
    afterwards."""

    def __init__(self, cache: KvCache, rows: int) -> None:
        self._end = cache.length + rows
        self.positions: Tensor | slice[int, int, None] = slice(cache.length, self._end, None)
        self._cache = cache
        self._masks: dict[int | None, Tensor | None] = {}

    def attend(
        self, layer: int, q: Tensor, states: Tensor, window: int | None, scale: float | None
    ) -> Tensor:
        (seen,) = self._cache.extend(layer, states)
        if window not in self._masks:
            self._masks[window] = self._mask(q, states, window)
        return masked(q, seen, self._masks[window], scale)

    def keep(self, features: Tensor) -> None:
        self._cache.extend(FEATURES, features.unsqueeze(1))

    def _mask(self, q: Tensor, states: Tensor, window: int | None) -> Tensor | None:
        rows, end = len(q), self._end
        if rows == 1 and (window is None or end <= window):  # the row sees everything
            return None
        return behind(rows, end, window, folds(q, states), q)


class Branching(Following):
    """The next rows of a cache, where the last rows are nodes of a tree."""

    def __init__(self, cache: KvCache, rows: int, tree: Tree, device: torch.device) -> None:
        super().__init__(cache, rows)
        self._rows = Branches(cache.length, rows, tree, device)
        self.positions = self._rows.positions

    def _mask(self, q: Tensor, states: Tensor, window: int | None) -> Tensor:
        rows, fold = self._rows, folds(q, states)
        return hidden(rows.positions, rows.places, window, fold, q.dtype, rows.apart)


class Branches:
    """The positions of new rows, and the rows that each of them sees. The last rows are nodes of a
    tree.

    Each row sees all rows before the tree. A node also sees the nodes on its path from the root,
    itself included.
    """

    def __init__(self, start: int, rows: int, tree: Tree, device: torch.device) -> None:
        """Add `rows` rows after the first `start` rows. Of all `start + rows` rows, the last ones
        are the nodes of `tree`, in order. Some nodes may be among the first `start` rows."""
        end = start + rows
        root = end - len(tree)
        places = torch.arange(end)
        places[root:] = root + torch.tensor(tree.depths)
        known = max(0, start - root)
        apart = torch.zeros(rows, end, dtype=torch.bool)
        apart[max(0, root - start) :, root:] = ~_ancestors(tree, known)
        self.places = places.to(device)
        """The positions of all rows, int64 [start + rows]. Nodes of one depth have the same
        position."""
        self.positions = self.places[start:]
        """The positions of the added rows, int64 [rows]."""
        self.apart = apart.to(device)
        """For each added row, True at the nodes that are not on its path: bool [rows, start +
        rows]."""


@lru_cache(maxsize=64)
def followed(tree: Tree, device: torch.device = CPU) -> Tensor:
    """Return which nodes each row follows, bool [nodes + 1, nodes].

    Row 0 is the token before the tree and follows no node. Row i + 1 is node i. It follows all
    nodes on its path, and counts as following itself.
    """
    return F.pad(_ancestors(tree, 0), (0, 0, 1, 0)).to(device)


def _ancestors(tree: Tree, first: int) -> Tensor:
    """Return a row for each node from number `first` on. The row is True at the nodes on the path
    to that node, itself included: bool [nodes - first, nodes]."""
    on_path = torch.zeros(len(tree) - first, len(tree), dtype=torch.bool)
    for row, path in enumerate(tree.paths[first:]):
        on_path[row, list(path)] = True
    return on_path


class PlacedRows:
    """A fixed number of rows at a `SlotPosition`; implements `Rows`. All layers share its masks."""

    def __init__(self, place: SlotPosition, rows: int) -> None:
        self.positions = place.positions(rows)
        self._place = place
        self._at = place.rows(self.positions)
        self._masks: dict[int | None, Tensor] = {}

    def attend(
        self, layer: int, q: Tensor, states: Tensor, window: int | None, scale: float | None
    ) -> Tensor:
        place = self._place
        (buffer,) = place.write(layer, self._at, states)
        if has_kernel(q.device, q.dtype, q.shape[1], states.shape[1] // 2, q.shape[2], window):
            from voiceloop.llm.model.fused import attended

            return attended(q, buffer, place.slot, place.start, window, scale)
        if window not in self._masks:
            places = torch.arange(place.reach, device=q.device)
            fold = folds(q, states)
            self._masks[window] = hidden(self.positions, places, window, fold, q.dtype)
        return masked(q, place.seen(buffer), self._masks[window], scale)

    def keep(self, features: Tensor) -> None:
        self._place.write(FEATURES, self._at, features.unsqueeze(1))


def folds(q: Tensor, states: Tensor) -> int:
    """Return the number of queries for each key: heads / groups."""
    return 2 * q.shape[1] // states.shape[1]


def masked(q: Tensor, seen: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """Return the attention of `q` to `seen`: [rows, heads * dim].

    `q` is [rows, heads, dim], and `seen` [length, 2 groups, dim], keys before values. `mask` is
    from `hidden` or `behind`, or None if every row sees everything. All queries of a group are
    computed as rows of one head. In this way each key is read once, and the kernel needs no support
    for groups.
    """
    rows, heads, dim = q.shape
    groups = seen.shape[1] // 2
    keys, values = seen.view(1, -1, 2, groups, dim).transpose(1, 3).unbind(2)
    # Most passes have one row. Then no transpose is needed.
    moved = q if rows == 1 else q.view(rows, groups, -1, dim).transpose(0, 1)
    folded = moved.reshape(1, groups, -1, dim)
    attended = F.scaled_dot_product_attention(folded, keys, values, attn_mask=mask, scale=scale)
    if rows > 1:
        attended = attended.view(groups, rows, -1, dim).transpose(0, 1)
    return attended.reshape(rows, heads * dim)


def behind(rows: int, places: int, window: int | None, fold: int, like: Tensor) -> Tensor:
    """Return the mask of the last `rows` of `places` consecutive rows over all `places` rows: [rows
    * fold, places].

    The result is that of `hidden`, with the type and device of `like`. This function is faster,
    which matters for a small draft.
    """
    last = places - rows
    mask = like.new_full((rows, places), -math.inf).triu_(last + 1)
    if window is not None:
        mask += torch.full_like(mask, -math.inf).tril_(last - window)
    return mask if fold == 1 else mask.repeat_interleave(fold, 0)


def hidden(
    positions: Tensor,
    places: Tensor,
    window: int | None,
    fold: int,
    dtype: torch.dtype,
    apart: Tensor | None = None,
) -> Tensor:
    """Return the mask of rows at `positions` over rows at `places`: [rows * fold, places]. It is 0
    where a row sees a place, else -inf.

    A row sees the last `window` positions up to its own, or all positions up to its own if `window`
    is None. It does not see places where `apart`, bool [rows, places], is True. Each row is
    repeated `fold` times.
    """
    back = positions.unsqueeze(1) - places
    unseen = back < 0 if window is None else (back < 0) | (back >= window)
    if apart is not None:
        unseen |= apart
    nothing = torch.zeros(unseen.shape, dtype=dtype, device=unseen.device)
    return nothing.masked_fill_(unseen, -math.inf).repeat_interleave(fold, 0)


@cache
def has_kernel(
    device: torch.device, dtype: torch.dtype, heads: int, groups: int, dim: int, window: int | None
) -> bool:
    """Return whether `fused.attended` runs on `device` for these shapes, and agrees with masks.

    Each combination of arguments is tried once, and the result is kept. The trial compiles the
    kernels for all numbers of rows, so no kernel is compiled during a reply. It waits for the
    device.
    """
    if device.type != "cuda" or dtype not in (torch.float16, torch.bfloat16):
        return False
    generator = torch.Generator(device).manual_seed(0)
    slot, begun = torch.tensor([[1], [150]], device=device)
    buffer = torch.randn((2, 256, 2 * groups, dim), generator=generator, device=device, dtype=dtype)
    differences: list[Tensor] = []
    try:
        from voiceloop.llm.model.fused import attended

        for rows in (1, 2, 3, 5, 9):
            shape = rows, heads, dim
            q = torch.randn(shape, generator=generator, device=device, dtype=dtype)
            places = torch.arange(150 + rows, device=device)
            mask = hidden(places[150:], places, window, heads // groups, dtype)
            found = attended(q, buffer, slot, begun, window, None)
            right = masked(q, buffer[1, : 150 + rows], mask, None)
            differences.append((found - right).abs().max())
        apart = float(torch.stack(differences).max())  # NaN if any of them is NaN
    except Exception as error:  # Triton, a compiler or a fitting GPU may be missing
        logger.info("attention by masks: %s", " ".join(str(error).split()))
        return False
    if apart < ROUNDED:
        return True
    logger.warning("attention by masks: Triton's is wrong here, by %.2g", apart)
    return False
