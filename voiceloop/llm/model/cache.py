"""Keys and values of the tokens that a model has seen, in buffers that never move.

A `KvCache` has `capacity` rows for each layer, and a length. New rows are written at the length. A
rollback only lowers the length. Rows beyond the length are never attended to and are overwritten
later, so cancellation, rejection and truncation are free.

A cache has its own buffers, or one of the `Slots` that all conversations of a model share. With
slots, one captured pass serves all conversations. A `CachePool` limits the memory of idle
conversations. A `SharedOpening` has the rows with which most of them begin. Only the owner of a
cache knows which tokens its rows belong to.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from voiceloop.errors import OutOfMemory
from voiceloop.placement import memory_for

MIB = 2**20
MEMORY_HINT = "set llm.context or llm.cache_mb lower, or allow fewer sessions"


class Slots:
    """Buffers for several sequences of one model, at fixed addresses. All have the same
    capacity."""

    def __init__(self, count: int, capacity: int) -> None:
        """Make slots for `count` sequences of `capacity` rows, and a spare slot."""
        self.capacity = capacity
        self.spare = count
        """The slot that belongs to no sequence. Trial passes write there."""
        self._free = list(range(count))
        self._layers: dict[int, tuple[Tensor, ...]] = {}

    def take(self) -> int | None:
        """Take a free slot; return None if there is none."""
        return self._free.pop() if self._free else None

    def give(self, slot: int) -> None:
        """Give back a slot."""
        self._free.append(slot)

    def layer(self, index: int, like: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the buffers of a layer. The first call makes them: one buffer [slots, capacity,
        heads, dim] for each tensor [rows, heads, dim] in `like`."""
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
        """The size of the cache's buffers, in bytes."""
        self.slot: int | None = None
        """The slot that holds the cache's rows. None if the cache has its own buffers, or none
        yet."""
        self.context: Any = None
        """Rows that a decoder keeps in another form than buffers, e.g. a context of llama.cpp. Such
        a decoder also sets `nbytes`. A method `copy` of the context copies its rows."""
        self._slots = slots
        self._layers: dict[int, tuple[Tensor, ...]] = {}

    def extend(self, layer: int, *states: Tensor) -> list[Tensor]:
        """Write `states` after the valid rows. Return all rows of the layer, including the new
        ones.

        Each of `states` is [rows, heads, dim]. They are keys and values in one tensor or in two;
        all calls must use the same form. The result has one view of a buffer for each of `states`.
        The length stays: a pass calls `advance` after all of its layers have written.
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
        """Return the buffers of a layer that has been written. Their first `length` rows are
        valid."""
        return self._layers[layer]

    def advance(self, rows: int) -> None:
        """Add `rows` to the length. Every layer must have written these rows."""
        self.length += rows

    def rollback(self, length: int) -> None:
        """Forget the rows from `length` on, if there are any."""
        self.length = min(self.length, length)

    def keep(self, start: int, rows: Sequence[int]) -> None:
        """Keep all rows before `start`, and the rows `start + n` for each n in `rows`, which
        ascends. Forget all other rows, and close the gaps."""
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
        """Take over the buffers and the context of `other`. Afterwards `other` has no rows."""
        self.release()
        self._layers, other._layers = other._layers, self._layers
        self.nbytes, self.slot, other.slot = other.nbytes, other.slot, None
        self.context = other.context
        other.release()

    def fork(self, other: KvCache, length: int) -> None:
        """Replace all rows by a copy of the first `length` rows of `other`, or of all its rows if
        it has fewer."""
        self.release()
        rows = min(length, other.length)
        for layer, buffers in other._layers.items():
            self.extend(layer, *(buffer[:rows] for buffer in buffers))
        self.context = other.context and other.context.copy()
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

    A conversation holds its group of caches while it computes. The rows of an idle conversation
    stay while all groups fit into the budget. If the groups do not fit, the pool evicts the group
    that was used least recently. The conversation of an evicted group computes its rows again when
    it goes on. A conversation that computes always gets buffers, even beyond the budget. The group
    that computed last also keeps its buffers.
    """

    def __init__(self, budget: int) -> None:
        """`budget` is in bytes."""
        self._budget = budget
        self._held: Counter[Group] = Counter()
        """The groups that are held now, and how many times each is held."""
        self._idle: OrderedDict[Group, None] = OrderedDict()
        """The groups with buffers that are not held. The least recently used group comes first."""
        self._evicted: set[Group] = set()
        self._size = 0
        """The size of the largest group so far, in bytes. All groups of a pool have about this
        size."""

    @property
    def nbytes(self) -> int:
        """The size of the buffers of all groups, in bytes."""
        return sum(map(_nbytes, (*self._held, *self._idle)))

    @contextmanager
    def hold(self, group: Group) -> Iterator[bool]:
        """Keep the group's rows while the context lasts. Yields True if the group had been evicted
        before."""
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
            kept = 0  # the budget is larger than the memory: evict to make room for the next try
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


class SharedOpening:
    """Keeps a copy of the rows of the newest opening, to share it among conversations. An opening
    is the ids before the first exchange: the system prompt and the tools.

    Most conversations of an engine have the same opening, and it is far longer than what a user
    says. Only whole openings are compared. If parts were, a client could find out the instructions
    of another client word by word, from the time that its own take.
    """

    def __init__(self) -> None:
        self._ids: tuple[int, ...] = ()
        self._rows = KvCache(0)

    def lend(self, ids: Sequence[int], cache: KvCache) -> bool:
        """Replace the rows of `cache` by those of the opening `ids`, and return whether they were
        kept."""
        kept = bool(ids) and tuple(ids) == self._ids
        if kept:
            cache.fork(self._rows, len(ids))
        return kept

    def keep(self, ids: Sequence[int], cache: KvCache) -> None:
        """Keep the rows of the opening `ids`, which are all rows of `cache`, if the memory allows a
        copy."""
        if tuple(ids) == self._ids:
            return
        self._ids, self._rows = (), KvCache(len(ids))
        try:
            with memory_for("a copy of the system prompt", MEMORY_HINT):
                self._rows.fork(cache, len(ids))
        except OutOfMemory:
            self._rows.release()
        else:
            self._ids = tuple(ids)
