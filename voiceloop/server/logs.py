"""The server's log: one JSON object a line, in which no client can write a line of its own.

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
from datetime import UTC, datetime
from typing import TextIO

from voiceloop.server.auth import KEY_PROTOCOL

TRANSCRIPTS = frozenset(("transcript", "reply", "heard", "instructions", "arguments", "text"))
"""Fields that hold what somebody said or wrote."""
MAX_TEXT = 1000
"""Characters of one text that are logged, the first ones."""
MAX_TRACEBACK = 4000
"""Characters of a traceback that are logged, half of them from its end."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
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
            "message": _text(_message(record)),
        }
        for name, value in vars(record).items():
            if name not in _STANDARD:
                line[f"{name}_" if name in _FIELDS else name] = self._field(name, value)
        if record.exc_info:
            line["exception"] = _traceback(self.formatException(record.exc_info))
        return json.dumps(line)

    def _field(self, name: str, value: object) -> object:
        if isinstance(value, str):
            hidden = name in TRANSCRIPTS and not self._transcripts
            return f"({len(value)} characters)" if hidden else _text(value)
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            # JSON has no word for what is not finite.
            return round(value, 6) if abs(value) < float("inf") else str(value)
        # Whatever it is, it may hold audio or what was said: only what it is can be shown.
        return f"({type(value).__name__})"


def start(
    stream: TextIO, *, level: int = logging.INFO, transcripts: bool = False
) -> logging.Handler:
    """Log what anybody says to `stream`; gives the handler of the root, to be removed again."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Formatter(transcripts=transcripts))
    logging.getLogger().addHandler(handler)
    logging.getLogger("voiceloop").setLevel(level)
    # On lower levels it shows headers, with keys in them, and frames, with speech in them.
    logging.getLogger("websockets").setLevel(max(level, logging.WARNING))
    return handler


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # logging itself would print the arguments as they are.
        return f"{record.msg} (its arguments do not fit)"


def _text(text: str) -> str:
    shown = _SECRETS.sub(r"\1…", text[:MAX_TEXT])
    return shown if len(text) <= MAX_TEXT else f"{shown}… ({len(text)} characters)"


def _traceback(text: str) -> str:
    text, half = _SECRETS.sub(r"\1…", text), MAX_TRACEBACK // 2
    return text if len(text) <= MAX_TRACEBACK else f"{text[:half]}\n…\n{text[-half:]}"
