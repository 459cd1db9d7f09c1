"""Runs a measurement of the lab in the same way as `voiceloop bench` runs its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from voiceloop.bench.command import Bench, Found, measured
from voiceloop.bench.record import Progress
from voiceloop.errors import VoiceloopError
from voiceloop.settings.flags import parse

BenchT = TypeVar("BenchT", bound=Bench)


def carry_out(
    kind: type[BenchT], run: Callable[[BenchT, Progress], Found], argv: Sequence[str]
) -> int:
    """Parse a command line, measure, and print the record. Return the exit status."""
    try:
        command = parse({"run": kind}, ["run", *argv])
        if not isinstance(command, kind):
            print(sys.modules["__main__"].__doc__)
            return 0
        return measured(command, lambda progress: run(command, progress))
    except VoiceloopError as error:
        print(f"{error.message}\nhint: {error.hint}", file=sys.stderr)
        return 2
