"""The command `voiceloop`, which is also `python -m voiceloop`.

Whoever presses Ctrl-C while the commands are still being imported gets one line, too.
"""

import sys


def main() -> int:
    """Run one command; returns the exit status."""
    try:
        from voiceloop.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("voiceloop: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
