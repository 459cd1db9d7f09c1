"""Where the clips of the bench come from: suites of synthetic speech, and folders of recordings.

    starter    questions that the starter models were not trained on
    questions  questions and requests of many kinds for any models, in voices of flite

A synthetic clip depends only on the suite's name, the seed and the number of the clip. So the same
seed gives the same samples, and a longer suite begins with the clips of a shorter one. espeak-ng
carries the phase of its pitch from one utterance to the next, so its samples depend on everything
that it has spoken before. Therefore each call starts it in a new process. The starter recogniser
was not trained on the voices of flite, nor on similar ones.

A file `NAME.txt` beside the recording `NAME.wav` may have its words. It is not known where in the
recording they are spoken.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import tomllib
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import soundfile

from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import SPEECH_RATE, Resampler, dbfs, fade_in, fade_out, samples, silence
from voiceloop.bench.clips import Clip, ClipSpeech, Rng, at_level, audible, room
from voiceloop.errors import AudioError, EngineError
from voiceloop.process import deaf_to_ctrl_c, end_in_silence
from voiceloop.tts.espeak import Espeak
from voiceloop.types import Clause, Pcm, Span, SpeechChunk

ESPEAK_VOICES = (
    *("en-us", "en", "en-gb-x-rp", "en-gb-scotland", "en-029", "en-gb-x-gbclan"),
    *("en-us+m3", "en-us+f4", "en-us+Annie", "en+david", "en-gb-x-rp+f4", "en-gb-scotland+m2"),
)
"""Accents and variants that the starter recogniser was trained on.

Variants with breath are left out, because espeak-ng draws breath at random without a seed.
"""
FLITE_VOICES = ("awb", "kal16", "rms", "slt")
"""Voices of flite at 16 kHz that can say any text. `kal16` is made of diphones; the others are
statistical models of a speaker."""
SLOWEST, FASTEST = 0.85, 1.1
"""Bounds of the speeds that are drawn; 1.0 is a voice's own speed."""
INSTALL = "install the package flite, or choose a suite that does without: --suite starter"
SuiteName = Literal["starter", "questions"]
Item = TypeVar("Item")

_FOLDER = Path(__file__).parent
SENTENCES = tomllib.loads((_FOLDER / "sentences.toml").read_text(encoding="utf-8"))
"""Lines by kind. A mark, `|` or `~`, is before each word at which the user may have finished
already."""
GENERAL = tuple((_FOLDER / "questions.txt").read_text(encoding="utf-8").splitlines())
"""Questions and requests of many kinds, short and long. None of them belongs to the starter models'
domain. They have no digits, so that transcripts can be compared."""

LEAD_MS = (300.0, 700.0)
"""Bounds of the silence before speech, in ms. Its length is random, so that speech may begin
anywhere in a window of the VAD."""
TAIL_MS = 300.0
"""Silence at the end of a clip, in ms. After the clip, its background goes on."""
SPEECH_DBFS = (-30.0, -24.0)
"""Bounds of the RMS level of speech, in dB relative to full scale. The loudest samples of the
speech are some 20 dB above that level."""
BACKGROUND_S = 6
"""Length of the background noise in seconds. The noise is repeated."""
FADE_MS = 3
"""Length in ms of the fades at the beginning and the end of espeak-ng's speech, which may begin or
end in the middle of a sound."""
MARGIN_MS = 5
"""Length in ms of the sound that is kept before the first and after the last audible sample."""
SPEECH = "VOICELOOP_SPEECH"
"""The environment variable that names a folder of people's recordings."""
SUFFIXES = (".flac", ".ogg", ".wav")
STEP_MS = 10
"""Length in ms of the pieces of a recording whose levels are measured."""
QUIETEST, LOUDEST = -90.0, -45.0
"""Bounds of the level of the noise after a recording, in dB relative to full scale."""


@dataclass(frozen=True, slots=True)
class Line:
    """A text, with the voice and the speed in which it is spoken."""

    text: str
    voice: str
    """Name of the voice in its synthesizer."""
    speed: float = 1.0


def draw_voice(rng: Rng, voices: Sequence[str] = ESPEAK_VOICES) -> tuple[str, float]:
    """Draw one of `voices`, and a speed."""
    return voices[int(rng.integers(len(voices)))], float(rng.uniform(SLOWEST, FASTEST))


def resampled(pcm: Pcm, rate: int) -> Pcm:
    """Resample `pcm` from `rate` hertz to 16 kHz."""
    resampler = Resampler(rate, SPEECH_RATE)
    return np.concatenate((resampler.feed(pcm), resampler.flush()))


def by_espeak(lines: Sequence[Line]) -> list[SpeechChunk]:
    """Speak all `lines`, one after the other, in a new process.

    Raises ConfigError for an unknown voice, EngineError without a working espeak-ng.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), end_in_silence) as pool:
        with deaf_to_ctrl_c():
            spoken = pool.map(_chunk, lines)
        return list(spoken)


def _chunk(line: Line) -> SpeechChunk:
    spans = tuple(Span(word.start(), word.end(), 0) for word in re.finditer(r"\S+", line.text))
    clause = Clause(0, 0, line.text, line.text, spans, last=True)
    (chunk,) = filter(None, Espeak(line.voice, line.speed).synthesize(clause))
    return chunk


def by_flite(lines: Sequence[Line]) -> list[Pcm]:
    """Speak each of `lines` at its voice's own speed times `line.speed`; return sounds at 16 kHz.

    Raises EngineError if flite is missing, lacks a voice or fails.
    """
    # For an unknown voice flite would use its first one without an error.
    known = set(_flite("-lv").decode().split())
    for line in lines:
        if line.voice not in known:
            raise EngineError(f"this flite has no voice called '{line.voice}'", INSTALL)
    return [_spoken(line) for line in lines]


def _spoken(line: Line) -> Pcm:
    stretch = f"duration_stretch={1 / line.speed:.6f}"
    options = ("-voice", line.voice, "--setf", stretch, "-t", line.text)
    pcm, rate = soundfile.read(io.BytesIO(_flite(*options, "-o", "/dev/stdout")), dtype="float32")
    return resampled(np.asarray(pcm, np.float32), rate)


def _flite(*options: str) -> bytes:
    """Run flite and return what it prints."""
    try:
        return subprocess.run(["flite", *options], capture_output=True, check=True).stdout
    except OSError as error:
        raise EngineError(f"flite cannot be run: {error.strerror}", INSTALL) from error
    except subprocess.CalledProcessError as error:
        raise EngineError(f"flite broke with status {error.returncode}", INSTALL) from error


@dataclass(frozen=True, slots=True)
class Drawn:
    """The random choices of one clip: its random generator, and its voice and speed."""

    suite: str
    index: int
    seed: int
    rng: Rng
    voice: str
    speed: float

    @classmethod
    def of(cls, suite: str, index: int, seed: int) -> Drawn:
        """Make the generator of clip `index` of a suite, and draw the voice and its speed."""
        rng = np.random.default_rng((seed, zlib.crc32(suite.encode()), index))
        return cls(suite, index, seed, rng, *draw_voice(rng))

    def pick(self, pool: Sequence[Item], every: int = 1) -> Item:
        """Return this clip's item of the shuffled `pool`. `every` clips in a row share an item."""
        rng = np.random.default_rng((self.seed, zlib.crc32(self.suite.encode())))
        order: list[int] = rng.permutation(len(pool)).tolist()
        return pool[order[self.index // every % len(pool)]]

    def line(self, text: str) -> Line:
        """Return `text` as a line in this clip's voice and speed."""
        return Line(text, self.voice, self.speed)

    def uniform(self, bounds: tuple[float, float]) -> float:
        """Draw a number between `bounds`."""
        return float(self.rng.uniform(*bounds))


def build(name: SuiteName, count: int, seed: int = 0) -> tuple[Clip, ...]:
    """Make the first `count` clips of a suite.

    Raises EngineError without a working espeak-ng, or for `questions` without flite.
    """
    drawn = [Drawn.of(name, index, seed) for index in range(count)]
    if name == "questions":
        drawn = [replace(one, voice=one.pick(FLITE_VOICES)) for one in drawn]
        lines = [one.line(one.pick(GENERAL)) for one in drawn]
        spoken, fade = by_flite(lines), 0
    else:
        texts = SENTENCES["questions"].replace("|", "").replace("~", "").strip().splitlines()
        lines = [one.line(one.pick(texts)) for one in drawn]
        spoken = [resampled(chunk.pcm, chunk.rate) for chunk in by_espeak(lines)]
        fade = samples(FADE_MS)
    made = zip(drawn, lines, spoken, strict=True)
    return tuple(_clip(one, line.text, pcm, fade) for one, line, pcm in made)


def _clip(drawn: Drawn, text: str, pcm: Pcm, fade: int) -> Clip:
    lead, dbfs = samples(drawn.uniform(LEAD_MS)), drawn.uniform(SPEECH_DBFS)
    pcm, margin = at_level(pcm, dbfs), samples(MARGIN_MS)
    if fade:
        pcm = fade_out(fade_in(pcm, fade), fade)
    start, end = audible(pcm)
    around = silence(margin)
    kept = np.concatenate((around, pcm, around))[start : end + 2 * margin]
    sound = np.concatenate((silence(lead - margin), kept))
    return in_room(drawn, sound, ClipSpeech(text, *audible(sound)))


def in_room(drawn: Drawn, sound: Pcm, said: ClipSpeech) -> Clip:
    """Make a clip of `sound`, with `TAIL_MS` of silence after it and the noise of a quiet room."""
    background = room(drawn.rng, BACKGROUND_S * SPEECH_RATE)
    sound = np.concatenate((sound, silence(samples(TAIL_MS))))
    pcm = sound + np.resize(background, len(sound))
    return Clip(f"{drawn.suite}-{drawn.index:03}", pcm, background, said)


def of_people(given: Path | None) -> Path | None:
    """Return the folder of people's recordings: `given`, or else the one that `SPEECH` names, or
    else None."""
    known = os.environ.get(SPEECH)
    return given or (Path(known) if known else None)


def read_folder(folder: Path) -> tuple[Clip, ...]:
    """Read the recordings in `folder`, sorted by name. Each is followed by noise at the level of
    the quietest part of the recording.

    Raises AudioError for a folder without recordings, for a recording that cannot be read, and for
    a transcript that is not text.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    except OSError as error:
        raise AudioError(
            f"{folder} cannot be read: {error.strerror}", "name a folder of recordings"
        ) from error
    if not paths:
        raise AudioError(
            f"{folder} holds no recordings", f"put {', '.join(SUFFIXES)} files into it"
        )
    return tuple(_recorded(path) for path in paths)


def _recorded(path: Path) -> Clip:
    with AudioFile(path) as file:
        pcm = np.concatenate(list(file.blocks()))
    background = room(np.random.default_rng(0), BACKGROUND_S * SPEECH_RATE, _floor(pcm))
    return Clip(path.stem, pcm, background, ClipSpeech(_transcript(path.with_suffix(".txt"))))


def _floor(pcm: Pcm) -> float:
    """Return the level of the quietest part of `pcm`, in dB relative to full scale: the 5th
    percentile of its levels, within `QUIETEST` and `LOUDEST`."""
    step = samples(STEP_MS)
    levels = [dbfs(pcm[at : at + step]) for at in range(0, len(pcm), step)]
    return float(np.clip(np.percentile(levels, 5), QUIETEST, LOUDEST))


def _transcript(path: Path) -> str | None:
    """Return the words in the file `path`; None if the file is missing or empty."""
    try:
        return " ".join(path.read_text(encoding="utf-8").split()) or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AudioError(
            f"{path} cannot be read: {error.strerror}", "check its permissions"
        ) from error
    except UnicodeDecodeError as error:
        raise AudioError(f"{path} is not UTF-8 text", "save the transcript as UTF-8") from error
