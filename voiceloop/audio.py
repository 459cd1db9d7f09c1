# pyright: reportMissingTypeStubs=false
"""Audio as numbers: framing, resampling, levels, fades, and files in and out.

Everything between the edges is mono float32 in [-1, 1]. Streams are cut and resampled so that the
result does not depend on how the input was chunked. Files are read and written block by block, so
a long one takes no more memory than a short one. This module knows nothing of devices, speech or
turns.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from voiceloop.errors import AudioError
from voiceloop.types import AudioFrame, Pcm

SPEECH_RATE = 16_000
"""Hertz of everything that voice activity detection and recognition see."""
FRAME_MS = 20
MIN_RATE, MAX_RATE = 8_000, 192_000
SILENCE_DBFS = -120.0
"""The level that digital silence is given."""
PCM16_SCALE = 32768.0
BLOCK_FRAMES = 8192
"""Sample frames read from a file at a time."""

Quality = Literal["QQ", "LQ", "MQ", "HQ", "VHQ"]


def samples(milliseconds: float, rate: int = SPEECH_RATE) -> int:
    """Number of samples in `milliseconds`, rounded to the nearest."""
    return round(milliseconds * rate / 1000)


def silence(count: int) -> Pcm:
    """`count` samples of digital silence."""
    return np.zeros(count, np.float32)


class Framer:
    """Cuts a stream into frames of exactly `size` samples, however the input is chunked."""

    def __init__(self, rate: int = SPEECH_RATE, size: int = FRAME_MS * SPEECH_RATE // 1000) -> None:
        self.rate = rate
        self.size = size
        self.position = 0
        """Index of the sample after the last frame."""
        self._rest = silence(0)

    def feed(self, pcm: Pcm) -> list[AudioFrame]:
        """Frames that `pcm`, the next samples of the stream, completes."""
        joined = np.concatenate((self._rest, pcm))
        whole = len(joined) - len(joined) % self.size
        self._rest = joined[whole:].copy()
        return [self._next(joined[at : at + self.size]) for at in range(0, whole, self.size)]

    def flush(self) -> AudioFrame | None:
        """The samples left over at the end of the stream, shorter than `size`, if there are any."""
        rest, self._rest = self._rest, silence(0)
        return self._next(rest) if len(rest) else None

    def _next(self, pcm: Pcm) -> AudioFrame:
        frame = AudioFrame(pcm, self.rate, self.position)
        self.position = frame.end
        return frame


class Resampler:
    """Resamples a stream (soxr); any chunking gives bit-identical output once flushed.

    Delay grows with quality: from 48 to 16 kHz about 21 ms at HQ, 15 at MQ, 6 at LQ, 0 at QQ. Use
    HQ where the whole audio is at hand and LQ or MQ where somebody waits.
    """

    def __init__(self, source: int, target: int, quality: Quality = "HQ") -> None:
        check_rate(source)
        check_rate(target)
        self._stream = (
            None
            if source == target
            else soxr.ResampleStream(source, target, 1, dtype="float32", quality=quality)
        )

    def feed(self, pcm: Pcm) -> Pcm:
        """Samples at the target rate that are ready after `pcm`."""
        return pcm if self._stream is None else self._stream.resample_chunk(pcm)

    def flush(self) -> Pcm:
        """What the filter still holds at the end of the stream."""
        return silence(0) if self._stream is None else self._stream.resample_chunk(silence(0), True)


class SampleBuffer:
    """The recent samples of one stream, addressed by their index in the stream."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        """Index of the oldest sample held."""
        self._pcm = silence(SPEECH_RATE)
        self._length = 0

    @property
    def end(self) -> int:
        """Index of the sample after the newest."""
        return self.start + self._length

    def append(self, pcm: Pcm) -> None:
        """Add the next samples of the stream."""
        needed = self._length + len(pcm)
        if needed > len(self._pcm):
            grown = silence(2 * needed)
            grown[: self._length] = self._pcm[: self._length]
            self._pcm = grown
        self._pcm[self._length : needed] = pcm
        self._length = needed

    def read(self, start: int, end: int) -> Pcm:
        """A copy of the samples from `start` to `end`, both within what is held."""
        if not self.start <= start <= end <= self.end:
            raise IndexError(f"{start}..{end} is outside {self.start}..{self.end}")
        return self._pcm[start - self.start : end - self.start].copy()

    def drop(self, before: int) -> None:
        """Forget every sample before index `before`."""
        cut = min(before, self.end) - self.start
        if cut > 0:
            self._pcm = self._pcm[cut:].copy()
            self._length -= cut
            self.start += cut


def dbfs(pcm: Pcm) -> float:
    """Root-mean-square level in dB below full scale; `SILENCE_DBFS` at the least."""
    power = float(np.mean(np.square(pcm, dtype=np.float64))) if len(pcm) else 0.0
    return max(SILENCE_DBFS, 10 * float(np.log10(power))) if power else SILENCE_DBFS


def fade_in(pcm: Pcm, length: int) -> Pcm:
    """A copy whose first `length` samples rise linearly from silence."""
    length = min(length, len(pcm))
    faded = pcm.copy()
    faded[:length] *= np.arange(length, dtype=np.float32) / max(length, 1)
    return faded


def fade_out(pcm: Pcm, length: int) -> Pcm:
    """A copy whose last `length` samples fall linearly to silence."""
    return fade_in(pcm[::-1], length)[::-1]


def to_pcm16(pcm: Pcm) -> npt.NDArray[np.int16]:
    """16-bit integers, clipped; exact for what `from_pcm16` gave."""
    return np.clip(np.rint(pcm * PCM16_SCALE), -32768, 32767).astype(np.int16)


def from_pcm16(integers: npt.NDArray[np.int16]) -> Pcm:
    """Float samples of 16-bit integers."""
    return integers.astype(np.float32) / np.float32(PCM16_SCALE)


def check_rate(rate: int, what: object = "audio") -> None:
    """Raise AudioError unless `rate`, in hertz, is one that voiceloop takes."""
    if not MIN_RATE <= rate <= MAX_RATE:
        raise AudioError(
            f"{what} has a sample rate of {rate} Hz; {MIN_RATE} to {MAX_RATE} Hz can be used",
            "resample it first, for example to 16000 Hz",
        )


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """What an audio file says about itself."""

    path: Path
    rate: int
    """Hertz."""
    channels: int
    encoding: str
    """Container and sample format, as libsndfile names them: `WAV PCM_16`."""
    seconds: float
    """Length that can be read; compressed files that were cut short hold less."""
    warning: str = ""
    """One line about audio that the header promises and the file does not hold."""


class AudioFile:
    """Reads any file that libsndfile knows as mono blocks at one rate.

        with AudioFile(path) as file:
            for pcm in file.blocks():
                ...
        file.info.warning

    Raises AudioError for whatever cannot be read, with the file's name in the message.
    """

    def __init__(self, path: str | Path, rate: int = SPEECH_RATE) -> None:
        self._path = Path(path)
        self._rate = rate
        self._raw = self._open_raw()
        try:
            self._sound = self._open_sound()
            self.info = self._inspect()
            """`warning` is complete once the blocks have been read to the end."""
        except AudioError:
            self._raw.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sound.close()
        self._raw.close()

    def blocks(self) -> Iterator[Pcm]:
        """The whole file, once, in blocks of bounded size; channels are averaged."""
        resampler = Resampler(self.info.rate, self._rate)
        read = 0
        for block in self._decoded():
            if not np.isfinite(block).all():
                at = (read + int(np.argmin(np.isfinite(block).all(axis=1)))) / self.info.rate
                raise AudioError(
                    f"{self._path} holds samples that are not numbers (the first at {at:.2f} s)",
                    "export it again from the program that made it",
                )
            read += len(block)
            pcm = resampler.feed(block.mean(axis=1, dtype=np.float32))
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

    def _open_sound(self) -> soundfile.SoundFile:
        try:
            # By descriptor: given a name, soundfile would judge the format by its ending.
            return soundfile.SoundFile(self._raw.fileno(), closefd=False)
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
            f"{sound.format} {sound.subtype}",
            sound.frames / sound.samplerate,
            f"{self._path} is cut short: {missing} bytes of audio are missing at its end"
            if missing
            else "",
        )

    def _decoded(self) -> Iterator[npt.NDArray[np.float32]]:
        """Blocks of shape [frames, channels]; a stream that breaks off ends here with a warning."""
        read = 0
        while True:
            try:
                block = np.asarray(
                    self._sound.read(BLOCK_FRAMES, dtype="float32", always_2d=True), np.float32
                )
            except soundfile.LibsndfileError:
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


def _missing_wav_bytes(path: Path) -> int:
    """Bytes that the data chunk of a RIFF file declares beyond the file's end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(12)
        while len(head := file.read(8)) == 8:
            name, length = struct.unpack("<4sI", head)
            if name == b"data":
                # 0xFFFFFFFF is how a program that writes to a pipe says that it does not know.
                return 0 if length == 0xFFFFFFFF else max(0, file.tell() + length - size)
            file.seek(length + length % 2, os.SEEK_CUR)
    return 0


class WavWriter:
    """Writes a mono 16-bit wav as a stream, and puts it in place only when it is complete.

    The file is made under a temporary name beside `path`, so an unwritable place is found when the
    writer is made, and an old file under that name stays whole if anything fails before `close`.
    Used as a context manager it closes on success and discards on an exception.
    """

    def __init__(self, path: str | Path, rate: int) -> None:
        check_rate(rate, path)
        # A link is followed, so that the file it points to is replaced and not the link.
        self._path = Path(path).resolve()
        self._part = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        try:
            if self._path.is_dir():
                raise AudioError(f"{path} is a folder", "name the wav file to write inside it")
            if self._path.exists() and not self._path.is_file():
                raise AudioError(f"{path} is not a regular file", "name a file to write")
            if self._path.exists() and not os.access(self._path, os.W_OK):
                raise AudioError(f"{path} is write-protected", "choose another name")
            self._file = self._part.open("wb")
        except OSError as error:
            raise AudioError(
                f"{path} cannot be written: {error.strerror}",
                "choose a folder that exists and that you may write to",
            ) from error
        self._rate = rate
        self._bytes = 0
        self._file.write(self._header())

    def write(self, pcm: Pcm) -> None:
        """Append samples; AudioError where the disk takes no more."""
        try:
            self._bytes += self._file.write(to_pcm16(pcm).astype("<i2").tobytes())
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Finish the file and put it in place of whatever was there."""
        try:
            self._file.seek(0)
            self._file.write(self._header())
            self._file.close()
            self._part.replace(self._path)
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        """Remove what was written; an old file stays as it was."""
        # What the file still holds back is not wanted, nor is the news that it cannot be written.
        with suppress(OSError):
            self._file.close()
        self._part.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _header(self) -> bytes:
        pcm, channels, width = 1, 1, 2
        return struct.pack(
            "<4sI4s4sIHHIIHH4sI",
            *(b"RIFF", 36 + self._bytes, b"WAVE", b"fmt ", 16, pcm, channels, self._rate),
            *(self._rate * channels * width, channels * width, 8 * width, b"data", self._bytes),
        )

    def _failed(self, error: OSError) -> AudioError:
        self.discard()
        return AudioError(
            f"{self._path} cannot be written: {error.strerror}", "make room or choose another disk"
        )
