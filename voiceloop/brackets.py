"""Finds the beginning and the end of JSON within a text, without checking that it is valid."""

from __future__ import annotations

import re

JSON = re.compile(r"\[\s*\{\s*[\"']|\{\s*[\"']")
"""Matches the beginning of an object that is not empty, or of a list of such objects."""
JSON_MAYBE = re.compile(r"(?:\[\s*)?(?:\{\s*)?$")
"""Finds the end of a text that may become a match of `JSON` when more text follows. It always
matches; the match is empty if there is no such end."""
_STEP = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]]', re.DOTALL)


def json_end(text: str, start: int) -> int | None:
    """Return the index after the bracket that matches the one at `start`; None if it stays open."""
    depth = 0
    for step in _STEP.finditer(text, start):
        depth += (step[0] in "{[") - (step[0] in "}]")
        if not depth:
            return step.end()
    return None
