"""Where JSON that stands in a text begins and ends; whether it can be read is not asked here."""

from __future__ import annotations

import re

JSON = re.compile(r"\[\s*\{\s*[\"']|\{\s*[\"']")
"""How an object that holds something begins, or a list of such."""
JSON_MAYBE = re.compile(r"(?:\[\s*)?(?:\{\s*)?$")
"""What may become such a beginning at the end of a text, if it is not empty."""
_STEP = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]]', re.DOTALL)


def json_end(text: str, start: int) -> int | None:
    """Index behind the bracket that closes the one at `start`; None where it is not there yet."""
    depth = 0
    for step in _STEP.finditer(text, start):
        depth += (step[0] in "{[") - (step[0] in "}]")
        if not depth:
            return step.end()
    return None
