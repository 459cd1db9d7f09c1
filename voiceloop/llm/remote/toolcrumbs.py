"""Calls of tools out of the crumbs in which servers stream them.

A crumb belongs to a call by its id, or else by its index. Servers number and name them as they
like: they repeat the name with each crumb, give all calls one index or one call several, tell the
whole once more in the end, or give what is whole at once. This module does not read arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from voiceloop.llm.remote.complaints import Garbled

LONGEST_CALLS = 1_048_576
"""Characters of all calls of a reply after which a server is not believed any more."""
_CRUMB = 16
"""A crumb counts as so many more."""


@dataclass(frozen=True, slots=True)
class StreamedCall:
    """A tool call, whole."""

    id: str
    """As the server calls it; empty where it does not."""
    name: str
    arguments: str
    """As the model wrote them: JSON, if it wrote well."""


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
    """The calls of one reply. Raises Garbled for what is none."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._length = 0

    def gather(self, told: object) -> None:
        """Take what a chunk tells of calls: crumbs of them, or one."""
        crumbs = cast("list[object]", told) if isinstance(told, list) else [told]
        for crumb in crumbs:
            if isinstance(crumb, dict):
                self._take(cast("Mapping[str, Any]", crumb))
            elif crumb is not None:
                raise Garbled("calls of tools that are none")

    def calls(self) -> Iterator[StreamedCall]:
        """All of them, in the order in which they began."""
        for call in self._calls:
            yield StreamedCall(call.id, call.name, call.arguments)

    def _take(self, crumb: Mapping[str, Any]) -> None:
        function = crumb.get("function")
        told = cast("Mapping[str, Any]", function if isinstance(function, dict) else {})
        index, own = crumb.get("index"), _text(crumb.get("id"))
        name, arguments = _text(told.get("name")), _written(told.get("arguments"))
        self._length += len(own) + len(name) + len(arguments) + _CRUMB
        if self._length > LONGEST_CALLS:
            raise Garbled("calls of tools without an end")
        call = self._of(index if isinstance(index, int) else None, own, name, arguments)
        call.id = call.id or own
        if not call.name or (name != call.name and not call.pieces):
            call.name += name  # it may come in crumbs as well
        if _whole(arguments) and _whole(call.arguments):
            call.pieces = [arguments]  # all of it once more
        elif arguments:
            call.pieces.append(arguments)

    def _of(self, index: int | None, own: str, name: str, arguments: str) -> _Call:
        """The call that a crumb goes on with; a new one where it begins one."""
        for call in reversed(self._calls):
            here = index in call.indexes or (index is None and not name)
            same = own == call.id or (here and not name) if own and call.id else here
            if same and not _another(call, own, name, arguments):
                call.indexes.add(index)
                return call
        self._calls.append(_Call({index}))
        return self._calls[-1]


def _another(call: _Call, own: str, name: str, arguments: str) -> bool:
    """Whether what has the same id, or the same index, is another call all the same."""
    if not name or not call.name:
        return False
    identified = call.id and own in ("", call.id)
    if name != call.name:
        return bool(call.pieces) or not identified
    return not identified and bool(arguments) and _whole(call.arguments)


def _whole(arguments: str) -> bool:
    """Whether nothing is missing of these arguments, which may be JSON within JSON."""
    if arguments[:1] not in ("{", '"') or arguments[-1:] not in ("}", '"'):
        return False
    try:
        json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
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
