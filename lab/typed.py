"""Holds typed talks for programs of the lab, and saves what they find."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from voiceloop.bench.everyday import Talk, held, with_espeak
from voiceloop.bench.record import Progress
from voiceloop.engines import Engines
from voiceloop.outputs import part_beside
from voiceloop.process import configure
from voiceloop.settings.config import Config
from voiceloop.settings.flags import Command


def hold_all(
    talks: Sequence[Talk],
    hold: Callable[[Talk, Engines, Config], Awaitable[Sequence[Any]]],
    command: Command,
) -> list[Any]:
    """Hold all talks with the engines that the flags of `command` name. Return their records."""
    configure(command.settings.threads)
    with Progress(sys.stderr) as progress:
        return held(talks, hold, with_espeak(command), progress)


def save(path: Path, record: object) -> None:
    """Write a record to a file as JSON, in place of the file if it exists."""
    with part_beside(path) as part:
        part.write(json.dumps(record, indent=1).encode() + b"\n")
    Path(part.name).replace(path)
