"""The command `voiceloop`, which is also `python -m voiceloop`.

Whoever presses Ctrl-C gets one line, also while the commands are still being imported, and so does
whoever leaves them no memory.
"""

from __future__ import annotations

import os
import signal
import sys

from voiceloop import signals


def main() -> int:
    """Run one command; returns the exit status."""
    _open_closed()
    with signals.all_like_ctrl_c():
        try:
            from voiceloop.cli import main as run

            status = run()
        except KeyboardInterrupt:
            signals.leave()
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
