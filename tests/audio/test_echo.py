"""Loudspeakers: what the microphone hears of them is removed, and the user is heard."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.echo.room import NEAR_DBFS, SCENES, SILENT, Room, Scene, voice_level
from tests.sounds import tone
from voiceloop.audio.echo import (
    BLOCK,
    DELAY_S,
    FAINT_DB,
    REMOVED_DB,
    Duplex,
    EchoCanceller,
    KalmanFilter,
    ResidualGate,
)
from voiceloop.audio.echo_delay import LATEST_MS, DelayEstimator, DriftEstimator
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, dbfs, samples, silence
from voiceloop.bundled import bundled
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure

SCENE = pytest.mark.parametrize(
    "scene",
    [SCENES[0], *(pytest.param(scene, marks=pytest.mark.slow) for scene in SCENES[1:])],
    ids=lambda scene: scene.name,
)


def speech(seconds: float) -> Pcm:
    """A voice, as long as wanted, without long pauses."""
    with AudioFile(bundled("models/starter/demo.wav"), SPEECH_RATE) as file:
        pcm = np.concatenate(list(file.blocks()))
    voiced = pcm.reshape(-1)[: len(pcm) // BLOCK * BLOCK].reshape(-1, BLOCK)
    voiced = voiced[np.abs(voiced).max(axis=1) > 0.02].ravel()
    count = round(seconds * SPEECH_RATE)
    return np.resize(0.1 / voice_level(voiced) * voiced, count).astype(np.float32)


def blocks(pcm: Pcm) -> list[Pcm]:
    return [pcm[at : at + BLOCK] for at in range(0, len(pcm) - BLOCK + 1, BLOCK)]


def cancelled(scene: Scene, played: Pcm, said: Pcm | None = None) -> tuple[EchoCanceller, Pcm, Pcm]:
    """The canceller after a scene, what it heard, and what is left of that."""
    room, buffer, chance = Room(scene, speech(2)), SampleBuffer(), np.random.default_rng(1)
    canceller, heard, left = EchoCanceller(buffer), list[Pcm](), list[Pcm]()
    canceller.begin(0)
    buffer.append(played[: samples(60)])
    said = np.zeros_like(played) if said is None else said
    for block, own in zip(blocks(played), blocks(said), strict=True):
        buffer.append(played[buffer.end : buffer.end + BLOCK])
        noise = 1e-3 * chance.standard_normal(BLOCK).astype(np.float32)
        heard.append((room.heard(block) + own + noise).astype(np.float32))
        left.append(canceller.cancel(heard[-1]))
    return canceller, np.concatenate(heard), np.concatenate(left)


@SCENE
def test_nothing_of_the_echo_is_heard_and_soon_it_is_known_to_be_removed(scene: Scene) -> None:
    canceller, heard, left = cancelled(scene, speech(8))
    assert canceller.duplex is Duplex.FULL
    assert canceller.alignment.delay_ms == pytest.approx(scene.late_ms, abs=2)
    second = slice(-2 * SPEECH_RATE, None)
    assert dbfs(heard[second]) - dbfs(left[second]) > REMOVED_DB
    early = left[: samples(400)]
    assert not early.any(), "nothing is heard before it is known"


@pytest.mark.parametrize("scene", [SILENT, SCENES[0], SCENES[2]], ids=lambda scene: scene.name)
def test_the_user_is_heard_over_the_loudspeaker(scene: Scene) -> None:
    played = speech(9)
    said = silence(len(played))
    own = speech(3)[::-1]  # another voice, of the same kind
    said[-len(own) :] = own * 10 ** (NEAR_DBFS / 20) / voice_level(own)
    canceller, _, left = cancelled(scene, played, said)
    assert canceller.duplex is Duplex.FULL
    last = slice(-2 * SPEECH_RATE, None)
    assert dbfs(left[last]) == pytest.approx(dbfs(said[last]), abs=6)
    assert likeness(said, left) > 0.7


def likeness(said: Pcm, left: Pcm) -> float:
    """The correlation of the last two seconds of what was said and what came out of it."""
    late, size = round(DELAY_S * SPEECH_RATE), 2 * SPEECH_RATE
    return float(np.corrcoef(said[-size - late : -late], left[-size:])[0, 1])


def test_where_an_echo_stays_nothing_is_heard_but_in_silence() -> None:
    """The echo comes later than any that can be found."""
    scene = Scene("late", level_db=6, late_ms=LATEST_MS + 250)
    played = np.concatenate((speech(6), silence(2 * SPEECH_RATE)))
    said = silence(len(played))
    said[-SPEECH_RATE // 2 :] = speech(0.5)
    canceller, _, left = cancelled(scene, played, said)
    assert canceller.duplex is Duplex.HALF
    assert not left[: 6 * SPEECH_RATE].any()
    assert dbfs(left[-SPEECH_RATE // 2 :]) > -40, "the user is heard when nothing sounds"


def test_a_device_that_ran_out_of_samples_is_tried_anew() -> None:
    """All that is played after the gap sounds later, so the echo is not where it was."""
    gap, played = samples(60), speech(10)
    buffer, left = SampleBuffer(), list[Pcm]()
    canceller = EchoCanceller(buffer)
    canceller.begin(0)
    buffer.append(played[: samples(60)])
    heard = np.concatenate((played[: len(played) // 2], silence(gap), played[len(played) // 2 :]))
    for number, block in enumerate(blocks(0.5 * heard)):
        buffer.append(played[buffer.end : buffer.end + BLOCK])
        if number * BLOCK == len(played) // 2 + gap:
            assert canceller.duplex is Duplex.FULL
            canceller.begin(-gap)
            assert canceller.duplex is Duplex.TRYING
        left.append(canceller.cancel(block.astype(np.float32)))
    assert canceller.duplex is Duplex.FULL, "and it is removed again"
    after = np.concatenate(left)[len(played) // 2 + gap :]
    assert dbfs(after) < -60


@given(st.floats(-60, 0), st.floats(-60, 0), st.integers(0, 2**16))
def test_the_gate_is_open_for_what_is_not_much_fainter(
    recorded_db: float, less_db: float, seed: int
) -> None:
    noise = np.random.default_rng(seed).standard_normal(BLOCK).astype(np.float32)
    recorded = noise * 10 ** (recorded_db / 20)
    left = recorded * 10 ** (less_db / 20)
    if abs(less_db + FAINT_DB) > 0.1:
        assert ResidualGate().opens(recorded, left) is (less_db > -FAINT_DB)


def test_the_gate_stays_open_in_the_middle_of_a_word() -> None:
    own, loud, faint = ResidualGate(), tone(0.01), 0.01 * tone(0.01)
    assert own.opens(loud, loud)
    for _ in range(10):
        assert own.opens(loud, faint)
    for _ in range(20):
        last = own.opens(loud, faint)
    assert not last


def test_while_nothing_is_played_the_microphone_is_as_it_was() -> None:
    buffer = SampleBuffer()
    canceller, own = EchoCanceller(buffer), speech(3)
    canceller.begin(0)
    left = np.concatenate([canceller.cancel(block) for block in blocks(own)])
    assert likeness(own, left) > 0.9


@settings(max_examples=20)
@given(st.integers(0, samples(40)), st.floats(0.05, 1.0), st.integers(0, 2**16))
def test_the_filter_learns_any_echo_that_comes_early(delay: int, gain: float, seed: int) -> None:
    chance = np.random.default_rng(seed)
    played = 0.1 * chance.standard_normal(4 * SPEECH_RATE).astype(np.float32)
    recorded = gain * np.concatenate((silence(delay), played))[: len(played)]
    own = KalmanFilter()
    pairs = zip(blocks(recorded), blocks(played), strict=True)
    left = np.concatenate([own.cancel(*pair) for pair in pairs])
    assert dbfs(recorded[-SPEECH_RATE:]) - dbfs(left[-SPEECH_RATE:]) > 20


@settings(max_examples=20)
@given(st.floats(-130, 530), st.integers(0, 2**16))
def test_the_delay_is_found(late_ms: float, seed: int) -> None:
    late, played = samples(late_ms), speech(4)
    noise = 0.01 * np.random.default_rng(seed).standard_normal(len(played)).astype(np.float32)
    shifted = np.roll(played, late)
    own = DelayEstimator()
    pairs = zip(blocks((0.3 * shifted + noise).astype(np.float32)), blocks(played), strict=True)
    found = [delay for pair in pairs if (delay := own.feed(*pair)) is not None]
    assert found
    assert found[-1] == pytest.approx(late, abs=1)


def test_no_delay_is_found_where_there_is_no_echo() -> None:
    own, played = DelayEstimator(), speech(5)
    pairs = zip(blocks(tone(5.0)), blocks(played), strict=True)
    assert {own.feed(*pair) for pair in pairs} == {None}


@given(st.floats(-200, 200), st.lists(st.floats(-0.2, 0.2), min_size=40, max_size=40))
def test_the_drift_of_the_clocks_is_found_although_some_delays_are_wrong(
    ppm: float, noise: list[float]
) -> None:
    own, found = DriftEstimator(), None
    for number, wrong in enumerate(noise):
        at = number * SPEECH_RATE // 4
        outlier = 500.0 if number % 10 == 7 else 0.0
        found = own.feed(at, 640 + at * ppm * 1e-6 + wrong + outlier)
    assert found is not None
    assert found * 1e6 == pytest.approx(ppm, abs=8)
