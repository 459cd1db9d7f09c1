"""What a decode leaves of the sound: where it is, where to divide it, and which words are gone."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.asr.window import LONG_S, RUN, WindowSound, fuller, gone
from voiceloop.audio.frames import samples, silence
from voiceloop.types import Pcm

pytestmark = pytest.mark.pure

RATE = 16_000


def speech(seconds: float, level: float = 0.1, seed: int = 0) -> Pcm:
    """Noise with the syllables of speech: 160 of 200 ms are loud."""
    drawn = np.random.default_rng(seed).normal(0, level, round(seconds * RATE))
    drawn *= np.where(np.arange(len(drawn)) % samples(200) < samples(160), 1.0, 0.1)
    return drawn.astype(np.float32)


def joined(*parts: Pcm) -> Pcm:
    return np.concatenate(parts)


words = st.lists(st.sampled_from([f"w{i}" for i in range(40)]), max_size=20, unique=True)


@given(words, st.integers(0, 20), st.integers(0, 8))
def test_words_are_gone_only_where_a_run_of_them_is(said: list[str], at: int, count: int) -> None:
    at = min(at, len(said))
    left = said[:at] + said[at + count :]
    lost = len(said) - len(left)
    assert gone(said, left) == (lost if lost >= RUN else 0)
    assert gone(left, said) == 0, "there may be more"


@pytest.mark.parametrize(
    ("settled", "said", "count"),
    [
        ("what you can do for your country", "Ask what you can do, for your country.", 0),
        ("And so am I fellow Americans", "and so my fellow Americans", 0),
        ("we met in the park yesterday evening", "we met yesterday evening", 3),
        ("I said no way never again", "I said never again", 0),
        ("turn on the lights in the kitchen", "tournament", 6),
        ("stop", "", 0),
        ("set a timer", "", 3),
        ("... set a --- timer", "set a timer", 0),
    ],
)
def test_what_was_heard_otherwise_is_not_gone(settled: str, said: str, count: int) -> None:
    assert gone(settled.split(), said.split()) == count


def test_a_decode_is_fuller_by_a_run_of_words_or_by_what_was_settled() -> None:
    first = "has never been surpassed".split()
    assert fuller((), first, [*first, "Ask", "what", "you"])
    assert not fuller((), first, [*first, "Thank", "you."]), "that may be noise"
    assert fuller("a b c d e".split(), "a e x y".split(), "a b c d e".split())
    assert not fuller((), first, first)


@given(st.floats(0.5, 4), st.floats(0.5, 4), st.floats(0.001, 0.2), st.floats(0.05, 0.9))
def test_sound_behind_the_last_word_is_without_words_at_any_level(
    before: float, after: float, level: float, gap: float
) -> None:
    pcm = joined(
        speech(before, level), silence(round(gap * RATE)), speech(after, level), silence(3200)
    )
    token = before / 4
    most, span = WindowSound(pcm).without_words([0.0, token, 2 * token, 3 * token, before])
    alone = after + token
    assert 0.75 * alone - 0.1 <= most <= alone + 0.05
    assert span == (pytest.approx(3 * token), pytest.approx(len(pcm) / RATE, abs=0.01))
    # Whoever hears words all along leaves nothing.
    all_along = np.arange(0, before + gap + after, 0.3).tolist()
    assert WindowSound(pcm).without_words([*all_along, before + gap + after])[0] < 0.7 < LONG_S


@given(st.floats(1, 4), st.floats(1, 4), st.floats(0.1, 0.9))
def test_a_window_is_divided_in_the_silence_between_two_sayings(
    before: float, after: float, gap: float
) -> None:
    pcm = joined(speech(before), silence(round(gap * RATE)), speech(after), silence(3200))
    first = WindowSound(pcm).places((before / 2, len(pcm) / RATE))[0] / RATE
    assert before - 0.03 <= first <= before + gap + 0.01


def test_a_saying_that_follows_at_once_begins_where_attention_stayed() -> None:
    pcm = joined(speech(2.0), silence(480), speech(3.0, seed=1))
    places = WindowSound(pcm).places((2.05, 5.03))
    assert any(abs(place / RATE - 2.015) < 0.03 for place in places)


@pytest.mark.parametrize("level", [1e-4, 0.01, 0.3])
def test_noise_and_silence_are_no_sound_that_lacks_words(level: float) -> None:
    noise = np.random.default_rng(0).normal(0, level, 5 * RATE).astype(np.float32)
    for pcm in (noise, silence(5 * RATE)):
        sound = WindowSound(pcm)
        assert not sound.spare(0)
        assert sound.without_words(())[0] < 0.1


@pytest.mark.parametrize("pcm", [speech(0.02), speech(0.1), silence(1), silence(200), speech(30)])
def test_windows_of_any_length_can_be_asked_about(pcm: Pcm) -> None:
    sound = WindowSound(pcm)
    for moments in ((), (0.0, len(pcm) / RATE), (0.0, 0.0, len(pcm) / RATE)):
        _, span = sound.without_words(moments)
        assert all(0 < place < len(pcm) for place in sound.places(span))


def test_people_who_speak_at_any_pace_are_not_asked_to_repeat() -> None:
    drawn = random.Random(0)
    for pace in (0.15, 0.25, 0.35):
        count = drawn.randrange(4, 12)
        assert not WindowSound(speech(pace * count)).spare(count)
    assert WindowSound(speech(4.0)).spare(4)
