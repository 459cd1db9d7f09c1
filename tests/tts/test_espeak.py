"""The real espeak-ng: its audio, its word times, and text that tries to be more than text."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from itertools import pairwise
from threading import Thread

import espeakng_loader  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
import pytest

from tests.tts import saying
from tests.tts.saying import clause
from voiceloop.audio.playback import AUDIBLE
from voiceloop.engines import Tts
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.espeak import espeak
from voiceloop.types import Clause, SpeechChunk

pytestmark = pytest.mark.models

FLUTTER = 0.03
"""The library's flutter makes the same text longer or shorter by this share at most."""


@pytest.fixture(scope="module")
def engine() -> Tts:
    return espeak(TtsConfig())


def say(engine: Tts, said: Clause, voice: str | None = None) -> SpeechChunk:
    (chunk,) = saying.say(engine, said, voice)
    return chunk


def seconds(engine: Tts, text: str, voice: str | None = None) -> float:
    return len(say(engine, clause(text), voice).pcm) / engine.rate


def check_words(chunk: SpeechChunk) -> None:
    """Every span's word is there once, in order, inside the audio."""
    assert [word.span for word in chunk.words] == list(range(len(chunk.clause.spans)))
    times = [0, *(time for word in chunk.words for time in (word.start, word.end)), len(chunk.pcm)]
    assert times == sorted(times)


def fundamental(chunk: SpeechChunk, rate: int) -> float:
    """The fundamental in Hz, by the autocorrelation of the loudest 100 ms."""
    size = rate // 10
    loud = int(np.argmax(np.convolve(chunk.pcm**2, np.ones(size), "valid")))
    piece = chunk.pcm[loud : loud + size]
    similar = np.correlate(piece, piece, "full")[size - 1 :]
    lags = slice(rate // 300, rate // 60)
    return rate / (lags.start + int(np.argmax(similar[lags])))


@pytest.mark.parametrize("pitch", [10, 90])
def test_who_else_speaks_in_the_process_does_not_change_the_voice(engine: Tts, pitch: int) -> None:
    def pitches() -> list[float]:
        chunks = [say(engine, clause(f"{word}.")) for word in ("you", "are", "now", "here")]
        return [fundamental(chunk, engine.rate) for chunk in chunks]

    alone = pitches()
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    for parameter in (3, 4):  # its pitch and its range
        library.espeak_SetParameter(parameter, pitch, 0)
    assert np.median(np.divide(pitches(), alone)) == pytest.approx(1, abs=0.1)


def test_a_word_ends_where_the_pause_behind_it_begins(engine: Tts) -> None:
    chunk = say(engine, clause("yes, no"))
    yes, no = chunk.words
    assert no.start - yes.end > engine.rate // 20
    assert np.abs(chunk.pcm[yes.end : no.start]).max() < AUDIBLE


def test_markup_and_commands_are_only_text(engine: Tts) -> None:
    assert seconds(engine, '<speak>one <break time="60s"/> two</speak>') < 8
    assert seconds(engine, "[[_:_:_:_:_:_:_:_:]] one") < 8
    plain = seconds(engine, "one   80 s two")
    assert seconds(engine, "one \x01 80 s two") == pytest.approx(plain, rel=FLUTTER)
    assert seconds(engine, "hello there") == pytest.approx(
        seconds(engine, "hello\x00there"), rel=FLUTTER
    )


def test_a_long_clause_and_a_word_without_end_are_said(engine: Tts) -> None:
    assert seconds(engine, "word and " * 60) > 20
    check_words(say(engine, clause("a" * 5000 + " b")))


def test_engines_with_different_voices_do_not_mix() -> None:
    configs = (TtsConfig(voice="en-us"), TtsConfig(voice="de+f3", speed=1.5))
    engines = [espeak(config) for config in configs]
    alone = [seconds(engine, "one two three four") for engine in engines]
    assert alone[0] > 1.2 * alone[1]
    together: list[list[float]] = [[], []]

    def work(index: int) -> None:
        for _ in range(10):
            together[index].append(seconds(engines[index], "one two three four"))

    threads = [Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in range(2):
        assert together[index] == pytest.approx([alone[index]] * 10, rel=FLUTTER)


@pytest.mark.parametrize("voice", ["en-us", "EN-GB", "English (America)", "gmw/en-US", "de+f3"])
def test_a_voice_goes_by_its_language_its_name_or_its_place(voice: str) -> None:
    assert seconds(espeak(TtsConfig(voice=voice)), "hello") > 0.2


def test_a_clause_may_be_spoken_in_any_voice_that_is_offered() -> None:
    engine, german = espeak(TtsConfig()), espeak(TtsConfig(voice="de"))
    assert engine.voice == "en-us"
    assert {"en-us", "de", "fr"} <= set(engine.voices())
    for voice in (*engine.voices(), "en-gb", "de+f3"):
        engine.check_voice(voice)
    text = "the capital of France is Paris"
    american, other = seconds(engine, text), seconds(german, text)
    assert abs(american / other - 1) > 2 * FLUTTER
    for asked in (engine, german):
        assert seconds(asked, text, "en-us") == pytest.approx(american, rel=FLUTTER)
        assert seconds(asked, text, "de") == pytest.approx(other, rel=FLUTTER)
    assert seconds(engine, text) == pytest.approx(american, rel=FLUTTER)


@pytest.mark.parametrize(
    ("voice", "code"),
    [
        ("en-us", "en"),
        ("English (Scotland)", "en"),
        ("de+f3", "de"),
        ("es-419", "es"),
        ("fr", "fr"),
    ],
)
def test_a_voice_tells_its_language(voice: str, code: str) -> None:
    assert language(espeak(TtsConfig(voice=voice)).language()).code == code


@pytest.mark.parametrize(
    ("voice", "hint"),
    [
        ("nosuch", "en-gb"),
        ("en-uss", "'en-us'"),
        ("en-us+f33", "'f3'"),
        ("zzzzzz", "en-gb"),
    ],
)
def test_an_unknown_voice_is_an_error_that_names_the_nearest(voice: str, hint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        espeak(TtsConfig(voice=voice))
    assert hint in raised.value.hint


def test_the_same_replies_in_a_fresh_process_give_the_same_audio() -> None:
    script = """
import hashlib
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.espeak import espeak
from voiceloop.types import Clause
engine = espeak(TtsConfig())
for text in ("The capital of France is Paris.", "It lies on the Seine."):
    for chunk in engine.synthesize(Clause(1, 0, text, text)):
        print(hashlib.sha256(chunk.pcm.tobytes()).hexdigest())
"""
    run = [sys.executable, "-c", script]
    first, second = (subprocess.run(run, capture_output=True, check=True).stdout for _ in range(2))
    assert len(first.split()) == 2
    assert first == second


def test_times_follow_the_words(engine: Tts) -> None:
    """Each word takes about the share of the time that it takes when it is said alone."""
    chunk = say(engine, clause("internationalization go"))
    (long, short) = (word.end - word.start for word in chunk.words)
    assert long > 3 * short
    assert all(a.end <= b.start for a, b in pairwise(chunk.words))
