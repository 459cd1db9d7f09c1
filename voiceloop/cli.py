"""The commands. Each reads its options, opens what it needs, and prints what it finds.

Nothing heavy is imported before a command needs it, so `--help` comes at once. A user's mistake is
one line and a hint on stderr, and exit status 2; anything else that escapes is a defect.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import tyro

import voiceloop
from voiceloop.config import flatten
from voiceloop.errors import AudioError, VoiceloopError
from voiceloop.flags import Command, parse

if TYPE_CHECKING:
    from voiceloop.audiofiles import AudioFile
    from voiceloop.engines import Asr, Vad
    from voiceloop.types import TurnTrace, Word

SPEAKER_RATE = 24_000
"""Hertz of what `ask` plays, whatever the synthesizer gives."""
DESCRIPTION = "A real-time voice assistant that runs on your own machine."


@dataclass(frozen=True, kw_only=True)
class Ask(Command):
    """Answer the spoken questions of an audio file, as a conversation."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN.wav")]
    """The recording: any rate from 8 to 192 kHz; wav, FLAC or OGG."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="R.wav")] = None
    """Write what the speaker plays."""
    trace: Annotated[Path | None, tyro.conf.arg(metavar="T.json")] = None
    """Write a trace of every turn, which ui.perfetto.dev opens."""
    json: bool = False
    """Print one JSON object on one line for each turn."""
    pace: Literal["realtime", "max"] = "realtime"
    """As time passes, or as fast as the machine can; then latencies mean nothing and are null."""
    sequential: bool = False
    """Run each stage after the last; the reference that overlap is measured against."""
    full_duplex: bool = False
    """Let the recording go on while a reply sounds, so that it can interrupt."""


@dataclass(frozen=True, kw_only=True)
class Transcribe(Command):
    """Write down what is said in audio files."""

    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILES")]
    """Recordings: any rate from 8 to 192 kHz; wav, FLAC or OGG."""
    json: bool = False
    """Print one JSON object on one line for each file."""
    streaming: bool = False
    """Recognise as a live stream is recognised, with partial decodes."""


@dataclass(frozen=True, kw_only=True)
class Say(Command):
    """Speak a text into a file."""

    text: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TEXT")]
    """What to say."""
    out: Annotated[Path, tyro.conf.arg(metavar="S.wav")]
    """The wav file to write."""


@dataclass(frozen=True, kw_only=True)
class Bench(Command):
    """Measure the language model: plain and speculative decoding, ours and transformers'."""

    what: Annotated[Literal["llm"], tyro.conf.Positional, tyro.conf.arg(metavar="llm")]
    """What to measure."""
    target: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = None
    """The model that decides; none: llm.target."""
    draft: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = None
    """The model that guesses; none: llm.draft."""
    synthetic: Annotated[str | None, tyro.conf.arg(metavar="PAIR")] = None
    """Models of these shapes instead, without trained weights: tiny, 120m+8m, 1b+0.1b, 8b+1b."""
    acceptance: Annotated[float, tyro.conf.arg(metavar="SHARE")] = 0.7
    """How often a guess of the synthetic draft stands."""
    prompts: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Questions, one on a line; none: held-out ones of the starter models' domain."""
    max_new_tokens: Annotated[int, tyro.conf.arg(metavar="N")] = 64
    """Longest reply, in tokens."""
    repeats: Annotated[int, tyro.conf.arg(metavar="N")] = 3
    """Times that each mode answers each prompt, if there is time enough."""
    sampled: bool = False
    """Draw tokens, at llm.temperature or else 0.8; otherwise replies are greedy."""
    price_per_hour: Annotated[float | None, tyro.conf.arg(metavar="X")] = None
    """What the machine costs; the table then tells the cost of 1,000 tokens."""
    json: bool = False
    """Print one JSON object on one line."""
    report: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Write a page with pictures, and the JSON, into this folder."""


@dataclass(frozen=True, kw_only=True)
class ShowConfig(Command):
    """Show every setting, its value, and where that comes from."""


COMMANDS: dict[str, type[Command]] = {
    "ask": Ask,
    "transcribe": Transcribe,
    "say": Say,
    "bench": Bench,
    "config": ShowConfig,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    logging.basicConfig(format="voiceloop: %(message)s", level=logging.WARNING)
    if list(argv[:1]) == ["--version"]:
        print(f"voiceloop {voiceloop.__version__}")
        return 0
    try:
        match parse(COMMANDS, argv, description=DESCRIPTION):
            case Ask() as command:
                return ask(command)
            case Transcribe() as command:
                return transcribe(command)
            case Say() as command:
                return say(command)
            case Bench() as command:
                return bench(command)
            case command:
                return show_config(command)
    except (VoiceloopError, ExceptionGroup) as raised:
        error: Exception = raised
        while isinstance(error, ExceptionGroup):  # what tasks raise comes in groups
            error = error.exceptions[0]
        if not isinstance(error, VoiceloopError):
            raise
        print_error(error)
        return 2
    except KeyboardInterrupt:
        print("voiceloop: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone: nothing more may be written to it, at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def ask(command: Ask) -> int:
    """`voiceloop ask`."""
    import anyio

    from voiceloop.devices import FileMicrophone, NullSpeaker, WavSpeaker
    from voiceloop.loading import open_engines
    from voiceloop.reply import EVERYTHING, SEQUENTIAL
    from voiceloop.session import Session
    from voiceloop.trace import to_perfetto
    from voiceloop.types import Event, Notice, TurnTrace
    from voiceloop.view import open_view

    settings, timed = command.settings, command.pace == "realtime"
    traces: list[TurnTrace] = []
    with ExitStack() as stack:
        # What can be wrong with the files is found before the models are loaded.
        microphone = stack.enter_context(FileMicrophone(command.file, pace=command.pace))
        trace_file = stack.enter_context(replacing(command.trace)) if command.trace else None
        speaker = NullSpeaker(SPEAKER_RATE, pace=command.pace)
        if command.out:
            file = WavSpeaker(command.out, SPEAKER_RATE, pace=command.pace)
            speaker = stack.enter_context(file)
        engines = stack.enter_context(open_engines(settings))
        view = open_view(sys.stdout, sys.stderr, as_json=command.json, timed=timed)
        with view as shown:

            def show(event: Event) -> None:
                if isinstance(event, TurnTrace):
                    traces.append(event)
                shown.show(event)

            session = Session(
                engines,
                microphone,
                speaker,
                settings,
                show,
                full_duplex=command.full_duplex,
                overlap=SEQUENTIAL if command.sequential else EVERYTHING,
            )
            anyio.run(session.run)
            if microphone.info.warning:
                show(Notice(microphone.info.warning))
            if all(trace.outcome == "abandoned" for trace in traces):
                show(Notice(f"no speech was heard in {command.file}"))
        if trace_file:
            trace_file.write(json.dumps(to_perfetto(traces)))
    if timed and not command.json:
        report(traces)
    return 0


def report(traces: Sequence[TurnTrace]) -> None:
    """Print where the time went: of one turn, or of the median one with the figures of all."""
    from voiceloop.trace import Mark, endpoint_to_sound_ms, percentiles, voice_to_voice_ms
    from voiceloop.waterfall import waterfall

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
    from voiceloop.audiofiles import AudioFile
    from voiceloop.loading import load_asr, load_vad

    status = 0
    asr, vad = load_asr(command.settings), load_vad(command.settings)
    for path in command.files:
        try:
            with AudioFile(path) as file:
                _transcribe_file(file, asr, vad, command)
        except AudioError as error:  # the other files are still worth reading
            print_error(error)
            status = 2
    return status


def _transcribe_file(file: AudioFile, asr: Asr, vad: Vad, command: Transcribe) -> None:
    from voiceloop.asr.stream import listen
    from voiceloop.view import printable

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
            "words": [asdict(word) for word in words],
            "audio_s": round(info.seconds, 3),
            "ms": round(elapsed, 1),
        }
        print(json.dumps(record), flush=True)


def say(command: Say) -> int:
    """`voiceloop say`."""
    from voiceloop.audiofiles import WavWriter
    from voiceloop.loading import load_tts
    from voiceloop.tts.clauses import ClauseCutter
    from voiceloop.types import TokenBurst

    tts = load_tts(command.settings)
    with WavWriter(command.out, tts.rate) as file:
        cutter = ClauseCutter(0)
        for clause in cutter.feed(TokenBurst(0, (0,), command.text)) + cutter.flush():
            for chunk in tts.synthesize(clause):
                if chunk is not None:
                    file.write(chunk.pcm)
    return 0


def bench(command: Bench) -> int:
    """`voiceloop bench llm`."""
    from voiceloop.loading import set_threads

    set_threads(command.settings)
    from voiceloop.bench.llm import Plan, chosen, measure
    from voiceloop.bench.progress import Progress
    from voiceloop.bench.report import open_folder, table, write

    folder = open_folder(command.report) if command.report else None
    config = chosen(
        command.settings.llm,
        target=command.target,
        draft=command.draft,
        max_new_tokens=command.max_new_tokens,
        sampled=command.sampled,
    )
    plan = Plan(
        config,
        prompts=command.prompts,
        synthetic=command.synthetic,
        acceptance=command.acceptance,
        repeats=command.repeats,
        price_per_hour=command.price_per_hour,
    )
    with Progress(sys.stderr) as progress:
        record = measure(plan, progress)
    if folder:
        write(folder, record)
    print(json.dumps(record) if command.json else table(record))
    return 0


def show_config(command: Command) -> int:
    """`voiceloop config`."""
    for key, value in flatten(command.settings).items():
        origin = command.origins.get(key, "default")
        print(f"{key:<28} {json.dumps(value):<32} {origin}")
    return 0


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A text file that takes the place of `path` if all goes well, and of nothing if not."""
    part = path.with_name(f".{path.name}.part")
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        file = part.open("w", encoding="utf-8")
    except OSError as error:
        raise VoiceloopError(
            f"{path} cannot be written: {error.strerror}",
            "choose a file in a folder that exists and that you may write to",
        ) from error
    try:
        with file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def print_error(error: VoiceloopError) -> None:
    """One line and a hint on stderr."""
    print(f"voiceloop: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)
