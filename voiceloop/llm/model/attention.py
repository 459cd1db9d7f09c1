"""How the rows of a pass see what a cache holds.

Two kinds of passes write rows and attend to all that came before them: one that follows what a
`KvCache` counts, in shapes that grow with it, and one at a `SlotPosition`, whose shapes and
addresses never change, so that it can be captured once and replayed for every conversation. Of the
second there are two ways: by a mask over the first so many rows, anywhere; and by a kernel that
takes its beginning from the device, on CUDA. This module knows no layers and no weights.
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
from voiceloop.llm.rules.tree import Tree

logger = logging.getLogger(__name__)

CPU = torch.device("cpu")
BUCKETS = (256, 512, 1024, 2048)
"""Rows that a masked pass of fixed shape looks at: the fewest of these that hold the sequence."""


ROUNDED = 0.05
"""How far what is attended in 16 bits may be from the same by masks."""
FEATURES = -1
"""Where a cache keeps what the head is given, [rows, 1, hidden], beside the layers' own rows."""


@dataclass(frozen=True, slots=True)
class SlotPosition:
    """Where a pass of fixed shape puts its rows, told by numbers that lie on the device."""

    slots: Slots
    slot: Tensor
    """Which of the slots, int64 [1]."""
    start: Tensor
    """Position of the first row, int64 [1]."""
    reach: int
    """The pass looks at no row from this one on."""

    def positions(self, rows: int) -> Tensor:
        """Of so many rows in the sequence, int64 [rows]."""
        return self.start + torch.arange(rows, device=self.start.device)

    def rows(self, positions: Tensor) -> Tensor:
        """Where rows at `positions` are among those of all slots, int64 [rows]."""
        return self.slot * self.slots.capacity + positions

    def write(self, layer: int, at: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        """Write rows to where `rows` says; each of the `states` is [rows, heads, dim]. Returns the
        layer's buffers, see `Slots.layer`."""
        buffers = self.slots.layer(layer, states)
        for buffer, state in zip(buffers, states, strict=True):
            buffer.flatten(0, 1).index_copy_(0, at, state)
        return buffers

    def seen(self, buffer: Tensor) -> Tensor:
        """The rows of such a buffer that the pass looks at: [reach, heads, dim]."""
        return buffer[:, : self.reach].index_select(0, self.slot)[0]


class Rows(Protocol):
    """The rows of one pass."""

    @property
    def positions(self) -> Tensor | slice[int, int, None]:
        """Of the rows, in the sequence."""
        ...

    def attend(
        self, layer: int, q: Tensor, states: Tensor, window: int | None, scale: float | None
    ) -> Tensor:
        """Write a layer's `states` [rows, 2 groups, dim], keys before values; return what the
        queries `q` [rows, heads, dim] see of all that is there by then: [rows, heads * dim].

        A row sees the last `window` rows up to itself, or all. Products are multiplied by `scale`,
        or divided by the root of dim.
        """
        ...

    def keep(self, features: Tensor) -> None:
        """Write what the head is given for each row, [rows, hidden]."""
        ...


class Following:
    """The next rows of a cache, which still has to `advance` over them."""

    def __init__(self, cache: KvCache, rows: int) -> None:
        self.positions = slice(cache.length, cache.length + rows, None)
        self._cache = cache
        self._masks: dict[int | None, Tensor | None] = {}

    def attend(
        self, layer: int, q: Tensor, states: Tensor, window: int | None, scale: float | None
    ) -> Tensor:
        """See `Rows.attend`."""
        (seen,) = self._cache.extend(layer, states)
        if window not in self._masks:
            self._masks[window] = self._mask(q, states, window)
        return masked(q, seen, self._masks[window], scale)

    def keep(self, features: Tensor) -> None:
        """See `Rows.keep`."""
        self._cache.extend(FEATURES, features.unsqueeze(1))

    def _mask(self, q: Tensor, states: Tensor, window: int | None) -> Tensor | None:
        rows, end = len(q), self.positions.stop
        if rows == 1 and (window is None or end <= window):  # it sees everything
            return None
        return behind(rows, end, window, folds(q, states), q)


class Branching:
    """The next rows of a cache, of which the last are nodes of a tree, see `Branches`."""

    def __init__(self, cache: KvCache, rows: int, tree: Tree, device: torch.device) -> None:
        self._rows = Branches(cache.length, rows, tree, device)
        self.positions = self._rows.positions
        self._cache = cache
        self._masks: dict[int | None, Tensor] = {}

    def attend(
        self, layer: int, q: Tensor, states: Tensor, window: int | None, scale: float | None
    ) -> Tensor:
        """See `Rows.attend`."""
        (seen,) = self._cache.extend(layer, states)
        if window not in self._masks:
            self._masks[window] = hidden(
                self.positions,
                self._rows.places,
                window,
                folds(q, states),
                q.dtype,
                self._rows.apart,
            )
        return masked(q, seen, self._masks[window], scale)

    def keep(self, features: Tensor) -> None:
        """See `Rows.keep`."""
        self._cache.extend(FEATURES, features.unsqueeze(1))


class Branches:
    """Where rows are of which the last are the nodes of a tree, and what they see: what the tree
    stands on, and of its nodes those on their paths."""

    def __init__(self, start: int, rows: int, tree: Tree, device: torch.device) -> None:
        """`rows` are added behind `start` others. The last rows of all are the tree's nodes, in
        their order; some of these may be there already."""
        end = start + rows
        root = end - len(tree)
        places = torch.arange(end)
        places[root:] = root + torch.tensor(tree.depths)
        known = max(0, start - root)
        apart = torch.zeros(rows, end, dtype=torch.bool)
        apart[max(0, root - start) :, root:] = ~_ancestors(tree, known)
        self.places = places.to(device)
        """Positions of all rows, int64 [start + rows]: a node's tells its depth."""
        self.positions = self.places[start:]
        """Of the added ones, int64 [rows]."""
        self.apart = apart.to(device)
        """Which of all rows each of the added does not see, whatever their positions."""


@lru_cache(maxsize=64)
def followed(tree: Tree, device: torch.device = CPU) -> Tensor:
    """Which nodes are on the path to what a tree stands on, that is none, and on those to each of
    its nodes, itself included: bool [nodes + 1, nodes]."""
    return F.pad(_ancestors(tree, 0), (0, 0, 1, 0)).to(device)


def _ancestors(tree: Tree, first: int) -> Tensor:
    """Which nodes are on the path to each from number `first` on, itself included: bool
    [nodes - first, nodes]."""
    on_path = torch.zeros(len(tree) - first, len(tree), dtype=torch.bool)
    for row, path in enumerate(tree.paths[first:]):
        on_path[row, list(path)] = True
    return on_path


class PlacedRows:
    """Rows of a fixed number at a place. What all layers need is computed once."""

    def __init__(self, place: SlotPosition, rows: int) -> None:
        self.positions = place.positions(rows)
        self._place = place
        self._at = place.rows(self.positions)
        self._masks: dict[int | None, Tensor] = {}

    def attend(
        self, layer: int, q: Tensor, states: Tensor, window: int | None, scale: float | None
    ) -> Tensor:
        """See `Rows.attend`."""
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
        """See `Rows.keep`."""
        self._place.write(FEATURES, self._at, features.unsqueeze(1))


def folds(q: Tensor, states: Tensor) -> int:
    """Queries for each key, heads / groups."""
    return 2 * q.shape[1] // states.shape[1]


def masked(q: Tensor, seen: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """Attention of `q` [rows, heads, dim] to `seen` [length, 2 groups, dim], keys before values.

    The queries of a group become rows of one head: so no kernel has to know of groups, and keys
    are read once. `mask` is from `hidden` or `behind`, or None where every row sees everything.
    Returns [rows, heads * dim].
    """
    rows, heads, dim = q.shape
    groups = seen.shape[1] // 2
    keys, values = seen.view(1, -1, 2, groups, dim).transpose(1, 3).unbind(2)
    # Of one row, and most passes have one, nothing has to move.
    moved = q if rows == 1 else q.view(rows, groups, -1, dim).transpose(0, 1)
    folded = moved.reshape(1, groups, -1, dim)
    attended = F.scaled_dot_product_attention(folded, keys, values, attn_mask=mask, scale=scale)
    if rows > 1:
        attended = attended.view(groups, rows, -1, dim).transpose(0, 1)
    return attended.reshape(rows, heads * dim)


def behind(rows: int, places: int, window: int | None, fold: int, like: Tensor) -> Tensor:
    """`hidden` where the rows are the last of the places. It is quicker, and a small draft takes
    notice."""
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
    """What rows at `positions` do not see of the rows at `places`: [rows * fold, places], 0 where
    a row does see and -inf where it does not. A row sees the last `window` up to itself, or all,
    but none that is `apart` from it, bool [rows, places]."""
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
    """Whether `fused.attended` runs there for such queries, and gives what masks give.

    It is tried once for each kind, with all numbers of rows that make a difference, so that none of
    them is compiled within a reply; that waits for the device.
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
        apart = float(torch.stack(differences).max())  # NaN where there is one
    except Exception as error:  # no Triton, no compiler, no such GPU: masks do it then
        logger.info("attention by masks: %s", " ".join(str(error).split()))
        return False
    if apart < ROUNDED:
        return True
    logger.warning("attention by masks: Triton's is wrong here, by %.2g", apart)
    return False
