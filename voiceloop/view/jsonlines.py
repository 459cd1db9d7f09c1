"""The view for programs: a line of JSON for each turn."""

from __future__ import annotations

import json
from typing import IO

from voiceloop.terminal import printable
from voiceloop.trace.record import to_json
from voiceloop.types import FILTERED, Clause, Event, Notice, TokenBurst, Transcript, TurnTrace
from voiceloop.view.text import Exchanges


class JsonView:
    """A view with a line of JSON for each turn that is over. Notices go to `err` as text.

    Marks are in seconds from the turn's start. Latencies are null if `timed` is False.
    """

    def __init__(self, out: IO[str], err: IO[str], *, timed: bool = True) -> None:
        self._out = out
        self._err = err
        self._timed = timed
        self._exchanges = Exchanges()

    def show(self, event: Event) -> None:
        """Show the next event, in order."""
        match event:
            case Notice():
                self._err.write(f"{printable(event.text)}\n")
            case TurnTrace():
                self._out.write(json.dumps(self._record(event)) + "\n")
                self._out.flush()
            case Transcript() | TokenBurst() | Clause():
                self._exchanges.follow(event)
            case _:
                pass

    def _record(self, trace: TurnTrace) -> dict[str, object]:
        over = self._exchanges.over(trace)
        return {
            "turn": over.turn,
            "transcript": over.said,
            "reply": over.reply,
            "heard": over.heard,
            "voice_to_voice_ms": over.voice_to_voice_ms if self._timed else None,
            "endpoint_to_sound_ms": over.endpoint_to_sound_ms if self._timed else None,
            "marks": to_json(trace)["marks"],
            "drafted": int(trace.counters.get("drafted", 0)),
            "accepted": int(trace.counters.get("accepted", 0)),
            "outcome": trace.outcome,
            "incomplete": any(trace.counters.get(name) for name in ("too_long", FILTERED)),
        }
