"""Reads JSON that someone else wrote."""

from __future__ import annotations

import json
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
