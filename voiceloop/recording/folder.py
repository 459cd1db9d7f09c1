"""The folder of one recording, which only its owner may read.

Writes are not buffered, so a recording that is cut off can be read up to that point. In a text
file, all complete lines can be read. In a sound file, the header says that the length is unknown,
and all samples after the header can be read. The functions here block, and raise OSError.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Self, cast

from voiceloop.audio.files import UNKNOWN, WAV_HEADER, wav_header
from voiceloop.audio.frames import to_pcm16
from voiceloop.errors import VoiceloopError
from voiceloop.types import Pcm

MOST_BYTES = 1_000_000_000
"""Maximum size of a recording in bytes. This is enough for about two hours."""


class FullRecording(Exception):
    """Raised when a recording has reached its maximum size."""


def prepare(folder: Path) -> None:
    """Make the folder for recordings, readable by its owner alone, unless it exists. Raises
    VoiceloopError if nothing can be written to the folder."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        why = "" if os.access(folder, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise VoiceloopError(
            f"nothing can be recorded in {folder}: {why}",
            "name a folder that you may write to, or one that does not exist yet",
        )


class GrowingWav:
    """A mono wav file of unknown length; places that are never written are silent."""

    def __init__(self, file: FileIO, rate: int, *, floats: bool) -> None:
        """Write to `file`, as exact 32-bit floats with `floats`, otherwise as 16-bit integers."""
        self._file = file
        self._floats = floats
        self._width = 4 if floats else 2
        self._header = partial(wav_header, rate, floats=floats)
        _write(file, self._header(UNKNOWN))

    def write(self, place: int, pcm: Pcm) -> int:
        """Write samples, beginning with index `place`. Returns the size of the file in bytes up to
        the end of these samples."""
        data = pcm.astype("<f4") if self._floats else to_pcm16(pcm).astype("<i2")
        self._file.seek(WAV_HEADER + place * self._width)
        _write(self._file, data.tobytes())
        return self._file.tell()

    def finish(self) -> None:
        """Write the length of the sound into the header."""
        size = self._file.seek(0, os.SEEK_END) - WAV_HEADER
        self._file.seek(0)
        _write(self._file, self._header(size - size % self._width))


class RecordingFolder:
    """A new folder for one recording. Used as a context manager, it closes its files."""

    def __init__(self, parent: Path, name: str, most_bytes: int = MOST_BYTES) -> None:
        """Make the folder in `parent`. If `name` exists there, a number is added, as in `name-2`.

        `most_bytes` is the maximum size of all files together.
        """
        self.path = _new_folder(parent, name)
        self._most_bytes = most_bytes
        self._sizes: dict[str, int] = {}
        self._texts: dict[str, FileIO] = {}
        self._sounds: dict[str, GrowingWav] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def append(self, name: str, text: bytes) -> None:
        """Append to the text file `name`. Raises FullRecording beyond the maximum size."""
        if name not in self._texts:
            self._texts[name] = self._create(name)
        self._grow(name, self._sizes.get(name, 0) + len(text))
        _write(self._texts[name], text)

    def put(self, name: str, rate: int, place: int, pcm: Pcm, *, floats: bool = False) -> None:
        """Write samples to the wav file `name`, beginning with index `place`. Raises FullRecording
        beyond the maximum size."""
        if name not in self._sounds:
            sound = GrowingWav(self._create(name), rate, floats=floats)
            self._closing.callback(sound.finish)
            self._sounds[name] = sound
        self._grow(name, self._sounds[name].write(place, pcm))

    def _create(self, name: str) -> FileIO:
        private: Callable[[str, int], int] = partial(os.open, mode=0o600)
        file = open(self.path / name, "xb", buffering=0, opener=private)
        return self._closing.enter_context(cast("FileIO", file))

    def _grow(self, name: str, size: int) -> None:
        self._sizes[name] = size
        if sum(self._sizes.values()) > self._most_bytes:
            raise FullRecording


def _new_folder(parent: Path, name: str) -> Path:
    for number in count(1):
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path
    raise AssertionError("there are more numbers than folders")


def _write(file: FileIO, data: bytes) -> None:
    """Write all of `data`. Raises OSError if the disk takes only a part of it, because it is
    full."""
    if file.write(data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
