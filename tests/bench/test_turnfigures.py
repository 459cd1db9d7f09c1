"""From takes to figures: latency from the true end, endpoints, words, carry-over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.made import BEGAN, END, answered, clip, take
from voiceloop.bench.clips import ClipSpeech
from voiceloop.bench.record import word_errors
from voiceloop.bench.turnfigures import cpu_ratio, mode_figures, outcome, paired_times, ratio
from voiceloop.trace.record import Mark

pytestmark = pytest.mark.pure

SAID = clip().said


def test_latency_is_counted_from_the_true_end_whatever_the_detector_took_for_it() -> None:
    # The trace has the end of speech 10 ms late.
    found = outcome(take(answered().trace("done"), ends=[END + 0.2], heard=["what is it"]), SAID)
    assert found.voice_to_voice_ms == pytest.approx(300)
    assert found.endpoint_to_sound_ms == pytest.approx(100)
    assert found.endpoint_delay_ms == pytest.approx(200)
    assert found.parts_ms["endpoint wait"] == pytest.approx(200)
    assert sum(found.parts_ms.values()) == pytest.approx(300)
    assert (found.cut_offs, found.text) == (0, "what is it")
    assert found.trace is not None
    assert found.trace.marks[Mark.SPEECH_END] == BEGAN + END


def test_an_endpoint_in_a_pause_is_a_cut_off_and_what_was_heard_is_joined() -> None:
    said = clip().said
    first = answered(1, end=1.0, endpoint=0.1, sound=0.2).trace("interrupted")
    second = answered(2).trace("done")
    found = outcome(take(first, second, ends=[1.1, END + 0.2], heard=["what is", "the time"]), said)
    assert found.cut_offs == 1
    assert found.voice_to_voice_ms == pytest.approx(300)
    assert found.text == "what is the time"


def test_an_endpoint_that_does_not_come_in_time_is_missed() -> None:
    for ends in ([], [END + 1.6]):
        assert outcome(take(ends=ends), SAID).endpoint_delay_ms is None
    figures = mode_figures([outcome(take(), ClipSpeech(None, SAID.start, SAID.end))], [])
    assert figures["missed_endpoints"] == 1
    assert figures["voice_to_voice_ms"] == {"p50": None, "p95": None}


def test_what_follows_an_interruption_is_left_out() -> None:
    second = answered(2, end=4.0).trace("done")
    found = outcome(
        take(
            answered(1).trace("interrupted"),
            second,
            ends=[END + 0.2, 4.2],
            heard=["what is it", "stop"],
            interrupted=3.0,
        ),
        SAID,
    )
    assert found.voice_to_voice_ms == pytest.approx(300)
    assert found.text == "what is it"


def test_figures_add_up_words_and_shares() -> None:
    heard = {0.25: "what is the time", 0.35: "what is", 0.45: "what is the time"}
    outcomes = [
        outcome(
            take(answered(sound=sound).trace("done"), ends=[END + 0.2], heard=[heard[sound]]), SAID
        )
        for sound in heard
    ]
    whole = [word_errors("what is the time", "what is the")] * 3
    figures = mode_figures(outcomes, whole)
    assert figures["voice_to_voice_ms"]["p50"] == pytest.approx(350)
    assert figures["parts_off_by_ms"] == 0
    assert figures["wer"] == round(2 / 12, 4)
    assert figures["tail_words_lost"] == 1  # two, of which the whole clip misses one too
    assert (figures["turns"], figures["answered"], figures["false_cutoffs"]) == (3, 3, 0)


@given(st.lists(st.tuples(st.floats(0.21, 3), st.floats(0.21, 3)), min_size=1, max_size=9))
def test_ratios_and_costs_are_of_the_same_things_said(times: list[tuple[float, float]]) -> None:
    def outcomes(side: int, factor: float = 1.0) -> list:
        return [
            outcome(take(answered(sound=factor * pair[side]).trace("done"), cpu_s=pair[side]), SAID)
            for pair in times
        ]

    silent = outcome(take(), SAID)
    slow, fast = [*outcomes(0), silent], [*outcomes(1), outcomes(1)[0]]
    assert len(paired_times(slow, fast)) == len(times)
    assert ratio(slow, slow) == 1
    assert cpu_ratio(slow, slow) == 1
    assert ratio([silent], [silent]) is None
    doubled = ratio(outcomes(0, 2), outcomes(0))
    assert doubled == pytest.approx(2, abs=0.002)
