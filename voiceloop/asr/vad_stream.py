"""Turns a microphone's frames into events of the user's turns.

The stream is cut into the windows that voice activity detection takes. The detector gets each
window, and the part of the next one that has arrived. The audio with which a turn may begin is
kept, and the time at which each sample was recorded. Each frame takes two steps. `judge`
runs the voice activity detection, perhaps on another thread. `feed` passes the result to
the detector and yields the events. This module knows nothing of words.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from voiceloop.asr.turns import Detector, SpeechStarted, TurnEnded, TurnEvent
from voiceloop.audio.frames import SPEECH_RATE, Framer, SampleBuffer, samples
from voiceloop.engines import Vad
from voiceloop.settings.config import TurnConfig
from voiceloop.types import AudioFrame

ARRIVALS = 3000
"""Number of frames whose time of arrival is kept: 30 seconds of frames of 10 ms."""

Judged = tuple[AudioFrame, float]
"""A window, and the probability that it is speech."""


class VadStream:
    """Finds turns in one stream at 16 kHz."""

    def __init__(
        self, vad: Vad, detector: Detector, policy: TurnConfig, memory_s: float = 0.0
    ) -> None:
        """Find turns by `detector` and `policy`, and keep at least the last `memory_s` seconds in
        `recent`."""
        self._memory = samples(1000 * memory_s)
        self.policy = policy
        """Settings by which turns are found and ended."""
        self.recent = SampleBuffer()
        """Newest samples of the stream. They reach back at least `memory_s` seconds, and at least
        to the place where a turn that is detected now would begin."""
        self._vad = vad
        self._detector = detector
        self._framer = Framer(size=vad.frame)
        self._forgotten = 0
        """Sample before which no turn may begin."""
        self._arrivals: deque[tuple[int, float]] = deque(maxlen=ARRIVALS)

    def listen(self, detector: Detector, policy: TurnConfig) -> None:
        """Use another detector and other settings from now on."""
        self._detector, self.policy = detector, policy

    def forget(self) -> None:
        """Discard the present turn. No later turn begins in the audio so far."""
        self._detector.forget()
        self._forgotten = self.recent.end

    def judge(self, frame: AudioFrame) -> Sequence[Judged]:
        """Return the windows that `frame` completes, each with the probability that it is speech.
        It must be called once for each frame, in order, and never twice at the same time."""
        windows = self._framer.feed(frame.pcm)
        return [(window, self._vad.probability(window.pcm)) for window in windows]

    def feed(
        self, frame: AudioFrame, windows: Sequence[Judged], arrived: float = 0.0
    ) -> Iterator[TurnEvent]:
        """Yield the events of a frame with its judged `windows`. `arrived` is when it arrived, in
        seconds of the loop's clock. Each event must be handled before the next is requested, since
        the handler may call `end`. Pauses and silences are found even before a window is
        complete."""
        self._arrivals.append((frame.end, arrived))
        self.recent.append(frame.pcm)
        for window, probability in windows:
            for event in self._detector.feed(window, probability):
                yield self._begun(event) if isinstance(event, SpeechStarted) else event
        yield from self._detector.between(self._framer.rest)
        # Audio with which no later turn can begin.
        kept = samples(self.policy.pre_roll_ms + self.policy.min_speech_ms) + 2 * self._vad.frame
        self.recent.drop(self.recent.end - max(kept, self._memory))

    def end(self) -> TurnEnded:
        """End the turn at the silence that was found last, and return the event."""
        return self._detector.end()

    def when(self, sample: int) -> float:
        """Return the time at which `sample` was recorded, in seconds of the loop's clock. A frame
        is assumed to arrive when its last sample is recorded."""
        when = self._arrivals[-1][1]
        for end, arrival in reversed(self._arrivals):
            if end < sample:
                break
            when = arrival - (end - sample) / SPEECH_RATE
        return when

    def _begun(self, event: SpeechStarted) -> SpeechStarted:
        # New settings may have a longer pre-roll than the audio that has been kept so far.
        start = max(event.start, self.recent.start, self._forgotten)
        return replace(event, start=start, speech_start=max(start, event.speech_start))
