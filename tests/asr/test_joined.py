"""Two sayings of people, one right after the other: of neither is anything lost."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.asr.test_tiny_en import engine
from voiceloop.asr.recording import transcribe_live, transcribe_recording
from voiceloop.asr.silero import silero
from voiceloop.asr.whisper import Whisper
from voiceloop.asr.window import gone
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import HighPass, dbfs, samples, silence
from voiceloop.bench.record import word_errors
from voiceloop.engines import AsrRequest
from voiceloop.settings.config import AsrConfig, TurnConfig, VadConfig
from voiceloop.types import Pcm

pytestmark = pytest.mark.models

SAID = {
    "LJ001-0001": "Printing, in the only sense with which we are at present concerned, differs "
    "from most if not from all the arts and crafts represented in the Exhibition",
    "LJ001-0002": "in being comparatively modern.",
    "LJ001-0008": "has never been surpassed.",
    "LJ001-0010": "as all books not primarily intended as picture-books consist principally of "
    "types composed to form letterpress,",
    "jfk": "And so my fellow Americans, ask not what your country can do for you, ask what you can "
    "do for your country.",
}
LOUD = 0.02
MOST_S = 0.8
"""The longest gap between two."""


@pytest.fixture
def clips(speech: Path) -> dict[str, Pcm]:
    """The recordings, without what is before and behind the speech."""
    found = dict[str, Pcm]()
    for name in SAID:
        with AudioFile(speech / f"{name}.flac") as file:
            pcm = np.concatenate(list(file.blocks()))
        loud = np.flatnonzero(np.abs(pcm) > LOUD)
        found[name] = pcm[loud[0] : loud[-1] + 1]
    return found


def joins(clips: Mapping[str, Pcm], count: int) -> Iterator[tuple[str, Pcm]]:
    """What is said in pairs of them, and how that sounds."""
    drawn = random.Random(0)
    for _ in range(count):
        first, second = drawn.sample(sorted(clips), 2)
        gap = silence(samples(1000 * drawn.uniform(0, MOST_S)))
        parts = (silence(3200), clips[first], gap, clips[second], silence(9600))
        yield f"{SAID[first]} {SAID[second]}", np.concatenate(parts)


def check_settled(asr: Whisper, pcm: Pcm) -> None:
    """In a conversation nothing is missing at last that partial decodes had settled."""
    settled: list[str] = []
    vad, config = silero(VadConfig()), AsrConfig(model="tiny.en")
    for transcript in transcribe_live([pcm], vad, asr, config, TurnConfig()):
        committed = [word.text for word in transcript.committed]
        if transcript.final:
            assert not gone(settled, committed), f"{settled} became {committed}"
        settled = [] if transcript.final else committed


def written(asr: Whisper, pcm: Pcm) -> str:
    """The transcript of a recording."""
    config = AsrConfig(model="tiny.en")
    found = transcribe_recording([pcm], silero(VadConfig()), asr, config, TurnConfig())
    return " ".join(transcript.text for transcript in found if transcript.final)


def plain(asr: Whisper, pcm: Pcm) -> str:
    """What faster-whisper makes of all of it."""
    found, _ = asr._model.transcribe(
        pcm, language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False,
        without_timestamps=True,
    )  # fmt: skip
    return " ".join(segment.text.strip() for segment in found)


@pytest.mark.parametrize(
    ("count", "most"),
    [pytest.param(1, 3, id="quick"), pytest.param(60, 5, id="all", marks=pytest.mark.full)],
)
def test_no_saying_is_lost_where_two_meet(clips: dict[str, Pcm], count: int, most: int) -> None:
    shortest = dict(sorted(clips.items(), key=lambda clip: len(clip[1]))[:most])
    asr = engine()
    errors = theirs = words = 0
    for said, pcm in joins(shortest, count):
        check_settled(asr, pcm)
        compared = word_errors(said, written(asr, pcm))
        errors, words = errors + compared.errors, words + compared.words
        theirs += word_errors(said, plain(asr, pcm)).errors
    assert errors <= theirs + 0.01 * words, f"{errors} against {theirs} of {words}"


def test_a_saying_is_kept_that_a_decode_leaves_out(clips: dict[str, Pcm]) -> None:
    asr = engine()
    last = clips["jfk"][samples(7650) :]
    for name in ("LJ001-0002", "LJ001-0008"):
        for gap in (0, 300, 400):
            parts = (silence(1600), clips[name], silence(samples(gap)), last, silence(1600))
            words = asr.transcribe(AsrRequest(np.concatenate(parts)))
            text = " ".join(word.text for word in words)
            said = f"{SAID[name]} Ask what you can do for your country."
            assert word_errors(said, text).errors <= 2, f"{gap}: {text}"
    assert asr.counters["looked_again"] > 2, "the decoder left nothing out"
    before = asr.counters["looked_again"]
    for pcm in clips.values():
        asr.transcribe(AsrRequest(pcm))
    assert asr.counters["looked_again"] == before, "a saying by itself is decoded once"


@pytest.mark.parametrize(("level_db", "offset"), [(-20, 0.05), (-54, 0.02), (-60, 0.05)])
def test_soft_speech_beside_an_offset_is_understood(
    clips: dict[str, Pcm], level_db: float, offset: float
) -> None:
    asr = engine()
    for name in ("LJ001-0002", "LJ001-0008", "jfk"):
        loud = np.concatenate((silence(8000), clips[name], silence(8000)))
        gain = 10 ** ((level_db - dbfs(clips[name])) / 20)
        soft = (np.rint((gain * loud + offset) * 2**23) / 2**23).astype(np.float32)
        clean, heard = written(asr, loud), written(asr, HighPass().feed(soft))
        assert word_errors(clean, heard).errors <= 2, heard
