"""Reads JSON that someone else wrote."""

from __future__ import annotations

import json
from typing import Any


def parsed(text: str | bytes, *, strict: bool = True) -> Any:
    """Return the value of the JSON in `text`. Without `strict`, texts in it may contain control
    characters. Raises ValueError, also if the value is nested too deep to be read."""
    try:
        return json.loads(text, strict=strict)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
