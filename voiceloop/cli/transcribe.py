"""The command `voiceloop transcribe`. Heavy modules are imported only when it runs."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from voiceloop import process
from voiceloop.assembly.choosing import advised
from voiceloop.bundled import STARTER_HEARS
from voiceloop.errors import AudioError
from voiceloop.settings.config import Config
from voiceloop.settings.flags import POSITIONAL, Command, written
from voiceloop.status import asr_name, loading, print_error
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.audio.files import AudioFile
    from voiceloop.engines import Asr, Vad
    from voiceloop.types import Word


class Transcribe(Command, frozen=True, kw_only=True):
    """Write down what is said in audio files."""

    uses = ("vad", "asr", "turns")
    examples = (
        "voiceloop transcribe a.wav b.flac",
        "voiceloop transcribe --json --preset cpu a.wav",
    )

    files: Annotated[tuple[Path, ...], POSITIONAL, written("FILES")]
    """Recordings: WAV, FLAC, OGG, AIFF or MP3; any rate from 8 to 192 kHz."""
    json: bool = False
    """Print one JSON object on one line for each file."""
    streaming: bool = False
    """Recognise as in a conversation: with partial decodes, and turns that end after a pause.
    Otherwise all speech between two long silences is decoded together."""


def transcribe(command: Transcribe) -> int:
    """Run `voiceloop transcribe` and return the exit status."""
    from voiceloop.audio.files import AudioFile

    refused, loaded = 0, None
    for path in command.files:
        try:
            with AudioFile(path) as file:
                loaded = loaded or _load_hearing(command.settings)
                if len(command.files) > 1 and not command.json:
                    tell(f"{path}:")
                _transcribe_file(file, *loaded, command)
        except AudioError as error:  # the other files are still worth reading
            print_error(error)
            refused += 1
    if command.settings.asr.hears_no_people and refused < len(command.files):
        print(f"voiceloop: {advised(STARTER_HEARS, chooses=False)}", file=sys.stderr)
    return 2 if refused else 0


def _load_hearing(settings: Config) -> tuple[Asr, Vad]:
    """Load the recogniser and the VAD, and meanwhile show their loading on stderr."""
    with loading(asr_name(settings.asr), sys.stderr):
        process.configure(settings.threads)
        from voiceloop.assembly.loading import load_asr, load_vad

        return load_asr(settings), load_vad(settings)


def _transcribe_file(file: AudioFile, asr: Asr, vad: Vad, command: Transcribe) -> None:
    from voiceloop.asr.recording import transcribe_live, transcribe_recording
    from voiceloop.audio.frames import HighPass

    began = time.perf_counter()
    words: list[Word] = []
    settings = command.settings
    hear = transcribe_live if command.streaming else transcribe_recording
    blocks = map(HighPass().feed, file.blocks())
    for transcript in hear(blocks, vad, asr, settings.asr, settings.turns):
        if transcript.final:
            words += transcript.committed
            if not command.json and transcript.text:
                tell(transcript.text)
    vad.reset()
    elapsed = (time.perf_counter() - began) * 1000
    info = file.info
    if info.warning:
        tell(f"voiceloop: {info.warning}", sys.stderr)
    if not words:
        tell(f"voiceloop: no speech was heard in {info.path}", sys.stderr)
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
    """Return the fields of a word, with numbers rounded to three decimals."""
    return {
        key: round(value, 3) if isinstance(value, float) else value
        for key, value in asdict(word).items()
    }
