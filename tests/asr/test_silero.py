"""Voice activity and endpoints on speech: synthetic with known ends, and human voices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from faster_whisper.vad import get_vad_model

from tests.sounds import chunks
from voiceloop.asr.silero import MUTE, MUTE_WINDOWS, Silero, silero
from voiceloop.asr.turns import SpeechDetector, SpeechStarted, TurnEnded, TurnEvent
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import Framer, Resampler, dbfs, samples, silence
from voiceloop.settings.config import TtsConfig, TurnConfig, VadConfig
from voiceloop.tts.espeak import espeak
from voiceloop.types import Clause, Pcm

pytestmark = pytest.mark.models

RATE = 16_000
WINDOW = 512
TEXTS = ("What time is it?", "Tell me how bees make honey.", "How many cups are in a litre?")


def say(text: str) -> Pcm:
    """Speech that ends where the synthesizer's sound falls 40 dB below its peak."""
    engine = espeak(TtsConfig())
    pcm = np.concatenate([c.pcm for c in engine.synthesize(Clause(1, 0, text, text)) if c])
    resampler = Resampler(engine.rate, RATE)
    pcm = np.concatenate((resampler.feed(pcm), resampler.flush()))
    loud = np.flatnonzero(np.abs(pcm) > 0.01 * np.abs(pcm).max())
    return 0.5 * pcm[loud[0] : loud[-1] + 1] / np.abs(pcm).max()


def noise(seconds: float, level: float) -> Pcm:
    return (level * np.random.default_rng(0).standard_normal(int(seconds * RATE))).astype("f4")


def stream(pcm: Pcm, lengths: Sequence[int] = (4000,)) -> list[float]:
    """Probabilities of the whole windows of `pcm`, fed in chunks of these lengths."""
    vad, framer = silero(VadConfig()), Framer(size=WINDOW)
    return [
        vad.probability(frame.pcm) for piece in chunks(pcm, lengths) for frame in framer.feed(piece)
    ]


def events(pcm: Pcm, config: TurnConfig) -> list[TurnEvent]:
    detector = SpeechDetector(config, ends=True)
    frames = Framer(size=WINDOW).feed(pcm)
    windows = zip(frames, stream(pcm), strict=True)
    return [e for frame, p in windows for e in detector.feed(frame, p)] + detector.flush()


def test_streaming_gives_exactly_what_the_batch_use_gives() -> None:
    pcm = np.concatenate((noise(0.5, 0.001), say(TEXTS[0]), silence(1000), noise(1.0, 0.01)))
    whole = len(pcm) // WINDOW * WINDOW
    # The batch use blanks the end of its last window, so one more is appended and left out.
    batch = get_vad_model()(np.concatenate((pcm[:whole], silence(WINDOW)))).ravel()[:-1]
    assert np.abs(np.array(stream(pcm[:whole])) - batch).max() < 1e-6


def test_after_a_microphone_was_off_a_stream_begins_anew() -> None:
    speech = say(TEXTS[0])
    off = np.tile(np.array([MUTE, -MUTE], np.float32), MUTE_WINDOWS * WINDOW // 2)
    found = stream(np.concatenate((speech[: 20 * WINDOW], off, off, speech)))
    assert max(found[:20]) > 0.9
    assert min(found[20 : 20 + MUTE_WINDOWS - 1]) > 0, "a pause may be as quiet"
    assert set(found[20 + MUTE_WINDOWS : 20 + 2 * MUTE_WINDOWS]) == {0.0}
    assert found[20 + 2 * MUTE_WINDOWS :] == stream(speech)
    assert min(stream(2 * off)) > 0, "what is louder is listened to"


@pytest.mark.parametrize("text", TEXTS)
def test_speech_is_speech_and_silence_and_noise_are_not(text: str) -> None:
    speech = say(text)
    pcm = np.concatenate((silence(RATE), speech, silence(RATE)))
    found = np.array(stream(pcm))
    first, last = RATE // WINDOW, (RATE + len(speech)) // WINDOW
    assert (found[first + 3 : last] > 0.5).mean() > 0.8
    assert found[: first - 1].max() < 0.2
    assert found[last + 4 :].max() < 0.2
    assert max(stream(noise(2.0, 0.01))) < 0.5


def test_streams_do_not_know_of_each_other_and_forget_on_reset() -> None:
    windows = [frame.pcm for frame in Framer(size=WINDOW).feed(say(TEXTS[1]))][:40]
    alone = Silero()
    expected = [alone.probability(window) for window in windows]
    one, other = Silero(), Silero()
    mixed: list[float] = []
    for window in windows:
        other.probability(-window[::-1])
        mixed.append(one.probability(window))
    assert mixed == expected
    one.reset()
    assert [one.probability(window) for window in windows] == expected


@pytest.mark.parametrize("level", [0.0, 0.0003, 0.001])
@pytest.mark.parametrize("text", TEXTS)
def test_the_end_of_clean_speech_is_found_to_twenty_milliseconds(text: str, level: float) -> None:
    speech = say(text)
    lead = 9000
    pcm = np.concatenate((silence(lead), speech, silence(RATE)))
    pcm += noise(len(pcm) / RATE, level)[: len(pcm)]
    found = events(pcm, TurnConfig())
    assert isinstance(found[0], SpeechStarted) and isinstance(found[-1], TurnEnded)
    assert sum(isinstance(event, TurnEnded) for event in found) == 1
    assert found[0].start <= lead
    assert abs(found[-1].speech_end - lead - len(speech)) <= samples(20)
    assert found[-1].sample - found[-1].speech_end < samples(500) + WINDOW


# ---- human voices

HUMAN = os.environ.get("VOICELOOP_SPEECH")
human = pytest.mark.skipif(
    HUMAN is None, reason="VOICELOOP_SPEECH names no folder of human recordings"
)


def recording(name: str) -> Pcm:
    with AudioFile(Path(HUMAN or "") / name) as file:
        return np.concatenate([*file.blocks(), silence(RATE)])


def bounds(pcm: Pcm) -> tuple[int, int]:
    """First and last sample of what is at most 35 dB below the loudest 10 ms."""
    step = samples(10)
    levels = np.array([dbfs(pcm[at : at + step]) for at in range(0, len(pcm) - step, step)])
    loud = np.flatnonzero(levels > levels.max() - 35)
    return int(loud[0]) * step, int(loud[-1] + 1) * step


@human
@pytest.mark.parametrize("name", ["LJ001-0001", "LJ001-0002", "LJ001-0008", "LJ001-0010"])
def test_a_human_voice_is_heard_from_its_onset_to_its_end(name: str) -> None:
    pcm = recording(f"{name}.flac")
    first, last = bounds(pcm)
    # A reader's pauses inside a sentence are shorter than this hangover.
    begun, *_, ended = events(pcm, TurnConfig(hangover_ms=800))
    assert isinstance(begun, SpeechStarted) and isinstance(ended, TurnEnded)
    assert begun.start <= first
    assert abs(begun.speech_start - first) <= samples(100)
    assert abs(ended.speech_end - last) <= samples(50)


@human
def test_a_speech_with_long_pauses_is_cut_at_them_and_nowhere_else() -> None:
    pcm = recording("jfk.flac")  # 44.1 kHz stereo, with noise of its own
    found = events(pcm, TurnConfig(hangover_ms=500))
    turns = [
        (begun.speech_start / RATE, ended.speech_end / RATE)
        for begun, ended in zip(
            [event for event in found if isinstance(event, SpeechStarted)],
            [event for event in found if isinstance(event, TurnEnded)],
            strict=True,
        )
    ]
    assert len(turns) == 4
    for (begun, ended), (first, last) in zip(
        turns, [(0.32, 2.2), (3.3, 4.4), (5.4, 7.7), (8.2, 10.6)], strict=True
    ):
        assert abs(begun - first) < 0.2 and abs(ended - last) < 0.2


# ---- levels


def found_at(pcm: Pcm, gain: float) -> float:
    """The part of the windows of `pcm` that are speech, when it is so much louder."""
    return float((np.array(stream((gain * pcm).astype(np.float32))) > 0.5).mean())


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("gain_db", [-20, -40, -48])
def test_speech_is_speech_however_soft(text: str, gain_db: float) -> None:
    pcm = np.concatenate((silence(RATE // 2), say(text)))
    loud, soft = found_at(pcm, 1.0), found_at(pcm, 10 ** (gain_db / 20))
    assert soft > loud - 0.15


@pytest.mark.parametrize("gain_db", [0, -20, -40, -60])
def test_noises_are_no_speech_however_soft(gain_db: float) -> None:
    at = np.arange(3 * RATE) / RATE
    drawn = np.random.default_rng(1)
    strokes = np.zeros(3 * RATE)
    for begin in drawn.integers(0, 3 * RATE - 400, 20):
        strokes[begin : begin + 300] += drawn.normal(0, 0.3, 300) * np.exp(-np.arange(300) / 60)
    noises = (
        noise(3.0, 0.1),
        0.2 * np.sin(2 * np.pi * 50 * at) + 0.1 * np.sin(2 * np.pi * 150 * at),
        0.3 * np.sin(2 * np.pi * 440 * at),
        strokes,
    )
    for sound in noises:
        assert found_at(np.asarray(sound, np.float32), 10 ** (gain_db / 20)) < 0.05
