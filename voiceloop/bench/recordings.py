"""A folder of recordings as clips, for `voiceloop bench latency --input DIR`.

A file `NAME.txt` beside `NAME.wav` may have the words of the recording. It is not known where in
the recording they are spoken. This module knows nothing of suites.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import SPEECH_RATE, dbfs, samples
from voiceloop.bench.background import room
from voiceloop.bench.clips import Clip, ClipSpeech
from voiceloop.errors import AudioError
from voiceloop.types import Pcm

SPEECH = "VOICELOOP_SPEECH"
"""The environment variable that names a folder of people's recordings."""
SUFFIXES = (".flac", ".ogg", ".wav")
BACKGROUND_S = 6
"""Length in seconds of the noise that follows a recording. The noise is repeated."""
STEP_MS = 10
"""Length in ms of the pieces of a recording whose levels are measured."""
QUIETEST, LOUDEST = -90.0, -45.0
"""Bounds of the level of the noise after a recording, in dB relative to full scale."""


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
    return tuple(_clip(path) for path in paths)


def _clip(path: Path) -> Clip:
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
