"""Reads JSON that someone else wrote, and finds where JSON begins and ends within a text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

MOST_LEVELS = 64
"""Maximum number of levels of lists and objects within each other. Python reads hundreds, but may
fail to write again what it could just read, since both need room on the stack."""


def parsed(text: str | bytes, *, strict: bool = True) -> Any:
    """Return the value of the JSON in `text`. Without `strict`, texts in it may contain control
    characters. Raises ValueError, also if the value is nested deeper than `MOST_LEVELS`."""
    try:
        value = json.loads(text, strict=strict)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if is_deep(value):
        raise ValueError("it is nested too deep")
    return value


def is_deep(value: Any) -> bool:
    """Return whether `value` is nested deeper than `MOST_LEVELS`."""
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS + 1):
        level = [one.values() if isinstance(one, dict) else one for one in level]
        level = [
            inner for one in level if not isinstance(one, str | int | float | None) for inner in one
        ]
    return bool(level)


def mapping(value: object) -> Mapping[str, Any]:
    """Return `value` if it is an object of JSON, and otherwise an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def entries(value: object) -> list[Any]:
    """Return `value` if it is a list, and otherwise an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


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
