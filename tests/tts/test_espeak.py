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
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceloop.audio.playback import AUDIBLE
from voiceloop.engines import Tts
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.languages.en import ENGLISH
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.tts.espeak import espeak, trim
from voiceloop.types import Clause, Pcm, Span, SpeechChunk, TokenBurst

pytestmark = pytest.mark.models

REPLIES = (
    "Hello.",
    "The capital of France is Paris. It is a city of 2.1 million people, and it lies on the Seine.",
    "Sure, here is how you make an omelet: crack 3 eggs into a bowl. Then fry them for 5-10 min.",
    "It costs $21.50 in the 1980s — doesn't it? Of the in the to be or not to be.",
    "Well-known e-mail, twenty-one: I. I am a, b, c. naïve 日本語 café 😀!",
    "12 + 9 = 21. At 4:30 p.m., 2024-03-05, see www.example.com/a.",
    "**Hi!** [[h@l'oU]] <speak>yes</speak>.\n- one\n- two\n",
)
FLUTTER = 0.03
"""The library's flutter makes the same text longer or shorter by this share at most."""


@pytest.fixture(scope="module")
def engine() -> Tts:
    return espeak(TtsConfig())


def cut(reply: str) -> list[Clause]:
    cutter = ClauseCutter(1, ENGLISH)
    return cutter.feed(TokenBurst(1, tuple(range(len(reply))), reply)) + cutter.flush()


def spoken(text: str, *, last: bool = True) -> Clause:
    """A clause that is said as `text`, whatever that is, with a span for each word."""
    spans, at = list[Span](), 0
    for count, word in enumerate(text.split()):
        at = text.index(word, at)
        spans.append(Span(at, at + len(word), count + 1))
        at += len(word)
    return Clause(1, 0, text, text, tuple(spans), last)


def say(engine: Tts, clause: Clause, voice: str | None = None) -> SpeechChunk:
    (chunk,) = engine.synthesize(clause, voice)
    assert chunk is not None
    return chunk


def seconds(engine: Tts, text: str, voice: str | None = None) -> float:
    return len(say(engine, spoken(text), voice).pcm) / engine.rate


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
        chunks = [say(engine, spoken(f"{word}.")) for word in ("you", "are", "now", "here")]
        return [fundamental(chunk, engine.rate) for chunk in chunks]

    alone = pitches()
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    for parameter in (3, 4):  # its pitch and its range
        library.espeak_SetParameter(parameter, pitch, 0)
    assert np.median(np.divide(pitches(), alone)) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("reply", REPLIES)
def test_every_spoken_word_has_its_time_in_the_audio(engine: Tts, reply: str) -> None:
    for clause in cut(reply):
        chunk = say(engine, clause)
        assert (chunk.turn, chunk.clause, chunk.start, chunk.last) == (1, clause, 0, True)
        assert chunk.pcm.dtype == np.float32
        assert np.abs(chunk.pcm).max(initial=0) <= 1
        check_words(chunk)
        assert all(word.end - word.start > engine.rate // 100 for word in chunk.words)


def test_a_word_ends_where_the_pause_behind_it_begins(engine: Tts) -> None:
    chunk = say(engine, spoken("yes, no"))
    yes, no = chunk.words
    assert no.start - yes.end > engine.rate // 20
    assert np.abs(chunk.pcm[yes.end : no.start]).max() < AUDIBLE


@pytest.mark.parametrize("reply", REPLIES)
def test_silence_around_a_clause_is_trimmed_and_the_pause_follows_its_mark(
    engine: Tts, reply: str
) -> None:
    for clause in cut(reply):
        pcm = say(engine, clause).pcm
        if not len(pcm):
            continue
        loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
        assert loud[0] <= 0.006 * engine.rate
        pause = {",": 0.15, ":": 0.2, ".": 0.3, "!": 0.3, "?": 0.3}.get(clause.spoken[-1], 0)
        after = (len(pcm) - loud[-1]) / engine.rate
        assert after == pytest.approx(0 if clause.last else pause, abs=0.02)


def test_clauses_join_without_a_click(engine: Tts) -> None:
    for reply in REPLIES:
        for clause in cut(reply):
            pcm = say(engine, clause).pcm
            assert np.abs(pcm[:1]).max(initial=0) < 1e-3
            assert np.abs(pcm[-1:]).max(initial=0) < 1e-3


def test_audio_that_begins_and_ends_loud_is_faded() -> None:
    pcm, cut = trim(np.full(2000, 0.5, np.float32), 22_050)
    assert (len(pcm), cut, pcm[0], pcm[-1]) == (2000, 0, 0, 0)
    assert np.abs(np.diff(pcm)).max() < 0.02


def test_quiet_around_the_sound_is_cut_but_for_a_little() -> None:
    rate = 22_050
    sound = np.full(2000, 0.5, np.float32)
    quiet = np.full(rate, 0.001, np.float32)
    pcm, cut = trim(np.concatenate((quiet, sound, quiet)), rate)
    assert rate - cut == round(0.003 * rate)
    assert len(pcm) == round(0.003 * rate) + len(sound) + round(0.010 * rate)
    assert not len(trim(quiet, rate)[0])


def pitch(pcm: Pcm, rate: int) -> float:
    """Fundamental frequency in Hertz, by autocorrelation."""
    longest = rate // 50
    shortest = rate // 400
    correlation = np.correlate(pcm, pcm, "full")[len(pcm) - 1 :]
    return rate / (shortest + int(np.argmax(correlation[shortest:longest])))


def test_the_voice_stays_up_where_a_phrase_goes_on_and_falls_at_the_end(engine: Tts) -> None:
    text, rate = "this is the phrase that simply goes on", engine.rate
    on, over = (say(engine, spoken(text, last=last)).pcm for last in (False, True))
    on_ends, over_ends = (pitch(pcm[-rate // 8 : -rate // 16], rate) for pcm in (on, over))
    assert on_ends > 1.1 * over_ends


@pytest.mark.parametrize("text", ["", " ", "...", "😀", "\x00\x01", "—", "\ud800", "?!"])
def test_what_cannot_be_said_is_no_audio_and_no_error(engine: Tts, text: str) -> None:
    chunk = say(engine, spoken(text, last=False))
    assert len(chunk.pcm) == 0
    assert chunk.last
    check_words(chunk)


def test_markup_and_commands_are_only_text(engine: Tts) -> None:
    assert seconds(engine, '<speak>one <break time="60s"/> two</speak>') < 8
    assert seconds(engine, "[[_:_:_:_:_:_:_:_:]] one") < 8
    plain = seconds(engine, "one   80 s two")
    assert seconds(engine, "one \x01 80 s two") == pytest.approx(plain, rel=FLUTTER)
    assert seconds(engine, "hello there") == pytest.approx(
        seconds(engine, "hello\x00there"), rel=FLUTTER
    )


@settings(max_examples=60)
@given(st.text(max_size=40))
def test_any_text_is_said_and_every_word_timed(text: str) -> None:
    check_words(say(espeak(TtsConfig()), spoken(text)))


def test_a_long_clause_and_a_word_without_end_are_said(engine: Tts) -> None:
    assert seconds(engine, "word and " * 60) > 20
    check_words(say(engine, spoken("a" * 5000 + " b")))


def test_closing_a_step_generator_anywhere_leaves_the_engine_usable(engine: Tts) -> None:
    before = seconds(engine, "hello there")
    unbegun, begun = (engine.synthesize(spoken("one two three")) for _ in range(2))
    next(begun)
    unbegun.close()
    begun.close()
    assert seconds(engine, "hello there") == pytest.approx(before, rel=FLUTTER)


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


def test_speed_scales_the_speech() -> None:
    slow, normal, fast = (
        seconds(espeak(TtsConfig(speed=speed)), "the capital of France is Paris")
        for speed in (0.7, 1.0, 2.0)
    )
    assert slow > 1.2 * normal > 1.2 * 1.4 * fast


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
from voiceloop.tts.espeak import espeak, trim
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
    chunk = say(engine, spoken("internationalization go"))
    (long, short) = (word.end - word.start for word in chunk.words)
    assert long > 3 * short
    assert all(a.end <= b.start for a, b in pairwise(chunk.words))
