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
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

import voiceloop
from voiceloop import completion, manual
from voiceloop.bench import command as bench
from voiceloop.bundled import STARTER_HEARS
from voiceloop.catalog import command as catalog
from voiceloop.config import SECTIONS, Config, flatten
from voiceloop.drafting.command import TrainDraft, train_draft
from voiceloop.errors import AudioError, ConfigError, DeviceError, VoiceloopError
from voiceloop.flags import Command, Commands, Help, parse
from voiceloop.outputs import keep, replacing
from voiceloop.server.command import Serve, serve
from voiceloop.settingsfile import settings_file
from voiceloop.status import (
    LOADING_THREAD,
    asr_name,
    engine_names,
    examples,
    loading,
    notes,
    tts_name,
)

if TYPE_CHECKING:
    from voiceloop.audio.devices import Microphone, Speaker
    from voiceloop.audio.files import AudioFile
    from voiceloop.audio.soundcard import SoundcardSpeaker
    from voiceloop.engines import Asr, Engines, Vad
    from voiceloop.trace.view import View
    from voiceloop.types import Event, TurnTrace, Word

SPEAKER_RATE = 24_000
"""Hertz of what `ask` plays, whatever the synthesizer gives."""
DESCRIPTION = "A real-time voice assistant that runs on your own machine."

INTERRUPTED = 130
"""The status of a command that Ctrl-C has ended, as shells have it."""
READER_GONE = 141
"""The status of a command whose output nobody reads to its end, likewise."""


class Ask(Command, frozen=True, kw_only=True):
    """Answer the spoken questions of an audio file, as a conversation."""

    examples = (
        "voiceloop ask question.wav --out reply.wav",
        "voiceloop ask talk.wav --preset cpu --play --trace trace.json",
    )

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN.wav")]
    """The recording: WAV, FLAC, OGG, AIFF or MP3; any rate from 8 to 192 kHz."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="R.wav")] = None
    """Write what the speaker plays."""
    play: bool = False
    """Let the replies be heard, where there is a speaker."""
    trace: Annotated[Path | None, tyro.conf.arg(metavar="T.json")] = None
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


class Talk(Command, frozen=True, kw_only=True):
    """Talk at the microphone and be answered aloud, until Ctrl-C."""

    examples = ("voiceloop talk --preset cpu", "voiceloop talk --preset cpu --headphones")

    input: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The microphone by a part of its name, or `list`; none: the system's default."""
    output: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The speaker, likewise."""
    headphones: bool = False
    """Listen while it speaks, so that you can interrupt; a loudspeaker would do so too."""
    trace: Annotated[Path | None, tyro.conf.arg(metavar="T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""
    json: bool = False
    """Print one JSON object on one line for each turn."""


class Transcribe(Command, frozen=True, kw_only=True):
    """Write down what is said in audio files."""

    uses = ("vad", "asr", "turns")
    examples = (
        "voiceloop transcribe a.wav b.flac",
        "voiceloop transcribe --json --preset cpu a.wav",
    )

    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILES")]
    """Recordings: WAV, FLAC, OGG, AIFF or MP3; any rate from 8 to 192 kHz."""
    json: bool = False
    """Print one JSON object on one line for each file."""
    streaming: bool = False
    """Recognise as a live stream is recognised, with partial decodes."""


class Say(Command, frozen=True, kw_only=True):
    """Speak a text aloud, or into a file."""

    uses = ("tts",)
    examples = (
        'voiceloop say "It is 4:30, and 12.5 % are done." --preset cpu',
        'voiceloop say "Bom dia." --tts.voice pt --out s.wav',
    )

    text: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TEXT")]
    """What to say."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="S.wav")] = None
    """Write this file; none: the speaker plays it."""
    output: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The speaker, by a part of its name; none: the system's default."""


class Voices(Command, frozen=True, kw_only=True):
    """List the voices, and the languages that they speak."""

    uses = ("tts",)
    examples = ("voiceloop voices --preset cpu", "voiceloop voices --tts.engine espeak --json")

    json: bool = False
    """Print one JSON object on one line for each voice."""


class Replay(Command, frozen=True, kw_only=True):
    """Play a scripted conversation on a virtual clock."""

    examples = ("voiceloop replay bug.toml", "voiceloop replay bug.toml --trace trace.json")
    docs = "docs/replay.md"

    scenario: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SCENARIO.toml")]
    """Who speaks when, what each stage costs, and what is expected; docs/replay.md tells how."""
    json: bool = False
    """Print one JSON object on one line for each event and each turn."""
    trace: Annotated[Path | None, tyro.conf.arg(metavar="T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""
    seed: Annotated[int, tyro.conf.arg(metavar="N")] = 0
    """Draws the order of tasks that are ready at once, which is to make no difference."""


class ShowConfig(Command, frozen=True, kw_only=True):
    """Show every setting, its value, and where that comes from."""

    uses = SECTIONS
    examples = ("voiceloop config --preset cpu", "voiceloop config --toml > mine.toml")

    toml: bool = False
    """Print a TOML file of all settings to edit, with a comment for each."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that has no character for a bar or an ellipsis is shown a question mark.
        sys.stdout.reconfigure(errors="replace")
    try:
        status = _run(argv)
        sys.stdout.flush()  # what cannot be written fails here, not at the interpreter's end
        return status
    except (VoiceloopError, OSError, ExceptionGroup) as raised:
        return _failed(raised)
    except KeyboardInterrupt:
        print("voiceloop: interrupted", file=sys.stderr)
        if any(thread.name == LOADING_THREAD for thread in threading.enumerate()):
            # A library that is just being imported would abort at the interpreter's own end.
            sys.stdout.flush()
            os._exit(INTERRUPTED)
        return INTERRUPTED


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
        print(_told(command, kinds))
        return 0
    if not isinstance(command, Serve):  # its log is for programs to read
        logging.basicConfig(format="voiceloop: %(message)s", level=logging.WARNING)
    return dict(COMMANDS.values())[type(command)](command)


def _told(asked: Help, kinds: Mapping[str, type[Command]]) -> str:
    """The help that was asked for, as wide as the terminal."""
    width = min(max(60, shutil.get_terminal_size().columns), 100)
    if not asked.name:
        return manual.overview(kinds, GROUPS, DESCRIPTION, width)
    if asked.name in kinds:
        return manual.page(kinds[asked.name], asked, width)
    members = {name: kind for name, kind in kinds.items() if name.startswith(f"{asked.name} ")}
    return manual.family(asked.name, members, GROUPS, width)


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
    raise raised


def _close_output() -> None:
    """Nothing more may be written to it, at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def talk(command: Talk) -> int:
    """`voiceloop talk`."""
    from voiceloop.audio.soundcard import SoundcardMicrophone, SoundcardSpeaker

    keep([command.config], {"--trace": command.trace})
    if "list" in (command.input, command.output):
        return list_devices()
    with (
        SoundcardMicrophone(command.input) as microphone,
        SoundcardSpeaker(command.output) as speaker,
        conversation(command, timed=True) as talked,
    ):
        talked.note(f"running {engine_names(command.settings)}")
        for note in notes(command.settings):
            talked.note(note)
        talked.note(f"ask for example: {' '.join(examples(command.settings)[:2])}")
        microphone.start()
        speaker.start()
        hint = "" if command.headphones else "; with headphones on, --headphones lets you interrupt"
        talked.note(f"listening to '{microphone.name}', Ctrl-C ends{hint}")
        with suppress(KeyboardInterrupt):
            talked.run(microphone, speaker, lasts=True, full_duplex=command.headphones)
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
        print(*(f"  {name}" for name in found[kind]), sep="\n")
    return 0


def ask(command: Ask) -> int:
    """`voiceloop ask`."""
    from voiceloop.audio.devices import FileMicrophone, NullSpeaker, Recorded, WavSpeaker
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
        asked = stack.enter_context(conversation(command, timed=timed))
        overlap = SEQUENTIAL if command.sequential else EVERYTHING
        try:
            asked.run(microphone, speaker, full_duplex=command.full_duplex, overlap=overlap)
        except KeyboardInterrupt:
            asked.note("interrupted: the files hold what had sounded and the turns that were over")
            return INTERRUPTED
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
        print(f"voiceloop: {file} to hear the replies; {why}", file=sys.stderr)
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


class Conversation:
    """A session with loaded engines, shown to the user; `traces` are its turns so far."""

    def __init__(self, engines: Engines, settings: Config, view: View) -> None:
        self.traces: list[TurnTrace] = []
        self._engines = engines
        self._settings = settings
        self._view = view
        self._end: Callable[[], None]
        """Ends the conversation, while there is one."""
        self._unshown: OSError | None = None
        """Why nothing can be shown any more."""

    def note(self, text: str) -> None:
        """Tell the user."""
        from voiceloop.types import Notice

        self._view.show(Notice(text))

    def run(
        self, microphone: Microphone, speaker: Speaker, *, lasts: bool = False, **options: Any
    ) -> None:
        """Converse until the microphone has finished; `options` are the session's. One that
        `lasts` has idle time, in which the language model is calibrated if it is not."""
        import anyio

        from voiceloop.calibration.idle import calibrate_in_idle_time
        from voiceloop.calibration.keeping import cache_folder
        from voiceloop.session import Session

        session = Session(self._engines, microphone, speaker, self._settings, self._show, **options)

        async def converse() -> None:
            async with anyio.create_task_group() as tasks:
                self._end = tasks.cancel_scope.cancel
                if lasts:
                    tasks.start_soon(calibrate_in_idle_time, self._engines, cache_folder())
                await session.run()
                tasks.cancel_scope.cancel()

        anyio.run(converse)
        if self._unshown:
            raise self._unshown

    def _show(self, event: Event) -> None:
        from voiceloop.types import TurnTrace

        if isinstance(event, TurnTrace):
            self.traces.append(event)
        try:
            self._view.show(event)
        except OSError as error:  # no fault of the turn's: whoever read the output has gone
            self._unshown = error
            self._end()


@contextmanager
def conversation(command: Ask | Talk, *, timed: bool) -> Iterator[Conversation]:
    """Load the engines for a conversation, and show it; in the end its trace is written, also where
    it fails after a turn: a sound card is unplugged."""
    from voiceloop.trace.record import to_perfetto

    failure: Exception | None = None
    with ExitStack() as stack:
        trace_file = stack.enter_context(replacing(command.trace)) if command.trace else None
        with loading(engine_names(command.settings), sys.stderr):
            from voiceloop.loading import open_engines
            from voiceloop.trace.view import open_view

            engines = stack.enter_context(open_engines(command.settings))
        with open_view(sys.stdout, sys.stderr, as_json=command.json, timed=timed) as view:
            held = Conversation(engines, command.settings, view)
            try:
                yield held
            except Exception as error:
                if not held.traces:
                    raise
                failure = error
        if trace_file:
            trace_file.write(json.dumps(to_perfetto(held.traces)))
    if failure:
        raise failure


def report(traces: Sequence[TurnTrace]) -> None:
    """Print where the time went: of one turn, or of the median one with the figures of all."""
    from voiceloop.trace.record import Mark, endpoint_to_sound_ms, percentiles, voice_to_voice_ms
    from voiceloop.trace.waterfall import waterfall

    answered = [trace for trace in traces if voice_to_voice_ms(trace) is not None]
    if not answered:
        return
    middle = sorted(answered, key=lambda trace: voice_to_voice_ms(trace) or 0)[len(answered) // 2]
    print()
    if len(answered) > 1:
        transcripts = [
            (trace.marks[Mark.TRANSCRIPT_FINAL] - trace.marks[Mark.ENDPOINT]) * 1000
            for trace in answered
        ]
        drafted = sum(trace.counters.get("drafted", 0) for trace in answered)
        accepted = sum(trace.counters.get("accepted", 0) for trace in answered)
        for name, values in (
            ("voice to voice", [voice_to_voice_ms(trace) or 0 for trace in answered]),
            ("endpoint to final transcript", transcripts),
            ("endpoint to first sound", [endpoint_to_sound_ms(trace) or 0 for trace in answered]),
        ):
            figures = percentiles(values)
            print(f"{name:<29} p50 {figures['p50']:5.0f} ms   p95 {figures['p95']:5.0f} ms")
        share = f"{accepted / drafted:.0%}" if drafted else "none"
        print(f"{len(answered)} turns answered, draft tokens accepted: {share}; the median turn:")
        print()
    print("\n".join(waterfall(middle)))


def transcribe(command: Transcribe) -> int:
    """`voiceloop transcribe`."""
    from voiceloop.audio.files import AudioFile
    from voiceloop.trace.view import printable

    refused, loaded = 0, None
    for path in command.files:
        try:
            with AudioFile(path) as file:
                loaded = loaded or _load_hearing(command.settings)
                if len(command.files) > 1 and not command.json:
                    print(f"{printable(str(path))}:", flush=True)
                _transcribe_file(file, *loaded, command)
        except AudioError as error:  # the other files are still worth reading
            print_error(error)
            refused += 1
    if command.settings.asr.hears_no_people and refused < len(command.files):
        print(f"voiceloop: {STARTER_HEARS}", file=sys.stderr)
    return 2 if refused else 0


def _load_hearing(settings: Config) -> tuple[Asr, Vad]:
    """What hears, loaded when there is a file to be heard."""
    with loading(asr_name(settings.asr), sys.stderr):
        from voiceloop.loading import load_asr, load_vad

        return load_asr(settings), load_vad(settings)


def _transcribe_file(file: AudioFile, asr: Asr, vad: Vad, command: Transcribe) -> None:
    from voiceloop.asr.whole import listen
    from voiceloop.trace.view import printable

    began = time.perf_counter()
    words: list[Word] = []
    settings = command.settings
    for transcript in listen(
        file.blocks(), vad, asr, settings.asr, settings.turns, partials=command.streaming
    ):
        if transcript.final:
            words += transcript.committed
            if not command.json and transcript.text:
                print(printable(transcript.text), flush=True)
    vad.reset()
    elapsed = (time.perf_counter() - began) * 1000
    info = file.info
    if info.warning:
        print(f"voiceloop: {info.warning}", file=sys.stderr)
    if not words:
        print(f"voiceloop: no speech was heard in {info.path}", file=sys.stderr)
    if command.json:
        record = {
            "file": str(info.path),
            "text": " ".join(word.text for word in words),
            "words": [_rounded(word) for word in words],
            "audio_s": round(info.seconds, 3),
            "ms": round(elapsed, 1),
        }
        print(json.dumps(record), flush=True)


def _rounded(word: Word) -> dict[str, str | float]:
    """A word's fields, its times to the millisecond."""
    return {
        key: round(value, 3) if isinstance(value, float) else value
        for key, value in asdict(word).items()
    }


def say(command: Say) -> int:
    """`voiceloop say`."""
    from voiceloop import saying
    from voiceloop.audio.files import check_wav

    # What can be wrong with file or speaker is found before the voice is loaded.
    if command.out:
        keep([command.config], {"--out": command.out})
        check_wav(command.out)
    with ExitStack() as stack:
        card = None if command.out else stack.enter_context(saying.speaker(command.output))
        with loading(tts_name(command.settings.tts), sys.stderr):
            from voiceloop.loading import load_tts

            tts = load_tts(command.settings)
        if command.out:
            saying.write(tts, command.text, command.out)
        if card:
            saying.play(tts, command.text, card)
    return 0


def voices(command: Voices) -> int:
    """`voiceloop voices`."""
    from voiceloop.engines import registered

    with loading(tts_name(command.settings.tts), sys.stderr):
        from voiceloop.loading import load_tts

        tts = load_tts(command.settings)
    for name in tts.voices():
        if command.json:
            print(json.dumps({"name": name, "language": tts.language(name), "engine": tts.name}))
        else:
            chosen = "  (speaks unless another is asked for)" if name == tts.voice else ""
            print(f"{name:<32} {tts.language(name):<10}{chosen}".rstrip())
    if not command.json:
        others = [name for name in registered("tts") if name != command.settings.tts.engine]
        print(f"\nThese are {tts.name}'s; --tts.engine asks others: {', '.join(others)}.")
    return 0


def replay(command: Replay) -> int:
    """`voiceloop replay`; its status is 1 where something is not as expected."""
    from voiceloop.replay.reading import load_scenario
    from voiceloop.replay.run import play
    from voiceloop.replay.timeline import differences, lines, records
    from voiceloop.trace.record import to_perfetto

    keep([command.scenario, command.config], {"--trace": command.trace})
    # A scenario is the same on every machine: of the user's settings only flags reach it.
    settings = flatten(command.settings)
    flags = {key: settings[key] for key, origin in command.origins.items() if origin == "flag"}
    scenario = load_scenario(command.scenario, flags)
    with ExitStack() as stack:
        trace_file = stack.enter_context(replacing(command.trace)) if command.trace else None
        played = play(scenario, seed=command.seed)
        found = differences(played, scenario.expect)
        if command.json:
            print(*(json.dumps(record) for record in records(played, found)), sep="\n")
        else:
            print(*lines(played, found), sep="\n")
        if trace_file:
            trace_file.write(json.dumps(to_perfetto(played.traces)))
    return 1 if found or played.problem else 0


def show_config(command: ShowConfig) -> int:
    """`voiceloop config`."""
    if command.toml:
        text = settings_file(command.settings, command.origins)
        sys.stdout.buffer.write(text.encode())  # TOML is UTF-8, whatever a terminal takes
        return 0
    for key, value in flatten(command.settings).items():
        origin = command.origins.get(key, "default")
        print(f"{key:<28} {json.dumps(value):<32} {origin}")
    return 0


def print_error(error: VoiceloopError) -> None:
    """One line and a hint on stderr."""
    print(f"voiceloop: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)


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
}
"""What there is to do, by name: what it takes, and what runs it."""

GROUPS: manual.Groups = {
    "talk to it": {"talk": "", "serve": ""},
    "files and texts": {"ask": "", "transcribe": "", "say": "", "voices": ""},
    "models": {"models": "List, fetch, verify and remove models", "train-draft": ""},
    "this machine": {"config": ""},
    "measuring": {
        "bench": "Measure latency, models, voices, recognisers and the server",
        "replay": "",
    },
}
"""Where help lists which command, and what the commands of several words do."""
