"""The clips of the bench, each the sound of one turn: suites of synthetic speech, and recordings.

    starter    questions that the starter models were not trained on
    questions  questions and requests of many kinds for any models, in voices of flite

A synthetic clip depends only on the suite's name, the seed and the number of the clip. So the same
seed gives the same samples, and a longer suite begins with the clips of a shorter one. espeak-ng
carries the phase of its pitch from one utterance to the next, so its samples depend on everything
that it has spoken before. Therefore each call starts it in a new process. The starter recogniser
was not trained on the voices of flite, nor on similar ones.

A file `NAME.txt` beside the recording `NAME.wav` may have its words. It is not known where in the
recording they are spoken.

All sounds are mono at 16 kHz. Positions are indices of samples, from the beginning of the clip. An
end is the index after the last sample. A sample belongs to speech if it is audible
(`playback.AUDIBLE`) before any noise is added.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import tomllib
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
import soundfile

from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import SPEECH_RATE, Resampler, dbfs, fade_in, fade_out, samples, silence
from voiceloop.audio.playback import AUDIBLE
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
Rng = np.random.Generator
Wave = npt.NDArray[np.float64]

ROOM_DBFS = -66.0
"""RMS level of the noise of a quiet room, in dB relative to full scale. The loudest samples of this
noise are some 4 dB below `playback.AUDIBLE`."""

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


def rms(pcm: npt.ArrayLike) -> float:
    """Return the root mean square of the samples `pcm`; 0 for no samples."""
    wave = np.asarray(pcm, np.float64)
    return float(np.sqrt(np.mean(wave * wave))) if wave.size else 0.0


def at_level(sound: npt.ArrayLike, dbfs: float) -> Pcm:
    """Scale `sound` to an RMS level of `dbfs`, in dB relative to full scale. At least one sample of
    `sound` must not be 0."""
    return (np.asarray(sound, np.float64) * (10 ** (dbfs / 20) / rms(sound))).astype(np.float32)


def noise(rng: Rng, count: int, gain: Callable[[Wave], Wave]) -> Wave:
    """Draw `count` samples of noise that can be repeated without an audible seam.

    The spectrum of white noise is multiplied by `gain`, a function of the frequencies in hertz.
    """
    spectrum = np.fft.rfft(rng.standard_normal(count))
    hz = np.fft.rfftfreq(count, 1 / SPEECH_RATE).astype(np.float64)
    return np.fft.irfft(spectrum * gain(hz), count)


def room(rng: Rng, count: int, dbfs: float = ROOM_DBFS) -> Pcm:
    """Draw `count` samples of the noise of a quiet room, at an RMS level of `dbfs`. Above 100 Hz
    the spectrum falls by 3 dB per octave."""
    return at_level(noise(rng, count, lambda hz: (1 + hz / 100) ** -0.5), dbfs)


@dataclass(frozen=True, slots=True)
class ClipSpeech:
    """The words of a clip, and where they are spoken. Values that are not known are None."""

    text: str | None = None
    start: int | None = None
    """Index of the first audible sample."""
    end: int | None = None
    """Index of the sample after the last audible one: the true end of speech."""


@dataclass(frozen=True, slots=True)
class Clip:
    """The sound of one turn at the microphone: some silence, then speech, and at last only noise
    without end."""

    name: str
    pcm: Pcm
    background: Pcm
    """Noise that is repeated without end. `pcm` contains it already, and after `pcm` it goes on."""
    said: ClipSpeech

    def read(self, start: int, count: int) -> Pcm:
        """Return `count` samples from `start` on. After the end of `pcm` there is only noise."""
        at = np.arange(start, start + count)
        heard = self.background[at % len(self.background)]
        inside = at < len(self.pcm)
        heard[inside] = self.pcm[at[inside]]
        return heard


def audible(pcm: Pcm) -> tuple[int, int]:
    """Return the index of the first audible sample of `pcm`, and the index after the last one. At
    least one sample must be audible."""
    loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
    return int(loud[0]), int(loud[-1]) + 1


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
