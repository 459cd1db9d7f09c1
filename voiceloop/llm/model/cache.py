"""Keys and values of the tokens a model has seen, in buffers that never move.

A `KvCache` holds `capacity` rows for each layer and a length. Rows are written at the length, and
rolling back moves the length: what lies beyond it is never attended and will be overwritten. That
makes cancellation, rejection and truncation free. Its buffers are its own, or one of the `Slots`
that all conversations of a model share, so that what is captured once serves them all. A
`CachePool` bounds the memory that the buffers of idle conversations take. Which tokens the rows
belong to is known to the owner of the cache alone.
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
    """Buffers for several sequences of one model, all of one length, at addresses that stay."""

    def __init__(self, count: int, capacity: int) -> None:
        """Places for `count` sequences of `capacity` rows, and one more that belongs to nobody."""
        self.capacity = capacity
        self.spare = count
        """The place that belongs to nobody: what is tried out leaves its rows there."""
        self._free = list(range(count))
        self._layers: dict[int, tuple[Tensor, ...]] = {}

    def take(self) -> int | None:
        """A place that nobody has; None where all are taken."""
        return self._free.pop() if self._free else None

    def give(self, slot: int) -> None:
        """Nobody has the place any more."""
        self._free.append(slot)

    def layer(self, index: int, like: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The buffers of a layer, [places, capacity, heads, dim] for each of the states that they
        are `like`, [rows, heads, dim]; made when they are first asked for."""
        if index not in self._layers:
            self._layers[index] = tuple(
                # What no row was written to is multiplied by nothing, and must not be NaN then.
                state.new_zeros(self.spare + 1, self.capacity, *state.shape[1:])
                for state in like
            )
        return self._layers[index]


class KvCache:
    """Fixed buffers for one sequence of one model, made when they are first written to."""

    def __init__(self, capacity: int, slots: Slots | None = None) -> None:
        """Its buffers are one of the `slots`, if any is free when they are made."""
        self.capacity = capacity
        """Rows that fit."""
        self.length = 0
        """Rows that count."""
        self.nbytes = 0
        """Bytes of its buffers."""
        self.slot: int | None = None
        """Which of the slots its buffers are; None where they are its own, or not made yet."""
        self.context: Any = None
        """Where a decoder keeps the rows that does not write them into buffers; `nbytes` is the
        decoder's to tell then."""
        self._slots = slots
        self._layers: dict[int, tuple[Tensor, ...]] = {}

    def extend(self, layer: int, *states: Tensor) -> list[Tensor]:
        """Write rows after the last that counts; return all of the layer's rows, these included.

        Each of the `states` is [rows, heads, dim]: keys and values, in one piece or apart, the same
        way every time; so are the views that are returned. The length stays: a pass calls `advance`
        once all its layers have written.
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
        """A layer's buffers, whose first `length` rows count; it has been written to."""
        return self._layers[layer]

    def advance(self, rows: int) -> None:
        """Count `rows` more, which every layer has written."""
        self.length += rows

    def rollback(self, length: int) -> None:
        """Forget the rows from `length` on; nothing is forgotten where there are fewer."""
        self.length = min(self.length, length)

    def keep(self, start: int, rows: Sequence[int]) -> None:
        """Of the rows from `start` on keep only those at these offsets, in ascending order."""
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
        """Take over the buffers of `other`, which is left without rows."""
        self.release()
        self._layers, other._layers = other._layers, self._layers
        self.nbytes, self.slot, other.slot = other.nbytes, other.slot, None
        self.context = other.context
        other.release()

    def fork(self, other: KvCache, length: int) -> None:
        """Hold the first `length` rows of `other`, or all that there are, in buffers of its own."""
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
"""The caches of one conversation, one for each model, in the same order for all."""


class CachePool:
    """Buffers for the conversations of a pair of models: those of idle ones are kept in a budget.

    A conversation holds its group while it computes. Once it is idle its rows stay for as long as
    all groups together fit into the budget; then they go, least recently used first, and it
    computes them again from its ids when it comes back. Who computes always gets buffers, and the
    group that computed last keeps them: the budget binds nobody else.
    """

    def __init__(self, budget: int) -> None:
        """`budget` in bytes."""
        self._budget = budget
        self._held: Counter[Group] = Counter()
        """Groups that are computing, and how often each is held."""
        self._idle: OrderedDict[Group, None] = OrderedDict()
        """Groups with buffers that nobody holds, the least recently used first."""
        self._evicted: set[Group] = set()
        self._size = 0
        """Bytes of a group, as far as one has been seen: all groups of a pool are alike."""

    @property
    def nbytes(self) -> int:
        """Bytes that the buffers of all groups take."""
        return sum(map(_nbytes, (*self._held, *self._idle)))

    @contextmanager
    def hold(self, group: Group) -> Iterator[bool]:
        """Keep the group's rows for as long as the context lasts; True where they had to go."""
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
            kept = 0  # the budget was more than there is: whoever tries again finds room
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
        """The conversation is over: free its buffers."""
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
