"""The VAD stream: what is found in a stream does not depend on where its frames are judged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.support.runner import InlineRunner
from voiceloop.asr.silero import Silero
from voiceloop.asr.turns import SilenceLasts, SpeechDetector, TurnEnded, TurnEvent
from voiceloop.asr.vad_stream import VadStream
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import SPEECH_RATE, Framer, silence
from voiceloop.bundled import bundled
from voiceloop.engines import Runner
from voiceloop.runner import ModelThread, run_on
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Pcm

pytestmark = pytest.mark.models

CLIPS = 4
FRAME = 320


def clips() -> Sequence[Pcm]:
    """The question that is bundled, and people where there are recordings of them."""
    files = [Path(str(bundled("models/starter/demo.wav")))]
    if folder := os.environ.get("VOICELOOP_SPEECH"):
        files += sorted(Path(folder).rglob("*.flac"))[:CLIPS]
    found = list[Pcm]()
    for path in files:
        with AudioFile(path, SPEECH_RATE) as file:
            found.append(np.concatenate([*file.blocks(), silence(SPEECH_RATE)]))
    return found


async def heard(pcm: Pcm, runner: Runner | None) -> list[TurnEvent]:
    """What a stream decides; the silence that ends a turn changes at each event."""
    stream = VadStream(Silero(), SpeechDetector(TurnConfig()), TurnConfig())
    found = list[TurnEvent]()
    for frame in Framer(size=FRAME).feed(pcm):
        windows = await run_on(runner, partial(stream.judge, frame))
        for event in stream.feed(frame, windows, frame.end / SPEECH_RATE):
            if not isinstance(event, SilenceLasts):
                found.append(event)
            elif event.reaches(200 + 100 * (len(found) % 4)):
                found.append(stream.end())
    return found


@pytest.mark.anyio
async def test_turns_are_the_same_on_the_event_loop_and_off_it() -> None:
    for pcm in clips():
        plain = await heard(pcm, None)
        assert any(isinstance(event, TurnEnded) for event in plain)
        with ModelThread("vad", lambda: None) as thread:
            assert await heard(pcm, thread) == plain
        assert await heard(pcm, InlineRunner()) == plain


def test_nothing_is_heard_of_a_frame_before_it_is_taken_in() -> None:
    """Or what is decided meanwhile would be about audio that has not arrived."""
    stream = VadStream(Silero(), SpeechDetector(TurnConfig()), TurnConfig())
    (pcm, *_) = clips()
    frames = Framer(size=FRAME).feed(pcm)
    for frame in frames:
        end = stream.recent.end
        judged = stream.judge(frame)
        assert stream.recent.end == end
        list(stream.feed(frame, judged))
        assert stream.recent.end == frame.end
