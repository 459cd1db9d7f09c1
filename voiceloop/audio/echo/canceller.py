"""Removes the echo of a loudspeaker from a microphone's signal, in two stages.

A linear filter (`kalman`) subtracts what it has learnt of the way from loudspeaker to microphone.
WebRTC's AEC3 then suppresses what is left: the effects of a driven loudspeaker and of late
reflections. AEC3 alone would suppress the user too wherever the echo is as loud as the user is, as
on most laptops. Noise is left as it is, since removing it costs words. What both leave is faint,
but sometimes taken for words, so a gate (`gate`) closes where there is no more.

Until the echo is known to be removed, nothing is heard while something sounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from voiceloop.audio.echo.alignment import Alignment
from voiceloop.audio.echo.delay import LATEST_MS
from voiceloop.audio.echo.gate import ResidualGate
from voiceloop.audio.echo.kalman import BLOCK, KalmanFilter
from voiceloop.audio.echo.trial import Duplex, Trial
from voiceloop.audio.frames import FRAME_MS, SPEECH_RATE, SampleBuffer, dbfs, silence
from voiceloop.types import Pcm

if TYPE_CHECKING:
    from pywebrtc_audio import AudioProcessor

AUDIBLE_DBFS = -60.0
"""Level from which a block of what is played can have an echo."""
ROOM_MS = 300
"""Time in milliseconds for which a room still sounds."""
DELAY_S = 0.008
"""How much later a sound comes out of AEC3 than it went in."""


class EchoCanceller:
    """Removes the echo from blocks of 10 ms at 16 kHz."""

    def __init__(self, played: SampleBuffer) -> None:
        """`played` has what the loudspeaker plays, before it sounds."""
        self.alignment = Alignment(played)
        self._sounds_ms = 0
        """Time for which an echo may still come."""
        self._restart()

    def _restart(self) -> None:
        """Learn the way of the echo anew."""
        self._trial = Trial()
        self._linear = KalmanFilter()
        self._suppressor = _suppressor()
        self._gate = ResidualGate()

    @property
    def duplex(self) -> Duplex:
        """Return what is heard while something sounds."""
        return self._trial.duplex

    def begin(self, ahead: int) -> None:
        """Begin with the streams' times, as `Alignment.begin` does."""
        self.alignment.begin(ahead)
        self._restart()

    def cancel(self, recorded: Pcm) -> Pcm:
        """Return the next block of the microphone without echo. The user's voice comes `DELAY_S`
        later than it was recorded."""
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
