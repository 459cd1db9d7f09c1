# pyright: reportMissingTypeStubs=false
"""Audio as numbers: framing, streaming resampling, levels and fades.

Between input and output all audio is mono float32 in [-1, 1]. Streams are cut and resampled so that
the result does not depend on how the input was chunked. This module knows nothing of files,
devices, speech or turns.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import soxr

from voiceloop.errors import AudioError
from voiceloop.types import AudioFrame, Pcm

SPEECH_RATE = 16_000
"""Sample rate in hertz of all audio for voice activity detection and recognition."""
FRAME_MS = 10
MIN_RATE, MAX_RATE = 8_000, 192_000
KNEE = 0.8
"""Amplitude above which amplified samples are compressed."""
SILENCE_DBFS = -120.0
"""Level of digital silence in dBFS."""
PCM16_SCALE = 32768.0
FEW_PHASES = 8
"""`LiveResampler` computes up to this many filter phases one by one. If there are more, choosing a
phase for each sample is faster."""


def samples(milliseconds: float, rate: int = SPEECH_RATE) -> int:
    """Return the number of samples in `milliseconds`, rounded to the nearest."""
    return round(milliseconds * rate / 1000)


def silence(count: int) -> Pcm:
    """Return `count` samples of digital silence."""
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
        """Return the frames that `pcm`, the next samples of the stream, completes."""
        joined = np.concatenate((self._rest, pcm))
        whole = len(joined) - len(joined) % self.size
        self._rest = joined[whole:].copy()
        return [self._next(joined[at : at + self.size]) for at in range(0, whole, self.size)]

    @property
    def rest(self) -> AudioFrame:
        """Samples that do not fill a frame yet."""
        return AudioFrame(self._rest, self.rate, self.position)

    def drop(self) -> None:
        """Forget the samples that do not fill a frame yet."""
        self._rest = silence(0)

    def _next(self, pcm: Pcm) -> AudioFrame:
        frame = AudioFrame(pcm, self.rate, self.position)
        self.position = frame.end
        return frame


class Resampler:
    """Resamples a stream with soxr. Up to 30 ms are held back until `flush`, so it is not for live
    audio. The whole output is bit-identical for any chunking."""

    def __init__(self, source: int, target: int) -> None:
        check_rate(source)
        check_rate(target)
        self._stream = (
            None
            if source == target
            else soxr.ResampleStream(source, target, 1, dtype="float32", quality="HQ")
        )

    def feed(self, pcm: Pcm) -> Pcm:
        """Return the samples at the target rate that are ready after `pcm`."""
        return pcm if self._stream is None else self._stream.resample_chunk(pcm)

    def flush(self) -> Pcm:
        """Return the samples that the filter still holds at the end of the stream."""
        return silence(0) if self._stream is None else self._stream.resample_chunk(silence(0), True)


class LiveResampler:
    """Resamples a live stream: nothing is held back, however the input is chunked.

    The sound is delayed by `DELAY_S`. The polyphase filter has linear phase and needs no later
    samples. It has a Kaiser window (Kaiser 1974), which attenuates the stop band by 80 dB.
    """

    DELAY_S = 0.002

    def __init__(self, source: int, target: int) -> None:
        check_rate(source)
        check_rate(target)
        common = math.gcd(source, target)
        self._up, self._down = target // common, source // common
        self._taps = round(2 * self.DELAY_S * source)
        self._phases = _low_pass(self._taps, self._up, min(source, target) / source)
        self._past = silence(self._taps - 1)
        self._ahead = 0
        """Distance from the next input sample to the next output sample. One input sample is `_up`
        of these units."""

    def feed(self, pcm: Pcm) -> Pcm:
        """Return all samples at the target rate up to the end of `pcm`."""
        if self._up == self._down:
            return pcm
        heard = np.concatenate((self._past, pcm))
        first, last = self._ahead, len(pcm) * self._up
        count = max(0, -((first - last) // self._down))
        self._ahead += count * self._down - last
        self._past = heard[len(pcm) :]
        if not count:
            return silence(0)
        if self._up > FEW_PHASES:
            at, phases = np.divmod(np.arange(first, last, self._down), self._up)
            windows = _windows(heard, len(pcm), self._taps)
            return np.vecdot(windows[at], self._phases[phases])
        out = np.empty(count, np.float32)
        for nth in range(min(self._up, count)):
            at, phase = divmod(first + nth * self._down, self._up)
            these = out[nth :: self._up]
            windows = _windows(heard[at:], len(these), self._taps, self._down)
            np.vecdot(windows, self._phases[phase], out=these)
        return out


Channels = npt.NDArray[np.float32]
"""Samples of several channels: [frames, channels]."""
MEAN = 2
"""Number of the mean of two channels, after those of the channels themselves."""


class Mixer:
    """Mixes the channels of a stream into one. Usually that is their mean. If two channels cancel
    each other, the louder one is taken, because some microphones and recordings invert one channel.

    The choice is made every `STEP_MS` milliseconds from earlier audio, so nothing is held back and
    chunking makes no difference.
    """

    STEP_MS = 20
    KEEP = 0.98
    """Factor by which the remembered power of a channel decays in each step."""
    FAR, NEAR = 0.3, 0.6
    """Limits for the ratio of the mean's power to that of the softer channel. If it falls below
    `FAR`, two channels count as cancelling each other, until it rises above `NEAR`. For unrelated
    channels the ratio is a half or more."""
    LOUDER = 4.0
    """The other channel is selected instead of the present one if its power is more than this many
    times as high."""

    def __init__(self, rate: int) -> None:
        self._step = samples(self.STEP_MS, rate)
        self._at = 0
        """Frames of the present step that have been fed."""
        self._sums = np.zeros((2, 3))
        """Sums over the step of the samples (row 0) and of their squares (row 1), for both channels
        and their mean."""
        self._powers = np.zeros(3)
        """Remembered power of both channels and of their mean."""
        self._selected = self._previous = MEAN
        """Selected channel now (`_selected`) and before this step (`_previous`): 0, 1 or `MEAN`."""

    def feed(self, block: Channels) -> Pcm:
        """Return `block` mixed into one channel."""
        if block.shape[1] != 2:
            return block.mean(axis=1, dtype=np.float32)
        cuts = range(self._step - self._at, len(block), self._step)
        return np.concatenate([silence(0), *map(self._within, np.split(block, cuts))])

    def _within(self, block: Channels) -> Pcm:
        """Mix the next frames of a step, with a linear fade from the previous selection to the
        present one."""
        if self._at == self._step:
            self._decide()
        every = np.column_stack((block, block.mean(axis=1, dtype=np.float32))).astype(np.float64)
        self._sums += every.sum(axis=0), (every**2).sum(axis=0)
        done = np.arange(self._at, self._at + len(block)) / self._step
        self._at += len(block)
        before, now = every[:, self._previous], every[:, self._selected]
        return (before + done * (now - before)).astype(np.float32)

    def _decide(self) -> None:
        """Begin a step. Select the louder channel if the two have cancelled each other in the audio
        so far, and otherwise the mean."""
        sums, squares = self._sums / self._step
        self._powers = self.KEEP * self._powers + np.maximum(squares - sums**2, 0.0)
        self._sums, self._at, self._previous = np.zeros((2, 3)), 0, self._selected
        *channels, mean = self._powers
        cancel = mean < min(channels) * (self.FAR if self._selected == MEAN else self.NEAR)
        if not cancel:
            self._selected = MEAN
        elif self._selected == MEAN or max(channels) > self.LOUDER * channels[self._selected]:
            self._selected = int(np.argmax(channels))


class HighPass:
    """A high-pass filter with one pole at `CORNER_HZ`. It removes the constant offset that cheap
    sound cards add to a stream. Nothing is held back."""

    CORNER_HZ = 20.0

    def __init__(self, rate: int = SPEECH_RATE) -> None:
        keep = math.exp(-2 * math.pi * self.CORNER_HZ / rate)
        self._share = 1 - keep
        self._kept = keep ** np.arange(1, rate // int(self.CORNER_HZ) + 1)
        """Share of the running mean before a piece that is left after each sample of the piece. In
        longer pieces it would become too small to divide by."""
        self._mean: float | None = None
        """Running mean after the newest sample; None before the first."""

    def feed(self, pcm: Pcm) -> Pcm:
        """Subtract the running mean: y[t] = x[t] - m[t], with m[t] = (1 - a) m[t-1] + a x[t]. Here
        a is `_share`, and m begins as the first sample, as if all audio before had this offset."""
        size = len(self._kept)
        pieces = [pcm[at : at + size] for at in range(0, len(pcm), size)]
        return np.concatenate([silence(0), *map(self._without_mean, pieces)])

    def _without_mean(self, pcm: Pcm) -> Pcm:
        before = float(pcm[0]) if self._mean is None else self._mean
        kept = self._kept[: len(pcm)]
        means = kept * (before + np.cumsum(self._share * pcm / kept))
        self._mean = float(means[-1])
        return (pcm - means).astype(np.float32)


def _windows(pcm: Pcm, count: int, width: int, step: int = 1) -> Pcm:
    """Return the first `count` windows of `width` samples, `step` samples apart, as a view.

    numpy's own function for this takes longer than filtering 20 ms of audio.
    """
    size = pcm.itemsize
    return np.ndarray((count, width), pcm.dtype, pcm, strides=(step * size, size))


def _low_pass(taps: int, up: int, band: float) -> Pcm:
    """Return the filter for each of `up` phases between two samples: [up, taps].

    The stop band begins at the share `band` of the source's band. The transition band lies just
    below it.
    """
    slope = (80 - 8) / (2.285 * np.pi * taps)  # Kaiser's formula, relative to the source's band
    place = np.arange(taps * up) / up - taps / 2
    filtered = np.sinc(place * (band - slope / 2)) * np.kaiser(taps * up + 1, 7.857)[:-1]
    phases = filtered.reshape(taps, up).T[:, ::-1]
    return np.ascontiguousarray(phases / phases.sum(axis=1, keepdims=True), np.float32)


class SampleBuffer:
    """The recent samples of one stream, addressed by their index in the stream.

    Threads that share a buffer must use a lock around each call.
    """

    def __init__(self, start: int = 0, most: int | None = None) -> None:
        """Begin at index `start` of the stream. Hold any number of samples, or only the newest
        `most`."""
        self.start = start
        """Index of the oldest sample held."""
        self.end = start
        """Index of the sample after the newest."""
        self._most = most
        self._pcm = silence(SPEECH_RATE)
        self._first = 0
        """Place in `_pcm` of the oldest sample held."""

    def __len__(self) -> int:
        """Return the number of samples held."""
        return self.end - self.start

    def append(self, pcm: Pcm) -> None:
        """Add the next samples of the stream."""
        last = self._first + len(self)
        if last + len(pcm) > len(self._pcm):
            # Half of the array is free afterwards, so samples are seldom moved.
            needed, held = 2 * (len(self) + len(pcm)), self._pcm[self._first : last]
            if needed > len(self._pcm):
                self._pcm = silence(needed)
            self._pcm[: len(self)] = held
            self._first, last = 0, len(self)
        self._pcm[last : last + len(pcm)] = pcm
        self.end += len(pcm)
        if self._most is not None:
            self.drop(self.end - self._most)

    def read(self, start: int, end: int) -> Pcm:
        """Return a copy of the samples from `start` to `end`. Raises IndexError if some are not
        held."""
        if not self.start <= start <= end <= self.end:
            raise IndexError(f"{start}..{end} is outside {self.start}..{self.end}")
        before = self._first - self.start
        return self._pcm[before + start : before + end].copy()

    def drop(self, before: int) -> None:
        """Forget every sample before index `before`."""
        dropped = max(0, min(before, self.end) - self.start)
        self.start += dropped
        self._first += dropped

    def take(self, into: Pcm) -> int:
        """Move the oldest samples to the beginning of `into`, and return how many were moved."""
        count = min(len(self), len(into))
        into[:count] = self._pcm[self._first : self._first + count]
        self.drop(self.start + count)
        return count

    def take_all(self) -> tuple[int, Pcm]:
        """Take all samples. Returns the index of the first one, and the samples."""
        start, pcm = self.start, self.read(self.start, self.end)
        self.drop(self.end)
        return start, pcm

    def cut(self, keep: int) -> int:
        """Keep the oldest `keep` samples, faded to silence, and forget all later ones.

        Returns how many were forgotten. The samples that are appended next take over the indices of
        the forgotten ones.
        """
        kept = self.read(self.start, min(self.end, self.start + keep))
        forgotten, self.end = len(self) - len(kept), self.start
        self.append(fade_out(kept, len(kept)))
        return forgotten


def dbfs(pcm: Pcm) -> float:
    """Return the root-mean-square level in dBFS, at least `SILENCE_DBFS`."""
    power = float(np.mean(np.square(pcm, dtype=np.float64))) if len(pcm) else 0.0
    return max(SILENCE_DBFS, 10 * float(np.log10(power))) if power else SILENCE_DBFS


def levels(pcm: Pcm, step: int) -> npt.NDArray[np.float64]:
    """Return the levels of `pcm` in dBFS, one for each `step` samples. Samples that are left over
    at the end give one more level."""
    filled = np.zeros(-(-len(pcm) // step) * step)
    filled[: len(pcm)] = pcm
    steps = filled.reshape(-1, step)
    power = np.vecdot(steps, steps) / step
    if rest := len(pcm) % step:
        power[-1] *= step / rest
    return 10 * np.log10(np.maximum(power, 10 ** (SILENCE_DBFS / 10)))


def louder(pcm: Pcm, begin: float, end: float) -> Pcm:
    """Return `pcm` multiplied by a gain that changes linearly from `begin` to `end`. Amplitudes
    above `KNEE` are compressed by tanh, so that nothing is clipped at full scale."""
    if begin == end == 1.0:
        return pcm
    loud = pcm * np.linspace(begin, end, len(pcm), endpoint=False, dtype=np.float32)
    level, room = np.abs(loud), np.float32(1 - KNEE)
    bent = KNEE + room * np.tanh((level - KNEE) / room)
    return np.where(level > KNEE, np.sign(loud) * bent, loud).astype(np.float32)


def fade_in(pcm: Pcm, length: int) -> Pcm:
    """Return a copy whose first `length` samples rise linearly from silence."""
    length = min(length, len(pcm))
    faded = pcm.copy()
    faded[:length] *= np.arange(length, dtype=np.float32) / max(length, 1)
    return faded


def fade_out(pcm: Pcm, length: int) -> Pcm:
    """Return a copy whose last `length` samples fall linearly to silence."""
    return fade_in(pcm[::-1], length)[::-1]


def to_pcm16(pcm: Pcm) -> npt.NDArray[np.int16]:
    """Return `pcm` as 16-bit integers, clipped. Samples from `from_pcm16` give exactly the integers
    that they were made from."""
    return np.clip(np.rint(pcm * PCM16_SCALE), -32768, 32767).astype(np.int16)


def from_pcm16(integers: npt.NDArray[np.int16]) -> Pcm:
    """Return 16-bit integers as float samples."""
    return np.multiply(integers, np.float32(1 / PCM16_SCALE), dtype=np.float32)


def check_rate(rate: int, what: object = "audio") -> None:
    """Raise AudioError unless `rate`, in hertz, is one that voiceloop can use."""
    if not MIN_RATE <= rate <= MAX_RATE:
        raise AudioError(
            f"{what} has a sample rate of {rate} Hz; {MIN_RATE} to {MAX_RATE} Hz can be used",
            "resample it first, for example to 16000 Hz",
        )
