"""The suites of the lab: the same each time, and what they say of themselves is true."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from lab.conversations.clips import LabClip, Pause
from lab.conversations.suites import DELAY_MS, PAUSE_MS, SNR_DB, build
from lab.conversations.utterances import Utterance, speak
from tests.bench.truth import ROUNDING, bounds, check_audible, check_same, events, speech
from voiceloop.asr.turns import SpeechStarted
from voiceloop.audio.frames import SPEECH_RATE, dbfs, samples
from voiceloop.audio.playback import AUDIBLE
from voiceloop.bench.clips import ROOM_DBFS, rms
from voiceloop.bench.suites import SPEECH_DBFS, Line

pytestmark = pytest.mark.real

COUNTS = {
    "pauses": 24,
    "bargein": 60,
    "noise": 18,
    "additions": 12,
}


@cache
def suite(name: str) -> tuple[LabClip, ...]:
    return build(name, COUNTS[name])


def pauses(clip: LabClip) -> Sequence[Pause]:
    return clip.said.pauses


every_suite = pytest.mark.parametrize("name", COUNTS)


# ---- the recipe


@pytest.mark.parametrize("name", ["pauses", "bargein"])
def test_the_same_seed_gives_the_same_samples_and_more_clips_the_same_first_ones(
    name: str,
) -> None:
    check_same(suite(name)[:3], build(name, 3))


# ---- what is said, and when


@every_suite
def test_speech_is_audible_from_its_first_sample_to_its_last_and_nowhere_else(
    name: str,
) -> None:
    for clip in suite(name):
        check_audible(clip)


@every_suite
def test_words_are_in_order_and_all_that_is_audible_belongs_to_one(name: str) -> None:
    for clip in suite(name):
        words = clip.said.words
        assert " ".join(word.text for word in words) == clip.said.text
        assert (words[0].start, words[-1].end) == bounds(clip)
        assert all(one.start < one.end <= other.start for one, other in pairwise(words))
        level = np.abs(speech(clip))
        for word in words:
            level[word.start : word.end] = 0
        assert level.max() < AUDIBLE + ROUNDING


@pytest.mark.parametrize("name", ["pauses", "additions"])
def test_pauses_are_silent_between_words_and_as_long_as_drawn(
    name: str,
) -> None:
    for clip in suite(name):
        words, level = clip.said.words, np.abs(speech(clip))
        assert pauses(clip)
        for pause in pauses(clip):
            assert words[pause.words - 1].end == pause.start
            assert words[pause.words].start == pause.end
            assert samples(PAUSE_MS[0]) <= pause.end - pause.start <= samples(PAUSE_MS[1])
            assert level[pause.start : pause.end].max() < AUDIBLE + ROUNDING
            # Past the margin it is the room and nothing else, at the room's own level.
            inner = clip.pcm[pause.start + samples(6) : pause.end - samples(6)]
            assert np.abs(inner).max() < AUDIBLE
            assert dbfs(inner) == pytest.approx(ROOM_DBFS, abs=1.5)


def test_an_addition_comes_after_a_pause() -> None:
    for clip in suite("additions"):
        assert clip.addition is not None
        (pause,) = pauses(clip)
        assert pause.standing == "whole"
        assert pause.prefix == clip.addition.first.rstrip(".?")
        assert clip.said.text == clip.addition.longer


# ---- what the voice detector makes of it


def test_of_20_backchannels_and_20_coughs_at_least_30_are_taken_for_a_voice() -> None:
    taken = {"words": 0, "backchannel": 0, "cough": 0}
    for clip in suite("bargein"):
        sound = clip.interruption
        assert sound is not None
        heard = clip.read(len(clip.pcm), len(sound.pcm) + 2 * SPEECH_RATE)
        heard[SPEECH_RATE : SPEECH_RATE + len(sound.pcm)] += sound.pcm
        taken[sound.kind] += any(isinstance(event, SpeechStarted) for event in events(heard))
    assert taken["words"] == 20
    assert taken["backchannel"] + taken["cough"] >= 30


# ---- interruptions and noise


def test_interruptions_are_sounds_of_known_beginning() -> None:
    clips = suite("bargein")
    kinds = [clip.interruption.kind for clip in clips if clip.interruption]
    assert kinds == ["words", "backchannel", "cough"] * 20
    for clip in clips:
        sound = clip.interruption
        assert sound is not None
        loud = np.flatnonzero(np.abs(sound.pcm) >= AUDIBLE)
        assert (sound.start, sound.end) == (loud[0], loud[-1] + 1)
        assert DELAY_MS[0] <= sound.delay_ms <= DELAY_MS[1]
        assert bool(sound.text) == (sound.kind != "cough")
        if sound.text:
            assert sound.voiced == sound.start
        assert sound.voiced is None or sound.start <= sound.voiced < sound.end


def test_noise_is_as_loud_as_said_and_never_stops() -> None:
    clips = suite("noise")
    assert len({(clip.noise, clip.snr_db) for clip in clips}) == 9
    for clip in clips:
        start, end = bounds(clip)
        said, noise = speech(clip)[start:end], np.resize(clip.background, end)[start:]
        assert clip.snr_db in SNR_DB
        assert 20 * np.log10(rms(said) / rms(noise)) == pytest.approx(clip.snr_db, abs=0.2)
        assert SPEECH_DBFS[0] - 2 < dbfs(said) < SPEECH_DBFS[1] + 2
        after = [dbfs(clip.read(end + at, SPEECH_RATE)) for at in range(8000, 160_000, SPEECH_RATE)]
        assert max(after) - min(after) < 4


# ---- the synthesizer's own word boundaries


def spoken(text: str) -> Utterance:
    return speak([Line(text, "en-us")])[0]
