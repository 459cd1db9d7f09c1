"""The commands. Each reads its options, opens what it needs, and prints what it finds.

Nothing heavy is imported before a command needs it, so `--help` comes at once. A user's mistake is
one line and a hint on stderr, and exit status 2; anything else that escapes is a defect.
"""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import voiceloop
from voiceloop import completion, manual, signals, startup
from voiceloop.bench import command as bench
from voiceloop.bundled import STARTER_HEARS
from voiceloop.catalog import command as catalog
from voiceloop.choosing import Choosing, settle
from voiceloop.commands.config import ShowConfig, show_config
from voiceloop.commands.conversation import conversation, report
from voiceloop.commands.say import Say, say
from voiceloop.commands.transcribe import Transcribe, transcribe
from voiceloop.doctor.command import Doctor, doctor
from voiceloop.drafting.command import TrainDraft, train_draft
from voiceloop.errors import (
    ConfigError,
    DeviceError,
    ModelNotFound,
    OutOfMemory,
    VoiceloopError,
    tells_of_no_memory,
)
from voiceloop.flags import POSITIONAL, Command, Commands, Help, parse, written
from voiceloop.outputs import keep
from voiceloop.replay.command import Replay, replay
from voiceloop.server.command import Serve, serve
from voiceloop.status import (
    engine_names,
    examples,
    loading,
    notes,
    print_error,
    tts_name,
)
from voiceloop.terminal import printable, tell

if TYPE_CHECKING:
    from voiceloop.audio.devices import Speaker
    from voiceloop.audio.soundcard import SoundcardSpeaker

SPEAKER_RATE = 24_000
"""Hertz of what `ask` plays, whatever the synthesizer gives."""
DESCRIPTION = "A real-time voice assistant that runs on your own machine."

READER_GONE = 141
"""The status of a command whose output nobody reads to its end, likewise."""


class Ask(Command, frozen=True, kw_only=True):
    """Answer the spoken questions of an audio file, as a conversation."""

    examples = (
        "voiceloop ask question.wav --out reply.wav",
        "voiceloop ask talk.wav --preset cpu --play --trace trace.json",
    )

    file: Annotated[Path, POSITIONAL, written("IN.wav")]
    """The recording: WAV, FLAC, OGG, AIFF or MP3; any rate from 8 to 192 kHz."""
    out: Annotated[Path | None, written("R.wav")] = None
    """Write what the speaker plays."""
    play: bool = False
    """Let the replies be heard, where there is a speaker."""
    trace: Annotated[Path | None, written("T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""
    json: bool = False
    """Print one JSON object on one line for each turn."""
    pace: Literal["realtime", "max"] = "realtime"
    """As time passes, or as fast as possible; then latencies are null, and turns may end
    elsewhere."""
    sequential: bool = False
    """Run each stage after the last; the reference that overlap is measured against."""
    full_duplex: bool = False
    """Let the recording go on and interrupt replies."""


class Talk(Choosing, frozen=True, kw_only=True):
    """Talk at the microphone and be answered aloud, until Ctrl-C."""

    examples = ("voiceloop talk --preset cpu", "voiceloop talk --preset cpu --headphones")

    input: Annotated[str | None, written("NAME")] = None
    """The microphone by a part of its name, or `list`; none: the system's default."""
    output: Annotated[str | None, written("NAME")] = None
    """The speaker, likewise."""
    headphones: bool = False
    """Listen while it speaks, so that you can interrupt; a loudspeaker would do so too."""
    trace: Annotated[Path | None, written("T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""
    json: bool = False
    """Print one JSON object on one line for each turn."""


class Voices(Command, frozen=True, kw_only=True):
    """List the voices that are here, by language, and those that can be pulled."""

    uses = ("tts",)
    examples = ("voiceloop voices --preset cpu", "voiceloop voices --tts.engine espeak --json")

    json: bool = False
    """Print one JSON object on one line for each voice."""


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


def talk(command: Talk) -> int:
    """`voiceloop talk`."""
    from voiceloop.audio.devices import Centred
    from voiceloop.audio.soundcard import SoundcardMicrophone, SoundcardSpeaker

    keep([command.config], {"--trace": command.trace})
    if "list" in (command.input, command.output):
        return list_devices()
    command, told = settle(command, looks=sys.stderr.isatty())
    with (
        SoundcardMicrophone(command.input) as microphone,
        SoundcardSpeaker(command.output) as speaker,
        conversation(
            command.settings, trace=command.trace, as_json=command.json, timed=True
        ) as talked,
    ):
        talked.note(f"running {engine_names(command.settings)}")
        for note in (*told.all(), *notes(command.settings)):
            talked.note(note)
        talked.note(f"ask for example: {' '.join(examples(command.settings)[:2])}")
        microphone.start()
        speaker.start()
        hint = "" if command.headphones else "; with headphones on, --headphones lets you interrupt"
        talked.note(f"listening to '{microphone.name}', Ctrl-C ends{hint}")
        silent = f"hearing only silence from '{microphone.name}': is it muted?"
        with suppress(KeyboardInterrupt):
            heard = Centred(microphone, partial(talked.note, silent))
            talked.run(heard, speaker, lasts=True, full_duplex=command.headphones)
        if lost := microphone.lost / microphone.device_rate:
            talked.note(f"{lost:.1f} s of sound were not heard: the machine was too busy")
        if flaws := microphone.overflows + speaker.underflows:
            talked.note(
                f"sound broke off {flaws} time{'s' * (flaws != 1)}: the machine was too busy"
            )
        talked.note("goodbye")
    return 0


def list_devices() -> int:
    """Print the microphones and speakers that `talk` can be given."""
    from voiceloop.audio.portaudio import NAMES, names

    found = {kind: names(kind) for kind in NAMES}
    for kind, title in NAMES.items():
        print(f"--{kind}, a {title}:")
        for name in found[kind]:
            tell(f"  {name}")
    return 0


def ask(command: Ask) -> int:
    """`voiceloop ask`."""
    from voiceloop.audio.devices import Centred, FileMicrophone, NullSpeaker, Recorded, WavSpeaker
    from voiceloop.turn.overlap import EVERYTHING, SEQUENTIAL

    keep([command.file, command.config], {"--out": command.out, "--trace": command.trace})
    timed = command.pace == "realtime"
    with ExitStack() as stack:
        # What can be wrong with the files is found before the models are loaded.
        microphone = stack.enter_context(FileMicrophone(command.file, pace=command.pace))
        card, unheard = _card(command, stack)
        speaker: Speaker = card or NullSpeaker(SPEAKER_RATE, pace=command.pace)
        if command.out:
            file = stack.enter_context(WavSpeaker(command.out, speaker.rate, pace=command.pace))
            speaker = Recorded(card, file) if card else file
        conversing = conversation(
            command.settings, trace=command.trace, as_json=command.json, timed=timed
        )
        asked = stack.enter_context(conversing)
        overlap = SEQUENTIAL if command.sequential else EVERYTHING
        try:
            asked.run(
                Centred(microphone), speaker, full_duplex=command.full_duplex, overlap=overlap
            )
        except KeyboardInterrupt:
            asked.note("interrupted: the files hold what had sounded and the turns that were over")
            return signals.status()
        if microphone.info.warning:
            asked.note(microphone.info.warning)
        if all(trace.outcome == "abandoned" for trace in asked.traces):
            asked.note(f"no speech was heard in {command.file}")
        if command.settings.asr.hears_no_people:
            asked.note(STARTER_HEARS)
    if timed and not command.json:
        report(asked.traces)
    if unheard:
        file = f"open {command.out}" if command.out else "add --out reply.wav and open that file"
        why = f"nothing could be played here: {unheard.message}; {unheard.hint}"
        tell(f"voiceloop: {file} to hear the replies; {why}", sys.stderr)
    return 0


def _card(command: Ask, stack: ExitStack) -> tuple[SoundcardSpeaker | None, DeviceError | None]:
    """The speaker, if replies are to be heard, or why they cannot be."""
    from voiceloop.audio.soundcard import SoundcardSpeaker

    if not command.play:
        return None, None
    if command.pace == "max":
        raise ConfigError("nothing can be heard at --pace max", "leave out --pace or --play")
    try:
        card = stack.enter_context(SoundcardSpeaker())
        card.start()
    except DeviceError as error:
        return None, error
    return card, None


def voices(command: Voices) -> int:
    """`voiceloop voices`."""
    settings, tts, absent = command.settings.tts, None, None
    with loading(tts_name(settings), sys.stderr):
        startup.configure(command.settings.threads)
        from voiceloop.engines import registered
        from voiceloop.loading import load_tts
        from voiceloop.voicelist import listed, table

        try:
            tts = load_tts(command.settings)
        except ModelNotFound as error:  # the list says how to get it, and what else there is
            absent = error
        found = listed(settings, tts)
    if command.json:
        print(*(json.dumps(one.record()) for one in found), sep="\n")
    else:
        for line in table(settings, tts, found):
            tell(line)
        others = [name for name in registered("tts") if name != settings.engine]
        tell(f"other engines, by --tts.engine: {', '.join(others)}")
    if absent:
        print_error(absent)
    return 0


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
