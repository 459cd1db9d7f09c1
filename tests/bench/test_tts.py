"""What is measured of a synthesizer: a scripted one, whose figures are known, and espeak-ng."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from tests.bench.conftest import quiet
from voiceloop.asr.windowed import WindowedAsr
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.record import plain_words
from voiceloop.bench.tts import measure, speak, texts
from voiceloop.cli.main import main
from voiceloop.engines import AsrRequest, Steps
from voiceloop.types import Clause, SpeechChunk, Word

pytestmark = pytest.mark.models

RATE = 8_000


class Hummer:
    """Says each word as a tenth of a second of one tone; the first piece is a quarter."""

    name, rate, voice, paces = "hummer", RATE, "hum", False

    def voices(self) -> Sequence[str]:
        return [self.voice]

    def check_voice(self, name: str) -> None:
        assert name == self.voice

    def language(self, voice: str | None = None) -> str:
        return "en-us"

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        yield None
        pcm = np.full(len(clause.spans) * RATE // 10, 0.1, np.float32)
        cut = len(pcm) // 4
        yield SpeechChunk(clause.turn, clause, pcm[:cut], RATE, 0)
        yield SpeechChunk(clause.turn, clause, pcm[cut:], RATE, cut, last=True)


class Parrot(WindowedAsr):
    """Hears every reply in turn, the last word of every other one wrong."""

    name = "parrot"

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        said = texts()[len(self.seconds)]
        self.seconds.append(len(request.pcm) / SPEECH_RATE)
        words = said.split()
        if len(self.seconds) % 2 == 0:
            words[-1] = "wrong"
        return [Word(word, 0.0, 0.0, 1.0) for word in words]


def test_figures_are_of_all_clauses_and_words() -> None:
    tts, asr = Hummer(), Parrot()
    found, heard = measure(texts()[:4], tts, asr, quiet)
    words = [len(plain_words(reply)) for reply in texts()[:4]]
    assert found["audio_s"] == pytest.approx(sum(words) / 10)
    assert found["clauses"] == sum(len(speak(tts, reply)) for reply in texts()[:4])
    assert 0 < found["first_share"] <= 1
    assert found["first_audio_ms"]["p50"] <= found["whole_clause_ms"]["p50"]
    assert (found["words"], found["errors"]) == (sum(words), 2)
    # A reply is recognised whole, with silence around it.
    assert asr.seconds == pytest.approx([0.6 + count / 10 for count in words])
    assert [one["errors"] for one in heard["recognised"]] == [0, 1, 0, 1]
    assert [one["words"] for one in heard["recognised"]] == words


def test_the_command_prints_one_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "tts", "--replies", "2", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert found["bench"] == "tts"
    assert found["settings"]["tts"] == "espeak" and found["settings"]["asr"] is None
    assert found["audio_s"] > 2 and found["real_time_factor"] > 0
