"""What Ctrl-C does to processes: a terminal sends it to those that a command has begun as well, and
only the command itself tells of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """Processes of multiprocessing that are begun within it do not hear Ctrl-C, not even while
    Python begins there; whoever began them ends them. This process hears it afterwards."""
    if os.name == "nt":
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # or it would begin now, and stop the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_in_silence() -> None:
    """In such a process: from now on, or if it has come already, Ctrl-C ends it without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.name != "nt":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
