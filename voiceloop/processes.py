"""Keeps Ctrl-C away from child processes.

A terminal sends Ctrl-C to the command and to all its children, but only the command should report
it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """Block Ctrl-C while the caller starts processes of multiprocessing in this context.

    The new processes inherit the block, so Ctrl-C does not reach them even while their Python
    starts. The caller has to end them. A Ctrl-C that the caller gets meanwhile arrives when the
    context ends.
    """
    if os.name == "nt":
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # otherwise it would start within the context and unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_in_silence() -> None:
    """Let Ctrl-C end this child process without a message, even if it was sent while blocked.

    A process that was started within `deaf_to_ctrl_c` calls this.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.name != "nt":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
