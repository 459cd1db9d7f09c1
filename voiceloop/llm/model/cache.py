"""Keys and values of the tokens that a model has seen, in buffers that never move.

A `KvCache` has `capacity` rows for each layer, and a length. Rows are written at the length. A
rollback only lowers the length: rows beyond it are never attended to, and will be overwritten. So
cancellation, rejection and truncation are free. A cache has buffers of its own, or one of the
`Slots` that all conversations of a model share, so that one captured pass serves them all. A
`CachePool` limits the memory of idle conversations. Only the owner of a cache knows which tokens
its rows belong to.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from voiceloop.errors import OutOfMemory

MIB = 2**20
MEMORY_HINT = "set llm.context or llm.cache_mb lower, or allow fewer sessions"


class Slots:
    """Buffers for several sequences of one model, all of one capacity, at fixed addresses."""

    def __init__(self, count: int, capacity: int) -> None:
        """Make slots for `count` sequences of `capacity` rows, and a spare one."""
        self.capacity = capacity
        self.spare = count
        """The slot that belongs to no sequence. Passes that are only tried out write there."""
        self._free = list(range(count))
        self._layers: dict[int, tuple[Tensor, ...]] = {}

    def take(self) -> int | None:
        """Take a free slot; return None if there is none."""
        return self._free.pop() if self._free else None

    def give(self, slot: int) -> None:
        """Give back a slot."""
        self._free.append(slot)

    def layer(self, index: int, like: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the buffers of a layer, made at the first call: [slots, capacity, heads, dim] for
        each of the states in `like`, which are [rows, heads, dim]."""
        if index not in self._layers:
            self._layers[index] = tuple(
                # Rows that were never written are multiplied by 0, so they must not be NaN.
                state.new_zeros(self.spare + 1, self.capacity, *state.shape[1:])
                for state in like
            )
        return self._layers[index]


class KvCache:
    """Fixed buffers for one sequence of one model. The first write makes them."""

    def __init__(self, capacity: int, slots: Slots | None = None) -> None:
        """Use one of the `slots` as buffers, if one is free at the first write."""
        self.capacity = capacity
        """The number of rows that fit."""
        self.length = 0
        """The number of rows that are valid."""
        self.nbytes = 0
        """Bytes of its buffers."""
        self.slot: int | None = None
        """The slot that holds its buffers. None if they are its own, or not made yet."""
        self.context: Any = None
        """Holds the rows of a decoder that does not write them into buffers. Such a decoder also
        sets `nbytes`."""
        self._slots = slots
        self._layers: dict[int, tuple[Tensor, ...]] = {}

    def extend(self, layer: int, *states: Tensor) -> list[Tensor]:
        """Write rows after the valid ones; return all of the layer's rows, with the new ones.

        Each of `states` is [rows, heads, dim]: keys and values, in one tensor or in two, in the
        same form in all calls. The result has one view of a buffer for each of them. The length
        stays: a pass calls `advance` once all of its layers have written.
        """
        if layer not in self._layers:
            buffers = self._made(layer, states)
            self._layers[layer] = buffers
            self.nbytes += sum(buffer.nbytes for buffer in buffers)
        end = self.length + states[0].shape[0]
        for buffer, state in zip(self._layers[layer], states, strict=True):
            buffer[self.length : end] = state
        return [buffer[:end] for buffer in self._layers[layer]]

    def written(self, layer: int) -> tuple[Tensor, ...]:
        """Return the buffers of a layer that has been written; `length` rows of them are valid."""
        return self._layers[layer]

    def advance(self, rows: int) -> None:
        """Make `rows` more rows valid, which every layer has written."""
        self.length += rows

    def rollback(self, length: int) -> None:
        """Forget the rows from `length` on, if there are any."""
        self.length = min(self.length, length)

    def keep(self, start: int, rows: Sequence[int]) -> None:
        """Keep the rows before `start`, and of the others only those at the offsets `rows` from
        `start`. The offsets ascend."""
        moved = next((at for at, row in enumerate(rows) if row != at), len(rows))
        self.length = start + len(rows)
        if moved == len(rows):
            return
        for buffers in self._layers.values():
            for buffer in buffers:
                source = torch.tensor(rows[moved:], device=buffer.device) + start
                buffer[start + moved : self.length] = buffer.index_select(0, source)

    def release(self) -> None:
        """Forget everything and free the buffers."""
        self.length = self.nbytes = 0
        self.context = None
        self._layers.clear()
        if self._slots is not None and self.slot is not None:
            self._slots.give(self.slot)
        self.slot = None

    def take(self, other: KvCache) -> None:
        """Take over the buffers and the context of `other`, which is left without rows."""
        self.release()
        self._layers, other._layers = other._layers, self._layers
        self.nbytes, self.slot, other.slot = other.nbytes, other.slot, None
        self.context = other.context
        other.release()

    def fork(self, other: KvCache, length: int) -> None:
        """Copy the first `length` rows of `other`, or all if it has fewer."""
        self.release()
        rows = min(length, other.length)
        for layer, buffers in other._layers.items():
            self.extend(layer, *(buffer[:rows] for buffer in buffers))
        self.advance(rows)

    def _made(self, layer: int, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if not self._layers and self._slots is not None:
            self.slot = self._slots.take()
        if self._slots is None or self.slot is None:
            return tuple(state.new_empty(self.capacity, *state.shape[1:]) for state in states)
        return tuple(buffer[self.slot] for buffer in self._slots.layer(layer, states))


Group = tuple[KvCache, ...]
"""The caches of one conversation, one for each model, in the same order in all conversations."""


class CachePool:
    """Limits the memory of the buffers of idle conversations.

    A conversation holds its group of caches while it computes. When it is idle its rows stay for as
    long as all groups fit into the budget. Otherwise the least recently used group is evicted
    first. When its conversation goes on, it computes the rows again from its ids. A conversation
    that computes always gets buffers, and the group that computed last keeps them, whatever the
    budget.
    """

    def __init__(self, budget: int) -> None:
        """`budget` is in bytes."""
        self._budget = budget
        self._held: Counter[Group] = Counter()
        """The groups that are computing, and how often each is held."""
        self._idle: OrderedDict[Group, None] = OrderedDict()
        """The groups with buffers that are not held, the least recently used first."""
        self._evicted: set[Group] = set()
        self._size = 0
        """Bytes of the largest group so far. All groups of a pool are alike."""

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers of all groups."""
        return sum(map(_nbytes, (*self._held, *self._idle)))

    @contextmanager
    def hold(self, group: Group) -> Iterator[bool]:
        """Keep the group's rows while the context lasts; yields whether they had been evicted."""
        evicted = group in self._evicted
        self._evicted.discard(group)
        if group in self._idle:
            del self._idle[group]
        elif self._idle and self.nbytes + self._size > self._budget:
            for cache, other in zip(group, self._evict(), strict=True):
                cache.take(other)
        self._held[group] += 1
        kept = self._budget
        try:
            yield evicted
        except OutOfMemory:
            kept = 0  # the budget exceeds the memory: evict, so that the next try finds room
            raise
        finally:
            self._held[group] -= 1
            if not self._held[group]:
                del self._held[group]
                self._idle[group] = None
            self._size = max(self._size, _nbytes(group))
            while len(self._idle) > 1 and self.nbytes > kept:
                for cache in self._evict():
                    cache.release()

    def forget(self, group: Group) -> None:
        """Free the buffers of a conversation that is over."""
        self._idle.pop(group, None)
        self._evicted.discard(group)
        for cache in group:
            cache.release()

    def _evict(self) -> Group:
        oldest, _ = self._idle.popitem(last=False)
        self._evicted.add(oldest)
        return oldest


def _nbytes(group: Group) -> int:
    return sum(cache.nbytes for cache in group)
