"""What servers of chat completions say went wrong, in all the shapes in which they say it.

This module knows neither requests nor replies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

DEEPEST = 8
"""So deep a message may lie in an answer."""
SAYING = (
    *("error", "errors", "message", "msg", "detail", "details", "description", "reason"),
    *("error_message", "errorMessage", "error_msg", "error_description", "title", "text"),
)
"""Keys under which it is said, the first of which counts that says anything."""
NAMING = ("code", "type", "param", "loc", "status", "error_code", "error_type")
"""Keys that tell in a word what kind it is, or which parameter it is about."""
_ERROR = re.compile(r"err|exception|fail|invalid", re.IGNORECASE)


class Garbled(ValueError):
    """What came is no stream of chat completions."""


class Complaint(Exception):
    """A server says that something went wrong."""

    def __init__(self, said: str, named: str = "") -> None:
        super().__init__(said)
        self.said = said
        self.named = named
        """What it names besides, in words: a code, a type, a parameter."""


def complaint(body: object) -> str:
    """What the answer of a server, read from JSON, says went wrong; empty where it says nothing."""
    return _said(body, 0)


def named(body: object) -> str:
    """What it names besides, in words: a code, a type, a parameter."""
    return " ".join(_named(body, 0))


def complained(chunk: Mapping[str, Any], event: str = "") -> Complaint | None:
    """What went wrong where a chunk of a reply, in an event of this name, says so."""
    choices = chunk.get("choices")
    first = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
    choice = cast("Mapping[str, Any]", first if isinstance(first, dict) else {})
    if choice.get("error") or choice.get("finish_reason") == "error":
        body: Mapping[str, Any] = {"error": chunk.get("error") or choice.get("error") or ""}
    elif (
        _ERROR.search(event)
        or any(chunk[key] for key in chunk if key.startswith("err"))
        or (not choices and _flat(chunk))
    ):
        body = chunk
    else:
        return None
    return Complaint(complaint(body), named(body))


def _flat(chunk: Mapping[str, Any]) -> bool:
    """Whether a chunk in which nothing is replied is an error that stands there by itself."""
    if not complaint(chunk):
        return False
    code = str(chunk.get("code", chunk.get("status")))
    if re.fullmatch(r"-?\d{1,9}", code):
        return int(code) != 0 and not 200 <= int(code) < 300
    kinds = [chunk[key] for key in ("object", "type") if isinstance(chunk.get(key), str)]
    return not kinds or any(_ERROR.search(kind) for kind in kinds)


def _said(body: object, depth: int) -> str:
    if isinstance(body, list) and body:
        body = cast("list[object]", body)[0]
    if isinstance(body, str):
        return " ".join(body.split())
    if not isinstance(body, dict) or depth > DEEPEST:
        return ""
    told = cast("dict[str, object]", body)
    found = (_said(told[key], depth + 1) for key in SAYING if key in told)
    return next(filter(None, found), "")


def _named(body: object, depth: int) -> list[str]:
    if depth > DEEPEST:
        return []
    if isinstance(body, list):
        return [
            word for one in cast("list[object]", body)[:DEEPEST] for word in _named(one, depth + 1)
        ]
    if not isinstance(body, dict):
        return []
    words = list[str]()
    for key, value in cast("dict[str, object]", body).items():
        if key in NAMING:
            every = cast("list[object]", value) if isinstance(value, list) else [value]
            words += [str(one) for one in every[:DEEPEST] if isinstance(one, str | int)]
        elif key in SAYING:
            words += _named(value, depth + 1)
    return words
