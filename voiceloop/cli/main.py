"""The command line: finds the command that is meant, runs it, and prints its errors.

Heavy modules are imported only when a command needs them, so `--help` is quick. A mistake of the
user gives one line and a hint on stderr, and exit status 2. Any other exception is a defect.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import shutil
import sys
from collections.abc import Sequence

import voiceloop
from voiceloop.bench import command as bench
from voiceloop.catalog import command as catalog
from voiceloop.cli import conversations, manual
from voiceloop.cli.ask import Ask, ask
from voiceloop.cli.config import ShowConfig, show_config
from voiceloop.cli.devices import Devices, devices
from voiceloop.cli.say import Say, say
from voiceloop.cli.serve import serve
from voiceloop.cli.talk import TalkCommand, talk
from voiceloop.cli.transcribe import Transcribe, transcribe
from voiceloop.cli.voices import Voices, voices
from voiceloop.doctor.command import Doctor, doctor
from voiceloop.errors import OutOfMemory, VoiceloopError, first_cause, tells_of_no_memory
from voiceloop.replay.command import Replay, replay
from voiceloop.server.command import Serve
from voiceloop.settings.flags import Commands, Help, parse
from voiceloop.status import print_error
from voiceloop.terminal import printable

DESCRIPTION = "A real-time voice assistant that runs on your own machine."

READER_GONE = 141
"""The exit status if the program that reads stdout has ended, as in `voiceloop … | head`.

Shells report the same number for SIGPIPE: 128 + 13.
"""


class _Harmless(logging.Formatter):
    """A log formatter that escapes characters that could control a terminal, in tracebacks too."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, and escape each line of it and of its traceback."""
        return "\n".join(map(printable, super().format(record).split("\n")))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    KeyboardInterrupt is not caught; `__main__` handles it.
    """
    argv = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal whose encoding lacks a character, such as an ellipsis, shows a "?".
            stream.reconfigure(errors="replace")
    try:
        status = _run(argv)
        sys.stdout.flush()  # so a failed write raises here and not at interpreter exit
        return status
    except Exception as raised:
        return failed(raised)


def _run(argv: Sequence[str]) -> int:
    """Run the command that `argv` names, or print its help, and return the exit status."""
    if list(argv[:1]) == ["--version"]:
        print(f"voiceloop {voiceloop.__version__}")
        return 0
    kinds = {name: kind for name, (kind, _) in COMMANDS.items()}
    option, *shell = " ".join(argv[:2]).replace("=", " ").split(" ")
    if option == "--print-completion":
        print(manual.script("".join(shell)), end="")
        return 0
    if option == "--complete":  # the scripts of `--print-completion` call it
        found = manual.completions(argv[1:], kinds, GROUPS)
        print(*(f"{word}\t{text}" for word, text in found.items()), sep="\n")
        return 0
    command = parse(kinds, argv)
    if isinstance(command, Help):
        width = min(max(60, shutil.get_terminal_size().columns), 100)
        print(manual.help_text(command, kinds, GROUPS, DESCRIPTION, width))
        return 0
    if not isinstance(command, Serve):  # `serve` sets up a log of its own
        handler = logging.StreamHandler()
        handler.setFormatter(_Harmless("voiceloop: %(message)s"))
        logging.basicConfig(handlers=[handler], level=logging.WARNING)
    return dict(COMMANDS.values())[type(command)](command)


def failed(raised: Exception) -> int:
    """Print the error `raised` if the user can act on it, and return the exit status.

    Otherwise raise it again.
    """
    error = first_cause(raised)
    if isinstance(error, VoiceloopError):
        print_error(error)
        return 2
    if isinstance(error, BrokenPipeError):
        _close_output()
        return READER_GONE
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        _close_output()
        why = f"the output cannot be written: {error.strerror}"
        print_error(VoiceloopError(why, "make room or choose another disk"))
        return 2
    if tells_of_no_memory(error):
        print_error(
            OutOfMemory(
                f"there is not enough memory: {printable(str(error)) or type(error).__name__}",
                "close other programs, choose smaller models, or raise the limit of this process",
            )
        )
        return 2
    raise raised


def _close_output() -> None:
    """Redirect stdout to the null device, so that flushing it at exit cannot fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


COMMANDS: Commands = {
    "talk": (TalkCommand, talk),
    "serve": (Serve, serve),
    "ask": (Ask, ask),
    "transcribe": (Transcribe, transcribe),
    "say": (Say, say),
    "voices": (Voices, voices),
    **conversations.COMMANDS,
    "devices": (Devices, devices),
    **bench.COMMANDS,
    **catalog.COMMANDS,
    "replay": (Replay, replay),
    "config": (ShowConfig, show_config),
    "doctor": (Doctor, doctor),
}
"""All commands by name: the class of the arguments, and the function that runs the command."""

GROUPS: manual.Groups = {
    "talk to it": {
        "talk": "",
        "serve": "",
        "conversations": "List, show, export and delete kept conversations",
    },
    "files and texts": {"ask": "", "transcribe": "", "say": "", "voices": ""},
    "models": {"models": "List, fetch, verify and remove models"},
    "this machine": {
        "devices": "",
        "doctor": "",
        "config": "",
        "bench": "Measure latency, models, voices and recognisers",
        "replay": "",
    },
}
"""The commands as `voiceloop --help` lists them: for each title, commands and their descriptions.

Commands of two words are listed once, by their first word and with a description. The description
of any other command is empty here: help takes it from the docstring of its class.
"""
