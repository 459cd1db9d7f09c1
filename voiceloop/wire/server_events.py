"""What all events of the server have in common, and how one becomes text."""

from __future__ import annotations

import json
from binascii import b2a_base64
from functools import cache
from typing import Any

import msgspec

from voiceloop.schema import Object, hints_of

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""Made once: `json.dumps` would make one for every event."""


class ServerEvent(Object, frozen=True):
    """One thing that the server says.

    An event gets its id when it is written, so that equal things said are equal values.
    """

    def to_json(self, event_id: str) -> str:
        """The text of the event, under the id that the server gives it.

        ValueError for a number that JSON has not: it would break the peer's parser, not ours.
        """
        told = plain(self)
        for name in _local(type(self)):
            del told[name]
        told["event_id"] = event_id
        return _ENCODER.encode(told)


def plain(value: object) -> Any:
    """`value` as what `json.dumps` takes; audio becomes base64."""
    return msgspec.to_builtins(value, enc_hook=_base64)


def _base64(value: object) -> str:
    if isinstance(value, bytes):  # of a class of its own
        return b2a_base64(value, newline=False).decode("ascii")
    raise TypeError(f"{type(value).__name__} is nothing for the wire")


@cache
def _local(kind: type[ServerEvent]) -> list[str]:
    """Fields that are not on the wire."""
    return [name for name in kind.__struct_fields__ if name not in hints_of(kind)]
