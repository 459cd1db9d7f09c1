# pyright: reportMissingTypeStubs=false
"""Audio as numbers: framing, streaming resampling, levels and fades.

Everything between the edges is mono float32 in [-1, 1]. Streams are cut and resampled so that the
result does not depend on how the input was chunked. This module knows nothing of files, devices,
speech or turns.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import soxr

from voiceloop.errors import AudioError
from voiceloop.types import AudioFrame, Pcm

SPEECH_RATE = 16_000
"""Hertz of everything that voice activity detection and recognition see."""
FRAME_MS = 10
MIN_RATE, MAX_RATE = 8_000, 192_000
KNEE = 0.8
"""Amplitude from which samples that are made louder are bent."""
SILENCE_DBFS = -120.0
"""The level that digital silence is given."""
PCM16_SCALE = 32768.0
FEW_PHASES = 8
"""With more of them it is faster to compute each sample for itself than all for each phase."""


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

    @property
    def rest(self) -> AudioFrame:
        """The samples that are no frame yet."""
        return AudioFrame(self._rest, self.rate, self.position)

    def drop(self) -> None:
        """Forget the samples that are no frame yet."""
        self._rest = silence(0)

    def _next(self, pcm: Pcm) -> AudioFrame:
        frame = AudioFrame(pcm, self.rate, self.position)
        self.position = frame.end
        return frame


class Resampler:
    """Resamples a stream (soxr) for whoever has the whole of it; any chunking, once flushed, gives
    bit-identical output. Meanwhile it holds back up to 30 ms."""

    def __init__(self, source: int, target: int) -> None:
        check_rate(source)
        check_rate(target)
        self._stream = (
            None
            if source == target
            else soxr.ResampleStream(source, target, 1, dtype="float32", quality="HQ")
        )

    def feed(self, pcm: Pcm) -> Pcm:
        """Samples at the target rate that are ready after `pcm`."""
        return pcm if self._stream is None else self._stream.resample_chunk(pcm)

    def flush(self) -> Pcm:
        """What the filter still holds at the end of the stream."""
        return silence(0) if self._stream is None else self._stream.resample_chunk(silence(0), True)


class LiveResampler:
    """Resamples a stream for whoever waits for it: nothing is held back, in any chunking.

    The sound is `DELAY_S` late in what comes at once: a polyphase filter with linear phase that
    looks at as many samples as there have been. The window is Kaiser's (1974), 80 dB down.
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
        """Of the next sample's place, in upsampled samples from the next that is fed."""

    def feed(self, pcm: Pcm) -> Pcm:
        """All samples at the target rate up to the end of `pcm`."""
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


class Mixer:
    """Makes one channel of a stream's several: their mean, or of two that cancel each other the
    louder. Some microphones and recordings have one of them the wrong way round.

    Which it is, is decided every `STEP_MS` by what came before, so nothing is held back and no
    chunking shows.
    """

    STEP_MS = 20
    KEEP = 0.98
    """What is left of a power after a step."""
    FAR, NEAR = 0.3, 0.6
    """Power of the mean, of that of the softer channel, under which they cancel each other, and
    above which they do not; of two that have nothing in common it is a half, or more."""
    LOUDER = 4.0
    """The power of a channel, of that of the one that is taken, to be taken instead."""

    def __init__(self, rate: int) -> None:
        self._step = samples(self.STEP_MS, rate)
        self._at = 0
        """Frames of the step that have been fed."""
        self._sums = np.zeros((2, 3))
        """Of the samples of both channels and their mean in the step, and of their squares."""
        self._powers = np.zeros(3)
        self._taken: int | None = None
        self._before: int | None = None
        """The channel that is taken, or all; what was before this step."""

    def feed(self, block: Channels) -> Pcm:
        """One channel of `block`."""
        if block.shape[1] != 2:
            return block.mean(axis=1, dtype=np.float32)
        cuts = range(self._step - self._at, len(block), self._step)
        return np.concatenate([silence(0), *map(self._within, np.split(block, cuts))])

    def _within(self, block: Channels) -> Pcm:
        """The next frames of a step."""
        if self._at == self._step:
            self._decide()
        mean = block.mean(axis=1, dtype=np.float32)
        every = np.column_stack((block, mean)).astype(np.float64)
        self._sums += every.sum(axis=0), (every**2).sum(axis=0)
        ways = [mean if way is None else block[:, way] for way in (self._before, self._taken)]
        done = np.arange(self._at, self._at + len(block), dtype=np.float32) / self._step
        self._at += len(block)
        if self._before == self._taken:
            return ways[1]
        return (ways[0] * (1 - done) + ways[1] * done).astype(np.float32)

    def _decide(self) -> None:
        """Begin a step, with the channel that is best by all that came before."""
        sums, squares = self._sums / self._step
        self._powers = self.KEEP * self._powers + np.maximum(squares - sums**2, 0.0)
        self._sums, self._at, self._before = np.zeros((2, 3)), 0, self._taken
        *channels, mean = self._powers
        cancel = mean < min(channels) * (self.FAR if self._taken is None else self.NEAR)
        if not cancel:
            self._taken = None
        elif self._taken is None or max(channels) > self.LOUDER * channels[self._taken]:
            self._taken = int(np.argmax(channels))


class HighPass:
    """Takes out of a stream what stays the same, which is no sound but is loud: the offset that
    cheap sound cards have. One pole at `CORNER_HZ`.

    Nothing is held back, and any chunking gives bit-identical output.
    """

    CORNER_HZ = 20.0

    def __init__(self, rate: int = SPEECH_RATE) -> None:
        keep = math.exp(-2 * math.pi * self.CORNER_HZ / rate)
        self._share = 1 - keep
        self._kept = keep ** np.arange(1, rate // int(self.CORNER_HZ) + 1)
        """What is left of the mean after each sample of a block."""
        self._mean = 0.0
        """Of what was before the block and what is in it, as if that had not been forgotten since
        the block began."""
        self._begun = False
        self._at = 0
        """Samples of the block that have been fed."""

    def feed(self, pcm: Pcm) -> Pcm:
        """Subtract the running mean: y[t] = x[t] - m[t], with m[t] = (1 - a) m[t-1] + a x[t]."""
        if not self._begun and len(pcm):
            self._mean, self._begun = float(pcm[0]), True  # as if it had been so for ever
        size = len(self._kept)
        cuts = range((size - self._at) % size, len(pcm), size)
        return np.concatenate([silence(0), *map(self._within, np.split(pcm, cuts))])

    def _within(self, pcm: Pcm) -> Pcm:
        """The next samples of a block."""
        if not len(pcm):
            return pcm
        if self._at == len(self._kept):
            self._mean, self._at = self._mean * float(self._kept[-1]), 0
        kept = self._kept[self._at : self._at + len(pcm)]
        # In float64 and one after the other, so that it does not matter where a chunk ends.
        means = np.cumsum(np.concatenate(([self._mean], self._share * pcm / kept)))[1:]
        self._mean, self._at = float(means[-1]), self._at + len(pcm)
        return (pcm - means * kept).astype(np.float32)


def _windows(pcm: Pcm, count: int, width: int, step: int = 1) -> Pcm:
    """The first `count` windows of `width` samples, each `step` after the one before; a view.

    numpy's own function for this takes longer than the filter that is applied to 20 ms.
    """
    size = pcm.itemsize
    return np.ndarray((count, width), pcm.dtype, pcm, strides=(step * size, size))


def _low_pass(taps: int, up: int, band: float) -> Pcm:
    """The filter for each of `up` places between two samples, in the order of the samples.

    It passes `band` of what the samples can hold, less its own slope.
    """
    slope = (80 - 8) / (2.285 * np.pi * taps)  # Kaiser's formula, of the source's band
    place = np.arange(taps * up) / up - taps / 2
    filtered = np.sinc(place * (band - slope / 2)) * np.kaiser(taps * up + 1, 7.857)[:-1]
    phases = filtered.reshape(taps, up).T[:, ::-1]
    return np.ascontiguousarray(phases / phases.sum(axis=1, keepdims=True), np.float32)


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


class Ring:
    """What waits between an audio callback and the rest of the program: the newest samples of one
    stream that nobody has taken yet.

    Samples are numbered since the first one that was appended, so whoever takes them sees how many
    are missing. Nothing is allocated where samples go in and out. Whoever shares a ring between
    threads holds a lock of their own around each call.
    """

    def __init__(self, capacity: int) -> None:
        """`capacity` is the number of samples that fit, until `reserve` asks for more."""
        self._pcm = silence(capacity)
        self.start = 0
        """Index of the oldest sample that waits."""
        self.end = 0
        """Index of the sample after the newest."""

    def __len__(self) -> int:
        """Samples that wait."""
        return self.end - self.start

    def append(self, pcm: Pcm) -> None:
        """Add the next samples of the stream; where they do not fit, the oldest are lost."""
        capacity = len(self._pcm)
        self.end += len(pcm)
        newest = pcm[max(0, len(pcm) - capacity) :]
        at = (self.end - len(newest)) % capacity
        first = min(len(newest), capacity - at)
        self._pcm[at : at + first] = newest[:first]
        self._pcm[: len(newest) - first] = newest[first:]
        self.start = max(self.start, self.end - capacity)

    def take(self, into: Pcm) -> int:
        """Move the oldest samples to the beginning of `into`; returns how many those are."""
        count = min(len(self), len(into))
        at = self.start % len(self._pcm)
        first = min(count, len(self._pcm) - at)
        into[:first] = self._pcm[at : at + first]
        into[first:count] = self._pcm[: count - first]
        self.start += count
        return count

    def take_all(self) -> tuple[int, Pcm]:
        """Every sample that waits, and the index of the first of them."""
        start, pcm = self.start, silence(len(self))
        self.take(pcm)
        return start, pcm

    def reserve(self, count: int) -> None:
        """Make room for `count` samples more than wait already."""
        if (needed := len(self) + count) > len(self._pcm):
            start, waiting = self.take_all()
            self._pcm = silence(2 * needed)
            self.start = self.end = start
            self.append(waiting)

    def cut(self, keep: int) -> int:
        """Forget all but the oldest `keep` samples, and let those fade to silence.

        Returns the number of samples that were forgotten; their indices are given anew.
        """
        start, waiting = self.take_all()
        kept = waiting[:keep]
        self.start = self.end = start
        self.append(fade_out(kept, len(kept)))
        return len(waiting) - len(kept)


def dbfs(pcm: Pcm) -> float:
    """Root-mean-square level in dB below full scale; `SILENCE_DBFS` at the least."""
    power = float(np.mean(np.square(pcm, dtype=np.float64))) if len(pcm) else 0.0
    return max(SILENCE_DBFS, 10 * float(np.log10(power))) if power else SILENCE_DBFS


def levels(pcm: Pcm, step: int) -> npt.NDArray[np.float64]:
    """`dbfs` of each `step` samples, and of those that are left over."""
    filled = np.zeros(-(-len(pcm) // step) * step)
    filled[: len(pcm)] = pcm
    steps = filled.reshape(-1, step)
    power = np.vecdot(steps, steps) / step
    if rest := len(pcm) % step:
        power[-1] *= step / rest
    return 10 * np.log10(np.maximum(power, 10 ** (SILENCE_DBFS / 10)))


def louder(pcm: Pcm, begin: float, end: float) -> Pcm:
    """`pcm` multiplied by what goes from `begin` to `end`; what comes near full scale is bent, so
    that nothing beyond it is cut off."""
    if begin == end == 1.0:
        return pcm
    loud = pcm * np.linspace(begin, end, len(pcm), endpoint=False, dtype=np.float32)
    level, room = np.abs(loud), np.float32(1 - KNEE)
    bent = KNEE + room * np.tanh((level - KNEE) / room)
    return np.where(level > KNEE, np.sign(loud) * bent, loud).astype(np.float32)


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
    return np.multiply(integers, np.float32(1 / PCM16_SCALE), dtype=np.float32)


def check_rate(rate: int, what: object = "audio") -> None:
    """Raise AudioError unless `rate`, in hertz, is one that voiceloop takes."""
    if not MIN_RATE <= rate <= MAX_RATE:
        raise AudioError(
            f"{what} has a sample rate of {rate} Hz; {MIN_RATE} to {MAX_RATE} Hz can be used",
            "resample it first, for example to 16000 Hz",
        )
