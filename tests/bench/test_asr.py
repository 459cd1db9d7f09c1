"""The recogniser against itself: windows, their beginnings, partials, and figures of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.bench.conftest import quiet
from tests.sounds import tone
from voiceloop.asr.windowed import WindowedAsr
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.asr import (
    CUTS_S,
    SHORT_WORDS,
    Compared,
    DecodeCase,
    beginnings,
    compare,
    figures,
    measure,
    prefixes,
    short,
)
from voiceloop.bench.suites import read_folder
from voiceloop.cli.main import main
from voiceloop.engines import AsrRequest
from voiceloop.types import Word

pytestmark = pytest.mark.models


class Clock(WindowedAsr):
    """A recogniser that hears a letter in each second of a window, and counts long windows."""

    name = "clock"

    def __init__(self, *, wrong_at: int | None = None) -> None:
        self.decoded: list[int] = []
        self.wrong_at = wrong_at
        self.counters = {"full_windows": 5}

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        assert request.final, "all are decoded as the end of a turn is"
        self.decoded.append(len(request.pcm))
        self.counters["full_windows"] += len(request.pcm) > 3 * SPEECH_RATE
        seconds = range(len(request.pcm) // SPEECH_RATE)
        words = ["wrong" if second == self.wrong_at else chr(97 + second) for second in seconds]
        return [Word(word, 0.0, 0.0, 1.0) for word in words]


def window(seconds: float, name: str = "a", said: str | None = None) -> DecodeCase:
    return DecodeCase(name, np.zeros(round(seconds * SPEECH_RATE), np.float32), said)


# ---- what is decoded


@pytest.mark.parametrize("seconds", [1.0, 2.0, 2.5, 5.0, 30.0])
def test_beginnings_are_cut_at_whole_seconds_and_shorter_than_the_clip(seconds: float) -> None:
    whole, *others = prefixes(window(seconds, said="words"))
    assert whole.text == "words"
    assert [len(one.pcm) for one in others] == [
        cut * SPEECH_RATE for cut in CUTS_S if cut < seconds
    ]
    assert all(one.text is None for one in others)
    assert len({one.name for one in (whole, *others)}) == len(others) + 1


def test_recordings_come_with_their_beginnings_and_what_is_said(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", tone(3.0), SPEECH_RATE)
    (tmp_path / "a.txt").write_text("what is it", encoding="utf-8")
    assert [(one.name, one.text) for one in beginnings(read_folder(tmp_path))] == [
        ("a", "what is it"),
        ("a to 2 s", None),
    ]


def test_short_questions_are_short_and_spoken_by_both_synthesizers(
    require_program: Callable[[str], Path],
) -> None:
    require_program("flite")
    made = short(6, 0)
    assert len(made) == 6
    for one, other in zip(made[::2], made[1::2], strict=True):
        assert one.text == other.text and len((one.text or "").split()) <= SHORT_WORDS
        assert not np.array_equal(one.pcm, other.pcm)
    assert len({one.text for one in made}) == 3
    again, others = short(6, 0), short(6, 1)
    assert [one.pcm.tobytes() for one in made] == [one.pcm.tobytes() for one in again]
    assert [one.text for one in made] != [one.text for one in others]


# ---- decoding


def test_both_decode_the_same_windows_and_neither_is_always_first() -> None:
    order: list[str] = []

    class Named(Clock):
        def __init__(self, called: str) -> None:
            super().__init__()
            self.called = called

        def transcribe(self, request: AsrRequest) -> Sequence[Word]:
            order.append(self.called)
            return super().transcribe(request)

    plain, fast = Named("plain"), Named("fast")
    found = compare([window(s, str(s)) for s in (2, 3, 4)], plain, fast, quiet)
    assert plain.decoded == fast.decoded == [2 * SPEECH_RATE, 3 * SPEECH_RATE, 4 * SPEECH_RATE]
    assert order == ["plain", "fast", "fast", "plain", "plain", "fast"]
    assert [one.plain for one in found] == [
        "a b",
        "a b c",
        "a b c d",
    ]
    assert all(one.plain == one.fast and one.plain_s > 0 < one.fast_s for one in found)


def test_every_corpus_has_its_figures_and_what_was_counted_meanwhile() -> None:
    fast, own = Clock(wrong_at=2), [window(4.0), window(2.0), window(3.0)]
    made = measure({"people": own, "questions": own[:1]}, Clock(), fast, quiet)
    people = made["windows"]["people"]
    assert (people["windows"], people["words"], people["words_that_differ"]) == (3, 4 + 2 + 3, 2)
    assert made["counters"]["full_windows"] == sum(n > 3 * SPEECH_RATE for n in fast.decoded) > 0


# ---- figures


def compared(plain: str, fast: str, said: str | None = None, name: str = "a") -> Compared:
    return Compared(window(1.0, name, said), plain, fast, 1.0, 0.25)


def test_words_that_differ_are_of_the_full_windows_and_errors_of_what_was_said() -> None:
    found = figures(
        [
            compared("what is it", "what is it", "what was it"),
            compared("a b c d", "a b c d c d", name="b"),
            compared("one two", "One, two!", "one two three"),
        ]
    )
    assert (found["words"], found["words_that_differ"], found["texts_that_differ"]) == (9, 2, 1)
    assert found["share"] == pytest.approx(2 / 9, abs=1e-4)
    assert (found["worst"]["name"], found["worst"]["words"]) == ("b", 2)
    assert found["worst"]["short"] == "a b c d c d"
    assert (found["time_ratio"], found["full_ms"], found["short_ms"]) == (0.25, 1000, 250)
    assert found["said"] == {"windows": 2, "words": 6, "errors_full": 2, "errors_short": 2}


# ---- the command


def test_the_command_prints_one_line_and_writes_a_report(
    tmp_path: Path, require_program: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    require_program("flite")
    soundfile.write(tmp_path / "a.wav", tone(1.0), SPEECH_RATE)
    arguments = ["--input", str(tmp_path), "--clips", "2", "--report", str(tmp_path / "r")]
    assert main(["bench", "asr", *arguments, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    made = json.loads(line)
    assert made["settings"]["asr"] == "whisper starter"
    assert json.loads((tmp_path / "r" / "bench.json").read_text()) == made
    assert (tmp_path / "r" / "report.md").is_file()
