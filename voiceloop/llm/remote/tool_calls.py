"""Give tools the names that servers of chat completions accept, and assemble tool calls from the
fragments ("deltas") in which servers stream them.

The id of a delta tells to which call it belongs; without an id, its index tells that. Servers
differ. Some repeat the name in each delta. Some give all calls the same index, or one call several
indexes. Some send the whole call again at the end, or send it in one piece. This module does not
interpret arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from voiceloop.foreign import entries, mapping, parsed
from voiceloop.llm.remote.errors import Garbled
from voiceloop.llm.text.messages import Message

LONGEST_CALLS = 1_048_576
"""Maximum number of characters in all calls of a reply. More characters are an error."""
_DELTA = 16
"""Number that is added to the number of characters of each delta. So `LONGEST_CALLS` also limits
the number of deltas, even if they are empty."""


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


class ToolCallDeltas:
    """The tool calls of one reply. Raises Garbled for data that is no tool call, and for calls that
    are too long."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._length = 0

    def gather(self, chunk: object) -> None:
        """Add the delta in `chunk`, or the list of deltas in it."""
        for delta in entries(chunk) if isinstance(chunk, list) else [chunk]:
            if isinstance(delta, dict):
                self._take(mapping(cast(object, delta)))
            elif delta is not None:
                raise Garbled("calls of tools that are none")

    def calls(self) -> Iterator[StreamedCall]:
        """Yield all calls, in the order in which they began."""
        for call in self._calls:
            yield StreamedCall(call.id, call.name, call.arguments)

    def _take(self, delta: Mapping[str, Any]) -> None:
        details = mapping(delta.get("function"))
        index, call_id = delta.get("index"), _text(delta.get("id"))
        name, arguments = _text(details.get("name")), _written(details.get("arguments"))
        self._length += len(call_id) + len(name) + len(arguments) + _DELTA
        if self._length > LONGEST_CALLS:
            raise Garbled("calls of tools without an end")
        call = self._call_of(index if isinstance(index, int) else None, call_id, name, arguments)
        call.id = call.id or call_id
        if not call.name or (name != call.name and not call.pieces):
            call.name += name  # the name may be spread over several deltas
        if _whole(arguments) and _whole(call.arguments):
            call.pieces = [arguments]  # the server has sent the whole call again
        elif arguments:
            call.pieces.append(arguments)

    def _call_of(self, index: int | None, call_id: str, name: str, arguments: str) -> _Call:
        """Return the call that a delta continues, or a new call if the delta begins one."""
        for call in reversed(self._calls):
            here = index in call.indexes or (index is None and not name)
            same = call_id == call.id or (here and not name) if call_id and call.id else here
            if same and not _another(call, call_id, name, arguments):
                call.indexes.add(index)
                return call
        self._calls.append(_Call({index}))
        return self._calls[-1]


def _another(call: _Call, call_id: str, name: str, arguments: str) -> bool:
    """Return whether a delta begins a new call, although it has the id or the index of `call`."""
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


# The names of tools -------------------------------------------------------------------------------

LONGEST_NAME = 64
"""Maximum number of characters of a name that all servers accept."""
_FITS = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}")
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]+")


def accepted(names: Iterable[str]) -> dict[str, str]:
    """Map each of `names` to a name that servers accept, no two to the same one. A name that fits
    stays."""
    different = dict.fromkeys(names)
    fitted = {name: name for name in different if _FITS.fullmatch(name)}
    taken = set(fitted)
    for name in different:
        if name in fitted:
            continue
        base = new = _UNFIT.sub("_", name)[:LONGEST_NAME] or "_"
        number = 1
        while new in taken:
            number += 1
            new = f"{base[: LONGEST_NAME - 1 - len(str(number))]}_{number}"
        fitted[name] = new
        taken.add(new)
    return fitted


def called(messages: Iterable[Message]) -> list[str]:
    """Return the names of the tools that are called in `messages`."""
    return [call["function"]["name"] for one in messages for call in one.get("tool_calls", ())]


def renamed(message: Message, names: Mapping[str, str]) -> Message:
    """Return `message` with the names of the tools that it calls replaced by those in `names`."""
    if "tool_calls" not in message:
        return message
    calls = [
        call | {"function": call["function"] | {"name": names[call["function"]["name"]]}}
        for call in message["tool_calls"]
    ]
    return message | {"tool_calls": calls}
