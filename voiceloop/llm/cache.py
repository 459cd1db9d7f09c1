"""Keys and values of the tokens a model has seen, in buffers that never move.

A `KvCache` holds `capacity` rows for each layer and a length. Rows are written at the length, and
rolling back moves the length: what lies beyond it is never attended and will be overwritten. That
makes cancellation, rejection and truncation free. transformers' changing cache classes are hidden
here: `TransformersCache` lets its models write into the same buffers. A `CachePool` bounds how many
conversations have buffers at all. Which tokens the rows belong to is known to the owner of the
cache alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class KvCache:
    """Fixed buffers for one sequence of one model, made when they are first written to."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        """Rows that fit."""
        self.length = 0
        """Rows that count."""
        self._layers: dict[int, tuple[Tensor, ...]] = {}

    def extend(self, layer: int, *states: Tensor) -> list[Tensor]:
        """Write rows after the last that counts; return all of the layer's rows, these included.

        Each of the `states` is [rows, heads, dim]: keys and values, in one piece or apart, the same
        way every time; so are the views that are returned. The length stays: a pass calls `advance`
        once all its layers have written.
        """
        if layer not in self._layers:
            self._layers[layer] = tuple(
                state.new_empty(self.capacity, *state.shape[1:]) for state in states
            )
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
        self.length = 0
        self._layers.clear()

    def take(self, other: KvCache) -> None:
        """Take over the buffers of `other`, which is left without rows."""
        self._layers, other._layers = other._layers, self._layers
        other.release()
        self.length = 0


Group = tuple[KvCache, ...]
"""The caches of one conversation, one for each model, in the same order for all."""


class CachePool:
    """Buffers for the conversations of a pair of models, of which idle ones keep a few.

    A conversation holds its group while it computes. Once it is idle its rows stay for as long as
    there is room; then they go, least recently used first, and it computes them again from its ids
    when it comes back. Who computes always gets buffers: more than `slots` groups have them only
    while more than that compute at once.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._held = 0
        self._idle: OrderedDict[Group, None] = OrderedDict()
        """Groups with buffers that nobody holds, the least recently used first."""
        self._evicted: set[Group] = set()

    @contextmanager
    def hold(self, group: Group) -> Iterator[bool]:
        """Keep the group's rows for as long as the context lasts; True where they had to go."""
        evicted = group in self._evicted
        self._evicted.discard(group)
        if group in self._idle:
            del self._idle[group]
        elif self._idle and len(self._idle) + self._held >= self._slots:
            oldest = self._evict()
            for cache, other in zip(group, oldest, strict=True):
                cache.take(other)
        self._held += 1
        try:
            yield evicted
        finally:
            self._held -= 1
            self._idle[group] = None
            while self._idle and len(self._idle) + self._held > self._slots:
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


class TransformersCache(Cache):
    """What a model of transformers takes for its cache, writing into a `KvCache`."""

    def __init__(self, cache: KvCache, layers: int) -> None:
        super().__init__(layers=[_Layer(cache, index) for index in range(layers)])


class _Layer(CacheLayerMixin):
    is_sliding = False

    def __init__(self, cache: KvCache, index: int) -> None:
        super().__init__()
        self._cache = cache
        self._index = index
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the `KvCache` makes its own buffers."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        states = (state[0].transpose(0, 1) for state in (key_states, value_states))
        keys, values = self._cache.extend(self._index, *states)
        return keys.transpose(0, 1).unsqueeze(0), values.transpose(0, 1).unsqueeze(0)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.length + query_length, 0

    def get_seq_length(self) -> int:
        return self._cache.length

    def get_max_length(self) -> int:
        return self._cache.capacity
