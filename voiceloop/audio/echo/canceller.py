"""Removes the echo of a loudspeaker from a microphone's signal, in two stages.

A linear filter (`kalman`) subtracts what it has learnt of the way from loudspeaker to microphone.
WebRTC's AEC3 then suppresses what is left: the effects of a driven loudspeaker, of clocks that
differ, and of late reflections. AEC3 alone would suppress the user too wherever the echo is as loud
as the user is, as on most laptops. Noise is left as it is, since removing it costs words.

Until the echo is known to be removed, nothing is heard while something sounds.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np

from voiceloop.audio.echo.delay import LATEST_MS, DelayEstimator, DriftEstimator
from voiceloop.audio.echo.kalman import BLOCK, KalmanFilter
from voiceloop.audio.frames import FRAME_MS, SPEECH_RATE, SampleBuffer, dbfs, samples, silence
from voiceloop.types import Pcm

if TYPE_CHECKING:
    from pywebrtc_audio import AudioProcessor

AUDIBLE_DBFS = -60.0
"""Level from which a block of what is played can have an echo."""
LEAD = samples(20)
"""Samples by which the filter gets a played sample before its echo comes."""
SLACK = samples(15)
"""How far from `LEAD` the echo may come before the two streams are aligned anew."""
TAPS, KAISER = 32, 6.0
"""Length and shape of the filter that reads between two samples."""
ROOM_MS = 300
"""Time in milliseconds for which a room still sounds."""
REMOVED_DB, FAINT_DBFS = 12.0, -55.0
"""The echo counts as removed if that much of it is gone, or no more than that is left."""
TRIAL_MS = 300
"""Time of sound in milliseconds after which it is known whether the echo is removed."""
GIVE_UP_MS = 4000
"""Time of sound in milliseconds after which an echo that is still there counts as not removable."""


class Duplex(Enum):
    """What is heard while something sounds."""

    TRYING = auto()
    """Nothing yet: the echo is not known to be removed."""
    FULL = auto()
    """The user: the echo is removed."""
    HALF = auto()
    """Nothing: the echo could not be removed so far."""


class EchoCanceller:
    """Removes the echo from blocks of 10 ms at 16 kHz."""

    def __init__(self, played: SampleBuffer) -> None:
        """`played` has what the loudspeaker plays, before it sounds. Older samples are dropped."""
        self._played = played
        self._place = 0.0
        """Place in `played` of the next block for the filter."""
        self._start = 0
        """Index of the recorded sample to which that place belongs."""
        self._rate = 1.0
        """Played samples in the time of a recorded one: two devices have two clocks."""
        self._delays, self._drift = DelayEstimator(), DriftEstimator()
        self.delay_ms: float | None = None
        """Measured time by which the echo comes later than the streams' times say; None until it is
        known."""
        self._told = 0
        """How far `played` is ahead of the recording by the streams' times, in samples."""
        self._restart()

    def _restart(self) -> None:
        """Learn the way of the echo anew."""
        self.duplex = Duplex.TRYING
        self._linear = KalmanFilter()
        self._suppressor = _suppressor()
        self._sounded_ms = 0
        self._echo, self._left = Energy(), Energy()
        self._lasts_ms = 0
        """Time for which an echo may still come."""

    def align(self, offset: int) -> None:
        """Begin with the streams' times: by them, the sample with index `n` was recorded when the
        played sample with index `n + offset` sounded."""
        self._told, self._place, self.delay_ms = offset, self._start + offset + LEAD, None
        self._delays.reset()
        self._restart()

    def cancel(self, recorded: Pcm) -> Pcm:
        """Return the next block of the microphone without echo."""
        played = self._read()
        delay = self._delays.feed(recorded, played)
        if delay is not None:
            self._correct(delay)
        clean = self._linear.cancel(recorded, played)
        if self._suppressor is not None:
            clean = self._suppressor.process(clean, played)
        if dbfs(played) > AUDIBLE_DBFS:
            self._lasts_ms = ROOM_MS if self.delay_ms is not None else ROOM_MS + LATEST_MS
            self._judge(recorded, clean)
        elif self._lasts_ms:
            self._lasts_ms -= FRAME_MS
        return silence(BLOCK) if self._lasts_ms and self.duplex is not Duplex.FULL else clean

    def _read(self) -> Pcm:
        """Return the next block of what was played, with silence for what is not held."""
        whole, between = divmod(self._place, 1.0)
        start = int(whole) - TAPS // 2 + 1
        end, held = start + BLOCK + TAPS - 1, self._played
        block = silence(end - start)
        first, last = max(start, held.start), min(end, held.end)
        if first < last:
            block[first - start : last - start] = held.read(first, last)
        held.drop(start - samples(2 * LATEST_MS))
        self._place += BLOCK * self._rate
        self._start += BLOCK
        return np.convolve(block, _fraction(between), "valid").astype(np.float32)

    def _correct(self, delay: float) -> None:
        """Follow the drift of the clocks, and align the streams anew if the echo comes far from
        where it is expected."""
        ahead = self._start + self._told - self._place
        growth = self._drift.feed(self._start, delay + ahead)
        if growth is not None:
            self._rate = 1.0 - growth
        wrong = round(delay) - LEAD
        if abs(wrong) > SLACK:
            self._place -= wrong
            self._delays.reset()
            self._restart()
        self.delay_ms = (delay + ahead) * 1000 / SPEECH_RATE

    def _judge(self, recorded: Pcm, clean: Pcm) -> None:
        """Find out, by one more block while something sounds, whether the echo is removed."""
        self._sounded_ms += FRAME_MS
        if self.duplex is Duplex.FULL:
            return
        if self.delay_ms is None and self._sounded_ms <= LATEST_MS:
            return  # the echo may still be on its way
        self._echo.add(recorded)
        self._left.add(clean)
        if self._left.ms < TRIAL_MS:
            return
        removed = self._echo.dbfs - self._left.dbfs
        if removed >= REMOVED_DB or self._left.dbfs <= FAINT_DBFS:
            self.duplex = Duplex.FULL
        elif self._sounded_ms >= GIVE_UP_MS:
            self.duplex = Duplex.HALF
        self._echo, self._left = Energy(), Energy()


class Energy:
    """The mean level of several blocks."""

    def __init__(self) -> None:
        self.ms = 0
        self._sum = 0.0

    def add(self, pcm: Pcm) -> None:
        """Add a block of 10 ms."""
        self.ms += FRAME_MS
        self._sum += float(np.mean(np.square(pcm, dtype=np.float64)))

    @property
    def dbfs(self) -> float:
        """The level in dBFS; very low if nothing was added."""
        return 10 * math.log10(self._sum * FRAME_MS / max(self.ms, 1) + 1e-12)


def _fraction(between: float) -> Pcm:
    """Return the filter that reads a signal `between` two samples: a sinc with a Kaiser window."""
    place = TAPS // 2 - 1 + between - np.arange(TAPS)
    taps = np.sinc(place) * np.i0(KAISER * np.sqrt(np.maximum(0, 1 - (2 * place / TAPS) ** 2)))
    return (taps / taps.sum())[::-1].astype(np.float32)


def _suppressor() -> AudioProcessor | None:
    """Return WebRTC's AEC3; None on the few machines for which there is no wheel of it."""
    try:
        from pywebrtc_audio import AudioProcessor
    except ImportError:
        return None
    return AudioProcessor(SPEECH_RATE, echo_cancellation=True)
