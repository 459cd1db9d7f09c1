"""Counts how many tokens of a reply have been heard when a part of its text has been heard."""

from __future__ import annotations

from bisect import bisect_right

from voiceloop.types import TokenBurst


class TokenCount:
    """A counter for the tokens of one reply as it grows."""

    def __init__(self) -> None:
        self.total = 0
        self._length = 0
        """Number of characters of the text so far."""
        self._ends: list[int] = []
        """For each token that is not only space, the number of characters up to its end."""
        self._counts: list[int] = []
        """For each entry of `_ends`, the number of tokens up to it."""

    def add(self, burst: TokenBurst) -> None:
        """Add the reply's next tokens.

        A token counts as heard with its last character that is not space, so ".\\n" counts with its
        sentence. A token of space alone counts with the token after it.
        """
        size, number = len(burst.text), len(burst.ids)
        ends = burst.ends or [size * (i + 1) // number for i in range(number)]
        begin = 0
        for end in ends:
            self.total += 1
            solid = burst.text[begin:end].rstrip()
            if solid:
                self._ends.append(self._length + begin + len(solid))
                self._counts.append(self.total)
            begin = end
        self._length += size

    def at(self, end: int) -> int:
        """Return how many whole tokens have been heard with the reply's first `end` characters."""
        whole = bisect_right(self._ends, end)
        return self._counts[whole - 1] if whole else 0
