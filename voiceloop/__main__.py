"""The command `voiceloop`, which is also `python -m voiceloop`.

Whoever presses Ctrl-C while the commands are still being imported gets one line, too, and so does
whoever leaves them no memory.
"""

import os
import sys


def main() -> int:
    """Run one command; returns the exit status."""
    _open_closed()
    try:
        from voiceloop.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("voiceloop: interrupted\n")
        return 130
    except (ImportError, MemoryError) as error:  # of the commands themselves
        from voiceloop.errors import tells_of_no_memory

        if not tells_of_no_memory(error):
            raise
        sys.stderr.write("voiceloop: there is not enough memory to begin\n")
        return 2


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
