"""The suites of the bench: the same each time, and what they say of themselves is true."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.bench.truth import bounds, check_audible, check_same, events
from voiceloop.asr.turns import TurnEnded
from voiceloop.asr.whisper import whisper
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.bench.clips import Clip
from voiceloop.bench.record import plain_words, word_error_rate, word_errors
from voiceloop.bench.suites import ESPEAK_VOICES, GENERAL, Line, SuiteName, build, by_espeak
from voiceloop.engines import AsrRequest
from voiceloop.errors import ConfigError
from voiceloop.settings.config import AsrConfig

pytestmark = pytest.mark.real

COUNTS: dict[SuiteName, int] = {"starter": 24, "questions": 24}


@cache
def suite(name: SuiteName) -> tuple[Clip, ...]:
    return build(name, COUNTS[name])


every_suite = pytest.mark.parametrize("name", COUNTS)


@pytest.fixture(autouse=True)
def flite(require_program: Callable[[str], Path]) -> None:
    """The program that speaks one of the suites."""
    require_program("flite")


# ---- the recipe


@pytest.mark.parametrize("name", ["starter", "questions"])
def test_the_same_seed_gives_the_same_samples_and_more_clips_the_same_first_ones(
    name: SuiteName,
) -> None:
    check_same(suite(name)[:3], build(name, 3))


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


def test_every_voice_was_learnt_by_the_starter_recogniser() -> None:
    from models.train.voices import ACCENTS, VARIANTS

    for voice in ESPEAK_VOICES:
        accent, plus, variant = voice.partition("+")
        assert accent in ACCENTS and (not plus or variant in VARIANTS)


def test_a_voice_that_there_is_not_is_refused_by_the_process_that_speaks() -> None:
    with pytest.raises(ConfigError, match="no voice called 'en-mars'"):
        by_espeak([Line("Hello.", "en-mars")])


def test_without_flite_there_is_one_line_and_a_hint(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "voiceloop", "bench", "latency", "--suite", "questions"]
    environment = os.environ | {"PATH": str(tmp_path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    told = [line for line in ran.stderr.splitlines() if line.startswith(("voiceloop:", "hint:"))]
    assert len(told) == 2 and "flite cannot be run" in told[0]
    assert "Traceback" not in ran.stderr


# ---- what is said, and when


@every_suite
def test_speech_is_audible_from_its_first_sample_to_its_last_and_nowhere_else(
    name: SuiteName,
) -> None:
    for clip in suite(name):
        check_audible(clip)


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


@pytest.mark.parametrize(("name", "off_ms"), [("starter", 20), ("questions", 60)])
def test_the_voice_detector_finds_the_true_end_of_speech(name: SuiteName, off_ms: int) -> None:
    for clip in suite(name)[:12]:
        found = events(clip.read(0, len(clip.pcm) + 2 * SPEECH_RATE))
        (end,) = [event for event in found if isinstance(event, TurnEnded)]
        assert abs(end.speech_end - bounds(clip)[1]) <= samples(off_ms)


def test_a_clip_can_be_read_for_ever_in_any_pieces() -> None:
    clip = suite("starter")[0]
    whole = clip.read(0, 20 * SPEECH_RATE)
    assert np.array_equal(whole[: len(clip.pcm)], clip.pcm)
    pieces = [clip.read(at, 1234) for at in range(0, len(whole) - 1234, 1234)]
    joined = np.concatenate(pieces)
    assert np.array_equal(joined, whole[: len(joined)])
    rest = whole[len(clip.pcm) :]
    assert np.array_equal(rest, np.resize(clip.background, len(whole))[len(clip.pcm) :])
