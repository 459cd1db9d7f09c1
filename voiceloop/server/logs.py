"""The server's log for programs: one JSON object a line, in which no client can write its own.

Everything that is not plain ASCII is escaped, line ends and the marks that turn text around among
it. Audio is never logged, and neither are keys and tokens. What was said is, where it was asked for
(`--log-transcripts`): otherwise the log says how long it was. This module does not know what the
server does; whoever logs gives fields beside a fixed message:

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
"""The number of the visit that the current task serves; 0 where it serves none."""
TRANSCRIPTS = frozenset(("transcript", "reply", "heard", "instructions", "arguments", "text"))
"""Fields that hold what somebody said or wrote."""
MAX_TEXT = 1000
"""Characters of one text that are logged, the first ones."""
MAX_TRACEBACK = 4000
"""Characters of a traceback that are logged, half of them from its end."""

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has."""
_FIELDS = frozenset(("time", "level", "logger", "message", "exception"))
_SECRETS = re.compile(
    rf"({re.escape(KEY_PROTOCOL)}|Bearer\s+|key=|token=|secret=)[^\s,;&\"']+", re.IGNORECASE
)


class Formatter(logging.Formatter):
    """Writes a record as one line of JSON, whatever is in it."""

    def __init__(self, *, transcripts: bool = False) -> None:
        """`transcripts`: log what was said too."""
        super().__init__()
        self._transcripts = transcripts

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, without a line end."""
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
            # JSON has no word for what is not finite.
            return round(value, 6) if abs(value) < float("inf") else str(value)
        # Whatever it is, it may hold audio or what was said: only what it is can be shown.
        return f"({type(value).__name__})"


def start(
    stream: TextIO, formatter: logging.Formatter, *, level: int = logging.INFO
) -> logging.Handler:
    """Log what anybody says to `stream`; gives the handler of the root, to be removed again."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    handler.addFilter(_note_visit)
    logging.getLogger().addHandler(handler)
    logging.getLogger("voiceloop").setLevel(level)
    # On lower levels it shows headers, with keys in them, and frames, with speech in them.
    logging.getLogger("websockets").setLevel(max(level, logging.WARNING))
    return handler


def _note_visit(record: logging.LogRecord) -> bool:
    """Say in a record whose it is; it is kept."""
    if visit := VISIT.get():
        record.visit = visit
    return True


def message_of(record: logging.LogRecord) -> str:
    """What a record says."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # logging itself would print the arguments as they are.
        return f"{record.msg} (its arguments do not fit)"


def shown(text: str) -> str:
    """As much of a text as is logged, without keys and tokens."""
    kept = _SECRETS.sub(r"\1…", text[:MAX_TEXT])
    return kept if len(text) <= MAX_TEXT else f"{kept}… ({len(text)} characters)"


def traceback_of(text: str) -> str:
    """As much of a traceback as is logged, likewise."""
    text, half = _SECRETS.sub(r"\1…", text), MAX_TRACEBACK // 2
    return text if len(text) <= MAX_TRACEBACK else f"{text[:half]}\n…\n{text[-half:]}"
