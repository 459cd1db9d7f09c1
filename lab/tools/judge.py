"""The requests and the chatter of `requests.toml`, and which calls are right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, convert, field

from voiceloop.types import ToolCall


class SpokenRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What a user says, and the call that it asks for."""

    say: str
    call: str = ""
    """Name of the tool; empty for chatter."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any], name="with")
    """Values by name of the arguments that are checked. A text is a regular expression."""


class _Listed(Struct, frozen=True, forbid_unknown_fields=True):
    request: tuple[SpokenRequest, ...]
    chatter: tuple[str, ...]


def read(table: Mapping[str, Any]) -> Sequence[SpokenRequest]:
    """Return the requests, then the chatter. Raises msgspec.ValidationError for a wrong table."""
    listed = convert(table, _Listed)
    return (*listed.request, *(SpokenRequest(said) for said in listed.chatter))


def wrong(request: SpokenRequest, calls: Sequence[ToolCall]) -> str:
    """Return what is wrong with the calls that a request has led to; empty if they are right."""
    if not request.call:
        return f"it calls {calls[0].name or 'something'}" if calls else ""
    if not calls:
        return "it calls nothing"
    if len(calls) > 1:
        return f"it makes {len(calls)} calls"
    (call,) = calls
    if call.problem or call.name != request.call:
        return call.problem or f"it calls {call.name}"
    faults = [
        f"{name} is {call.arguments.get(name)!r}"
        for name, meant in request.arguments.items()
        if not _alike(meant, call.arguments.get(name))
    ]
    return ", ".join(faults)


def _alike(meant: object, found: object) -> bool:
    if isinstance(meant, str):
        return re.search(meant, str(found), re.IGNORECASE) is not None
    if isinstance(meant, bool):
        return str(found).lower() == str(meant).lower()
    try:
        return float(str(found)) == float(str(meant))
    except ValueError:
        return False
