"""How an event of the server becomes text."""

from __future__ import annotations

import json

from voiceloop.realtime.schema import plain

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""Made once: `json.dumps` would make one for every event."""


class Event:
    """What all events of the server have in common.

    An event gets its id when it is written, so that equal things said are equal values.
    """

    __slots__ = ()

    def to_json(self, event_id: str) -> str:
        """The text of the event, under the id that the server gives it.

        ValueError for a number that JSON has not: it would break the peer's parser, not ours.
        """
        told = {**plain(self), "event_id": event_id}
        return _ENCODER.encode(told)
