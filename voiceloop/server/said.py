"""Which words of a spoken response lie before a sample, for clients that say where they stopped.

Within a clause the synthesizer's own word times are not known here: a word is taken to sound in
proportion to its letters, and counts when it has sounded to its end.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"\S+\s*")


class Said:
    """The clauses of one response, with the sample at which each begins."""

    def __init__(self) -> None:
        self._clauses: list[tuple[int, str]] = []

    def add(self, start: int, text: str) -> None:
        """A clause begins to sound at sample `start`."""
        self._clauses.append((start, text))

    def until(self, samples: int, end: int) -> str:
        """The text heard in the first `samples` of `end` samples."""
        heard = ""
        ends = [start for start, _ in self._clauses[1:]] + [end]
        for (start, text), stop in zip(self._clauses, ends, strict=True):
            if samples >= stop:
                heard += text
                continue
            share = max(0.0, (samples - start) / max(1, stop - start))
            for word in _WORD.finditer(text):
                if word.end() > share * len(text):
                    break
                heard += word[0]
            break
        return heard.strip()
