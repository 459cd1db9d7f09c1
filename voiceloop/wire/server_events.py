"""The base of all events from the server, and their encoding as JSON."""

from __future__ import annotations

import json
from binascii import b2a_base64
from functools import cache
from typing import Any

import msgspec

from voiceloop.settings.schema import Object, hints_of

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""Encoder of all events. `json.dumps` would make a new encoder for each event."""


class ServerEvent(Object, frozen=True):
    """An event that the server sends.

    It has no id before it is encoded. So events with the same content are equal.
    """

    def to_json(self, event_id: str) -> str:
        """Encode the event as JSON, with `event_id`.

        Raises ValueError for NaN and infinite numbers: they would break the client's parser.
        """
        fields = plain(self)
        for name in _local(type(self)):
            del fields[name]
        fields["event_id"] = event_id
        return _ENCODER.encode(fields)


def plain(value: object) -> Any:
    """Convert `value` to types that `json.dumps` takes; audio becomes base64."""
    return msgspec.to_builtins(value, enc_hook=_base64)


def _base64(value: object) -> str:
    if isinstance(value, bytes):  # of a subclass, which msgspec does not encode itself
        return b2a_base64(value, newline=False).decode("ascii")
    raise TypeError(f"{type(value).__name__} is nothing for the wire")


@cache
def _local(kind: type[ServerEvent]) -> list[str]:
    """Return the names of the fields of an event that are not sent."""
    return [name for name in kind.__struct_fields__ if name not in hints_of(kind)]
