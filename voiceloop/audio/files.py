# pyright: reportMissingTypeStubs=false
"""Audio files: reads every format that libsndfile knows, and writes mono 16-bit wav.

Files are read and written block by block, so a long file takes no more memory than a short one.
Every fault of a file becomes an AudioError that names the file, raised as early as possible. This
module knows nothing of devices, speech or turns.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import soundfile

from voiceloop.audio.frames import SPEECH_RATE, Mixer, Resampler, check_rate, to_pcm16
from voiceloop.errors import AudioError
from voiceloop.outputs import MAKER, part_beside
from voiceloop.types import Pcm

BLOCK_FRAMES = 8192
"""Sample frames read from a file at a time."""
HELD_BYTES = 1_048_576
"""Bytes written to a file at a time. Many small writes to a slow disk would delay the audio."""
LOUDEST = 1e10
"""Amplitude from which a sample is invalid. Full scale is 1, or 2**31 in the files of some
programs."""

WAV_HEADER = 44
"""Bytes of the header of a wav file."""
UNKNOWN = 0xFFFFFFFF
"""The length in the header of a wav file whose length is not known yet."""


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """The properties of an audio file."""

    path: Path
    rate: int
    """Sample rate in hertz."""
    channels: int
    seconds: float
    """Seconds of audio that can be read. For a compressed file that was cut short, the value is too
    large until all blocks have been read."""
    warning: str = ""
    """One line that says what audio is missing, if the file holds less than its header promises;
    otherwise empty."""


class AudioFile:
    """Reads any file that libsndfile knows as mono blocks at one rate.

            with AudioFile(path) as file:
                for pcm in file.blocks():
                    ...
            file.info.warning

    Raises AudioError, with the file's name in the message, for everything that cannot be read.
    """

    def __init__(self, path: str | Path, rate: int = SPEECH_RATE) -> None:
        if not str(path):
            raise AudioError("the name of an audio file is empty", "name an audio file")
        self._path = Path(path)
        self._rate = rate
        self._raw = self._open_raw()
        try:
            self._sound = self._open_sound()
            self.info = self._inspect()
            """Properties of the file. `warning` is complete once the blocks have been read to the
            end."""
        except AudioError:
            self._raw.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sound.close()
        self._raw.close()

    def blocks(self) -> Iterator[Pcm]:
        """Yield the whole file in mono blocks of bounded size. It can be called once."""
        resampler = Resampler(self.info.rate, self._rate)
        mixer, read = Mixer(self.info.rate), 0
        for block in self._decoded():
            sound = (np.abs(block) < LOUDEST).all(axis=1)  # false for NaN too
            if not sound.all():
                at = (read + int(np.argmin(sound))) / self.info.rate
                raise AudioError(
                    f"{self._path} holds samples that are no sound (the first at {at:.2f} s)",
                    "export it again from the program that made it",
                )
            read += len(block)
            pcm = resampler.feed(mixer.feed(block))
            if len(pcm):
                yield pcm
        if not read:
            raise self._empty()
        tail = resampler.flush()
        if len(tail):
            yield tail

    def _open_raw(self) -> FileIO:
        path = self._path
        try:
            if path.is_dir():
                raise AudioError(f"{path} is a folder", "name an audio file inside it")
            if not path.exists():
                raise AudioError(f"{path} does not exist", "check the path")
            if not path.is_file():
                raise AudioError(f"{path} is not a regular file", "save the audio to a file first")
            if not path.stat().st_size:
                raise AudioError(f"{path} is an empty file", "record it again")
            return path.open("rb", buffering=0)
        except OSError as error:
            raise AudioError(
                f"{path} cannot be opened: {error.strerror}", "check its name and permissions"
            ) from error

    def _open_sound(self) -> _Forward:
        try:
            # With a name instead of a descriptor, soundfile would judge the format by its ending.
            return _Forward(self._raw.fileno(), closefd=False)
        except soundfile.LibsndfileError as error:
            self._raw.seek(0)
            if self._raw.read(4) in (b"RIFF", b"RF64", b"fLaC", b"OggS", b"FORM"):
                raise AudioError(
                    f"{self._path} is damaged: its header is cut short or malformed",
                    "copy or export it again",
                ) from error
            raise AudioError(
                f"{self._path} is not an audio file, whatever its name says",
                "WAV, FLAC, OGG, AIFF and MP3 can be read",
            ) from error

    def _inspect(self) -> AudioInfo:
        sound = self._sound
        check_rate(sound.samplerate, self._path)
        if not sound.frames:
            raise self._empty()
        missing = _missing_wav_bytes(self._path) if sound.format.startswith("WAV") else 0
        return AudioInfo(
            self._path,
            sound.samplerate,
            sound.channels,
            sound.frames / sound.samplerate,
            f"{self._path} is cut short: {missing} bytes of audio are missing at its end"
            if missing
            else "",
        )

    def _decoded(self) -> Iterator[npt.NDArray[np.float32]]:
        """Yield blocks of shape [frames, channels]. If the stream breaks off, stop and set
        `info.warning`."""
        read = 0
        while True:
            try:
                block = np.asarray(
                    self._sound.read(BLOCK_FRAMES, dtype="float32", always_2d=True), np.float32
                )
            except soundfile.LibsndfileError as error:
                if not read:
                    raise AudioError(
                        f"{self._path} is damaged: nothing of it can be read",
                        "copy or export it again",
                    ) from error
                seconds = read / self.info.rate
                self.info = replace(
                    self.info,
                    seconds=seconds,
                    warning=f"{self._path} is damaged: only its first {seconds:.2f} s can be read",
                )
                return
            if not len(block):
                return
            read += len(block)
            yield block

    def _empty(self) -> AudioError:
        return AudioError(f"{self._path} holds no audio: its length is zero", "record it again")


class _Forward(soundfile.SoundFile):
    """A sound file that is read from beginning to end.

    In a seekable file, soundfile seeks to the present position after each block. The MP3 decoder
    then loses bits that one frame stores for another, and complains on stderr.
    """

    def seekable(self) -> bool:
        """Return False, so that soundfile never seeks."""
        return False


def _missing_wav_bytes(path: Path) -> int:
    """Return how many bytes of the data chunk of a RIFF file are missing at the file's end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(12)
        while len(head := file.read(8)) == 8:
            name, length = struct.unpack("<4sI", head)
            if name == b"data":
                # Programs that write to a pipe do not know the length.
                return 0 if length == UNKNOWN else max(0, file.tell() + length - size)
            file.seek(length + length % 2, os.SEEK_CUR)
    return 0


def _replaceable(path: Path) -> bool:
    """Return whether `path` may be replaced: it is missing, empty, or was written by voiceloop."""
    if not path.exists() or not path.stat().st_size:
        return True
    try:
        with soundfile.SoundFile(path) as sound:
            return sound.software == MAKER
    except soundfile.LibsndfileError:
        return False


def check_wav(path: Path) -> None:
    """Raise AudioError if `WavWriter` would refuse `path`: for a folder, a name without `.wav`, a
    file that may not be written, or a file that voiceloop has not made. A folder that may not be
    written is not noticed here."""
    target = path.resolve()
    if target.is_dir():
        raise AudioError(f"{path} is a folder", "name the wav file to write inside it")
    if target.suffix.lower() != ".wav":
        raise AudioError(
            f"{path} is not the name of a wav file, and nothing else is written",
            f"name it {path.with_suffix('.wav')}; ffmpeg converts it to other kinds",
        )
    if target.exists() and not target.is_file():
        raise AudioError(f"{path} is not a regular file", "name a file to write")
    if target.exists() and not os.access(target, os.W_OK):
        raise AudioError(f"{path} is write-protected", "choose another name")
    if not _replaceable(target):
        raise AudioError(
            f"{path} exists and was not made by voiceloop",
            "choose another name, or move the file away first",
        )


def wav_header(rate: int, size: int, *, floats: bool = False, after: int = 0) -> bytes:
    """Return the header of a mono wav file: its first `WAV_HEADER` bytes.

    `size` bytes of samples follow, and then `after` bytes of other chunks. Samples are integers of
    16 bits, or with `floats` floating-point numbers of 32 bits.
    """
    kind, width = (3, 4) if floats else (1, 2)
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", min(UNKNOWN, WAV_HEADER - 8 + size + after), b"WAVE"),
        *(b"fmt ", 16, kind, 1, rate, rate * width, width, 8 * width, b"data", size),
    )


class WavWriter:
    """Writes a mono 16-bit wav file as a stream, and puts it in place only when it is complete.

    The file is written under a temporary name beside `path`. So an unwritable folder is found when
    the writer is made, and an old file stays whole if anything fails before `close`. Only empty
    files and files that voiceloop has written are replaced. Used as a context manager, it closes on
    success and discards on an exception.
    """

    def __init__(self, path: str | Path, rate: int) -> None:
        check_rate(rate, path)
        # Links are followed, so that the file is replaced and not the link.
        self._path = Path(path).resolve()
        try:
            check_wav(Path(path))
            self._file = part_beside(self._path, HELD_BYTES)
        except OSError as error:
            raise AudioError(
                f"{path} cannot be written: {error.strerror}",
                "choose a folder that exists and that you may write to",
            ) from error
        self._rate = rate
        self._bytes = 0
        self._file.write(self._header())

    def write(self, pcm: Pcm) -> None:
        """Append samples. Raises AudioError if the disk takes no more."""
        try:
            self._bytes += self._file.write(to_pcm16(pcm).astype("<i2").tobytes())
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Finish the file, and put it in place of an old one. Raises AudioError if that fails."""
        try:
            self._file.write(self._origin())
            self._file.seek(0)
            self._file.write(self._header())
            self._file.close()
            Path(self._file.name).replace(self._path)
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        """Remove what was written. An old file stays as it was."""
        # Closing writes buffered data. Nobody needs it, so a failure does not matter.
        with suppress(OSError):
            self._file.close()
        Path(self._file.name).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _header(self) -> bytes:
        return wav_header(self._rate, self._bytes, after=len(self._origin()))

    def _origin(self) -> bytes:
        """Return the chunk that follows the samples. It names voiceloop as the program that made
        the file."""
        text = MAKER.encode() + bytes(2 - len(MAKER) % 2)  # zero-terminated, of even length
        entry = struct.pack("<4s4sI", b"INFO", b"ISFT", len(text)) + text
        return struct.pack("<4sI", b"LIST", len(entry)) + entry

    def _failed(self, error: OSError) -> AudioError:
        self.discard()
        return AudioError(
            f"{self._path} cannot be written: {error.strerror}", "make room or choose another disk"
        )
