"""A room in which the user makes a sound while the answer plays."""

from __future__ import annotations

from contextlib import aclosing

import numpy as np
import pytest

from lab.conversations.clips import Interruption
from lab.conversations.studio import InterruptedRoom
from tests.bench.made import at
from voiceloop.bench.clips import Clip, ClipSpeech
from voiceloop.types import Clause, Pcm

pytestmark = pytest.mark.virtual

RAMP = np.linspace(0.01, 0.2, 1000, dtype=np.float32)
SOUND = Interruption("words", "stop", RAMP, 0, 1000, 50.0)


def clip(seconds: float) -> Clip:
    """A clip of 0.5, in a background of 0.25."""
    pcm = np.full(at(seconds), 0.5, np.float32)
    return Clip("a", pcm, np.full(1600, 0.25, np.float32), ClipSpeech())


async def test_the_sound_is_heard_some_time_after_the_first_clause() -> None:
    room, heard = InterruptedRoom(clip(0.1), SOUND), list[Pcm]()
    async with aclosing(room.frames()) as frames:
        async for frame in frames:
            heard.append(frame.pcm)
            if frame.end == 3200:
                assert not room.finished  # a sound is to come
                room.see(Clause(1, 1, "a", "a", (), last=True))
                assert room.interrupted == frame.end + 800
            if room.finished:
                break
    everything = np.concatenate(heard)
    assert len(everything) == 3200 + 1920  # the frames that hold the sound's last sample
    sound = slice(3200 + 800, 3200 + 800 + 1000)
    assert np.allclose(everything[sound], 0.25 + RAMP)
    everything[sound] = 0.25
    assert np.all(everything[:1600] == 0.5) and np.all(everything[1600:] == 0.25)
