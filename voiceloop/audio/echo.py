"""Removes the echo of a loudspeaker from a microphone's signal.

First a linear filter (`KalmanFilter`) learns the echo path from the loudspeaker to the microphone,
and subtracts the echo that it predicts. Then WebRTC's AEC3 suppresses the rest: the distortion of
an overdriven loudspeaker, and late reflections. On most laptops the echo is no softer than the
user, and AEC3 alone would suppress the user too. Noise is kept, because recognisers miss words when
it is removed. A faint rest of the echo remains, and is sometimes recognised as words. So a gate
closes while the signal holds nothing but this rest.

Until the echo is known to be removed, the output is silence while something sounds.

The linear filter is the partitioned-block frequency-domain Kalman filter (Enzner and Vary 2006;
Kuech, Mabande and Enzner 2014). The echo path is an impulse response, divided into partitions of
one block each. The filter estimates the spectrum of every partition, and the variance of each
estimate. So it learns fast while it knows little, and slowly once it knows much. It hardly learns
while the user speaks: if the error grows and the playback does not, the cause is the user's voice.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from voiceloop.audio.echo_delay import BLOCK, LATEST_MS, Alignment
from voiceloop.audio.frames import (
    FRAME_MS,
    SPEECH_RATE,
    LiveResampler,
    SampleBuffer,
    dbfs,
    silence,
)
from voiceloop.types import AudioFrame, Pcm

if TYPE_CHECKING:
    from pywebrtc_audio import AudioProcessor


FAINT_DB = 20.0
"""The output of the canceller counts as a rest of the echo if it is at least this many dB softer
than the input. A user who speaks meanwhile is louder, unless the loudspeaker drowns the voice."""
MEMORY_MS = 200
"""The gate compares the loudest input and the loudest output of this many milliseconds, so that it
stays open in the middle of a word."""


class ResidualGate:
    """Compares blocks before and after an echo canceller."""

    def __init__(self) -> None:
        size = MEMORY_MS // FRAME_MS
        self._recorded, self._left = deque[float](maxlen=size), deque[float](maxlen=size)

    def opens(self, recorded: Pcm, left: Pcm) -> bool:
        """Add the next block: `recorded` is the input of the canceller, and `left` its output.
        Return whether the block may be heard."""
        self._recorded.append(dbfs(recorded))
        self._left.append(dbfs(left))
        return max(self._left) > max(self._recorded) - FAINT_DB


TAIL_MS = 250
"""Length of the impulse response in milliseconds. Later reflections are left to the next stage."""
STABLE = 0.9999
"""Transition factor of the Kalman filter (A in the papers): the share of the impulse response that
remains from one block to the next."""
FIRST_GUESS = 3.0
"""Variance of the first partition's spectrum before anything is known."""
DECAY_DB = 3.0
"""Expected decay in dB of the impulse response from each partition of 10 ms to the next."""
SMOOTHING = 0.7
"""Share of the old estimate of `_near` in the new one."""
TINY = 1e-8


class KalmanFilter:
    """Predicts the echo of the loudspeaker in the microphone's signal, and subtracts it."""

    def __init__(self, tail_ms: int = TAIL_MS) -> None:
        self._partitions = tail_ms * 16 // BLOCK
        shape = (self._partitions, BLOCK + 1)
        self._played = np.zeros(shape, np.complex64)
        """Spectra of the played signal, the newest first. Each covers two blocks."""
        self._way = np.zeros(shape, np.complex64)
        """Estimated spectrum of each partition of the echo path."""
        fall = 10 ** (-DECAY_DB / 10 * np.arange(self._partitions, dtype=np.float32))
        self._unsure = (FIRST_GUESS * np.ones(shape, np.float32)) * fall[:, None]
        """Variance of the estimate of each bin of `_way`."""
        self._near = np.zeros(BLOCK + 1, np.float32)
        """Power spectrum of what the filter cannot predict: the user and noise."""
        self._last = np.zeros(BLOCK, np.float32)

    def cancel(self, recorded: Pcm, played: Pcm) -> Pcm:
        """Return a block of the microphone without its echo. `played` is the block that the
        loudspeaker played at that time. Its echo may come up to `TAIL_MS` later."""
        self._played = np.roll(self._played, 1, axis=0)
        self._played[0] = _spectrum(np.concatenate((self._last, played)))
        self._last = played
        echo = np.fft.irfft(np.einsum("pk,pk->k", self._played, self._way))[BLOCK:]
        error = (recorded - echo).astype(np.float32)
        self._learn(error)
        return error

    def _learn(self, error: Pcm) -> None:
        """Update the filter with the error of one block."""
        spectrum = _spectrum(np.concatenate((np.zeros(BLOCK, np.float32), error)))
        power = np.abs(self._played) ** 2
        self._near = SMOOTHING * self._near + (1 - SMOOTHING) * np.abs(spectrum) ** 2
        expected = np.einsum("pk,pk->k", power, self._unsure) + 2 * self._near + TINY
        gain = self._unsure / expected
        step = np.fft.irfft(gain * self._played.conj() * spectrum)
        step[:, BLOCK:] = 0  # a partition has no more than a block of taps
        self._way = STABLE * (self._way + np.fft.rfft(step).astype(np.complex64))
        kept = np.clip(1 - 0.5 * gain * power, 0, 1) * self._unsure
        self._unsure = STABLE**2 * kept + (1 - STABLE**2) * np.abs(self._way) ** 2


def _spectrum(pcm: Pcm) -> npt.NDArray[np.complex64]:
    return np.fft.rfft(pcm).astype(np.complex64)


REMOVED_DB, FAINT_DBFS = 12.0, -55.0
"""The echo counts as removed if the canceller lowers the level by `REMOVED_DB`, or to `FAINT_DBFS`
or less."""
TRIAL_MS = 300
"""Milliseconds of sound from which one judgement is made."""
NO_ECHO_MS = 1500
"""If the delay of the echo has not been found after this many milliseconds of sound, there is
probably no echo, and the trial begins."""
GIVE_UP_MS = 4000
"""Milliseconds of sound after which an echo that is not removed counts as not removable."""


class Duplex(Enum):
    """Whether the user is heard while something sounds."""

    TRYING = auto()
    """Not yet: it is not known whether the echo is removed."""
    FULL = auto()
    """Yes: the echo is removed."""
    HALF = auto()
    """No: the echo could not be removed so far."""


class Trial:
    """Tries an echo canceller from the first sound on, until it removes the echo."""

    def __init__(self) -> None:
        self.duplex = Duplex.TRYING
        self._sounded_ms = self._judged_ms = 0
        self._recorded = self._left = 0.0
        """Energy before (`_recorded`) and after (`_left`) the canceller since the last
        judgement."""

    def feed(self, recorded: Pcm, left: Pcm, *, found: bool) -> None:
        """Add a block while something sounds: `recorded` is the input of the canceller, and `left`
        its output. `found` says whether the delay of the echo is known."""
        self._sounded_ms += FRAME_MS
        if self.duplex is Duplex.FULL or not (found or self._sounded_ms > NO_ECHO_MS):
            return
        self._recorded += float(np.mean(np.square(recorded, dtype=np.float64)))
        self._left += float(np.mean(np.square(left, dtype=np.float64)))
        self._judged_ms += FRAME_MS
        if self._judged_ms == TRIAL_MS:
            self._judge()

    def _judge(self) -> None:
        recorded, left = (
            10 * math.log10(energy * FRAME_MS / TRIAL_MS + 1e-12)
            for energy in (self._recorded, self._left)
        )
        if recorded - left >= REMOVED_DB or left <= FAINT_DBFS:
            self.duplex = Duplex.FULL
        elif self._sounded_ms >= GIVE_UP_MS:
            self.duplex = Duplex.HALF
        self._recorded = self._left = 0.0
        self._judged_ms = 0


AUDIBLE_DBFS = -60.0
"""Level in dBFS from which a played block can have an audible echo."""
ROOM_MS = 300
"""Time in milliseconds for which a room still sounds after the loudspeaker."""
DELAY_S = 0.008
"""Delay of AEC3 in seconds."""


class EchoCanceller:
    """Removes the echo from blocks of 10 ms at 16 kHz."""

    def __init__(self, played: SampleBuffer) -> None:
        """Use `played`. The caller must append the loudspeaker's samples at 16 kHz before they
        sound."""
        self.alignment = Alignment(played)
        self._sounds_ms = 0
        """Milliseconds for which an echo may still come."""
        self._restart()

    def _restart(self) -> None:
        """Learn the echo path anew."""
        self._trial = Trial()
        self._linear = KalmanFilter()
        self._suppressor = _suppressor()
        self._gate = ResidualGate()

    @property
    def duplex(self) -> Duplex:
        """Return whether the user is heard while something sounds."""
        return self._trial.duplex

    def begin(self, ahead: int) -> None:
        """Align the signals by the devices' times, as `Alignment.begin` does, and learn the echo
        path anew."""
        self.alignment.begin(ahead)
        self._restart()

    def cancel(self, recorded: Pcm) -> Pcm:
        """Return the next block of the microphone without echo. While something sounds, return
        silence if the gate is closed, or if the echo is not known to be removed. The user's voice
        is delayed by `DELAY_S`."""
        played = self.alignment.read()
        if self.alignment.follow(recorded, played):
            self._restart()
        clean = self._linear.cancel(recorded, played)
        if self._suppressor is not None:
            clean = self._suppressor.process(clean, played)
        found = self.alignment.delay_ms is not None
        if dbfs(played) > AUDIBLE_DBFS:
            self._sounds_ms = ROOM_MS if found else ROOM_MS + LATEST_MS
            self._trial.feed(recorded, clean, found=found)
        elif self._sounds_ms:
            self._sounds_ms -= FRAME_MS
        heard = self._gate.opens(recorded, clean) and self.duplex is Duplex.FULL
        return clean if heard or not self._sounds_ms else silence(BLOCK)


def _suppressor() -> AudioProcessor | None:
    """Return WebRTC's AEC3; None on the few machines for which there is no wheel of it."""
    try:
        from pywebrtc_audio import AudioProcessor
    except ImportError:
        return None
    return AudioProcessor(SPEECH_RATE, echo_cancellation=True)


class RecordingDevice(Protocol):
    """A device that knows when a sample was recorded."""

    @property
    def stretch(self) -> tuple[int, int]:
        """Return how often a device was opened, and how often the present one has lost samples.
        Times before a change of either number cannot be compared with times after it."""
        ...

    def recorded_at(self, index: int) -> float | None:
        """Return the time at which the sample with this index (at 16 kHz) was recorded, in seconds
        of the sound system's clock. None while it is not known."""
        ...


class PlayingDevice(Protocol):
    """A device that knows what it has played, and when."""

    rate: int
    """Sample rate in hertz."""

    @property
    def stretch(self) -> tuple[int, int]:
        """Return how often a device was opened, and how often the present one has run out of
        samples. Times before a change of either number cannot be compared with times after it."""
        ...

    def taken(self) -> Pcm:
        """Return the samples that the device has taken since the last call, silence included."""
        ...

    def sounding_at(self, time: float) -> float | None:
        """Return the index of the sample that sounds at `time`, in seconds of the sound system's
        clock. The index counts all samples that the device has taken, and may lie between two of
        them. None while it is not known."""
        ...


class EchoFilter:
    """Removes from the frames of a microphone what a speaker beside it plays."""

    def __init__(
        self,
        recorder: RecordingDevice,
        speaker: PlayingDevice,
        deaf: Callable[[], None] = lambda: None,
    ) -> None:
        """`recorder` is the device that records the frames, and `speaker` is the device that plays
        beside it. Call `deaf` once if the echo cannot be removed, so that nothing is heard during
        replies."""
        self._recorder, self._speaker, self._deaf = recorder, speaker, deaf
        self._played = SampleBuffer()
        self.canceller = EchoCanceller(self._played)
        self._resampler = LiveResampler(speaker.rate, SPEECH_RATE)
        self._aligned = (0, 0), (0, 0)
        self._told = False

    def process(self, frame: AudioFrame) -> AudioFrame:
        """Return `frame` without echo."""
        speaker, canceller = self._speaker, self.canceller
        self._played.append(self._resampler.feed(speaker.taken()))
        stretches = self._recorder.stretch, speaker.stretch
        if stretches != self._aligned and (ahead := self._ahead(frame.start)) is not None:
            canceller.begin(ahead)
            self._aligned = stretches
        pcm = canceller.cancel(frame.pcm)
        if canceller.duplex is Duplex.HALF and not self._told:
            self._told = True
            self._deaf()
        return replace(frame, pcm=pcm)

    def _ahead(self, index: int) -> int | None:
        """Return the offset for `EchoCanceller.begin` by the devices' times: the played sample that
        sounded when sample `index` was recorded, minus `index`. None while it is not known."""
        time = self._recorder.recorded_at(index)
        sounding = None if time is None else self._speaker.sounding_at(time)
        if sounding is None:
            return None
        return round(sounding * SPEECH_RATE / self._speaker.rate) - index
