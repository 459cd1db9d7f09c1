"""How many tokens of a reply have been heard with how much of its text."""

from __future__ import annotations

from bisect import bisect_right

from voiceloop.types import TokenBurst


class TokenCount:
    """Of one reply as it grows."""

    def __init__(self) -> None:
        self.total = 0
        self._length = 0
        """Characters so far."""
        self._ends: list[int] = []
        """Where tokens end that are not space alone."""
        self._counts: list[int] = []
        """Tokens up to there."""

    def add(self, burst: TokenBurst) -> None:
        """The reply's next tokens.

        A token counts as heard with its last character that is not space, so that ".\\n" counts
        with its sentence; a token of space alone counts with the token after it.
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
        """Whole tokens that have been heard with the reply's first `end` characters."""
        whole = bisect_right(self._ends, end)
        return self._counts[whole - 1] if whole else 0
