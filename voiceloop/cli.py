"""The command line finds which command is meant, runs it, and prints its errors.

Nothing heavy is imported before a command needs it, so `--help` comes at once. A user's mistake is
one line and a hint on stderr, and exit status 2; anything else that escapes is a defect.
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
from voiceloop import completion, manual
from voiceloop.bench import command as bench
from voiceloop.catalog import command as catalog
from voiceloop.commands.ask import Ask, ask
from voiceloop.commands.config import ShowConfig, show_config
from voiceloop.commands.say import Say, say
from voiceloop.commands.talk import Talk, talk
from voiceloop.commands.transcribe import Transcribe, transcribe
from voiceloop.commands.voices import Voices, voices
from voiceloop.doctor.command import Doctor, doctor
from voiceloop.drafting.command import TrainDraft, train_draft
from voiceloop.errors import OutOfMemory, VoiceloopError, tells_of_no_memory
from voiceloop.flags import Commands, Help, parse
from voiceloop.replay.command import Replay, replay
from voiceloop.server.command import Serve, serve
from voiceloop.status import print_error
from voiceloop.terminal import printable

DESCRIPTION = "A real-time voice assistant that runs on your own machine."

READER_GONE = 141
"""The exit status of a command whose output nobody reads to its end: a shell's for SIGPIPE."""


class _Harmless(logging.Formatter):
    """Makes each line of a record harmless, those of a traceback too."""

    def format(self, record: logging.LogRecord) -> str:
        """The lines of a record and of its traceback, each made harmless."""
        return "\n".join(map(printable, super().format(record).split("\n")))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. Ctrl-C goes through: see `__main__`."""
    argv = sys.argv[1:] if argv is None else argv
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that has no character for a bar or an ellipsis is shown a question mark.
        sys.stdout.reconfigure(errors="replace")
    try:
        status = _run(argv)
        sys.stdout.flush()  # what cannot be written fails here, not at the interpreter's end
        return status
    except Exception as raised:
        return _failed(raised)


def _run(argv: Sequence[str]) -> int:
    """Do what the words of a command line say."""
    if list(argv[:1]) == ["--version"]:
        print(f"voiceloop {voiceloop.__version__}")
        return 0
    kinds = {name: kind for name, (kind, _) in COMMANDS.items()}
    option, *shell = " ".join(argv[:2]).replace("=", " ").split(" ")
    if option == "--print-completion":
        families = {word: told for words in GROUPS.values() for word, told in words.items()}
        print(completion.script("".join(shell), kinds, families), end="")
        return 0
    command = parse(kinds, argv)
    if isinstance(command, Help):
        width = min(max(60, shutil.get_terminal_size().columns), 100)
        print(manual.told(command, kinds, GROUPS, DESCRIPTION, width))
        return 0
    if not isinstance(command, Serve):  # its log is for programs to read
        handler = logging.StreamHandler()
        handler.setFormatter(_Harmless("voiceloop: %(message)s"))
        logging.basicConfig(handlers=[handler], level=logging.WARNING)
    return dict(COMMANDS.values())[type(command)](command)


def _failed(raised: Exception) -> int:
    """Tell a user what went wrong: the exit status. What they cannot have caused is raised."""
    error = raised
    while isinstance(error, ExceptionGroup):  # what tasks raise comes in groups
        error = error.exceptions[0]
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
    """Nothing more may be written to it, at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


COMMANDS: Commands = {
    "talk": (Talk, talk),
    "serve": (Serve, serve),
    "train-draft": (TrainDraft, train_draft),
    "ask": (Ask, ask),
    "transcribe": (Transcribe, transcribe),
    "say": (Say, say),
    "voices": (Voices, voices),
    **bench.COMMANDS,
    **catalog.COMMANDS,
    "replay": (Replay, replay),
    "config": (ShowConfig, show_config),
    "doctor": (Doctor, doctor),
}
"""What there is to do, by name: what it takes, and what runs it."""

GROUPS: manual.Groups = {
    "talk to it": {"talk": "", "serve": ""},
    "files and texts": {"ask": "", "transcribe": "", "say": "", "voices": ""},
    "models": {"models": "List, fetch, verify and remove models", "train-draft": ""},
    "this machine": {
        "doctor": "",
        "config": "",
        "bench": "Measure latency, models, voices, recognisers and the server",
        "replay": "",
    },
}
"""Where help lists which command, and what the commands of several words do."""
