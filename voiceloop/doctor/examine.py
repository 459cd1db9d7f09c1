"""Runs checks in another process, so that a crash of a library does not end the doctor.

A library may crash on a processor that it was not built for, be killed for lack of memory, wait for
a device for ever, or write to the terminal. If that happens, the running check is reported as
broken, and the checks after it run in a new process. Each finding is printed as soon as it is made:
a line for the finding and a line for its cure, or a JSON object. This module does not know what the
checks examine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from logging.handlers import BufferingHandler
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TextIO, cast

import msgspec
from rich.console import Console
from rich.text import Text

from voiceloop.catalog.cards import Kind, preset_models
from voiceloop.catalog.names import NO_MODEL, find, named
from voiceloop.doctor.findings import Finding, of_death, of_error
from voiceloop.errors import VoiceloopError
from voiceloop.process import configure, deaf_to_ctrl_c
from voiceloop.settings.config import Config
from voiceloop.terminal import printable

LIMIT_S = 180.0
"""Maximum time between two messages of the process, in seconds. Loading a large model takes about a
minute."""
TAIL_S = 5.0
"""Maximum seconds to wait for the exit status of a process that has closed its pipe."""
MOST_WARNINGS = 1000
"""Maximum number of warnings that are kept of one check: the first ones."""
COLOURS = {"ok": "green", "warning": "yellow", "broken": "bold red"}
MARGIN = 9
"""Width of the column of marks, in characters."""


@dataclass(frozen=True, slots=True)
class Case:
    """The input of all checks. It is sent to the process that runs the checks."""

    config: Config
    refused: tuple[str, ...] = ()
    """Message and hint of an error in the settings files; empty if there is no error. If there is
    one, `config` is made without these files."""
    file: Path | None = None
    """The file that --config names; None if the option is not given."""

    def absent(self, *kinds: Kind) -> VoiceloopError | None:
        """Return an error if a configured model of these kinds is not ready to be loaded.

        Nothing is downloaded or converted.
        """
        for key, (kind, name) in named(self.config).items():
            if kind not in kinds or name in NO_MODEL:
                continue
            try:
                find(name, kind, make=False)
            except VoiceloopError as error:
                if preset_models(self.config.preset).get(key) == name:
                    error.hint = f"voiceloop models pull {self.config.preset}"
                return error
        return None


Check = Callable[[Case], Iterator[Finding]]
"""A check. It yields each finding when it is made. An error that it raises becomes a finding."""
CheckEvent = str | Finding
"""A finding, or the name of a check that begins."""


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
                why = f"no answer in {limit_s:.0f} s"
                cure = "see what else this machine is doing, and try again"
                yield Finding(name or "process", "broken", why, cure)
            except EOFError:
                process.join(TAIL_S)
                yield of_death(name or "process", process.exitcode or 0)
        if not name:  # the process failed before its first check, and would fail again
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
    warnings = BufferingHandler(MOST_WARNINGS + 1)  # if it were full, it would empty itself
    warnings.addFilter(lambda record: len(warnings.buffer) < MOST_WARNINGS)
    warnings.addFilter(logging.Filter("voiceloop"))
    logging.basicConfig(handlers=[warnings], level=logging.WARNING)
    for name, check in checks.items():
        pipe.send(name)
        try:
            for finding in check(case):
                pipe.send(finding)
        except Exception as error:  # any error of a check is reported
            pipe.send(of_error(name, error))
        for record in warnings.buffer:
            pipe.send(Finding(name, "warning", record.getMessage()))
        warnings.flush()
    pipe.send(None)


@contextmanager
def printer(stream: TextIO, *, as_json: bool) -> Iterator[Callable[[CheckEvent], None]]:
    """Yield a function that prints to `stream`. On a terminal it also shows the running check."""
    console = _Console(file=stream, highlight=False, soft_wrap=True)
    status = console.status("trying")

    def show(event: CheckEvent) -> None:
        if isinstance(event, str):
            status.update(f"trying: {event}")
        elif as_json:
            stream.write(f"{msgspec.json.encode(event).decode()}\n")
            stream.flush()
        else:
            _print(console, event.mark, f"{event.check}: {event.text}")
            if event.cure:
                _print(console, "", f"cure: {event.cure}")

    if as_json:
        yield show
    else:
        with status:
            yield show


class _Console(Console):
    """A console that does not end the program when its pipe is closed."""

    def on_broken_pipe(self) -> None:
        """Raise the error of the closed pipe again, for the program to handle. rich itself would
        end the program."""
        raise


def _print(console: Console, mark: str, text: str) -> None:
    """Print a mark and a text beside it. On a terminal the text is wrapped to a column; elsewhere
    it is one line."""
    beside, colour = Text(printable(text)), COLOURS.get(mark, "")
    width = max(MARGIN, console.width - MARGIN)
    for line in beside.wrap(console, width) if console.is_terminal else [beside]:
        console.print(Text.assemble((f"{mark:<{MARGIN}}", colour), line))
        mark = ""
