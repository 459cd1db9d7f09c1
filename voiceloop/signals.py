"""Signals that end a command: SIGTERM and SIGHUP do whatever Ctrl-C does at that moment."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from voiceloop.terminal import tell

ENDING = tuple(
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if name in signal.Signals.__members__  # Windows has no SIGHUP
)

AGAIN_S = 0.01
"""After so long an interruption that was lost is tried again."""
INTERRUPTED = "voiceloop: interrupted"
"""What is told of it."""

_came = [signal.SIGINT]
"""Signals that have come, behind one for interruptions that were none's."""


@contextmanager
def all_like_ctrl_c() -> Iterator[None]:
    """For as long as the context lasts, every one of them is Ctrl-C.

    What somebody else handles or ignores stays so: `nohup` ignores SIGHUP, and a shell Ctrl-C for
    what it runs in the background. Where this is not the main thread nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.getsignal(one) for one in ENDING}
    ignored = before[signal.SIGINT] is signal.SIG_IGN and hasattr(signal, "pthread_sigmask")
    if ignored:
        # Event loops see to Ctrl-C, and so to the others, only where it is not ignored: it is
        # blocked instead.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for one, handler in before.items():
        if handler is signal.SIG_DFL:
            signal.signal(one, _interrupt)
    hook, sys.unraisablehook = sys.unraisablehook, _unraised
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for one, handler in before.items():
            if handler is not None:  # else it was set by no Python program, and cannot be set again
                signal.signal(one, handler)
        if ignored:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def leave() -> NoReturn:
    """End the process, at once.

    The interpreter's own end would wait for threads that load, or abort where one is just importing
    a library; and its status may be that of a Ctrl-C that nobody has handled.
    """
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    with suppress(OSError):  # whoever read it may have gone, too
        tell(INTERRUPTED, sys.stderr)
        sys.stdout.flush()
    os._exit(status())


def note(number: int) -> None:
    """A signal has come, and is dealt with."""
    _came.append(signal.Signals(number))
    if _came[-1].name == "SIGHUP":
        _let_go_of_terminal()


def status() -> int:
    """The status of a command that the last signal has ended, as shells have it."""
    return 128 + _came[-1]


def _interrupt(number: int, frame: FrameType | None) -> None:
    note(number)
    handler: Any = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)


def _unraised(what: sys.UnraisableHookArgs) -> None:
    """Raise an interruption again that came where none can be, as while an object is deleted."""
    if isinstance(what.exc_value, KeyboardInterrupt):
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), _came[-1])).start()
    else:
        sys.__unraisablehook__(what)


def _let_go_of_terminal() -> None:
    """Where the terminal has gone, writing fails: what is still told goes nowhere."""
    for descriptor in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
