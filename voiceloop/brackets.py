"""Finds the beginning and the end of JSON within a text, without checking that it is valid."""

from __future__ import annotations

import re

JSON = re.compile(r"\[\s*\{\s*[\"']|\{\s*[\"']")
"""Matches the beginning of an object with keys (`{"`), or of a list of these (`[{"`)."""
JSON_MAYBE = re.compile(r"(?:\[\s*)?(?:\{\s*)?$")
"""Matches the unfinished beginning of JSON at the end of a text, e.g. `[ {`.

More text may make it a match of `JSON`. The match is empty if there is no such beginning.
"""
_STEP = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]]', re.DOTALL)


def json_end(text: str, start: int) -> int | None:
    """Return the index after the bracket that matches the one at `start`; None if it stays open."""
    depth = 0
    for step in _STEP.finditer(text, start):
        depth += (step[0] in "{[") - (step[0] in "}]")
        if not depth:
            return step.end()
    return None
