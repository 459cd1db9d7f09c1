"""A ring of samples: what waits between an audio callback and the rest of the program.

Samples are numbered since the first one that was appended, so whoever takes them sees how many are
missing. Nothing is allocated where samples go in and out. This module knows no device, and no
thread: whoever shares a ring holds a lock of their own around each call.
"""

from __future__ import annotations

from voiceloop.audio import fade_out, silence
from voiceloop.types import Pcm


class Ring:
    """The newest samples of one stream that nobody has taken yet."""

    def __init__(self, capacity: int) -> None:
        """`capacity` is the number of samples that fit, until `reserve` asks for more."""
        self._pcm = silence(capacity)
        self.start = 0
        """Index of the oldest sample that waits."""
        self.end = 0
        """Index of the sample after the newest."""

    def __len__(self) -> int:
        """Samples that wait."""
        return self.end - self.start

    def append(self, pcm: Pcm) -> None:
        """Add the next samples of the stream; where they do not fit, the oldest are lost."""
        capacity = len(self._pcm)
        self.end += len(pcm)
        newest = pcm[max(0, len(pcm) - capacity) :]
        at = (self.end - len(newest)) % capacity
        first = min(len(newest), capacity - at)
        self._pcm[at : at + first] = newest[:first]
        self._pcm[: len(newest) - first] = newest[first:]
        self.start = max(self.start, self.end - capacity)

    def take(self, into: Pcm) -> int:
        """Move the oldest samples to the beginning of `into`; returns how many those are."""
        count = min(len(self), len(into))
        at = self.start % len(self._pcm)
        first = min(count, len(self._pcm) - at)
        into[:first] = self._pcm[at : at + first]
        into[first:count] = self._pcm[: count - first]
        self.start += count
        return count

    def take_all(self) -> tuple[int, Pcm]:
        """Every sample that waits, and the index of the first of them."""
        start, pcm = self.start, silence(len(self))
        self.take(pcm)
        return start, pcm

    def reserve(self, count: int) -> None:
        """Make room for `count` samples more than wait already."""
        if (needed := len(self) + count) > len(self._pcm):
            start, waiting = self.take_all()
            self._pcm = silence(2 * needed)
            self.start = self.end = start
            self.append(waiting)

    def cut(self, keep: int) -> int:
        """Forget all but the oldest `keep` samples, and let those fade to silence.

        Returns the number of samples that were forgotten; their indices are given anew.
        """
        start, waiting = self.take_all()
        kept = waiting[:keep]
        self.start = self.end = start
        self.append(fade_out(kept, len(kept)))
        return len(waiting) - len(kept)
