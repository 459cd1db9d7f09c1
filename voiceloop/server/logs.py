"""The server's log for programs: one JSON object per line, in which no client can forge a line.

Line ends and all characters beyond ASCII, such as marks of text direction, are escaped. Audio, keys
and tokens are never logged. What was said is logged only with `--log-transcripts`; otherwise only
its length is logged. This module does not know what the server does; callers log a fixed message
with extra fields:

    log.info("session began", extra={"session": 3, "key": allowed.key})
    {"time": "2026-01-31T12:00:00.000Z", "level": "info", "logger": "voiceloop.server", "message":
    "session began", "session": 3, "key": "5f0c81d2a1b4"}
"""

from __future__ import annotations

import json
import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

from voiceloop.server.auth import KEY_PROTOCOL

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
