"""Hearing: from a microphone's frames to the moments at which the user begins and ends.

It cuts the stream into the windows that voice activity detection takes, asks the detector about
each and about the part that is there of the next, keeps the audio that a turn may begin with, and
knows when each sample was recorded. A frame is first judged, which is all that a model does here
and may be done on another thread, and then taken in: until then nothing has been heard of it. What
the user says, and what is made of it, is not its business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from voiceloop.asr.turns import Detector, SpeechStarted, TurnEnded, TurnEvent
from voiceloop.audio.frames import SPEECH_RATE, Framer, SampleBuffer, samples
from voiceloop.config import TurnConfig
from voiceloop.engines import Vad
from voiceloop.types import AudioFrame

ARRIVALS = 3000
"""Frames whose arrival is remembered: 30 seconds of the shortest ones."""


@dataclass(frozen=True, slots=True)
class JudgedFrame:
    """A frame, and what voice activity detection makes of the windows that it completes."""

    frame: AudioFrame
    windows: tuple[tuple[AudioFrame, float], ...]
    """Each with the probability that it is speech."""
    rest: AudioFrame
    """The beginning of the next window."""


class Hearing:
    """One stream at 16 kHz."""

    def __init__(
        self, vad: Vad, detector: Detector, policy: TurnConfig, memory_s: float = 0.0
    ) -> None:
        """At least the last `memory_s` seconds stay in `recent`."""
        self._memory = samples(1000 * memory_s)
        self.policy = policy
        """How turns are ended."""
        self.recent = SampleBuffer()
        """The newest samples: at least what a turn that begins now begins with."""
        self._vad = vad
        self._detector = detector
        self._framer = Framer(size=vad.frame)
        self._forgotten = 0
        """No turn begins before this sample."""
        self._arrivals: deque[tuple[int, float]] = deque(maxlen=ARRIVALS)

    def listen(self, detector: Detector, policy: TurnConfig) -> None:
        """Find turns in another way from now on."""
        self._detector, self.policy = detector, policy

    def forget(self) -> None:
        """There has been no turn, and none begins in what was heard so far."""
        self._detector.forget()
        self._forgotten = self.recent.end

    def judge(self, frame: AudioFrame) -> JudgedFrame:
        """Ask about the windows that `frame` completes: each frame once, in order, one by one."""
        windows = tuple(
            (window, self._vad.probability(window.pcm)) for window in self._framer.feed(frame.pcm)
        )
        return JudgedFrame(frame, windows, self._framer.rest)

    def feed(self, judged: JudgedFrame, arrived: float) -> Iterator[TurnEvent]:
        """What is found in a frame that has `arrived` then; each event is to be dealt with before
        the next is asked for, since it may have the turn `end`. Pauses and silences do not wait for
        a whole window."""
        self._arrivals.append((judged.frame.end, arrived))
        self.recent.append(judged.frame.pcm)
        for window, probability in judged.windows:
            for event in self._detector.feed(window, probability):
                yield self._begun(event) if isinstance(event, SpeechStarted) else event
        yield from self._detector.between(judged.rest)
        self._drop()

    def end(self) -> TurnEnded:
        """The turn is over with the silence that was found last."""
        return self._detector.end()

    def when(self, sample: int) -> float:
        """When `sample`, one that was heard, was recorded: frames arrive as their last one is."""
        when = self._arrivals[-1][1]
        for end, arrival in reversed(self._arrivals):
            if end < sample:
                break
            when = arrival - (end - sample) / SPEECH_RATE
        return when

    def _begun(self, event: SpeechStarted) -> SpeechStarted:
        # Less has been kept than is wanted where the pre-roll was shorter until now.
        start = max(event.start, self.recent.start, self._forgotten)
        return replace(event, start=start, speech_start=max(start, event.speech_start))

    def _drop(self) -> None:
        """Keep what the next turn may begin with; the rest goes in large pieces, to copy little."""
        kept = samples(self.policy.pre_roll_ms + self.policy.min_speech_ms) + 2 * self._vad.frame
        kept = max(kept, self._memory)
        if self.recent.end - self.recent.start > 2 * kept:
            self.recent.drop(self.recent.end - kept)
