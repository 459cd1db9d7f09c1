"""Finds the beginning and the end of JSON within a text, without checking that it is valid."""

from __future__ import annotations

import re

JSON = re.compile(r"\[\s*\{\s*[\"']|\{\s*[\"']")
"""Matches the beginning of an object with keys (`{"`), or of a list of these (`[{"`)."""
JSON_MAYBE = re.compile(r"(?:\[\s*)?(?:\{\s*)?$")
"""Matches the unfinished beginning of JSON at the end of a text, e.g. `[ {`.

More text may make it a match of `JSON`. The match is empty if there is no such beginning.
"""
_OUTSIDE = re.compile(r"[\"{}\[\]]")
_WITHIN = re.compile(r"\\.|\"", re.DOTALL)


class OpenJson:
    """JSON whose end has not come yet, in a text that grows. Each character is read once."""

    def __init__(self, start: int) -> None:
        """Begin at the bracket at index `start`."""
        self.start = self._at = start
        self._depth = 0
        self._quoted = False

    def end(self, text: str) -> int | None:
        """Return the index after the bracket that matches the first one; None if it stays open.
        `text` begins with the text of the last call."""
        while step := (_WITHIN if self._quoted else _OUTSIDE).search(text, self._at):
            self._at = step.end()
            if step[0] == '"':
                self._quoted = not self._quoted
            elif not self._quoted:
                self._depth += 1 if step[0] in "{[" else -1
                if not self._depth:
                    return self._at
        # What a backslash at the end escapes may still come.
        self._at = len(text) - (self._quoted and text.endswith("\\", self._at))
        return None
