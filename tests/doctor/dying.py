"""Checks that libraries could ruin, each in its own way; they run in processes of their own."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator

from voiceloop.doctor.examine import MOST_WARNINGS, Case
from voiceloop.doctor.findings import Finding


def fine(case: Case) -> Iterator[Finding]:
    """Finds something, twice."""
    yield Finding("fine", "ok", f"preset {case.config.preset}", figures={"pid": os.getpid()})
    yield Finding("fine", "warning", "and more", "do something")


def crashes(case: Case) -> Iterator[Finding]:
    """Ends as where a library reads memory that is not its own, after a finding."""
    yield Finding("crashes", "ok", "so far")
    os.kill(os.getpid(), signal.SIGSEGV)


def killed(case: Case) -> Iterator[Finding]:
    """Ends as where the system has no memory left."""
    os.kill(os.getpid(), signal.SIGKILL)
    yield Finding("killed", "ok", "never told")


def leaves(case: Case) -> Iterator[Finding]:
    """Ends the program, as some libraries do where they cannot go on."""
    os._exit(3)
    yield Finding("leaves", "ok", "never told")


def hangs(case: Case) -> Iterator[Finding]:
    """Waits for a device for ever."""
    threading.Event().wait()
    yield Finding("hangs", "ok", "never told")


def raises(case: Case) -> Iterator[Finding]:
    """Raises what nobody foresaw, after a finding."""
    yield Finding("raises", "ok", "so far")
    raise RuntimeError("no such luck\nat line 2")


def talks(case: Case) -> Iterator[Finding]:
    """Writes to the terminal by every way there is."""
    print("noise")
    print("noise", file=sys.stderr)
    os.write(1, b"noise")
    os.write(2, b"noise")
    yield Finding("talks", "ok", "said")


def warns(case: Case) -> Iterator[Finding]:
    """Logs, as voiceloop does and as others do."""
    logging.getLogger("voiceloop.asr").warning("the GPU %s", "does not work")
    logging.getLogger("voiceloop.asr").info("nothing")
    logging.getLogger("torch").warning("noise")
    yield Finding("warns", "ok", "done")


def shouts(case: Case) -> Iterator[Finding]:
    """Logs more often than anybody would read."""
    for number in range(MOST_WARNINGS + 2):
        logging.getLogger("voiceloop.asr").warning("warning %d", number)
    yield Finding("shouts", "ok", "done")


def nothing(case: Case) -> Iterator[Finding]:
    """Finds nothing."""
    yield from ()


def interrupted(case: Case) -> Iterator[Finding]:
    """Gets what Ctrl-C sends."""
    os.kill(os.getpid(), signal.SIGINT)
    yield Finding("interrupted", "ok", "goes on")
