"""The server's log for a person at a terminal: who came and went, in plain words.

It shows less than the log for programs: warnings, errors, and messages that have a sentence in
`SENTENCES`. In both logs no client can forge a line, and what was said is shown only on request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from voiceloop.server.logs import STANDARD, TRANSCRIPTS, message_of, shown, traceback_of
from voiceloop.terminal import printable

Fields = Mapping[str, Any]
"""Fields of a record, by name. What was said is in quotes, or is replaced by its length."""


class PlainFormatter(logging.Formatter):
    """A formatter that writes a record as one line with the time of day, and a traceback below
    it."""

    def __init__(self, *, transcripts: bool = False) -> None:
        """With `transcripts`, also show what was said."""
        super().__init__()
        self._transcripts = transcripts

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of the record, without a line end."""
        if sentence := SENTENCES.get(str(record.msg)):
            given = vars(record).items()
            text = sentence({n: self._field(n, value) for n, value in given if n not in STANDARD})
        else:
            text = f"{record.levelname.lower()}: {printable(shown(message_of(record)))}"
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        lines = [f"{clock}  {text}"]
        if record.exc_info:
            traceback = traceback_of(self.formatException(record.exc_info))
            lines += map(printable, traceback.split("\n"))
        return "\n".join(lines)

    def _field(self, name: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        if name not in TRANSCRIPTS or not value:
            return printable(shown(value))
        return f'"{printable(shown(value))}"' if self._transcripts else f"{len(value)} characters"


def worth_telling(record: logging.LogRecord) -> bool:
    """Return whether this log shows a record."""
    return record.levelno > logging.INFO or record.msg in SENTENCES


def _begins(fields: Fields) -> str:
    return f"visit {fields['visit']} begins: a {fields['client']}"


def _goes_on(fields: Fields) -> str:
    return f"visit {fields['visit']} goes on with the conversation of visit {fields['of']}"


def _writes(fields: Fields) -> str:
    return f"visit {fields['visit']} wrote {fields['text']}"


def _turn(fields: Fields) -> str:
    said = f"said {fields['transcript']}, " if fields["transcript"] else ""
    ms, outcome = fields["voice_to_voice_ms"], fields["outcome"]
    after = "" if ms is None else f" after {ms / 1000:.1f} s"
    ending = "" if outcome == "done" else f" ({outcome})"
    answer = f"was answered {fields['reply']}" if fields["reply"] else "was not answered"
    return f"visit {fields['visit']} {said}{answer}{after}{ending}"


def _over(fields: Fields) -> str:
    minutes, seconds = divmod(round(fields["lasted_s"]), 60)
    lasted = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    turns = fields["turns"]
    text = f"visit {fields['visit']} ends after {lasted}, {turns} turn{'s' * (turns != 1)}"
    why = f": {fields['why']}" if fields["why"] else ""
    return f"{text}{why}{'; it may come back' if fields['may_return'] else ''}"


def _ending(fields: Fields) -> str:
    clients = fields["clients"]
    return f"goodbye to {clients} client{'s' * (clients != 1)}" if clients else "goodbye"


SENTENCES: Mapping[str, Callable[[Fields], str]] = {
    "loading": lambda fields: f"loading {fields['models']} …",
    "a visit begins": _begins,
    "a conversation goes on": _goes_on,
    "a message is answered": _writes,
    "a turn is over": _turn,
    "a visit is over": _over,
    "ending": _ending,
    "a request was refused": lambda fields: f"somebody was refused: {fields['why']}",
}
"""Functions that write the sentence for a record, by its message."""
