"""What holds of every clip of a suite, of the bench's and the lab's."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from voiceloop.asr.silero import silero
from voiceloop.asr.turns import SpeechDetector, TurnEvent
from voiceloop.audio.frames import Framer, samples
from voiceloop.audio.playback import AUDIBLE
from voiceloop.bench.clips import Clip
from voiceloop.bench.suites import LEAD_MS
from voiceloop.settings.config import TurnConfig, VadConfig
from voiceloop.types import Pcm

ROUNDING = 1e-6
"""The speech is known as the sound less the background."""


def speech(clip: Clip) -> Pcm:
    """What is said in `clip`, without the background."""
    return clip.pcm - np.resize(clip.background, len(clip.pcm))


def bounds(clip: Clip) -> tuple[int, int]:
    assert clip.said.start is not None and clip.said.end is not None
    return clip.said.start, clip.said.end


def events(pcm: Pcm) -> list[TurnEvent]:
    """What the voice detector makes of it."""
    vad = silero(VadConfig())
    detector = SpeechDetector(TurnConfig(endpoint="fixed", hangover_ms=1200), ends=True)
    frames = Framer(size=512).feed(pcm)
    return [e for frame in frames for e in detector.feed(frame, vad.probability(frame.pcm))]


def check_same(clips: Iterable[Clip], again: Iterable[Clip]) -> None:
    """The samples and what is known of them are equal to the bit."""
    for clip, other in zip(clips, again, strict=True):
        assert clip.pcm.tobytes() == other.pcm.tobytes()
        assert clip.background.tobytes() == other.background.tobytes()
        assert clip.said == other.said


def check_audible(clip: Clip) -> None:
    """Speech is audible from its first sample to its last, and nowhere else."""
    start, end = bounds(clip)
    level = np.abs(speech(clip))
    assert min(level[start], level[end - 1]) >= AUDIBLE - ROUNDING
    assert max(level[:start].max(), level[end:].max()) < AUDIBLE + ROUNDING
    assert samples(LEAD_MS[0]) <= start <= samples(LEAD_MS[1])
    assert np.abs(clip.pcm).max() < 1
