"""Read the error messages of servers of chat completions, in all the forms that servers use.

This module knows neither requests nor replies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

DEEPEST = 8
"""Maximum number of nested objects or lists in which a message is looked for."""
SAYING = (
    *("error", "errors", "message", "msg", "detail", "details", "description", "reason"),
    *("error_message", "errorMessage", "error_msg", "error_description", "title", "text"),
)
"""Keys of a response that may hold the error message. The first key with text is used."""
NAMING = ("code", "type", "param", "loc", "status", "error_code", "error_type")
"""Keys of a response that may hold the kind of error, or the parameter that it is about."""
_ERROR = re.compile(r"err|exception|fail|invalid", re.IGNORECASE)


class Garbled(ValueError):
    """Data that is not a stream of chat completions."""


class Complaint(Exception):
    """An error that a server reports. `said` is the server's message."""

    def __init__(self, said: str, named: str = "") -> None:
        super().__init__(said)
        self.said = said
        self.named = named
        """Code, type and parameter in the server's response, separated by spaces."""


def complaint(body: object) -> str:
    """Return the error message in `body`, a server's response decoded from JSON. Empty if there is
    no message."""
    return _message(body, 0)


def named(body: object) -> str:
    """Return the code, type and parameter in `body`, a server's response decoded from JSON. They
    are separated by spaces."""
    return " ".join(_named(body, 0))


def complained(chunk: Mapping[str, Any], event: str = "") -> Complaint | None:
    """Return the error in a chunk of a reply; None if there is none. `event` is the name of the
    server-sent event that contained the chunk."""
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
    """Return whether a chunk without choices is an error, judged by its code and type. It has no
    key such as `error`."""
    if not complaint(chunk):
        return False
    code = str(chunk.get("code", chunk.get("status")))
    if re.fullmatch(r"-?\d{1,9}", code):
        return int(code) != 0 and not 200 <= int(code) < 300
    kinds = [chunk[key] for key in ("object", "type") if isinstance(chunk.get(key), str)]
    return not kinds or any(_ERROR.search(kind) for kind in kinds)


def _message(body: object, depth: int) -> str:
    if isinstance(body, list) and body:
        body = cast("list[object]", body)[0]
    if isinstance(body, str):
        return " ".join(body.split())
    if not isinstance(body, dict) or depth > DEEPEST:
        return ""
    table = cast("dict[str, object]", body)
    found = (_message(table[key], depth + 1) for key in SAYING if key in table)
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
