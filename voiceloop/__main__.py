"""Runs the command `voiceloop`; `python -m voiceloop` does the same.

Ctrl-C ends the command with one line instead of a traceback, also while modules are still being
imported. Too little memory during the import gives one line, too.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run one command and return its exit status."""
    _open_closed()
    try:
        from voiceloop import process  # here, since this takes long enough for a Ctrl-C
    except KeyboardInterrupt:
        sys.stderr.write("voiceloop: interrupted\n")
        os._exit(128 + signal.SIGINT)
    with process.all_like_ctrl_c():
        try:
            from voiceloop.cli.main import main as run

            status = run()
        except KeyboardInterrupt:
            process.leave()
        except (ImportError, MemoryError) as error:  # raised while the commands were imported
            from voiceloop.errors import tells_of_no_memory

            if not tells_of_no_memory(error):
                raise
            sys.stderr.write("voiceloop: there is not enough memory to begin\n")
            status = 2
    _ends_at_once()
    return status


def _ends_at_once() -> None:
    """Let Ctrl-C end the process without a message from here on.

    By default Python shows a traceback if Ctrl-C comes during its shutdown.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_closed() -> None:
    """Open each closed standard stream on the null device.

    Otherwise the next file that is opened would get the descriptor of the closed stream. Text that
    is printed on the stream would then end up in that file.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
