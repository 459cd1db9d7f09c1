"""Keys and values of the tokens a model has seen, in buffers that never move.

A `KvCache` holds `capacity` rows for each layer and a length. Rows are written at the length, and
rolling back moves the length: what lies beyond it is never attended and will be overwritten. That
makes cancellation, rejection and truncation free. A `CachePool` bounds the memory that the buffers
of idle conversations take. Which tokens the rows belong to is known to the owner of the cache
alone.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from voiceloop.errors import OutOfMemory

MIB = 2**20


class KvCache:
    """Fixed buffers for one sequence of one model, made when they are first written to."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        """Rows that fit."""
        self.length = 0
        """Rows that count."""
        self.nbytes = 0
        """Bytes of its buffers."""
        self._layers: dict[int, tuple[Tensor, ...]] = {}

    def extend(self, layer: int, *states: Tensor) -> list[Tensor]:
        """Write rows after the last that counts; return all of the layer's rows, these included.

        Each of the `states` is [rows, heads, dim]: keys and values, in one piece or apart, the same
        way every time; so are the views that are returned. The length stays: a pass calls `advance`
        once all its layers have written.
        """
        if layer not in self._layers:
            buffers = tuple(state.new_empty(self.capacity, *state.shape[1:]) for state in states)
            self._layers[layer] = buffers
            self.nbytes += sum(buffer.nbytes for buffer in buffers)
        end = self.length + len(states[0])
        for buffer, state in zip(self._layers[layer], states, strict=True):
            buffer[self.length : end] = state
        return [buffer[:end] for buffer in self._layers[layer]]

    def advance(self, rows: int) -> None:
        """Count `rows` more, which every layer has written."""
        self.length += rows

    def rollback(self, length: int) -> None:
        """Forget the rows from `length` on; nothing is forgotten where there are fewer."""
        self.length = min(self.length, length)

    def release(self) -> None:
        """Forget everything and free the buffers."""
        self.length = self.nbytes = 0
        self._layers.clear()

    def take(self, other: KvCache) -> None:
        """Take over the buffers of `other`, which is left without rows."""
        self.release()
        self._layers, other._layers = other._layers, self._layers
        self.nbytes = other.nbytes
        other.release()


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
