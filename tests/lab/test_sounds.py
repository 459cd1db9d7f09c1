"""Sounds without words: as loud as asked for, without seams, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.conversations.sounds import Rng, babble, cough, hiss, hum, throat_clearing
from voiceloop.audio.frames import SPEECH_RATE, dbfs, samples
from voiceloop.audio.playback import AUDIBLE
from voiceloop.bench.suites import ROOM_DBFS, at_level, rms, room
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


def test_the_level_of_nothing_is_nothing() -> None:
    assert rms([]) == 0.0


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


def test_every_talker_is_equally_loud_and_heard_as_often_as_fits() -> None:
    one = babble(np.random.default_rng(0), SECOND, -20, [TALKERS[1]])
    assert np.count_nonzero(one) == pytest.approx(2 * 7000, abs=10)
    loud, faint = 0.5 * TALKERS[0], 0.001 * TALKERS[0]
    both = [
        babble(np.random.default_rng(0), SECOND, -20, [own, TALKERS[1]]) for own in (loud, faint)
    ]
    assert np.allclose(*both, atol=1e-6)


@pytest.mark.parametrize(
    ("sound", "shortest", "longest"), [(cough, 150, 500), (throat_clearing, 280, 600)]
)
def test_a_throat_makes_a_short_sound_that_begins_at_once(sound, shortest, longest) -> None:
    for seed in range(30):
        pcm, voiced = sound(np.random.default_rng(seed))
        again, _ = sound(np.random.default_rng(seed))
        assert np.array_equal(pcm, again)
        assert voiced is None or 0 <= voiced < len(pcm)
        assert np.abs(pcm).max() == 1
        loud = np.flatnonzero(np.abs(0.4 * pcm) >= AUDIBLE)
        assert samples(shortest) < loud[-1] - loud[0] < samples(longest)
        assert loud[0] < samples(20)


def test_a_cough_begins_with_its_burst() -> None:
    earlier = 0
    for seed in range(30):
        pcm, _ = cough(np.random.default_rng(seed))
        earlier += rms(pcm[: samples(60)]) > rms(pcm[samples(60) :])
    assert earlier >= 25


def test_a_voiced_cough_pulses_from_where_its_voice_begins() -> None:
    """By the autocorrelation of its envelope at the periods of a voice."""
    found = [cough(np.random.default_rng(seed)) for seed in range(40)]
    voices = [(pcm, voiced) for pcm, voiced in found if voiced is not None]
    assert 15 < len(voices) < 33

    def pulsing(pcm: Pcm) -> float:
        envelope = np.convolve(np.abs(pcm), np.ones(16) / 16, "same")
        envelope -= envelope.mean()
        own = np.correlate(envelope, envelope, "full")[len(pcm) - 1 :]
        return float(own[samples(1000 / 400) : samples(1000 / 130)].max() / own[0])

    before = [pulsing(pcm[voiced - samples(60) : voiced]) for pcm, voiced in voices]
    after = [pulsing(pcm[voiced + samples(5) : voiced + samples(55)]) for pcm, voiced in voices]
    assert np.median(after) > 0.5 > 0.35 > np.median(before)
