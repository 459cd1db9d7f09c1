"""The suites of the bench: the same each time, and what they say of themselves is true."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from voiceloop.asr.silero import silero
from voiceloop.asr.turns import SpeechStarted, TurnDetector, TurnEnded, TurnEvent
from voiceloop.asr.whisper import whisper
from voiceloop.audio.frames import SPEECH_RATE, Framer, dbfs, samples
from voiceloop.audio.playback import AUDIBLE
from voiceloop.bench.clips import Clip, Pause
from voiceloop.bench.flite import VOICES as flite_voices
from voiceloop.bench.flite import speak as speak_by_flite
from voiceloop.bench.scoring import plain_words, word_error_rate, word_errors
from voiceloop.bench.sentences import sentence
from voiceloop.bench.sounds import ROOM_DBFS, rms
from voiceloop.bench.suites import (
    DELAY_MS,
    GENERAL,
    LEAD_MS,
    PAUSE_MS,
    SNR_DB,
    SPEECH_DBFS,
    SuiteName,
    build,
)
from voiceloop.bench.utterances import VOICES, Line, Utterance, place, speak
from voiceloop.config import AsrConfig, TurnConfig, VadConfig
from voiceloop.engines import AsrRequest
from voiceloop.errors import ConfigError, EngineError
from voiceloop.types import Pcm

pytestmark = pytest.mark.models

COUNTS: dict[SuiteName, int] = {
    "starter": 24,
    "questions": 24,
    "pauses": 24,
    "bargein": 60,
    "noise": 18,
    "additions": 12,
}
ROUNDING = 1e-6
"""The speech is known as what was heard less the background."""


@cache
def suite(name: SuiteName) -> tuple[Clip, ...]:
    return build(name, COUNTS[name])


def speech(clip: Clip) -> Pcm:
    """What is said in `clip`, without the background."""
    return clip.pcm - np.resize(clip.background, len(clip.pcm))


def pauses(clip: Clip) -> Sequence[Pause]:
    assert clip.said.pauses is not None
    return clip.said.pauses


def bounds(clip: Clip) -> tuple[int, int]:
    assert clip.said.start is not None and clip.said.end is not None
    return clip.said.start, clip.said.end


every_suite = pytest.mark.parametrize("name", COUNTS)
BY_ESPEAK = [name for name in COUNTS if name != "questions"]


@pytest.fixture(autouse=True)
def flite(require_program: Callable[[str], Path]) -> None:
    """The program that speaks one of the suites."""
    require_program("flite")


# ---- the recipe


@pytest.mark.parametrize("name", ["pauses", "questions"])
def test_the_same_seed_gives_the_same_samples_and_more_clips_the_same_first_ones(
    name: SuiteName,
) -> None:
    first = suite(name)[:3]
    for clip, again in zip(first, build(name, 3), strict=True):
        assert clip.pcm.tobytes() == again.pcm.tobytes()
        assert clip.background.tobytes() == again.background.tobytes()
        assert clip.said == again.said


def test_another_seed_and_another_suite_draw_everything_anew() -> None:
    pairs = [(suite("pauses"), build("pauses", 3, seed=1)), (suite("bargein"), suite("starter"))]
    for left, right in pairs:
        assert [clip.said.text for clip in left[:3]] != [clip.said.text for clip in right[:3]]
        for one, other in zip(left, right[:3], strict=False):
            assert bounds(one)[0] != bounds(other)[0]
            assert not np.array_equal(one.background, other.background)


@pytest.mark.parametrize("name", ["starter", "questions"])
def test_no_question_comes_again_before_all_have_been_asked(name: SuiteName) -> None:
    texts = [clip.said.text for clip in suite(name)]
    assert len(set(texts)) == len(texts)


def test_questions_of_any_kind_are_many_and_none_the_starters() -> None:
    from models.train.domain import utterance

    assert len(set(GENERAL)) == len(GENERAL) >= 80
    own = {" ".join(plain_words(text)) for text in GENERAL}
    rng = random.Random(0)
    for split in ("train", "heldout"):
        drawn = {" ".join(plain_words(utterance(rng, split))) for _ in range(5000)}
        assert not own & drawn
    lengths = [len(text.split()) for text in GENERAL]
    assert sum(length <= 6 for length in lengths) >= 50 and max(lengths) >= 20


def test_questions_of_any_kind_are_words_alone() -> None:
    # Numbers and abbreviations could be written in more than one way.
    assert all(
        re.fullmatch(r"(?:[A-Z]?[a-z]+,? |[AI] )*[A-Z]?[a-z]+[.?]", text) for text in GENERAL
    )


def test_every_voice_of_flite_is_heard() -> None:
    assert {clip.voice for clip in suite("questions")} == set(flite_voices)


def test_voices_and_places_vary() -> None:
    clips = suite("starter")
    assert len({clip.voice for clip in clips}) > len(VOICES) / 2
    windows = {bounds(clip)[0] % 512 // 64 for clip in clips}
    assert len(windows) >= 6


def test_every_voice_was_learnt_by_the_starter_recogniser() -> None:
    from models.train.voices import ACCENTS, VARIANTS

    for voice in VOICES:
        accent, plus, variant = voice.partition("+")
        assert accent in ACCENTS and (not plus or variant in VARIANTS)


def test_a_voice_that_there_is_not_is_refused_by_the_process_that_speaks() -> None:
    with pytest.raises(ConfigError, match="no voice called 'en-mars'"):
        speak([Line("Hello.", "en-mars")])


def test_without_flite_there_is_one_line_and_a_hint(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "voiceloop", "bench", "latency", "--suite", "questions"]
    environment = os.environ | {"PATH": str(tmp_path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    told = [line for line in ran.stderr.splitlines() if line.startswith(("voiceloop:", "hint:"))]
    assert len(told) == 2 and "flite cannot be run" in told[0]
    assert "Traceback" not in ran.stderr


def test_a_voice_that_flite_does_not_have_is_refused() -> None:
    with pytest.raises(EngineError, match="no voice called 'mars'"):
        speak_by_flite([Line("Hello.", "mars")])


# ---- what is said, and when


@every_suite
def test_speech_is_audible_from_its_first_sample_to_its_last_and_nowhere_else(
    name: SuiteName,
) -> None:
    for clip in suite(name):
        start, end = bounds(clip)
        level = np.abs(speech(clip))
        assert min(level[start], level[end - 1]) >= AUDIBLE - ROUNDING
        assert max(level[:start].max(), level[end:].max()) < AUDIBLE + ROUNDING
        assert samples(LEAD_MS[0]) <= start <= samples(LEAD_MS[1])
        assert np.abs(clip.pcm).max() < 1


@pytest.mark.parametrize("name", BY_ESPEAK)
def test_words_are_in_order_and_all_that_is_audible_belongs_to_one(name: SuiteName) -> None:
    for clip in suite(name):
        words = clip.said.words
        assert words is not None
        assert " ".join(word.text for word in words) == clip.said.text
        assert (words[0].start, words[-1].end) == bounds(clip)
        assert all(one.start < one.end <= other.start for one, other in pairwise(words))
        level = np.abs(speech(clip))
        for word in words:
            level[word.start : word.end] = 0
        assert level.max() < AUDIBLE + ROUNDING


def test_words_sound_where_they_are_said_to() -> None:
    asr = whisper(AsrConfig())
    right = 0
    for clip in suite("starter")[:6]:
        assert clip.said.words is not None
        heard = asr.transcribe(AsrRequest(clip.pcm, timed=True))
        if len(heard) == len(clip.said.words):
            gaps = [
                abs(mine.end / SPEECH_RATE - word.end)
                for mine, word in zip(clip.said.words, heard, strict=True)
            ]
            right += np.median(gaps) < 0.1
    assert right >= 4


@pytest.mark.parametrize("name", ["pauses", "additions"])
def test_pauses_are_silent_between_words_and_as_long_as_drawn(
    name: SuiteName,
) -> None:
    for clip in suite(name):
        words, level = clip.said.words, np.abs(speech(clip))
        assert words is not None and pauses(clip)
        for pause in pauses(clip):
            assert words[pause.words - 1].end == pause.start
            assert words[pause.words].start == pause.end
            assert samples(PAUSE_MS[0]) <= pause.end - pause.start <= samples(PAUSE_MS[1])
            assert level[pause.start : pause.end].max() < AUDIBLE + ROUNDING
            # Past the margin it is the room and nothing else, at the room's own level.
            inner = clip.pcm[pause.start + samples(6) : pause.end - samples(6)]
            assert np.abs(inner).max() < AUDIBLE
            assert dbfs(inner) == pytest.approx(ROOM_DBFS, abs=1.5)


@given(st.integers(1, 3), st.floats(40, 700), st.integers(0, 9000), st.floats(-40, -20), st.data())
def test_a_pause_in_a_steady_sound_makes_no_click(
    words: int, length_ms: float, lead: int, dbfs: float, data: st.DataObject
) -> None:
    count = 8000
    starts = sorted(data.draw(st.lists(st.integers(800, 7200), min_size=3, max_size=3)))
    assume(min(b - a for a, b in pairwise([0, *starts, count])) > samples(40))
    steady = np.sin(np.arange(count) * 0.3).astype(np.float32)
    said = Utterance("a b c d", steady, (0, *starts), (True,) * 4)
    sound, truth = place(said, sentence("a b c d"), {words: length_ms}, lead, dbfs)
    assert truth.pauses and truth.start is not None
    (pause,) = truth.pauses
    assert pause.words == words and pause.end - pause.start == samples(length_ms)
    assert abs(pause.start - truth.start - starts[words - 1]) < samples(25)
    loudest = np.abs(sound).max()
    assert np.abs(np.diff(sound)).max() <= 0.3 * loudest
    audible = np.flatnonzero(np.abs(sound) >= AUDIBLE)
    assert (truth.start, truth.end) == (audible[0], audible[-1] + 1)
    assert not ((audible >= pause.start) & (audible < pause.end)).any()
    assert truth.start >= lead


def test_one_or_two_pauses_lie_anywhere_between_words() -> None:
    clips = suite("pauses")
    assert {len(pauses(clip)) for clip in clips} == {1, 2}
    places = {pause.words for clip in clips for pause in pauses(clip)}
    assert {1, 2, 3, 4} <= places
    lengths = [pause.end - pause.start for clip in clips for pause in pauses(clip)]
    assert min(lengths) < samples(300) and max(lengths) > samples(600)


def test_an_addition_comes_after_a_pause() -> None:
    for clip in suite("additions"):
        assert clip.addition is not None
        (pause,) = pauses(clip)
        assert pause.standing == "whole"
        assert pause.prefix == clip.addition.first.rstrip(".?")
        assert clip.said.text == clip.addition.longer


def test_the_recogniser_understands_what_is_said() -> None:
    asr = whisper(AsrConfig())
    compared = [
        word_errors(
            str(clip.said.text),
            " ".join(word.text for word in asr.transcribe(AsrRequest(clip.pcm))),
        )
        for clip in suite("starter")[:12]
    ]
    assert sum(one.errors == 0 for one in compared) >= 9
    assert (word_error_rate(compared) or 0) < 0.1


# ---- what the voice detector makes of it


def events(pcm: Pcm) -> list[TurnEvent]:
    vad = silero(VadConfig())
    detector = TurnDetector(TurnConfig(endpoint="fixed", hangover_ms=1200))
    frames = Framer(size=512).feed(pcm)
    return [e for frame in frames for e in detector.feed(frame, vad.probability(frame.pcm))]


@pytest.mark.parametrize(("name", "off_ms"), [("starter", 20), ("questions", 60)])
def test_the_voice_detector_finds_the_true_end_of_speech(name: SuiteName, off_ms: int) -> None:
    for clip in suite(name)[:12]:
        found = events(clip.read(0, len(clip.pcm) + 2 * SPEECH_RATE))
        (end,) = [event for event in found if isinstance(event, TurnEnded)]
        assert abs(end.speech_end - bounds(clip)[1]) <= samples(off_ms)


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


def test_a_clip_can_be_read_for_ever_in_any_pieces() -> None:
    clip = suite("starter")[0]
    whole = clip.read(0, 20 * SPEECH_RATE)
    assert np.array_equal(whole[: len(clip.pcm)], clip.pcm)
    pieces = [clip.read(at, 1234) for at in range(0, len(whole) - 1234, 1234)]
    joined = np.concatenate(pieces)
    assert np.array_equal(joined, whole[: len(joined)])
    rest = whole[len(clip.pcm) :]
    assert np.array_equal(rest, np.resize(clip.background, len(whole))[len(clip.pcm) :])


# ---- the synthesizer's own word boundaries


def spoken(text: str) -> Utterance:
    return speak([Line(text, "en-us")])[0]


def test_no_pause_is_put_where_the_synthesizer_runs_words_together() -> None:
    said = spoken("Tell me the length of the day on Mars.")
    joined = [i for i, distinct in enumerate(said.distinct) if not distinct]
    assert joined == [said.text.split().index("of") + 1]
