"""The command `voiceloop`, which is also `python -m voiceloop`.

Whoever presses Ctrl-C gets one line, also while the commands are still being imported, and so does
whoever leaves them no memory.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress

from voiceloop.processes import INTERRUPTED

AGAIN_S = 0.01
"""After so long a Ctrl-C comes again that Python has dropped."""


def main() -> int:
    """Run one command; returns the exit status."""
    _open_closed()
    if os.name != "nt":
        sys.unraisablehook = _unraisable
    try:
        from voiceloop.cli import main as run

        status = run()
    except KeyboardInterrupt:
        _ends_at_once()
        return _interrupted()
    except (ImportError, MemoryError) as error:  # of the commands themselves
        from voiceloop.errors import tells_of_no_memory

        if not tells_of_no_memory(error):
            raise
        sys.stderr.write("voiceloop: there is not enough memory to begin\n")
        status = 2
    _ends_at_once()
    return status


def _ends_at_once() -> None:
    """From here on Ctrl-C ends the process and tells nothing. Python would go on with its own end,
    and show a traceback of whatever it was at."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _unraisable(dropped: sys.UnraisableHookArgs) -> None:
    """Python drops what is raised in finalizers, Ctrl-C too: that comes again, outside of them."""
    if dropped.exc_type is KeyboardInterrupt:
        again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(dropped)


def _interrupted() -> int:
    """Say so; returns the status, if nothing runs any more that would disturb Python's own end."""
    with suppress(OSError):  # nobody reads it
        sys.stderr.write("voiceloop: interrupted\n")
    if threading.active_count() > 1:
        # A library that is just being imported would abort there, or be waited for.
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(INTERRUPTED)
    return INTERRUPTED


def _open_closed() -> None:
    """Whoever closes a standard stream wants nothing of it: what is written to it goes nowhere, and
    no file that is opened later takes its place."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
