"""Runs checks in another process, so that a crash of a library does not end the doctor.

A library may crash on a processor that it was not built for, be killed for lack of memory, wait for
a device for ever, or write to the terminal. If that happens, the running check is reported as
broken, and the checks after it run in a new process. This module does not know what the checks
examine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import cast

from voiceloop.doctor.case import Case
from voiceloop.doctor.findings import Finding, of_death, of_error, of_hang
from voiceloop.processes import deaf_to_ctrl_c
from voiceloop.startup import configure

LIMIT_S = 180.0
"""Maximum time between two messages of the process, in seconds. Loading a large model takes about a
minute."""
TAIL_S = 5.0
"""Maximum seconds to wait for the exit status of a process that has closed its pipe."""
BEGINNING = "process"
"""The name that is reported as broken if the process fails before its first check."""

Check = Callable[[Case], Iterator[Finding | None]]
"""A check. It yields each finding when it is made, and None to say that it is still at work."""
CheckEvent = str | Finding
"""A finding, or the name of a check that begins or is still at work."""


def examine(
    case: Case, checks: Mapping[str, Check], limit_s: float = LIMIT_S
) -> Generator[CheckEvent, None, None]:
    """Run `checks` in order in another process. Yield the name of each check when it begins, and
    its findings. If the generator is closed, the process ends."""
    left = dict(checks)
    while left:
        name = ""
        with _process(case, left) as (process, pipe):
            try:
                while pipe.poll(limit_s):
                    event = cast("CheckEvent | None", pipe.recv())
                    if event is None:
                        return
                    if isinstance(event, str):
                        name = event
                    yield event
                yield of_hang(name or BEGINNING, limit_s)
            except EOFError:
                process.join(TAIL_S)
                yield of_death(name or BEGINNING, process.exitcode or 0)
        if not name:
            return
        after = list(left).index(name) + 1
        left = dict(list(left.items())[after:])


@contextmanager
def _process(case: Case, checks: Mapping[str, Check]) -> Iterator[tuple[SpawnProcess, Connection]]:
    """Start a process that runs `checks`. Yield the process, and the pipe on which it reports. Kill
    the process when the context ends."""
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_run, args=(case, checks, theirs), daemon=True)
    with deaf_to_ctrl_c():
        process.start()
    theirs.close()
    with ours:
        try:
            yield process, ours
        finally:
            process.kill()
            process.join()


def _run(case: Case, checks: Mapping[str, Check], pipe: Connection) -> None:
    """Run `checks` in this process and report on `pipe`. All other output is discarded."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    configure(case.config.threads)
    warnings = _Warnings()
    logging.basicConfig(handlers=[warnings], level=logging.WARNING)
    for name, check in checks.items():
        pipe.send(name)
        try:
            for finding in check(case):
                pipe.send(finding if finding is not None else name)
        except Exception as error:  # any error of a check is reported
            pipe.send(of_error(name, error))
        for message in warnings.taken():
            pipe.send(Finding(name, "warning", message))
    pipe.send(None)


class _Warnings(logging.Handler):
    """A log handler that collects warnings of voiceloop itself."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message, if it comes from a logger of voiceloop."""
        if record.name.startswith("voiceloop."):
            self._messages.append(record.getMessage())

    def taken(self) -> list[str]:
        """Return the messages since the last call."""
        messages, self._messages = self._messages, []
        return messages
