"""Recognisers with partial results of their own: nothing is lost, and settled words stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.asr.bursts import Bursts
from tests.asr.test_windowed import LevelAsr, LevelVad, Said, paused, render, speech
from tests.assembly.test_loading import path_with, plug_in
from tests.fakes import Script
from tests.support.user import Lexicon
from tests.test_session import HESITANT, converse
from voiceloop.asr.recording import transcribe_live
from voiceloop.asr.streaming import Partial, StreamingAsr, StreamingSession
from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.bundled import bundled
from voiceloop.engines import AsrRequest, AsrTurn
from voiceloop.settings.config import AsrConfig, TurnConfig
from voiceloop.types import AudioFrame, Pcm, Transcript, Word

pytestmark = pytest.mark.virtual


@dataclass
class Reader(StreamingAsr):
    """Reads the words that sound; the newest two of a partial result may be others in the end."""

    source: LevelAsr | Lexicon
    name: str = "reader"
    languages: tuple[str, ...] = ("en", "fr")
    opened: list[str | None] = field(default_factory=list[str | None])
    finals: int = 0

    def open(self, language: str | None) -> ReaderStream:
        self.opened.append(language)
        return ReaderStream(self)


class ReaderStream:
    def __init__(self, asr: Reader) -> None:
        self._asr = asr
        self._pcm = silence(0)

    def feed(self, pcm: Pcm) -> None:
        self._pcm = np.concatenate((self._pcm, pcm))

    def partial(self) -> Partial:
        words = self._words()
        return Partial(words[:-2], [replace(word, text=f"{word.text}?") for word in words[-2:]])

    def final(self) -> Sequence[Word]:
        self._asr.finals += 1
        return self._words()

    def _words(self) -> Sequence[Word]:
        if isinstance(self._asr.source, LevelAsr):
            return self._asr.source.transcribe(AsrRequest(self._pcm))
        return self._asr.source.read(self._pcm, final=True)


def heard(said: Sequence[Said], every_ms: int, **turns: Any) -> list[Transcript]:
    asr, config = Reader(LevelAsr(said)), AsrConfig(partial_every_ms=every_ms)
    return list(transcribe_live([render(said)], LevelVad(), asr, config, TurnConfig(**turns)))


@settings(deadline=None, max_examples=25)
@given(speech, st.integers(60, 600))
def test_every_word_is_in_the_final_transcript_and_none_that_is_committed_changes(
    said: list[Said], every_ms: int
) -> None:
    transcripts = heard(said, every_ms)
    assert [t.final for t in transcripts] == [False] * (len(transcripts) - 1) + [True]
    assert transcripts[-1].text.split() == [f"word{k + 1}" for k in range(len(said))]
    assert [t.revision for t in transcripts] == list(range(1, len(transcripts) + 1))
    before: tuple[Word, ...] = ()
    for transcript in transcripts:
        assert transcript.committed[: len(before)] == before
        before = transcript.committed


@settings(deadline=None, max_examples=25)
@given(paused, st.integers(60, 600))
def test_a_pause_is_heard_as_it_was_and_words_keep_their_times(
    said: list[Said], every_ms: int
) -> None:
    final = heard(said, every_ms, hangover_ms=900)[-1]
    begins = np.cumsum([0.5] + [(word.length + word.gap) / 1000 for word in said])[:-1]
    assert [word.start for word in final.committed] == pytest.approx(begins.tolist(), abs=1e-3)


# ---- the session, step by step


def begin(heard: Pcm, start: int = 0) -> tuple[StreamingSession, Reader]:
    asr = Reader(LevelAsr([Said(300, 0)] * 9))
    audio = AudioFrame(heard, SPEECH_RATE, start)
    return StreamingSession(asr, AsrTurn(7, audio, start), samples(200)), asr


def word(number: int) -> Pcm:
    return np.full(samples(300), 0.1 + number / 1000, np.float32)


def work(session: StreamingSession, language: str | None = "en") -> Transcript:
    job = session.next_job()
    assert job is not None and session.next_job() is None, "one at a time"
    words = job.decode(language)
    assert words is not None
    return job.accept(words)


def test_words_count_from_the_beginning_of_the_stream_and_lost_frames_are_silence() -> None:
    session, asr = begin(word(1), 32_000)
    session.feed(AudioFrame(word(2), SPEECH_RATE, 48_000))
    first, second = work(session, "fr").tentative
    assert (first.start, second.start) == (pytest.approx(2.0), pytest.approx(3.0))
    assert session.hypothesis == "word1? word2?"
    assert asr.opened == ["fr"] and session.start == 32_000


def test_a_pause_gives_a_guess_which_is_final_unless_the_user_goes_on() -> None:
    session, asr = begin(word(1))
    session.pause(samples(300), samples(290))
    assert session.guess is None
    assert work(session).text == "word1"
    assert session.guess is not None and session.guess.final and session.next_job() is None
    session.resume(samples(300))
    assert session.guess is None
    session.feed(AudioFrame(word(2), SPEECH_RATE, samples(300)))
    assert work(session).text == "word1? word2?"
    session.pause(samples(600), samples(600))
    work(session)
    final = session.end(samples(900), samples(600))
    assert final is not None and final.final and final.text == "word1 word2"
    assert asr.finals == 2 and asr.opened == ["en"], "one stream hears the turn"


def test_speech_that_ended_later_is_heard_before_the_transcript_is_final() -> None:
    session, _ = begin(word(1))
    session.pause(samples(300), samples(290))
    work(session)
    session.feed(AudioFrame(word(2), SPEECH_RATE, samples(300)))
    assert session.end(samples(600), samples(600)) is None
    final = work(session)
    assert final.final and final.text == "word1 word2" and session.next_job() is None


# ---- in a conversation


async def test_a_conversation_is_the_same_by_either_kind_of_recogniser() -> None:
    def reader(script: Script) -> Any:
        return Reader(script)

    by_windows, by_stream = await converse(*HESITANT), await converse(*HESITANT, asr=reader)
    for one, other in zip(by_windows.traces, by_stream.traces, strict=True):
        assert (one.heard, one.outcome) == (other.heard, other.outcome)
    one, other = (
        [event.text for event in result.events if isinstance(event, Transcript) and event.final]
        for result in (by_windows, by_stream)
    )
    assert one == other != []


# ---- as a package


@pytest.mark.slow
def test_a_package_brings_one(tmp_path: Path) -> None:
    text = Path(__file__).with_name("bursts.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    plug_in(tmp_path, "bursts", text, "[voiceloop.asr]", "bursts = bursts:bursts")
    demo = str(bundled("models/starter/demo.wav"))

    def run(*argv: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "voiceloop", *argv, "--asr.engine", "bursts"],
            env=os.environ | {"PYTHONPATH": path_with(tmp_path)},
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    for more in ((), ("--streaming",)):
        words = run("transcribe", "--json", *more, demo)["words"]
        assert words and {word["text"] for word in words} == {"la"}
        assert all(word["start"] < word["end"] for word in words)
    assert run("ask", demo, "--pace", "max", "--json")["outcome"] == "done"


def test_a_stream_that_is_heard_in_one_piece_gives_its_final_words() -> None:
    assert [w.text for w in Bursts().transcribe(AsrRequest(word(400)))] == ["la"]
