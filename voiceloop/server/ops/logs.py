"""The server's logs: one JSON object per line for programs, plain words for a person at a terminal,
and one line per turn.

In no log can a client forge a line. Line ends and all characters beyond ASCII, such as marks of
text direction, are escaped. Audio, keys and tokens are never logged. What was said is logged only
with `--log-transcripts`; otherwise only its length is logged. The formatters do not know what the
server does; callers log a fixed message with extra fields:

    log.info("session began", extra={"session": 3, "key": allowed.key})
    {"time": "2026-01-31T12:00:00.000Z", "level": "info", "logger": "voiceloop.server", "message":
    "session began", "session": 3, "key": "5f0c81d2a1b4"}

The log for a person shows less: warnings, errors, and messages that have a sentence in `SENTENCES`.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

from voiceloop.server.access.auth import KEY_PROTOCOL
from voiceloop.terminal import printable
from voiceloop.trace.record import voice_to_voice_ms
from voiceloop.types import Clause, Event, TokenBurst, Transcript, TurnTrace
from voiceloop.view.transcript import Exchanges, TurnText

VISIT: ContextVar[int] = ContextVar("visit", default=0)
"""Number of the client session that the current task serves; 0 if it serves none."""
TRANSCRIPTS = frozenset(("transcript", "reply", "heard", "instructions", "arguments", "text"))
"""Names of fields with words that somebody said or wrote."""
MAX_TEXT = 1000
"""Maximum number of characters of a text that are logged, from its start."""
MAX_TRACEBACK = 4000
"""Maximum number of characters of a traceback that are logged, half of them from its start and half
from its end."""

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes that every log record has."""
_FIELDS = frozenset(("time", "level", "logger", "message", "exception"))
"""Names of the fields that every line may have. A caller's field with one of these names
gets a `_`."""
_SECRETS = re.compile(
    rf"({re.escape(KEY_PROTOCOL)}|Bearer\s+|key=|token=|secret=)[^\s,;&\"']+", re.IGNORECASE
)


class Formatter(logging.Formatter):
    """A formatter that writes any record as one line of JSON."""

    def __init__(self, *, transcripts: bool = False) -> None:
        """With `transcripts`, also log what was said."""
        super().__init__()
        self._transcripts = transcripts

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, without a line end."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": shown(message_of(record)),
        }
        for name, value in vars(record).items():
            if name not in STANDARD:
                line[f"{name}_" if name in _FIELDS else name] = self._field(name, value)
        if record.exc_info:
            line["exception"] = traceback_of(self.formatException(record.exc_info))
        return json.dumps(line)

    def _field(self, name: str, value: object) -> object:
        if isinstance(value, str):
            hidden = name in TRANSCRIPTS and not self._transcripts
            return f"({len(value)} characters)" if hidden else shown(value)
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            # JSON has no form for infinity and NaN.
            return round(value, 6) if abs(value) < float("inf") else str(value)
        # The value may hold audio or what was said: show only its type.
        return f"({type(value).__name__})"


def start(
    stream: TextIO, formatter: logging.Formatter, *, level: int = logging.INFO
) -> logging.Handler:
    """Log records of voiceloop from `level` on, and warnings and errors of libraries, to `stream`.
    Return the new handler of the root logger, so that the caller can remove it."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    handler.addFilter(_add_visit)
    logging.getLogger().addHandler(handler)
    logging.getLogger("voiceloop").setLevel(level)
    # At lower levels websockets logs headers, which have keys, and frames, which have speech.
    logging.getLogger("websockets").setLevel(max(level, logging.WARNING))
    # uvicorn warns of each request that is none.
    logging.getLogger("uvicorn").setLevel(max(level, logging.ERROR))
    # It shows where it failed to read each line of a tool server that is no message.
    logging.getLogger("mcp.client.stdio").addFilter(_without_traceback)
    return handler


def _add_visit(record: logging.LogRecord) -> bool:
    """Add the number of the client session to a record. Return True, to keep the record."""
    if visit := VISIT.get():
        record.visit = visit
    return True


def _without_traceback(record: logging.LogRecord) -> bool:
    """Remove the traceback from a record. Return True, to keep the record."""
    record.exc_info = None
    return True


def message_of(record: logging.LogRecord) -> str:
    """Return a record's message with its arguments filled in."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # Without this, `logging` would print the arguments unfiltered.
        return f"{record.msg} (its arguments do not fit)"


def shown(text: str) -> str:
    """Return a text as it is logged: cut to `MAX_TEXT`, without keys and tokens."""
    kept = _SECRETS.sub(r"\1…", text[:MAX_TEXT])
    return kept if len(text) <= MAX_TEXT else f"{kept}… ({len(text)} characters)"


def traceback_of(text: str) -> str:
    """Return a traceback as it is logged: cut to `MAX_TRACEBACK`, without keys and tokens."""
    text, half = _SECRETS.sub(r"\1…", text), MAX_TRACEBACK // 2
    return text if len(text) <= MAX_TRACEBACK else f"{text[:half]}\n…\n{text[-half:]}"


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


logger = logging.getLogger(__name__)


class TurnLog:
    """The turn log of one client session. It passes events on, and logs each turn that ends unless
    the turn had nothing to answer."""

    def __init__(
        self,
        show: Callable[[Event], None],
        report: Callable[[TurnTrace, TurnText], None] = lambda trace, text: None,
    ) -> None:
        """`show` is called with every event, before anything is logged about it. `report` is called
        with each turn that has ended."""
        self._show = show
        self._report = report
        self._exchanges = Exchanges()

    def show(self, event: Event) -> None:
        """Pass the next event on, and log the turn that it ends, if any."""
        self._show(event)
        match event:
            case Transcript() | TokenBurst() | Clause():
                self._exchanges.follow(event)
            case TurnTrace():
                self._end(event)
            case _:
                pass

    def _end(self, trace: TurnTrace) -> None:
        exchange = self._exchanges.end(trace.turn)
        self._report(trace, exchange)
        if trace.outcome != "abandoned":  # there was nothing to answer
            fields = {
                "turn": trace.turn,
                "outcome": trace.outcome,
                "transcript": exchange.said,
                "reply": exchange.reply.strip(),
                "heard": trace.heard,
                "voice_to_voice_ms": voice_to_voice_ms(trace),
            }
            logger.info("a turn is over", extra=fields)
