"""Sounds without words: as loud as asked for, without seams, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.conversations.sounds import Rng, babble, cough, hiss, hum
from voiceloop.audio.frames import SPEECH_RATE, dbfs, samples
from voiceloop.audio.playback import AUDIBLE
from voiceloop.bench.clips import ROOM_DBFS, at_level, rms, room
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure

SECOND = SPEECH_RATE
TALKERS = [at_level(np.sin(np.arange(n) * 0.1), -20) for n in (4000, 7000, 16_000)]


def talking(rng: Rng, count: int, dbfs: float) -> Pcm:
    return babble(rng, count, dbfs, TALKERS)


backgrounds = pytest.mark.parametrize("sound", [room, hiss, hum, talking])


@given(st.floats(-90, 0), st.integers(1, 5000))
def test_a_level_is_exact(level: float, count: int) -> None:
    sound = np.random.default_rng(count).standard_normal(count)
    assert dbfs(at_level(sound, level)) == pytest.approx(level, abs=1e-3)


@backgrounds
def test_a_background_is_as_loud_as_asked_for_and_the_same_for_the_same_seed(sound) -> None:
    once, again, other = (sound(np.random.default_rng(seed), SECOND, -40.0) for seed in (3, 3, 4))
    assert once.dtype == np.float32 and len(once) == SECOND
    assert dbfs(once) == pytest.approx(-40, abs=1e-3)
    assert np.array_equal(once, again) and not np.array_equal(once, other)


@backgrounds
def test_a_background_has_no_seam(sound) -> None:
    pcm = sound(np.random.default_rng(0), SECOND, -40.0).astype(np.float64)
    steps = np.abs(np.diff(pcm))
    assert abs(pcm[0] - pcm[-1]) <= steps.max()


def test_a_quiet_room_is_not_audible() -> None:
    assert np.abs(room(np.random.default_rng(0), 10 * SECOND)).max() < AUDIBLE
    assert dbfs(room(np.random.default_rng(0), SECOND)) == pytest.approx(ROOM_DBFS, abs=1e-3)


def test_a_cough_begins_with_its_burst() -> None:
    earlier = 0
    for seed in range(30):
        pcm, _ = cough(np.random.default_rng(seed))
        earlier += rms(pcm[: samples(60)]) > rms(pcm[samples(60) :])
    assert earlier >= 25
