"""Removes the echo of a loudspeaker from a microphone's signal.

First a linear filter (`kalman`) learns the echo path from the loudspeaker to the microphone, and
subtracts the echo that it predicts. Then WebRTC's AEC3 suppresses the rest: the distortion of an
overdriven loudspeaker, and late reflections. On most laptops the echo is no softer than the user,
and AEC3 alone would suppress the user too. Noise is kept, because recognisers miss words when it is
removed. A faint rest of the echo remains, and is sometimes recognised as words. So a gate (`gate`)
closes while the signal holds nothing but this rest.

Until the echo is known to be removed, the output is silence while something sounds.
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
