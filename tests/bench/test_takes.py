"""What takes are made of: decisions that are replayed, a room, and a speaker for beginnings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.made import at
from voiceloop.asr.turns import SilenceLasts, TurnEvent
from voiceloop.bench.clips import Clip, ClipSpeech
from voiceloop.bench.takes import BriefSpeaker, RecordingDetector, Replayed, Room
from voiceloop.settings.config import TurnConfig
from voiceloop.types import AudioFrame, Pcm

pytestmark = pytest.mark.virtual

WINDOW = 512
stretches = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.9]), st.integers(1, 30)), min_size=1, max_size=8
)


@given(stretches, st.sampled_from([160, 500]))
def test_replayed_decisions_come_with_the_frame_that_they_came_with(
    said: list[tuple[float, int]], hangover_ms: int
) -> None:
    probabilities = [probability for probability, count in said for _ in range(count)]

    def decided(
        detector: RecordingDetector, frame: AudioFrame, probability: float
    ) -> Iterator[TurnEvent]:
        for event in detector.feed(frame, probability):
            if not isinstance(event, SilenceLasts):
                yield event
            elif event.reaches(hangover_ms):
                yield detector.end()

    def heard(detector: RecordingDetector) -> list[list[TurnEvent]]:
        frames = (
            AudioFrame(np.full(WINDOW, 0.1 * probability, np.float32), 16_000, WINDOW * index)
            for index, probability in enumerate(probabilities)
        )
        return [[*decided(detector, *one)] for one in zip(frames, probabilities, strict=True)]

    live = RecordingDetector(TurnConfig())
    first = heard(live)
    assert live.events == [event for events in first for event in events]
    again = Replayed(TurnConfig(), live.events)
    assert heard(again) == first
    assert again.events == live.events


def clip(seconds: float) -> Clip:
    """A clip of 0.5, in a background of 0.25."""
    pcm = np.full(at(seconds), 0.5, np.float32)
    return Clip("a", pcm, np.full(1600, 0.25, np.float32), ClipSpeech())


async def test_a_room_is_heard_as_time_passes_and_ends_with_its_clip() -> None:
    room, heard = Room(clip(0.1)), list[Pcm]()
    began = anyio.current_time()
    async with aclosing(room.frames()) as frames:
        async for frame in frames:
            assert frame.start == sum(map(len, heard))
            heard.append(frame.pcm)
            assert anyio.current_time() - began == pytest.approx(frame.end / 16_000)
            assert room.recorded(frame.end) == pytest.approx(anyio.current_time())
            if room.finished:
                break
    assert np.all(np.concatenate(heard) == 0.5) and len(heard) == 10


async def test_a_brief_speaker_takes_time_for_beginnings_alone() -> None:
    speaker = BriefSpeaker(24_000, 0.2)
    began = anyio.current_time()
    for _ in range(50):  # 10 s of sound
        await speaker.room()
        speaker.write(np.zeros(4800, np.float32))
    await anyio.sleep_until(speaker.due())
    assert anyio.current_time() - began == pytest.approx(0.2)
