"""Assemble tool calls from the fragments ("crumbs") in which servers stream them.

The id of a crumb tells to which call it belongs; without an id, its index tells that. Servers
differ. Some repeat the name in each crumb. Some give all calls the same index, or one call several
indexes. Some send the whole call again at the end, or send it in one piece. This module does not
interpret arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from voiceloop.foreign import parsed
from voiceloop.llm.remote.complaints import Garbled

LONGEST_CALLS = 1_048_576
"""Maximum number of characters in all calls of a reply. More characters are an error."""
_CRUMB = 16
"""Number that is added to the number of characters of each crumb. So `LONGEST_CALLS` also limits
the number of crumbs, even if they are empty."""


@dataclass(frozen=True, slots=True)
class StreamedCall:
    """A complete tool call."""

    id: str
    """The server's id of the call; empty if the server gives none."""
    name: str
    arguments: str
    """Arguments as the model wrote them. They are JSON, unless the model made a mistake."""


@dataclass(slots=True)
class _Call:
    indexes: set[int | None]
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class ToolCrumbs:
    """The tool calls of one reply. Raises Garbled for data that is no tool call, and for calls that
    are too long."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._length = 0

    def gather(self, chunk: object) -> None:
        """Add the crumb in `chunk`, or the list of crumbs in it."""
        crumbs = cast("list[object]", chunk) if isinstance(chunk, list) else [chunk]
        for crumb in crumbs:
            if isinstance(crumb, dict):
                self._take(cast("Mapping[str, Any]", crumb))
            elif crumb is not None:
                raise Garbled("calls of tools that are none")

    def calls(self) -> Iterator[StreamedCall]:
        """Yield all calls, in the order in which they began."""
        for call in self._calls:
            yield StreamedCall(call.id, call.name, call.arguments)

    def _take(self, crumb: Mapping[str, Any]) -> None:
        function = crumb.get("function")
        details = cast("Mapping[str, Any]", function if isinstance(function, dict) else {})
        index, call_id = crumb.get("index"), _text(crumb.get("id"))
        name, arguments = _text(details.get("name")), _written(details.get("arguments"))
        self._length += len(call_id) + len(name) + len(arguments) + _CRUMB
        if self._length > LONGEST_CALLS:
            raise Garbled("calls of tools without an end")
        call = self._call_of(index if isinstance(index, int) else None, call_id, name, arguments)
        call.id = call.id or call_id
        if not call.name or (name != call.name and not call.pieces):
            call.name += name  # the name may be spread over several crumbs
        if _whole(arguments) and _whole(call.arguments):
            call.pieces = [arguments]  # the server has sent the whole call again
        elif arguments:
            call.pieces.append(arguments)

    def _call_of(self, index: int | None, call_id: str, name: str, arguments: str) -> _Call:
        """Return the call that a crumb continues, or a new call if the crumb begins one."""
        for call in reversed(self._calls):
            here = index in call.indexes or (index is None and not name)
            same = call_id == call.id or (here and not name) if call_id and call.id else here
            if same and not _another(call, call_id, name, arguments):
                call.indexes.add(index)
                return call
        self._calls.append(_Call({index}))
        return self._calls[-1]


def _another(call: _Call, call_id: str, name: str, arguments: str) -> bool:
    """Return whether a crumb begins a new call, although it has the id or the index of `call`."""
    if not name or not call.name:
        return False
    identified = call.id and call_id in ("", call.id)
    if name != call.name:
        return bool(call.pieces) or not identified
    return not identified and bool(arguments) and _whole(call.arguments)


def _whole(arguments: str) -> bool:
    """Return whether `arguments` is a complete JSON object, or a JSON string."""
    if arguments[:1] not in ("{", '"') or arguments[-1:] not in ("}", '"'):
        return False
    try:
        parsed(arguments, strict=False)
    except ValueError:
        return False
    return True


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""


def _written(arguments: object) -> str:
    if isinstance(arguments, str) or arguments is None:
        return arguments or ""
    try:
        return json.dumps(arguments)
    except RecursionError:
        raise Garbled("arguments that are too deep") from None
