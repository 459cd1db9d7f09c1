"""Speech in the voices of flite, most of which were made from recordings of people.

flite is a program of its own (a Debian package of that name), so what it says depends on its text,
voice and speed alone. It tells no times of words. This module knows neither suites nor backgrounds.
"""

from __future__ import annotations

import io
import subprocess
from collections.abc import Sequence

import numpy as np
import soundfile

from voiceloop.audio.frames import SPEECH_RATE, Resampler
from voiceloop.bench.utterances import Line
from voiceloop.errors import EngineError
from voiceloop.types import Pcm

VOICES = ("awb", "kal16", "rms", "slt")
"""Those at 16 kHz that say anything: three of people, and one made of diphones."""
INSTALL = "install the package flite, or choose a suite that does without: --suite starter"


def speak(lines: Sequence[Line]) -> list[Pcm]:
    """Speak each of `lines`, at its voice's own speed times `line.speed`; always the same samples.

    At 16 kHz. Raises EngineError without flite, and where it does not have a voice or breaks.
    """
    # A voice that it does not have would be spoken, without a word, in the first that it has.
    known = set(_run("-lv").decode().split())
    for line in lines:
        if line.voice not in known:
            raise EngineError(f"this flite has no voice called '{line.voice}'", INSTALL)
    return [_speak(line) for line in lines]


def _speak(line: Line) -> Pcm:
    stretch = f"duration_stretch={1 / line.speed:.6f}"
    options = ("-voice", line.voice, "--setf", stretch, "-t", line.text)
    wav = _run(*options, "-o", "/dev/stdout")
    pcm, rate = soundfile.read(io.BytesIO(wav), dtype="float32")
    resampler = Resampler(rate, SPEECH_RATE)
    return np.concatenate((resampler.feed(np.asarray(pcm, np.float32)), resampler.flush()))


def _run(*options: str) -> bytes:
    """What flite prints."""
    try:
        return subprocess.run(["flite", *options], capture_output=True, check=True).stdout
    except OSError as error:
        raise EngineError(f"flite cannot be run: {error.strerror}", INSTALL) from error
    except subprocess.CalledProcessError as error:
        raise EngineError(f"flite broke with status {error.returncode}", INSTALL) from error
