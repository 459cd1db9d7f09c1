"""Signals that end a command: SIGTERM and SIGHUP have the same effect as Ctrl-C."""

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
"""Seconds after which a KeyboardInterrupt is raised again, if Python dropped it in a `__del__`."""
INTERRUPTED = "voiceloop: interrupted"
"""The message of an interrupted command."""

_came = [signal.SIGINT]
"""Received signals, the newest last; SIGINT stands for a KeyboardInterrupt without a signal."""


@contextmanager
def all_like_ctrl_c() -> Iterator[None]:
    """Treat each signal of `ENDING` as Ctrl-C while the context lasts.

    Signals that have a handler or are ignored stay so: `nohup` ignores SIGHUP, and shells ignore
    Ctrl-C for background jobs. Outside of the main thread nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.getsignal(one) for one in ENDING}
    ignored = before[signal.SIGINT] is signal.SIG_IGN and hasattr(signal, "pthread_sigmask")
    if ignored:
        # Event loops handle SIGINT only if it is not ignored, and the other signals use its
        # handler. So SIGINT is blocked instead.
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
            if handler is not None:  # None is a handler of C code, which Python cannot restore
                signal.signal(one, handler)
        if ignored:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def leave() -> NoReturn:
    """End the process at once, with a message and the exit status of the signal.

    A normal exit would wait for threads that load models, or abort if one is importing a library.
    After another signal than Ctrl-C, it might also have the exit status of Ctrl-C.
    """
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    with suppress(OSError):  # the terminal or the reader may be gone
        tell(INTERRUPTED, sys.stderr)
        sys.stdout.flush()
    os._exit(status())


def note(number: int) -> None:
    """Record a signal that the caller handles."""
    _came.append(signal.Signals(number))
    if _came[-1].name == "SIGHUP":
        _let_go_of_terminal()


def status() -> int:
    """Return the exit status of a command that the last signal ended: 128 + its number."""
    return 128 + _came[-1]


def _interrupt(number: int, frame: FrameType | None) -> None:
    note(number)
    handler: Any = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)


def _unraised(what: sys.UnraisableHookArgs) -> None:
    """Handle an exception that Python cannot raise, e.g. in a `__del__`, as `sys.unraisablehook`.

    If it is a KeyboardInterrupt, its signal is sent again after `AGAIN_S` seconds.
    """
    if isinstance(what.exc_value, KeyboardInterrupt):
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), _came[-1])).start()
    else:
        sys.__unraisablehook__(what)


def _let_go_of_terminal() -> None:
    """Redirect the standard streams of a closed terminal to the null device.

    Otherwise writing to them would fail.
    """
    for descriptor in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
